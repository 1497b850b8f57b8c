"""What a data set's policy approves by itself; everything else waits for a curator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, Final, cast

from private_ate.arguments import exact_number, settle, truth_value
from private_ate.errors import ArgumentError
from private_ate.estimators.registry import METHODS, known_estimands
from private_ate.privacy.ledger.names import check_name

__all__ = ["Policy", "Wish"]

_NANO: Final = 10**9
_MOST_COLUMNS: Final = 1000


@dataclass(frozen=True, slots=True)
class Wish:
    """What a policy looks at: the method and estimand, the cost, and what was asked before.

    ``subgroups`` are the columns that people are divided by, ``outcomes`` those that are answered
    about.
    """

    method: str
    estimand: str
    epsilon: int  # billionths
    delta: int
    has_interval: bool
    month: int  # billionths of ε that the analyst asked of the population in thirty days
    outcomes: tuple[str, ...] = ()
    subgroups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits within which a plan is approved at once.

    Attributes
    ----------
    automatic : bool
        Whether anything is approved without a curator.
    methods, estimands : tuple of text
        What may be used.
    outcomes, subgroups : tuple of text, optional
        Columns that may be answered about, and that people may be divided by; None is every one
        that the domain declares, () is none.
    epsilon_per_request, epsilon_per_month : text
        The most ε of one request, and of an analyst's requests to the population in thirty days.
    needs_interval : bool
        Whether a request must pay for a confidence interval.
    two_persons : bool
        Whether a curator's approval needs a second curator.
    """

    automatic: bool = True
    methods: tuple[str, ...] = ("calibrated", "blocks")
    estimands: tuple[str, ...] = ("ate", "att", "atc", "ato")
    outcomes: tuple[str, ...] | None = None
    subgroups: tuple[str, ...] | None = None
    epsilon_per_request: str = "0.5"
    epsilon_per_month: str = "1"
    needs_interval: bool = False
    two_persons: bool = False

    def __post_init__(self) -> None:
        for name in ("automatic", "needs_interval", "two_persons"):
            settle(self, **{name: truth_value(name, getattr(self, name))})
        for name in ("epsilon_per_request", "epsilon_per_month"):
            number = exact_number(name, getattr(self, name), "0", "1000000")
            settle(self, **{name: _decimal(number)})
        settle(self, methods=_words("methods", self.methods, tuple(METHODS)))
        settle(self, estimands=_words("estimands", self.estimands, known_estimands()))
        for name in ("outcomes", "subgroups"):
            settle(self, **{name: _columns(name, getattr(self, name))})

    @classmethod
    def read(cls, plain: object) -> Policy:
        """Build a policy from plain values, as JSON gives them."""
        known = [field.name for field in fields(cls)]
        if not isinstance(plain, Mapping) or not set(plain) <= set(known):
            msg = f"a policy has {', '.join(known)}"
            raise ArgumentError(msg)
        return cls(**plain)

    @property
    def plain(self) -> dict[str, Any]:
        """The policy as plain JSON values."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def objections(self, wish: Wish) -> tuple[str, ...]:
        """Say why a plan is not approved at once; empty if it is. Follows public facts alone."""
        whole = Fraction(wish.epsilon, _NANO)
        outcomes = _beyond(wish.outcomes, self.outcomes)
        subgroups = _beyond(wish.subgroups, self.subgroups)
        month = Fraction(wish.epsilon + wish.month, _NANO)
        found = (
            (not self.automatic, "every request is looked at by a curator"),
            (wish.method not in self.methods, f"method {wish.method!r} is not on the list"),
            (
                wish.estimand not in self.estimands,
                f"the {wish.estimand.upper()} is not on the list",
            ),
            (bool(outcomes), f"outcome {', '.join(outcomes)} is not on the list"),
            (bool(subgroups), f"subgroups by {', '.join(subgroups)} are not on the list"),
            (
                whole > Fraction(self.epsilon_per_request),
                f"one request may cost ε = {self.epsilon_per_request} at most",
            ),
            (
                month > Fraction(self.epsilon_per_month),
                f"an analyst may ask for ε = {self.epsilon_per_month} in thirty days",
            ),
            (wish.delta > 0, "a method with δ > 0 is looked at by a curator"),
            (self.needs_interval and not wish.has_interval, "an interval is wanted"),
        )
        return tuple(text for applies, text in found if applies)


def _words(name: str, value: object, known: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(word in known for word in value):
        msg = f"{name} are some of {', '.join(known)}"
        raise ArgumentError(msg)
    return tuple(dict.fromkeys(value))


def _columns(name: str, value: object) -> tuple[str, ...] | None:
    """Read a list of columns; None stands for all."""
    if value is None:
        return None
    listed = isinstance(value, list | tuple) and len(value) <= _MOST_COLUMNS
    if not listed or not all(isinstance(word, str) for word in cast("list[object]", value)):
        msg = f"{name} is a list of columns, or null for all that are declared"
        raise ArgumentError(msg)
    return tuple(dict.fromkeys(check_name("column", word) for word in cast("list[str]", value)))


def _beyond(asked: tuple[str, ...], allowed: tuple[str, ...] | None) -> list[str]:
    """Return what is asked and not allowed."""
    return [] if allowed is None else [repr(name) for name in asked if name not in allowed]


def _decimal(number: Fraction) -> str:
    """Return a number of at most nine decimals as text, rounded down."""
    units = int(number * _NANO)
    whole, rest = divmod(units, _NANO)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
