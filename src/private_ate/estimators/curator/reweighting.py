"""The weights that a release at label level was made with, found again from public columns.

Covariates and treatment are public there, and so are the caps that the release tells; no outcome
is looked at. What cannot be found again for certain is not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from private_ate.arrays import Floats
from private_ate.engines.local import LocalStudy, single_threaded_blas
from private_ate.estimators.calibrated.cap_path import fold_with_base, members_of, walk_caps
from private_ate.estimators.calibrated.final_weights import settle_weights
from private_ate.estimators.calibrated.method import pose_caps
from private_ate.estimators.calibrated.several_arms.design import walk_arms
from private_ate.estimators.calibrated.several_arms.method import pose_arms
from private_ate.estimators.calibrated.several_arms.weights import settle_arms
from private_ate.estimators.request import Request
from private_ate.release import Release
from private_ate.settings import Facts
from private_ate.study import Block, RowWeights

__all__ = ["request_of", "used_weights"]

_SAME = 1e-6  # relative: the same problem was solved to the same tolerance
_ANY_NOISE = 1e12  # so much of it that a walk over caps goes on to the tightest


@dataclass(frozen=True, slots=True)
class _Rows:
    """Numbers of rows, block after block."""

    parts: tuple[Floats, ...] = field(repr=False)

    def __add__(self, other: _Rows) -> _Rows:
        return _Rows((*self.parts, *other.parts))


def request_of(release: Release, options: object | None = None) -> Request:
    """Return the request that a release answers, as far as it tells; the options are its method's.

    What a release does not tell is as usual.
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
    released cap, and compared with the effective sizes that the release tells: with other options
    or other data there is nothing to show.
    """
    facts = release.facts
    if release.method != "calibrated" or facts.subgroups is not None:
        return None
    public = study.public()
    request = request_of(release, options)
    with single_threaded_blas():
        found = _of_several(public, request, facts) if study.arms > 2 else _of_two(
            public, request, facts
        )  # fmt: skip
    if found is None or not _is_same(found, study, facts):
        return None
    return found


def _of_two(public: LocalStudy, request: Request, facts: Facts) -> Floats | None:
    cap = facts.weight_cap
    if cap is None:
        return None
    problem = pose_caps(public, request)
    path = walk_caps(public, problem, lambda points: points[-1].cap > cap * (1 + _SAME))
    point = min(path.points, key=lambda each: abs(each.cap - cap))
    if not math.isclose(point.cap, cap, rel_tol=_SAME):
        return None
    weights = settle_weights(public, path, point)

    def kernel(block: Block, base: Floats | None) -> _Rows:
        treated, control = members_of(block)
        return _Rows((np.where(treated | control, weights.of(block, base), 0.0),))

    return _gathered(public, problem.base, kernel)


def _of_several(public: LocalStudy, request: Request, facts: Facts) -> Floats | None:
    phase = pose_arms(public, request)
    paths = walk_arms(public, phase.designs, _ANY_NOISE, 1.0)
    chosen = []
    for label, path in zip(public.domain.treatment.coded, paths, strict=True):
        cap = facts.weight_caps.get(label, math.nan)
        point = min(path.points, key=lambda each, cap=cap: abs(each.cap - cap))  # type: ignore[misc]
        if not math.isclose(point.cap, cap, rel_tol=_SAME):
            return None
        chosen.append(point)
    weights = settle_arms(public, phase.designs, paths, tuple(chosen))

    def kernel(block: Block, base: Floats | None) -> _Rows:
        values = np.zeros(block.arm.size)
        for each in weights:
            held = each.of(block, base)
            values[held.rows] = held.weights
        return _Rows((values,))

    return _gathered(public, phase.designs.base, kernel)


def _gathered(
    public: LocalStudy,
    base: RowWeights | None,
    kernel: Callable[[Block, Floats | None], _Rows],
) -> Floats:
    return np.concatenate(fold_with_base(public, base, kernel).parts)


def _is_same(weights: Floats, study: LocalStudy, facts: Facts) -> bool:
    """Compare with the effective sizes that the release tells."""
    told = facts.several_effective
    if facts.effective_arms is not None:
        control, treated = study.domain.treatment.coded
        told = {control: facts.effective_arms.control, treated: facts.effective_arms.treated}
    for code, label in enumerate(study.domain.treatment.coded):
        held = weights[study.arm == code]
        squares = float(held @ held)
        if squares == 0 or label not in told:
            return False
        if not math.isclose(float(held.sum()) ** 2 / squares, told[label], rel_tol=100 * _SAME):
            return False
    return True
