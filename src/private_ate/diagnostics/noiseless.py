"""The estimator of a release without its noise, for the curator. Cannot return a release.

At label level its weights are found again from public columns: covariates and treatment are public
there, and so are the caps that the release reports; no outcome is looked at. What cannot be found
again for certain is not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.diagnostics.overlap import effective_size
from private_ate.effects.estimate import Estimate
from private_ate.engines.local import LocalStudy
from private_ate.engines.threads import single_threaded_blas
from private_ate.errors import PrivateAteError
from private_ate.methods.calibrated.design import fold_with_base, pose
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.calibrated.private import draws_of, forms_of
from private_ate.methods.calibrated.weights import settle, try_caps
from private_ate.methods.registry import METHODS
from private_ate.privacy.entropy import entropy_for
from private_ate.privacy.joint import JointCentres, JointRule, nearest_centres
from private_ate.privacy.metrics import Spend
from private_ate.privacy.noise import Noise
from private_ate.privacy.objective import ObjectiveCalibration, Perturbation
from private_ate.privacy.trimmed_mean import CentreRule
from private_ate.release.release import Release
from private_ate.request import Request
from private_ate.settings import Facts
from private_ate.study import Added, Block


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


def _twice(values: Any) -> Any:  # noqa: ANN401  # a number, a list or an array
    """Answer in half steps."""
    return [2 * value for value in values] if isinstance(values, list) else 2 * values


def _minimiser(values: Any, spend: Spend) -> Any:  # noqa: ANN401  # an objective
    changes = spend.sensitivity[0] // (2 * values.loss_bounds.lipschitz)
    whole = spend.epsilon * Fraction(100, 99)  # of the fit and of its rounding
    found = ObjectiveCalibration.of(values, changes, whole)
    return values.minimize(Perturbation(np.zeros(found.dimension), found.ridge, found.tolerance))


# By mechanisms, what they answer to their input.
_ANSWERS: Final[dict[str, Callable[[Any, Spend], Any]]] = {
    mechanism: answer
    for mechanisms, answer in (
        ("laplace laplace_disjoint laplace_rows cube", lambda values, _: _twice(values)),
        ("staircase staircase_disjoint staircase_by_arm", lambda values, _: _twice(values)),
        (
            "randomized_response generalized_response gaussian gaussian_cells",
            lambda values, _: values,
        ),
        ("choose select", lambda values, _: int(np.argmax(values))),
        ("smooth_laplace smooth_cauchy", lambda values, _: int(_twice(values[0]))),
        ("objective", _minimiser),
    )
    for mechanism in mechanisms.split()
}
_SAME = 1e-6  # relative: the same problem was solved to the same tolerance


@dataclass(frozen=True, slots=True)
class _Rows(Added):
    """Numbers of rows, block after block."""

    parts: tuple[Floats, ...] = field(repr=False)


def request_of(release: Release, options: object | None = None) -> Request:
    """Return the request that a release answers, as far as it is known; options are its method's.

    What a release does not say is as usual.
    """
    facts = release.facts
    pays = release.interval is not None
    return Request(
        release.level, release.epsilon, facts.neighbors or 5, cast("Any", facts.estimand),
        cast("Any", facts.target), facts.confidence if pays else None, facts.rows_per_person,
        options, cast("Any", release.design), facts.among,
    )  # fmt: skip


def used_weights(
    study: LocalStudy, release: Release, options: object | None = None
) -> Floats | None:
    """Return the weight of every row in the released estimate, shape (n,), or None if unknown.

    Known are those of method "calibrated" without subgroups. They are solved for again under the
    released cap, and compared with the effective sizes of the release: with other options
    or other data there is nothing to show.
    """
    facts = release.facts
    if release.method != "calibrated" or facts.subgroups is not None:
        return None
    public = study.public()
    request = request_of(release, options)
    with single_threaded_blas():
        found = _weights_under(public, request, _caps(facts, study.domain.treatment.coded))
    return found if found is not None and _is_same(found, study, facts) else None


def _caps(facts: Facts, labels: tuple[str, ...]) -> tuple[float, ...]:
    """Return the released cap of every arm, in the order of the codes; NaN for none."""
    if len(labels) > 2:
        return tuple(facts.weight_caps.get(label, math.nan) for label in labels)
    return (math.nan if facts.weight_cap is None else facts.weight_cap,) * 2


def _weights_under(public: LocalStudy, request: Request, caps: tuple[float, ...]) -> Floats | None:
    """Solve again under the released caps; None if they are not among those that are tried."""
    options = request.options
    known = options if isinstance(options, CalibratedOptions) else CalibratedOptions()
    design = pose(public, request)
    chosen = []
    for arms in draws_of(forms_of(len(caps), means=known.means)):
        cap = max(caps[arm] for arm in arms)
        points = try_caps(design, arms)
        same = (point for point in points if math.isclose(point.cap, cap, rel_tol=_SAME))
        point = next(same, None)
        if point is None:
            return None
        chosen.append(point)
    weights = settle(public, design, chosen)

    def kernel(block: Block, base: Floats | None) -> _Rows:
        return _Rows((weights.of(block, base),))

    return np.concatenate(fold_with_base(public, design.base, kernel).parts)


def _is_same(weights: Floats, study: LocalStudy, facts: Facts) -> bool:
    """Compare with the effective sizes of the release."""
    released = facts.several_effective
    if facts.effective_arms is not None:
        control, treated = study.domain.treatment.coded
        released = {control: facts.effective_arms.control, treated: facts.effective_arms.treated}
    for code, label in enumerate(study.domain.treatment.coded):
        held = weights[study.arm == code]
        if not held.any() or label not in released:
            return False
        if not math.isclose(effective_size(held), released[label], rel_tol=100 * _SAME):
            return False
    return True
