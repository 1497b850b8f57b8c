"""The weights that a release at label level was made with, found again from public columns.

Covariates and treatment are public there, and so are the caps that the release reports; no outcome
is looked at. What cannot be found again for certain is not guessed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from private_ate.arrays import Floats
from private_ate.engines.local import LocalStudy
from private_ate.engines.threads import single_threaded_blas
from private_ate.methods.calibrated.design import fold_with_base, pose
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.calibrated.private import draws_of, forms_of
from private_ate.methods.calibrated.weights import settle, try_caps
from private_ate.release.release import Release
from private_ate.request import Request
from private_ate.settings import Facts
from private_ate.study import Block

__all__ = ["request_of", "used_weights"]

_SAME = 1e-6  # relative: the same problem was solved to the same tolerance


@dataclass(frozen=True, slots=True)
class _Rows:
    """Numbers of rows, block after block."""

    parts: tuple[Floats, ...] = field(repr=False)

    def __add__(self, other: _Rows) -> _Rows:
        return _Rows((*self.parts, *other.parts))


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
    if found is None or not _is_same(found, study, facts):
        return None
    return found


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
        points = (
            point for point in try_caps(design, arms) if math.isclose(point.cap, cap, rel_tol=_SAME)
        )
        point = next(points, None)
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
        squares = float(held @ held)
        if squares == 0 or label not in released:
            return False
        if not math.isclose(float(held.sum()) ** 2 / squares, released[label], rel_tol=100 * _SAME):
            return False
    return True
