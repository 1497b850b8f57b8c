"""What is declared of a data set, asked of it, and approved by itself: plain values, read once.

A population owns a budget; everything that a policy does not approve waits for a curator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Final, cast

from private_ate.arguments import (
    check_name,
    exact_number,
    real_number,
    settle,
    truth_value,
    whole_number,
)
from private_ate.codec import DECIMAL, decode, encode
from private_ate.domain import Domain
from private_ate.errors import ArgumentError
from private_ate.ledger.cost import BudgetUnits
from private_ate.methods.registry import METHODS, known_estimands
from private_ate.privacy.budget import parse_epsilon
from private_ate.privacy.levels import Level

_Decimal = Annotated[str, DECIMAL]
_NANO: Final = 10**9
_MOST_COLUMNS: Final = 1000
LONGEST_PURPOSE: Final = 300


@dataclass(frozen=True, slots=True)
class Population:
    """The persons whose budget it is, and what it protects of them."""

    name: str
    level: Level
    total: BudgetUnits


@dataclass(frozen=True, slots=True)
class Budget:
    """A population's budget in decimal texts: what it is, and what is left of it."""

    population: str
    epsilon: str
    left: str
    delta: str
    delta_left: str


@dataclass(frozen=True, slots=True)
class Balance:
    """A population's budget as it may be shown."""

    population: str
    total: BudgetUnits
    left: BudgetUnits

    def answers(self, cost: BudgetUnits) -> int:
        """Return how many more answers of this ε the budget allows."""
        return max(self.left.epsilon, 0) // cost.epsilon

    @property
    def budget(self) -> Budget:
        """The amounts as texts."""
        total, left = self.total, self.left
        return Budget(
            self.population, total.epsilon_text, left.epsilon_text, total.delta_text,
            left.delta_text,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wish:
    """What a policy looks at: what would be released, its cost, and what was asked before.

    ``estimands`` are all that the release may turn out to be, after options and arms; ``subgroups``
    the columns that define subgroups. ``month`` is the ε that the analyst asked of the population
    in thirty days, in billionths as ``epsilon`` is, ``today`` the number of requests in 24 hours.
    """

    method: str
    estimands: tuple[str, ...]
    epsilon: int
    delta: int
    confidence: float | None  # None without an interval
    month: int = 0
    today: int = 0
    outcomes: tuple[str, ...] = ()
    subgroups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits within which a plan is approved at once.

    Where ``automatic`` is not set nothing is approved without a curator, and with ``two_persons``
    what waits needs a second one. ``estimands`` are what a release may be about: one of several
    arms' units counts as the ATT or the ATC, and arms compared as they are outside of a trial as a
    "difference". ``outcomes`` may be answered about and ``subgroups`` be defined by these columns;
    None is every one that the domain declares. Less than ``epsilon_at_least`` buys noise, and
    public facts again. A month of an analyst is thirty days, and a day 24 hours, of all requests to
    the population.
    """

    automatic: bool = True
    methods: tuple[str, ...] = ("calibrated", "blocks")
    estimands: tuple[str, ...] = ("ate", "att", "atc", "ato")
    outcomes: tuple[str, ...] | None = None
    subgroups: tuple[str, ...] | None = None
    epsilon_per_request: _Decimal = "0.5"
    epsilon_per_month: _Decimal = "1"
    epsilon_at_least: _Decimal = "0.01"
    requests_per_day: int = 50
    needs_interval: bool = False
    confidence_at_least: float = 0.9
    two_persons: bool = False

    def __post_init__(self) -> None:
        settle(self, **{name: check(name, getattr(self, name)) for name, check in _CHECKS.items()})

    @classmethod
    def read(cls, plain: object) -> Policy:
        """Build a policy from plain values, as JSON gives them."""
        return decode(cls, plain, "a policy")

    @property
    def typical(self) -> BudgetUnits | None:
        """The most ε of one request, None where every request waits for a curator."""
        epsilon = self.epsilon_per_request
        return None if epsilon == "0" else BudgetUnits.limit(epsilon)

    @property
    def plain(self) -> dict[str, Any]:
        """The policy as plain JSON values."""
        return cast("dict[str, Any]", encode(self))

    def is_looser_than(self, held: Policy) -> bool:
        """Whether it approves something at once, or by fewer persons, that another does not."""
        lists = ("methods", "estimands", "outcomes", "subgroups")
        most = ("automatic", "epsilon_per_request", "epsilon_per_month", "requests_per_day")
        least = ("epsilon_at_least", "needs_interval", "confidence_at_least", "two_persons")
        return (
            any(_beyond(getattr(self, name), getattr(held, name)) for name in lists)
            or any(_number(self, name) > _number(held, name) for name in most)
            or any(_number(self, name) < _number(held, name) for name in least)
        )

    def objections(self, wish: Wish) -> tuple[str, ...]:
        """Say why a plan is not approved at once; empty if it is. Follows public facts alone."""
        whole, month = Fraction(wish.epsilon, _NANO), Fraction(wish.epsilon + wish.month, _NANO)
        outcomes = _beyond(wish.outcomes, self.outcomes)
        subgroups = _beyond(wish.subgroups, self.subgroups)
        words = {"difference": "a difference of arms as they are"}
        estimands = " or ".join(
            words.get(each, f"the {each.upper()}")
            for each in wish.estimands
            if each not in self.estimands
        )
        confidence = wish.confidence
        found = (
            (not self.automatic, "every request is looked at by a curator"),
            (wish.method not in self.methods, f"method {wish.method!r} is not on the list"),
            (estimands, f"{estimands} is not on the list"),
            (outcomes, f"outcome {', '.join(outcomes)} is not on the list"),
            (subgroups, f"subgroups by {', '.join(subgroups)} are not on the list"),
            (
                whole > Fraction(self.epsilon_per_request),
                f"one request may cost ε = {self.epsilon_per_request} at most",
            ),
            (
                month > Fraction(self.epsilon_per_month),
                f"an analyst may ask for ε = {self.epsilon_per_month} in thirty days",
            ),
            (
                whole < Fraction(self.epsilon_at_least),
                f"one request costs ε = {self.epsilon_at_least} at least",
            ),
            (
                wish.today >= self.requests_per_day,
                f"an analyst may make {self.requests_per_day} requests in 24 hours",
            ),
            (wish.delta > 0, "a method with δ > 0 is looked at by a curator"),
            (self.needs_interval and confidence is None, "an interval is wanted"),
            (
                confidence is not None and confidence < self.confidence_at_least,
                f"the confidence of an interval is at least {self.confidence_at_least:g}",
            ),
        )
        return tuple(text for applies, text in found if applies)


@lru_cache(maxsize=256)
def _read_domain(text: str) -> Domain:
    """Read a domain once; every request asks for its data set's."""
    return Domain.from_toml(text)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table about a population as far as it is public, and the name of its file."""

    name: str = field(metadata={"column": "d.name"})
    population: str
    level: Level
    domain: Domain = field(metadata={"read": _read_domain})
    columns: tuple[str, ...] = field(metadata={"read": lambda text: tuple(json.loads(text))})
    size: int
    rows_per_person: int
    source: str
    digest: str
    closed: bool = field(metadata={"read": bool})
    policy: Policy = field(metadata={"read": lambda text: Policy.read(json.loads(text))})


@dataclass(frozen=True, slots=True)
class Question:
    """One request as its analyst words it; ``dummy`` asks simulated data instead.

    ``purpose`` says what the answer is for: curators read it, nothing is decided by it.
    ``by`` may come as one text and is kept as a list.
    Sampling weights are no part of it: those that a data set's domain declares are in force.
    """

    dataset: str
    epsilon: _Decimal
    method: str = "auto"
    estimand: str = "ate"
    among: str | None = None
    target: str = "balance"
    design: str = "unknown"
    probability: float | str | None = None
    by: tuple[str, ...] | str = ()
    overall: bool = False
    confidence: float | None = 0.95
    neighbors: int = 5
    covariates: tuple[str, ...] | None = None
    outcome_sd: float | None = None
    leave_out_undeclared: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    dummy: bool = False
    purpose: str = ""

    def __post_init__(self) -> None:
        parse_epsilon(self.epsilon)
        purpose = self.purpose.strip()
        # What does not print could be shown as something else.
        if len(purpose) > LONGEST_PURPOSE or not purpose.isprintable():
            msg = f"purpose is one line of text of at most {LONGEST_PURPOSE} characters"
            raise ArgumentError(msg)
        settle(self, epsilon=str(self.epsilon).strip(), purpose=purpose)
        settle(self, by=(self.by,) if isinstance(self.by, str) else tuple(self.by))
        names = self.covariates
        if names is not None and not 0 < len(set(names)) == len(names) <= _MOST_COLUMNS:
            msg = (
                "covariates are a list of different column names, or null for all that are declared"
            )
            raise ArgumentError(msg)

    @classmethod
    def read(cls, plain: object) -> Question:
        """Read a question from plain values; whatever is not known is refused."""
        return decode(cls, plain, "a request")

    @property
    def plain(self) -> dict[str, Any]:
        """The question as plain JSON values."""
        return cast("dict[str, Any]", encode(self))


def judged_estimands() -> tuple[str, ...]:
    """Return what a release may be about, as a policy lists it."""
    return (*known_estimands(), "difference")


def _number(policy: Policy, name: str) -> Fraction:
    """Return a limit or a switch of a policy as a number."""
    return Fraction(getattr(policy, name))


def _beyond(asked: tuple[str, ...] | None, allowed: tuple[str, ...] | None) -> list[str]:
    """Return what is asked and not allowed; None is everything."""
    if allowed is None:
        return []
    return (
        ["everything"] if asked is None else [repr(each) for each in asked if each not in allowed]
    )


def _amount(name: str, value: object) -> str:
    number = exact_number(name, value, "0", "1000000")
    return BudgetUnits(int(number * _NANO)).epsilon_text


def _words(name: str, value: object) -> tuple[str, ...]:
    known = tuple(METHODS) if name == "methods" else judged_estimands()
    if not isinstance(value, list | tuple) or not all(word in known for word in value):
        msg = f"{name} are some of {', '.join(known)}"
        raise ArgumentError(msg)
    return tuple(dict.fromkeys(value))


def _columns(name: str, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Check a list of columns; None stands for all."""
    if value is None:
        return None
    if len(value) > _MOST_COLUMNS:
        msg = f"{name} is a list of columns, or null for all that are declared"
        raise ArgumentError(msg)
    return tuple(dict.fromkeys(check_name("column", word) for word in value))


_CHECKS: Final[dict[str, Any]] = {
    **dict.fromkeys(("automatic", "needs_interval", "two_persons"), truth_value),
    **dict.fromkeys(("epsilon_per_request", "epsilon_per_month", "epsilon_at_least"), _amount),
    **dict.fromkeys(("methods", "estimands"), _words),
    **dict.fromkeys(("outcomes", "subgroups"), _columns),
    "requests_per_day": lambda name, value: whole_number(name, value, 0, 10**6),
    "confidence_at_least": lambda name, value: real_number(name, value, 0.5, 0.9999),
}
