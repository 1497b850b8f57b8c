"""Worst-case neighbours for any method, and every noisy step of a method on them.

The studies are as small as the methods accept and unbalanced, so that one record carries a large
weight; the record that differs stands at one end of everything that is declared, then at another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from private_ate.api import Method
from private_ate.audit.replay import Call, Recording, moved_share
from private_ate.domain import Domain, Interval, Outcome, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.privacy.entropy import SecureEntropy
from private_ate.privacy.levels import Level, has_public_covariates
from private_ate.privacy.metrics import Metric, Spend
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

EPSILON = Fraction(1)  # where an audit sees most
_ROWS, _FEW = 24, 2
_DOMAIN = Domain(Treatment("t", treated=1, control=0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
_ARMS = Domain(Treatment("t", arms=("a", "b", "c")), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
_MISSING_DOMAIN = Domain(
    Treatment("t", treated=1, control=0),
    Outcome("y", Interval(0, 1), "private"),
    {"x": Interval(0, 1)},
)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two studies that differ in one record, and how."""

    title: str
    first: LocalStudy
    second: LocalStudy


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the choke point on both neighbours, ready to be drawn again and again.

    ``spread`` says whether neighbours move several sums of arms, each of which has its own noise.
    """

    spend: Spend
    moved: bool
    spread: bool
    first: Callable[[], Any]
    second: Callable[[], Any]


def neighbours_for(level: Level, *, missing: bool = False) -> Iterator[Neighbours]:
    """Yield pairs of neighbours at a level: outcomes moved, and whole records at sample level.

    With ``missing``, also pairs of which one study lacks an outcome, where that is private.
    """
    last = _ROWS - 1
    base = _study()
    yield Neighbours("outcome of a rare treated unit", *_ends(base, 0))
    yield Neighbours("outcome of a control unit", *_ends(base, last))
    if not has_public_covariates(level):
        treated, control = _moved(base, 0, 0.0, 1), _moved(base, 0, 1.0, 0)
        yield Neighbours("a rare treated unit becomes control", treated, control)
        crowd = _study(treated=_ROWS // 2)
        yield Neighbours(
            "a unit changes ends", _moved(crowd, 0, 0.0, 1), _moved(crowd, 0, 1.0, 0, outcome=0)
        )

    if missing:
        for title, row in (("rare treated", 0), ("control", last)):
            low, high = (_shown(study) for study in _ends(base, row))
            gone = _without_outcome(low, row)
            yield Neighbours(f"outcome of a {title} unit goes missing", high, gone)
            yield Neighbours(f"low outcome of a {title} unit goes missing", low, gone)


def arm_neighbours(level: Level) -> Iterator[Neighbours]:
    """Yield pairs of neighbours of three arms: outcomes moved, and at sample level arms too."""
    base = _study_of_arms()
    yield Neighbours("outcome of a rare arm's unit", *_ends(base, 0))
    yield Neighbours("outcome of a reference unit", *_ends(base, _ROWS - 1))
    if not has_public_covariates(level):
        for title, arms in (
            ("a unit of one rare arm becomes one of another", (1, 2)),
            ("a unit of a rare arm becomes one of the reference", (2, 0)),
        ):
            yield Neighbours(title, *(_moved(base, 0, 1.0, arm) for arm in arms))
        ends = (_moved(base, 0, 0.0, 1), _moved(base, 0, 1.0, 2, outcome=0))
        yield Neighbours("a unit changes ends and arm", *ends)
        present = np.ones(_ROWS, dtype=np.bool_)
        gone = replace(base, takes_part=np.arange(_ROWS) > 0)
        whole = replace(_moved(base, 0, 1.0, 1), takes_part=present)
        yield Neighbours("a unit of a rare arm takes no part", whole, gone)


def noisy_steps(
    method: Method, level: Level, pair: Neighbours, epsilon: Fraction = EPSILON
) -> list[Step]:
    """Run a method on both neighbours, the second with the first's outputs, and pair the calls.

    With earlier outputs replayed, each step's input may differ by no more than it declares.
    """
    request = Request(level, epsilon)
    recorded = Recording()
    method.run(pair.first, request, Noise(SecureEntropy(), recorded))
    replayed = Recording(source=recorded)
    method.run(pair.second, request, Noise(SecureEntropy(), replayed))
    return [
        Step(one.spend, moved_share(one, other) > 0, _is_spread(one, other), one.draw, other.draw)
        for one, other in zip(recorded.calls, replayed.calls, strict=True)
    ]


def _is_spread(one: Call, other: Call) -> bool:
    if one.spend.metric is not Metric.MOVES:
        return False
    return int(np.count_nonzero(one.values != other.values)) > 1


def _study(treated: int = _FEW) -> LocalStudy:
    places = np.linspace(0.0, 1.0, _ROWS)[None]
    # All others at the low end: moving one then moves squared differences as far as sums.
    low = np.zeros(_ROWS, dtype=np.int32)
    return LocalStudy(_DOMAIN, places, np.arange(_ROWS) < treated, low)


def _study_of_arms() -> LocalStudy:
    """Return a study of three arms, two of them of two units each."""
    places = np.linspace(0.0, 1.0, _ROWS)[None]
    arm = np.zeros(_ROWS, dtype=np.uint8)
    arm[:_FEW], arm[_FEW : 2 * _FEW] = 1, 2
    return LocalStudy(_ARMS, places, arm, np.zeros(_ROWS, dtype=np.int32))


def _ends(study: LocalStudy, row: int) -> tuple[LocalStudy, LocalStudy]:
    """Return the study with one outcome at the low bound and with it at the high bound."""
    low, high = (_outcomes(study, row, value) for value in (0, OUTCOME_STEPS))
    return replace(study, outcome=low), replace(study, outcome=high)


def _shown(study: LocalStudy) -> LocalStudy:
    """Return the study under the rule that who lacks an outcome is private; everybody has one."""
    observed = np.ones(study.size, dtype=np.bool_)
    return replace(study, domain=_MISSING_DOMAIN, observed=observed)


def _without_outcome(study: LocalStudy, row: int) -> LocalStudy:
    observed = np.arange(study.size) != row
    return replace(study, outcome=_outcomes(study, row, OUTCOME_STEPS // 2), observed=observed)


def _moved(
    study: LocalStudy, row: int, place: float, arm: int, outcome: int = OUTCOME_STEPS
) -> LocalStudy:
    """Return the study with one row in another place and arm."""
    covariates, arms = study.covariates[:, :].copy(), study.treatment.copy()
    covariates[:, row], arms[row] = place, arm
    return LocalStudy(study.domain, covariates, arms, _outcomes(study, row, outcome))


def _outcomes(study: LocalStudy, row: int, value: int) -> npt.NDArray[np.int32]:
    outcome = np.array(study.outcome, dtype=np.int32)
    outcome[row] = value
    return outcome
