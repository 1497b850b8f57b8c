"""The estimator of a release without its noise, for the curator. Cannot return a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.diagnostics.reweighting import request_of
from private_ate.effects.estimate import Estimate
from private_ate.engines.local import LocalStudy
from private_ate.engines.threads import single_threaded_blas
from private_ate.errors import PrivateAteError
from private_ate.methods.registry import METHODS
from private_ate.privacy.entropy import entropy_for
from private_ate.privacy.joint import JointCentres, JointRule, nearest_centres
from private_ate.privacy.metrics import Spend
from private_ate.privacy.noise import Noise
from private_ate.privacy.objective import ObjectiveCalibration, Perturbation
from private_ate.privacy.trimmed_mean import CentreRule
from private_ate.release.release import Release

__all__ = ["noiseless_estimate"]


def noiseless_estimate(
    study: LocalStudy, release: Release, options: object | None = None
) -> Estimate | None:
    """Run the method of a release once more with every mechanism silent; **not private**.

    Every step answers with what went into it, so what the method decides by earlier answers, such
    as a cap on weights, may differ from the release. None where the method cannot be run again
    from what the release reports: in subgroups, or with a known probability of treatment.
    """
    facts = release.facts
    method = METHODS.get(release.method)
    if method is None or facts.subgroups is not None or study.domain.weights is not None:
        return None
    noise = _Silence(entropy_for(None))
    try:
        with single_threaded_blas():
            return method.run(study, request_of(release, options), noise)
    except PrivateAteError:
        return None


@dataclass(slots=True)
class _Silence(Noise):
    """A choke point that answers with its input; it never makes a release."""

    def _release(self, spend: Spend, values: object, draw: Callable[[], Any]) -> Any:  # noqa: ANN401, ARG002  # whatever is asked
        self.spends.append(spend)
        return _ANSWERS[spend.mechanism](values, spend)

    def trimmed_centre(
        self, step: str, values: Integers, *, rule: CentreRule, changes: int, epsilon: Fraction
    ) -> int:
        """Answer the candidate in the middle of those nearest to the trimmed mean."""
        del step, changes, epsilon
        levels = rule.levels(values)
        best = np.flatnonzero(levels == levels.min())
        return int(rule.candidates[best[best.size // 2]])

    def joint_centres(
        self, step: str, blocks: Integers, *, rule: JointRule, changes: int, epsilon: Fraction
    ) -> JointCentres:
        """Answer the candidate in the middle of those nearest to what blocks say."""
        del step, changes, epsilon
        return nearest_centres(rule, blocks)


def _twice(values: Any, spend: Spend) -> Any:  # noqa: ANN401  # a number, a list or an array
    """Answer in half steps."""
    del spend
    if isinstance(values, np.ndarray):
        return 2 * values
    return [2 * value for value in values] if isinstance(values, list) else 2 * values


def _same(values: Any, spend: Spend) -> Any:  # noqa: ANN401  # as above
    del spend
    return values


def _greatest(values: Any, spend: Spend) -> int:  # noqa: ANN401  # as above
    del spend
    return int(np.argmax(values))


def _first(values: Any, spend: Spend) -> int:  # noqa: ANN401  # a value and its sensitivity
    return int(_twice(values[0], spend))


def _minimiser(values: Any, spend: Spend) -> Any:  # noqa: ANN401  # an objective
    changes = spend.sensitivity[0] // (2 * values.loss_bounds.lipschitz)
    found = ObjectiveCalibration.of(values, changes, _whole(spend))
    return values.minimize(Perturbation(np.zeros(found.dimension), found.ridge, found.tolerance))


def _whole(spend: Spend) -> Fraction:
    """Return ε of a fit and of its rounding, whose share is one in a hundred."""
    return spend.epsilon * Fraction(100, 99)


_ANSWERS: Final[dict[str, Callable[[Any, Spend], Any]]] = {
    **dict.fromkeys(
        (
            "laplace", "laplace_disjoint", "laplace_rows", "staircase", "staircase_disjoint",
            "staircase_by_arm", "cube",
        ),
        _twice,
    ),
    **dict.fromkeys(
        ("randomized_response", "generalized_response", "gaussian", "gaussian_cells"), _same
    ),
    **dict.fromkeys(("choose", "select"), _greatest),
    **dict.fromkeys(("smooth_laplace", "smooth_cauchy"), _first),
    "objective": _minimiser,
}  # fmt: skip
