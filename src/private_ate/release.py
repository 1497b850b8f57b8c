"""What leaves: a release holds paid-for numbers and public facts, and nothing else."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from private_ate.errors import ArgumentError
from private_ate.privacy.budget import Guarantee, Level, parse_epsilon
from private_ate.settings import Settings, plain_settings

if TYPE_CHECKING:
    from private_ate.report.html import PublicFacts

__all__ = ["Diagnostics", "Estimate", "Overlap", "Release"]

Pair = tuple[float, float]
_FIELDS = (
    "ate", "interval", "noise_interval", "epsilon", "delta", "level", "adjacency",
    "guarantee", "method", "n", "settings", "version",
)  # fmt: skip


def _finite(text: str) -> float:
    """Read a number; infinities and NaN, which a release never holds, are refused."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # False for NaN too


def _is_pair(value: object) -> bool:
    return value is None or (
        isinstance(value, list) and len(value) == 2 and all(_is_number(end) for end in value)
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_SHAPES: Final[dict[str, Callable[[object], bool]]] = {
    "ate": _is_number,
    "interval": _is_pair,
    "noise_interval": _is_pair,
    "epsilon": _is_number,
    "delta": lambda value: _is_number(value) and 0 <= cast("float", value) < 1,
    "level": lambda value: value in get_args(Level),
    "adjacency": _is_text,
    "guarantee": _is_text,
    "method": _is_text,
    "n": lambda value: type(value) is int and value > 0,
    "settings": lambda value: isinstance(value, dict),
    "version": _is_text,
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a method hands over: the noisy effect, its intervals and public settings.

    Methods that keep another promise than pure ε under replace-one say so: ``delta``, their own
    ``adjacency``, a noisy ``size`` where n itself is private, ``numerics`` where the proof speaks
    of ideal numbers, and ``void`` with the reason why nothing is promised.
    """

    ate: float
    noise_interval: Pair | None
    interval: Pair | None
    settings: Settings | Mapping[str, Any]
    delta: Fraction = Fraction(0)
    adjacency: str = ""
    size: int | None = None
    numerics: str = ""
    void: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """A treatment effect that may be shown to anybody, and what it promises.

    Attributes
    ----------
    ate : float
        The released average treatment effect, in units of the outcome.
    interval : pair of float or None
        Confidence interval for the effect, where the method pays for one.
    noise_interval : pair of float or None
        Range of the estimate without noise; says nothing about sampling or confounding.
    epsilon, delta : Fraction, float
        The privacy cost.
    level, adjacency, guarantee : str
        Who is protected, which data sets are neighbours, what is promised.
    method, n, settings, version : str, int, dict, str
        How the number came about; public facts only.
    """

    ate: float
    interval: Pair | None
    noise_interval: Pair | None
    epsilon: Fraction
    delta: float
    level: Level
    adjacency: str
    guarantee: str
    method: str
    n: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""

    @classmethod
    def of(
        cls, estimate: Estimate, guarantee: Guarantee, *, method: str, n: int, version: str
    ) -> Release:
        """Put an estimate and the guarantee under which it was made together."""
        return cls(
            ate=estimate.ate,
            interval=estimate.interval,
            noise_interval=estimate.noise_interval,
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            level=guarantee.level,
            adjacency=guarantee.adjacency,
            guarantee=str(guarantee),
            method=method,
            n=n,
            settings=plain_settings(estimate.settings),
            version=version,
        )

    @property
    def is_private(self) -> bool:
        """Whether the release keeps a differential privacy promise."""
        return not self.guarantee.startswith("none")

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain values; ε as the decimal number it was given as."""
        plain = {name: getattr(self, name) for name in _FIELDS}
        plain["epsilon"] = float(self.epsilon)
        plain["settings"] = dict(self.settings)
        for name in ("interval", "noise_interval"):
            plain[name] = None if plain[name] is None else list(plain[name])
        return plain

    def to_json(self) -> str:
        """Return the release as one JSON object."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_html(self, facts: PublicFacts | None = None) -> str:
        """Return the release as one self-contained page; ``facts`` adds public knowledge."""
        from private_ate.report.html import release_page  # report reads releases

        return release_page(self, facts)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read back a release that :meth:`to_json` wrote."""
        try:
            plain = json.loads(text, parse_float=_finite, parse_constant=_finite)
        except (ValueError, TypeError, RecursionError) as cause:
            msg = "this is not a release in JSON"
            raise ArgumentError(msg) from cause
        if not isinstance(plain, dict) or set(plain) != set(_FIELDS):
            msg = f"a release in JSON has exactly the fields {', '.join(_FIELDS)}"
            raise ArgumentError(msg)
        wrong = [name for name, fits in _SHAPES.items() if not fits(plain[name])]
        if wrong:
            msg = f"the release's {wrong[0]} is not what a release holds"
            raise ArgumentError(msg)
        plain["epsilon"] = parse_epsilon(plain["epsilon"])
        for name in ("interval", "noise_interval"):
            plain[name] = _pair(name, plain[name])
        return cls(**plain)

    def __str__(self) -> str:
        from private_ate.report.text import summarize  # report reads releases

        return summarize(self)


def _pair(name: str, ends: object) -> Pair | None:
    match ends:
        case None:
            return None
        case [int() | float() as low, int() | float() as high]:
            return low, high
    msg = f"the {name} of a release in JSON is a pair of numbers or null"
    raise ArgumentError(msg)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Counts of units by propensity score, in equal bins from 0 to 1.

    Public at label level, where covariates and treatment are; the curator's otherwise. Its repr
    shows no count.
    """

    treated: tuple[int, ...] = field(repr=False)
    control: tuple[int, ...] = field(repr=False)

    @property
    def alone(self) -> int:
        """Units in bins that hold nobody of the other arm."""
        return sum(
            first + second
            for first, second in zip(self.treated, self.control, strict=True)
            if not (first and second)
        )


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The curator's view of a study. Not private: computed from the records themselves.

    Never part of a release; made only by ``diagnose_ate``, and its repr shows no value.

    Attributes
    ----------
    exact_effect, limited_effect, plain_difference : float
        Matching without limits, matching within the published method's limits, and the
        difference in means; none carries noise.
    treated, control : int
        Sizes of the arms.
    effective_treated, effective_control : float
        Kish's effective sizes under the limited weights.
    balance : mapping
        Standardised mean differences of each feature before and after weighting.
    weights : mapping
        Smallest, median, 90 %, 99 % and largest weight of each arm.
    overlap : Overlap
        Propensity scores by arm.
    """

    exact_effect: float = field(repr=False)
    limited_effect: float = field(repr=False)
    plain_difference: float = field(repr=False)
    treated: int = field(repr=False)
    control: int = field(repr=False)
    effective_treated: float = field(repr=False)
    effective_control: float = field(repr=False)
    balance: Mapping[str, Pair] = field(repr=False)
    weights: Mapping[str, tuple[float, ...]] = field(repr=False)
    overlap: Overlap = field(repr=False)
    note: str = "not private, do not share"

    def to_html(self, release: Release | None = None) -> str:
        """Return the curator's page, watermarked; it compares with a release if given one."""
        from private_ate.report.curator import curator_page  # as above

        return curator_page(self, release)
