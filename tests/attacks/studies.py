"""Small studies for the attacks, and a record-and-replay of the choke point."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest

from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.estimation import METHODS, estimate_study
from private_ate.estimators.request import Request
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS

SLOW = {"aim", "privsyn"}  # synthesizers take seconds a run: their attacks are long audits
CASES = [
    pytest.param(
        method, level, id=f"{method.name}-{level}",
        marks=[pytest.mark.audit] if method.name in SLOW else [],
    )
    for method in METHODS.values()
    for level in method.levels
]  # fmt: skip
every_case = pytest.mark.parametrize(("method", "level"), CASES)
DOMAIN = Domain("t", ("y", Interval(0, 1)), {"a": Interval(0, 1), "b": Interval(0, 1)})


def make_study(seed=0, rows=40, treated=0.3):
    """Return a study with both arms filled."""
    rng = np.random.default_rng(seed)
    treatment = rng.random(rows) < treated
    treatment[:2] = [True, False]
    return LocalStudy(
        DOMAIN,
        rng.random((2, rows)),
        treatment,
        rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32),
    )


def move(study, row, *, outcome, covariates=None, treated=None):
    """Return the study with one record replaced."""
    outcomes = study.outcome.copy()
    outcomes[row] = outcome
    places, treatment = study.covariates.copy(), study.treatment.copy()
    if covariates is not None:
        places[:, row] = covariates
    if treated is not None:
        treatment[row] = treated
    return replace(study, covariates=places, treatment=treatment, outcome=outcomes)


def neighbours(level, seed, rows=40):
    """Yield pairs of studies that differ in one record, at the ends of the domain."""
    study = make_study(seed, rows)
    places = (int(np.flatnonzero(study.treatment)[0]), int(np.flatnonzero(~study.treatment)[0]))
    for row in places:
        yield move(study, row, outcome=0), move(study, row, outcome=OUTCOME_STEPS)
        if level == "sample":
            yield (
                move(study, row, outcome=0, covariates=0.0, treated=False),
                move(study, row, outcome=OUTCOME_STEPS, covariates=1.0, treated=True),
            )
            yield (
                move(study, row, outcome=OUTCOME_STEPS, covariates=[0.0, 1.0], treated=True),
                move(study, row, outcome=OUTCOME_STEPS, covariates=[1.0, 0.0], treated=False),
            )


@dataclass
class Replay(Noise):
    """A choke point that keeps inputs and outputs, or answers with those of an earlier run."""

    entropy: object = field(default_factory=lambda: SeededEntropy(1))
    source: object = None
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)

    def _release(self, spend, values, draw):
        place = len(self.spends)
        self.spends.append(spend)
        self.inputs.append(np.array(values, dtype=object, copy=True))
        if self.source is not None:
            assert place < len(self.source.outputs), "the neighbour makes more calls"
        self.outputs.append(draw() if self.source is None else self.source.outputs[place])
        return self.outputs[-1]


def check_neighbours(method, level, first, second, epsilon=Fraction(1), **asked):
    """Demand that no step tells the neighbours apart by more than it declares."""
    request = Request(level, epsilon, **asked)
    recorded = Replay()
    estimate = method.run(first, request, recorded)
    replayed = Replay(source=recorded)
    other = method.run(second, request, replayed)
    assert recorded.spends == replayed.spends, "calls, shapes, sensitivities or ε differ"
    if not any(getattr(spend, "rho", 0) for spend in recorded.spends):
        assert recorded.spent == epsilon, "the steps do not add up to what the release says"
    for spend, one, another in zip(recorded.spends, recorded.inputs, replayed.inputs, strict=True):
        share = declared_share(spend, one, another)
        assert share <= 1, f"step {spend.step!r} moves {float(share):.3f} of what it declares"
    assert estimate == other, "something beside the steps' outputs is released"
    return recorded, replayed


def declared_share(spend, one, other):
    """Return how far two inputs are apart, at most one if within what the step declares."""
    assert one.shape == other.shape
    if spend.mechanism.startswith("smooth_") or spend.mechanism == "objective":
        return Fraction(0)  # rest on a private bound or on a gradient: they have their own tests
    moved = [abs(Fraction(a) - Fraction(b)) for a, b in zip(one.flat, other.flat, strict=True)]
    if spend.mechanism == "staircase_disjoint":
        assert sum(size > 0 for size in moved) <= 1
    if spend.mechanism.endswith("_disjoint"):
        return sum((s / d for s, d in zip(moved, spend.sensitivity, strict=True)), Fraction(0))
    limit = spend.sensitivity[0]
    if spend.mechanism in {"select", "cube"}:
        return max(moved) / limit
    if spend.mechanism == "gaussian":
        return sum(size**2 for size in moved) / Fraction(limit) ** 2
    if spend.mechanism == "gaussian_cells":
        return sum(size**2 for size in moved) / Fraction(limit)
    return sum(moved, Fraction(0)) / limit


def release_of(study, method, level, **asked):
    """Return a release of a study with the operating system's entropy."""
    return estimate_study(study, Request(level, Fraction(1), **asked), method)
