"""Run a method on one data set, replay its outputs on a neighbour, and list what gave it away.

The recorder and the ruler are those of ``private_ate.audit.replay``; here a whole run is judged:
its calls, its budget, and whether its estimate is a function of what the mechanisms released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from private_ate.audit.replay import Call, Recording, broken_promises, moved_share
from private_ate.effects.estimate import Estimate
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.release import Release
from private_ate.request import Request

__all__ = [
    "Call",
    "Recording",
    "Run",
    "broken_promises",
    "check_releases",
    "moved_share",
    "record",
    "replay_findings",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a method: the calls of its choke point, its estimate, the noise's own account."""

    recording: Recording
    estimate: Estimate
    noise: Noise

    @property
    def calls(self) -> list[Call]:
        """The calls in order."""
        return self.recording.calls


def record(
    method, study, request: Request, *, seed: int = 0, source: Recording | None = None
) -> Run:
    """Run a method with a recording, fresh or replaying another."""
    recording = Recording(source=source)
    noise = Noise(SeededEntropy(seed), recording)
    return Run(recording, method(study, request, noise), noise)


def replay_findings(method, study, neighbour, request: Request, *, seed: int = 0) -> list[str]:
    """Return every broken promise between two neighbouring studies; none if all is well."""
    first = record(method, study, request, seed=seed)
    second = record(method, neighbour, request, seed=seed, source=first.recording)
    findings = broken_promises(first.recording, second.recording)
    cost = first.noise.cost
    if not cost.rho and cost.epsilon != request.epsilon:
        spent, asked = float(cost.epsilon), float(request.epsilon)
        findings.append(f"the steps cost {spent:g}: they do not add up to {asked:g}")
    if first.estimate != second.estimate:
        findings.append("the estimate depends on more than the released numbers")
    return findings


def check_releases(
    run: Callable[[object, Recording], Release], study: object, neighbour: object
) -> tuple[Recording, Recording]:
    """Demand the same of whole releases, made by any door that takes a recorder."""
    first = Recording()
    release = run(study, first)
    second = Recording(source=first)
    assert release == run(neighbour, second), "something beside the mechanisms' outputs is released"
    assert sum(spend.epsilon for spend in first.spends) == release.epsilon
    assert not (found := broken_promises(first, second)), "; ".join(found)
    return first, second
