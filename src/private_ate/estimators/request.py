"""What a method is asked for: the validated request, and the protocol every method answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from private_ate.privacy.budget import Level
from private_ate.privacy.noise import Noise
from private_ate.release import Estimate
from private_ate.study import MatchingStudy

__all__ = ["Estimand", "Estimator", "Request", "Target"]

Estimand = Literal["ate", "att", "atc", "ato"]
Target = Literal["balance", "track"]


@dataclass(frozen=True, slots=True)
class Request:
    """Public parameters of one estimate, checked before any record is read."""

    level: Level
    epsilon: Fraction
    neighbors: int = 5
    estimand: Estimand = "ate"
    target: Target = "balance"
    confidence: float | None = 0.95
    rows_per_person: int = 1
    options: object | None = None

    @property
    def coverage(self) -> float:
        """The coverage of free intervals: as asked, 95 % if no interval is paid for."""
        return 0.95 if self.confidence is None else self.confidence


class Estimator(Protocol):
    """A method: spends exactly the request's ε at the choke point and hands over an estimate."""

    def __call__(self, study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
        """Estimate the effect."""
