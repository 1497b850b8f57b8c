"""Record a method's releases on one data set and replay them on a neighbour.

With the earlier outputs frozen, every later query is the same function of the records in both
runs, so its inputs may differ by the declared sensitivity and no more. ``replay_findings`` lists
every way in which two runs break that promise; an empty list is what a private method shows.

An ``objective`` is heard as the loss itself. What its proof needs is that its gradient moves by
at most the declared amount in every coordinate, at any weights: it is probed at zero, at the
weights that the first run released, and far outside.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from private_ate.estimators.request import Request
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise, Spend
from private_ate.release import Estimate
from transcript import declared_share

ROUNDING = 1e-7  # of a float gradient; every other input is an exact integer


@dataclass(slots=True)
class Heard:
    """One call of the choke point: what it cost, what went in, what came out."""

    spend: Spend
    values: object
    output: object


@dataclass(slots=True)
class RecordingNoise(Noise):
    """The choke point with a tape; answers from another tape where one is given."""

    tape: list[Heard] = field(default_factory=list)
    answers: list[Heard] = field(default_factory=list)

    def _release(self, spend, values, draw):
        self.spends.append(spend)
        place = len(self.tape)
        known = place < len(self.answers) and self.answers[place].spend == spend
        output = self.answers[place].output if known else draw()
        self.tape.append(Heard(spend, values, output))
        return output


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a method: its tape and its estimate."""

    tape: list[Heard]
    estimate: Estimate


def record(method, study, request: Request, *, seed: int = 0, answers: list[Heard] | None = None):
    """Run a method with a tape."""
    noise = RecordingNoise(SeededEntropy(seed), answers=answers or [])
    return Run(noise.tape, method(study, request, noise))


def replay_findings(method, study, neighbour, request: Request, *, seed: int = 0) -> list[str]:
    """Return every broken promise between two neighbouring studies; none if all is well."""
    first = record(method, study, request, seed=seed)
    second = record(method, neighbour, request, seed=seed, answers=first.tape)
    findings = []
    calls = [[heard.spend for heard in run.tape] for run in (first, second)]
    if calls[0] != calls[1]:
        findings.append("the runs call different mechanisms, sensitivities, sizes or budgets")
    spent = sum(heard.spend.epsilon for heard in first.tape)
    if spent != request.epsilon:
        findings.append(f"the steps cost {float(spent):g}, not {float(request.epsilon):g}")
    for one, other in zip(first.tape, second.tape, strict=False):
        if one.spend == other.spend and (share := moved_share(one, other)) > 1:
            findings.append(f"{one.spend.step!r} moves by {share:.3g} times its sensitivity")
    if first.estimate.settings != second.estimate.settings or not np.array_equal(
        _numbers(first.estimate), _numbers(second.estimate)
    ):
        findings.append("the estimate depends on more than the released numbers")
    return findings


def moved_share(one: Heard, other: Heard) -> float:
    """Return how far two inputs are apart, as a share of what the mechanism declares."""
    declared = one.spend.sensitivity
    if one.spend.mechanism == "objective":
        weights = np.asarray(one.output, dtype=float)
        probes = (np.zeros(weights.size), weights, 50 * weights, -50 * weights)
        moved = [one.values.gradient(p) - other.values.gradient(p) for p in probes]
        return max(np.abs(m).max() for m in moved) / declared[0] / (1 + ROUNDING)
    return float(declared_share(one.spend, one.values, other.values))


def _numbers(estimate: Estimate) -> list[float]:
    intervals = (estimate.interval or (), estimate.noise_interval or ())
    return [estimate.ate, *intervals[0], *intervals[1]]
