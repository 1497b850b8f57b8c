"""Parts of label level that can be left out, and the exact error of a release without them.

Weights are public, so the bias that they leave follows from the outcomes that units may expect, and
their sampling variance from those outcomes' noise. The cap follows the released variance: a study
is released a few times, and its squared error and coverage are means over these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

from private_ate import estimate_ate
from private_ate.experiments.families import Study
from private_ate.experiments.references import plain_contrasts, records_of
from private_ate.methods.calibrated import features, pairing, variance, weights
from private_ate.methods.calibrated import method as calibrated
from private_ate.models import boosting

RELEASES = {1_000: 3, 10_000: 2}  # of a study, by its size
_DRAWS = 4_000
_RNG = np.random.default_rng(20_000)
_NORMAL, _LAPLACE = _RNG.standard_normal(_DRAWS), _RNG.laplace(size=_DRAWS) / np.sqrt(2)
_KNOWN: dict[object, object] = {}


def _plain_eigenvalues(*asked: object, **how: object) -> tuple[np.ndarray, np.ndarray]:
    """Return directions that get shares by their eigenvalues as they are."""
    sizes, vectors = _EIGH(*asked, **how)
    telling = np.maximum(sizes, 1e-9 * max(sizes[-1], 1.0))
    return sizes, vectors * np.sqrt((telling**2).sum() / telling.sum() / telling)


def _held_out(part: int) -> Callable[..., tuple]:
    """Leave one model out of the stack: its spline (1), products (2) or trees (3)."""

    def hold_out(columns, target, held):
        scores, losses, trees = _HOLD_OUT(columns, target, held)
        if part == 3:
            return scores, losses[:1], trees
        return np.delete(scores, part, axis=1), losses, trees

    return hold_out


def _covariates_alone(_, standard):
    return np.ascontiguousarray(standard.T)


def _cheapest_by_whole_variance(_design, points, noise_variance, spread):
    return min(points, key=lambda one: noise_variance * one.cap**2 + spread**2 * one.loss)


def _neighbours_along_score(kept, covariates, rows):
    order = rows[np.argsort(kept.standardise(covariates[rows]) @ kept.line[1:], kind="stable")]
    return order[0 : rows.size - 1 : 2], order[1::2]


_EIGH, _HOLD_OUT = features.eigh, features._hold_out
PARTS: dict[str, tuple[object, str, Any]] = {
    "evidence": (features, "evidence_of", lambda *_: 0.0),
    "held-out spline": (features, "_hold_out", _held_out(1)),
    "held-out products": (features, "_hold_out", _held_out(2)),
    "held-out trees": (features, "_hold_out", _held_out(3)),
    "blind share": (features, "BLIND", 0.0),
    "chance": (features, "_CHANCE", 0.0),
    "products": (features, "_PRODUCTS", 0.0),
    "squares": (features, "_SQUARES", 0.0),
    "index spline": (features, "_INDEX", 0.0),
    "leaves": (features, "_LEAVES", 0.0),
    "products in trees": (features.FeatureMap, "split_columns", _covariates_alone),
    "eigenvalues squared": (features, "eigh", _plain_eigenvalues),
    "scarce leaves dropped": (features, "_SCARCE", np.inf),
    "shares of one variance": (weights, "choose_cap", _cheapest_by_whole_variance),
    "corrected guess": (variance.PairVariance, "corrected_guess", lambda pairs: pairs.guess),
    "missed": (weights, "_MISSED", 0.0),
    "pairs by covariates": (pairing, "like_pairs", _neighbours_along_score),
    "share of ε by error": (variance, "_SHARES", (Fraction(1, 10),)),
}  # fmt: skip
_SHARED = ((features, "evidence_of"), (boosting, "boost"))  # what takes most time


@contextmanager
def without(part: str) -> Iterator[None]:
    """Leave a part out; what is learnt is kept as long as the same is learnt from."""
    _KNOWN.pop("design", None)
    with ExitStack() as stack:
        if part:
            stack.enter_context(patch.object(*PARTS[part]))
        for place, name in _SHARED:
            learn = _remembered(getattr(place, name), part)
            stack.enter_context(patch.object(place, name, learn))
        yield


def _remembered(learn: Callable[..., object], part: str) -> Callable[..., object]:
    changed = part if part == "evidence" or part.startswith("held-out") else ""

    def remembered(columns, target, *more):
        shown = columns[:64].tobytes(), columns.shape, columns.strides, target.tobytes()
        key = getattr(learn, "__name__", ""), changed, shown, more
        if key not in _KNOWN:
            _KNOWN[key] = learn(columns, target, *more)
        return _KNOWN[key]

    return remembered


def forget() -> None:
    """Forget what was learnt of all studies so far."""
    _KNOWN.clear()


def add(line: Any, study: Study, epsilon: float, seed: int) -> None:
    """Add the expected error and coverage of every effect against the reference."""
    reference = str(study.domain.treatment.coded[0])
    pairs = [pair for pair in study.contrasts if pair[1] == reference]
    labels = [str(label) for label in study.domain.treatment.coded]
    plain = dict(zip(study.contrasts, plain_contrasts(records_of(study))[0], strict=True))
    for draw in range(RELEASES.get(study.frame.height, 2)):
        found = _release(study, epsilon, 1000 * seed + draw)
        errors = [
            float(weight @ study.units.expected[:, arm]) / study.frame.height
            for arm, weight in enumerate(found["weights"])
        ]
        for place, pair in enumerate(pairs):
            arms = [labels.index(label) for label in pair]
            bias = errors[arms[0]] - errors[arms[1]] - study.contrasts[pair]
            squares = sum(float(found["weights"][arm] @ found["weights"][arm]) for arm in arms)
            sampling = study.units.noise**2 * squares / study.frame.height**2
            noise = found["noise"][place]
            away = bias + np.sqrt(sampling) * _NORMAL + np.sqrt(noise) * _LAPLACE
            half = found["halves"][pair]
            line.squares.append((bias**2 + sampling + noise) / study.unit**2)
            line.covered.append(float((np.abs(away) <= half).mean()))
            line.halves.append(half / study.unit)
            line.add_bias((plain[pair] - study.contrasts[pair]) / study.unit, bias / study.unit)
            line.shapes.append(found["shapes"])


def _release(study: Study, epsilon: float, seed: int) -> dict[str, Any]:
    """Release once, and return the weights of every arm, noise variances and half-widths."""
    found: dict[str, Any] = {}
    pose, weigh, release = calibrated.pose, calibrated.weigh, calibrated.release_quantities

    def posed(public, request, learned=None):
        if _KNOWN.get("design", (None,))[0] != id(study):
            _KNOWN["design"] = id(study), pose(public, request, learned)
        return _KNOWN["design"][1]

    def weighed(public, design, *more):
        half = weigh(public, design, *more)
        (own,) = public.fold(lambda block: Rows([half.of(block, None)])).of
        found["weights"] = [np.where(design.sample.arm == arm.problem.code, own, 0.0)
                            for arm in half.arms]  # fmt: skip
        found["shapes"] = max(arm.problem.features.evidence for arm in half.arms)
        return half

    def quantities(*asked, **how):
        all_of = release(*asked, **how)
        own = [sum(part.variance for part in one.noise) for one in all_of]
        found["noise"] = own if len(own) == 1 else [own[0] + more for more in own[1:]]
        return all_of

    with (
        patch.object(calibrated, "pose", posed),
        patch.object(calibrated, "weigh", weighed),
        patch.object(calibrated, "release_quantities", quantities),
    ):
        release_ = estimate_ate(
            study.frame, domain=study.domain, level="label", epsilon=epsilon, seed=seed,
            design="unknown" if study.probability is None else "randomized",
            probability=study.probability,
        )  # fmt: skip
    ends = {(one.arm, one.against): one.interval for one in release_.contrasts or ()}
    ends = ends or dict.fromkeys(study.contrasts, release_.interval)
    found["halves"] = {pair: (high - low) / 2 for pair, (low, high) in ends.items()}
    return found


class Rows:
    """Arrays of blocks that are put one after the other."""

    def __init__(self, of: list[np.ndarray]) -> None:
        self.of = of

    def __add__(self, other: Rows) -> Rows:
        return Rows([np.concatenate([*self.of, *other.of])])
