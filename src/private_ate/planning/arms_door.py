"""What is asked of a plan for three arms or more: their labels, their shares, their method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from private_ate.arguments import real_number
from private_ate.domain import Treatment
from private_ate.errors import ArgumentError
from private_ate.estimators.composition import options_of
from private_ate.estimators.orthogonal.plan import OrthogonalOptions
from private_ate.estimators.request import Request
from private_ate.planning.answers import Planner
from private_ate.planning.arms import ArmsPredict, arm_rows, sample_arms, widest_row
from private_ate.planning.plan import PlanRow
from private_ate.planning.sizes import Guesses, StudySizes

__all__ = ["PlannedArms", "sample_planner", "settle_arms"]


@dataclass(frozen=True, slots=True)
class PlannedArms:
    """Three arms or more of a plan; ``shares`` are in the order of the codes.

    ``is_guess`` says whether somebody gave the shares.
    """

    treatment: Treatment
    shares: tuple[float, ...]
    is_guess: bool

    @property
    def told(self) -> str:
        """The shares in words."""
        listed = ", ".join(
            f"{label} {share:.3g}"
            for label, share in zip(self.treatment.coded, self.shares, strict=True)
        )
        return f"arms' shares of {listed}"

    def refuse_shares(self) -> None:
        """Refuse guesses of what a table tells."""
        if self.is_guess:
            msg = "the table tells the arms' sizes at label level; leave out their guessed shares"
            raise ArgumentError(msg, parameter="arm shares")

    def planner(
        self, method: str, foreseen: ArmsPredict, request: Request, rows: int | None, caveat: str
    ) -> Planner:
        """Return predictions for every contrast of these arms."""
        labels, coverage = self.treatment.coded, request.coverage

        def predict(size: int, epsilon: float) -> PlanRow:
            return widest_row(foreseen(size, epsilon), labels, coverage, epsilon, size)

        def table(size: int, epsilon: float) -> tuple[PlanRow, ...]:
            return arm_rows(foreseen(size, epsilon), labels, coverage, epsilon, size)

        return Planner(method, predict, rows, caveat, table)


def settle_arms(treatment: Treatment | None, shares: Sequence[float] | None) -> PlannedArms | None:
    """Return the arms that are meant; None for two arms."""
    given = None if shares is None else _shares(shares)
    if treatment is None and given is not None and len(given) > 2:
        treatment = Treatment("t", arms=[f"arm {place}" for place in range(1, len(given) + 1)])
    if treatment is None or treatment.size == 2:
        if given is not None:
            msg = "two arms have a treated share; shares of arms are for three or more"
            raise ArgumentError(msg, parameter="arm shares")
        return None
    if given is None:
        return PlannedArms(treatment, (1 / treatment.size,) * treatment.size, is_guess=False)
    if len(given) != treatment.size:
        msg = f"{treatment.size} arms are declared and {len(given)} shares are given"
        raise ArgumentError(msg, parameter="arm shares")
    coded = tuple(given[treatment.labels.index(label)] for label in treatment.coded)
    return PlannedArms(treatment, coded, is_guess=True)


def _shares(shares: object) -> list[float]:
    if isinstance(shares, str) or not isinstance(shares, Sequence):
        msg = "shares of arms are a list of numbers such as [0.6, 0.3, 0.1]"
        raise ArgumentError(msg, parameter="arm shares")
    found = [real_number("a guessed share of an arm", share, 1e-4, 1.0) for share in shares]
    if abs(sum(found) - 1) > 0.01:
        msg = f"the shares of the arms add up to {sum(found):g}; they are parts of one"
        raise ArgumentError(msg, parameter="arm shares")
    return [share / sum(found) for share in found]


def sample_planner(
    sizes: StudySizes, request: Request, guesses: Guesses, arms: PlannedArms, squares: int
) -> Planner:
    """Return the predictions of the sample-level method for three arms or more.

    ``squares`` is the number of covariates that are intervals.
    """
    options = options_of(request, OrthogonalOptions, "orthogonal")
    guess = guesses.about(sizes)
    caveat = (
        f"rests on {arms.told}, an outcome standard deviation of "
        f"{guesses.deviation(sizes):.4g}{guesses.origin} and {100 * guess.explained:.0f} % of "
        "its variance explained; the path depends on released sizes, and confounding that is not "
        "removed is not in it"
    )
    foreseen = sample_arms(sizes, request, options, guess, np.array(arms.shares), squares)
    return arms.planner("orthogonal", foreseen, request, sizes.rows, caveat)
