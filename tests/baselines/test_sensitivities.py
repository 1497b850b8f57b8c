"""Replacing one record never moves a mechanism's input by more than its declared sensitivity."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from private_ate import Domain, Interval
from private_ate.api import estimate_study, method_for
from private_ate.audit.replay import Recording, broken_promises, moved_share
from private_ate.baselines.aim import AimOptions
from private_ate.baselines.doubly_robust import DoublyRobustOptions
from private_ate.baselines.fold_split import FoldSplitOptions
from private_ate.baselines.ipw import IpwOptions, weighted_kernel, weighted_sensitivity
from private_ate.baselines.nuisance_models import fit_propensity, propensity_sensitivity
from private_ate.baselines.privsyn import PrivSynOptions
from private_ate.baselines.smooth_matching import (
    Cells,
    SmoothMatchingOptions,
    matched_effect,
    smooth_sensitivity,
)
from private_ate.baselines.steps import split_rows
from private_ate.privacy.entropy import SeededEntropy
from private_ate.request import Request

SYNTHESISERS = [
    ("aim", AimOptions(bins=2, outcome_bins=3)),
    ("aim", AimOptions("causal", bins=2, outcome_bins=2)),
    ("aim", AimOptions(adjacency="add_remove", bins=2, outcome_bins=2)),
    ("privsyn", PrivSynOptions(bins=2, outcome_bins=3, iterations=1)),
    ("privsyn", PrivSynOptions("add_remove", bins=2, outcome_bins=2, iterations=1)),
]
DIRECT = [
    ("difference_in_means", None),
    ("smooth_matching", SmoothMatchingOptions(cells=("a", "c"))),
    ("smooth_matching", SmoothMatchingOptions(delta=0)),
    ("ipw", IpwOptions()),
    ("ipw", IpwOptions(delta=0, truncation=0.3)),
    ("ipw", IpwOptions(split=False)),
    ("ipw", IpwOptions(split=False, delta=0, truncation=0.3)),
    ("doubly_robust", DoublyRobustOptions()),
    ("doubly_robust", DoublyRobustOptions(overlap=0.3)),
    ("fold_split", FoldSplitOptions(folds=3)),
    ("fold_split", FoldSplitOptions("weighted", folds=2, overlap=0.3)),
    ("fold_split", FoldSplitOptions("outcome_model", folds=4, delta=0)),
]


def silent(spend, values):
    """Answer without noise, so that later steps see what an ε without end would show them."""
    if spend.mechanism == "laplace":
        return [2 * value for value in values.tolist()]
    if spend.mechanism == "gaussian":
        return values.tolist()
    if spend.mechanism in ("smooth_laplace", "smooth_cauchy"):
        return 2 * values[0]
    if spend.mechanism == "select":
        return int(np.argmax(values))
    assert spend.mechanism == "gaussian_cells"
    return values.astype(np.int64)


def worst_share(name, options, studies, *, confidence=0.95):
    """Run a method on two neighbours, replaying outputs, and return the largest share used."""
    request = Request("sample", Fraction(1), confidence=confidence, options=options)
    method = method_for(name, request)
    first = Recording(steer=silent)
    estimate_study(studies[0], request, method, seed=1, recorder=first)
    second = Recording(source=first)
    estimate_study(studies[1], request, method, seed=1, recorder=second)
    assert all("times its sensitivity" in found for found in broken_promises(first, second))
    return max(
        float(moved_share(one, other)) for one, other in zip(first.calls, second.calls, strict=True)
    )


@pytest.mark.parametrize(("name", "options"), DIRECT)
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_no_single_replacement_exceeds_a_declared_sensitivity(
    name, options, confidence, make_study, replace_record
):
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(12):
        study = make_study(rng, int(rng.integers(4, 40)))
        _, neighbour = replace_record(study, rng)
        shares.append(worst_share(name, options, (study, neighbour), confidence=confidence))

    assert max(shares) <= 1 + 1e-9
    assert max(shares) > 0.05  # the replacements do matter


@pytest.mark.parametrize(("name", "options"), SYNTHESISERS)
def test_no_neighbour_exceeds_a_declared_sensitivity_of_a_synthesiser(
    name, options, make_study, replace_record
):
    rng = np.random.default_rng(9)
    shares = []
    for _ in range(4):
        study = make_study(rng, int(rng.integers(4, 60)))
        row, neighbour = replace_record(study, rng)
        if options.adjacency == "add_remove":
            kept = np.arange(study.size) != row
            neighbour = replace(
                study,
                covariates=study.covariates[:, kept],
                treatment=study.treatment[kept],
                outcome=study.outcome[kept],
            )
        shares.append(worst_share(name, options, (study, neighbour)))

    assert max(shares) <= 1 + 1e-9
    assert max(shares) > 0.7


def test_the_check_catches_a_sensitivity_that_is_too_small(monkeypatch, make_study, replace_record):
    monkeypatch.setattr(
        "private_ate.baselines.ipw.weighted_sensitivity", lambda c: weighted_sensitivity(c) // 8
    )
    rng = np.random.default_rng(4)
    shares = []
    for _ in range(40):
        study = make_study(rng, 20)
        _, neighbour = replace_record(study, rng)
        shares.append(worst_share("ipw", IpwOptions(), (study, neighbour)))

    assert max(shares) > 1


def test_the_weighted_sum_reaches_its_stated_sensitivity(make_study):
    rng = np.random.default_rng(5)
    study = make_study(rng, 6)
    sure = np.zeros(study.dimension + 1)
    sure[0] = 50.0  # every score is truncated at 0.9, so a control weighs ten
    worst = study.outcome.copy()
    worst[0] = 0
    best = worst.copy()
    best[0] = 1 << 30
    treatment = study.treatment.copy()
    treatment[0] = False
    sums = []
    for outcome in (worst, best):
        changed = type(study)(study.domain, study.covariates, treatment, outcome)
        sums.append(changed.fold(weighted_kernel(sure, 0.1)))

    assert abs(sums[0] - sums[1]) <= weighted_sensitivity(0.1)
    assert abs(sums[0] - sums[1]) >= 0.999 * weighted_sensitivity(0.1)


def test_propensity_weights_come_near_their_stated_sensitivity():
    rng = np.random.default_rng(6)
    rows = 40
    covariates = np.ones((3, rows))
    treatment = np.arange(rows) % 2 == 0
    outcome = np.zeros(rows, dtype=np.int32)
    domain = Domain("t", ("y", Interval(0, 1)), dict.fromkeys("abc", Interval(0, 1)))
    from private_ate.engines.local import LocalStudy

    largest = 0.0
    for row in range(rows):
        flipped = treatment.copy()
        flipped[row] = ~flipped[row]
        moved = covariates.copy()
        moved[:, row] = rng.integers(2, size=3)
        weights = []
        for x, t in ((covariates, treatment), (moved, flipped)):
            part, _ = split_rows(LocalStudy(domain, x, t, outcome), 0.9, SeededEntropy(2))
            weights.append(fit_propensity(part, 1.0))
        distance = float(np.linalg.norm(weights[0] - weights[1]))
        largest = max(largest, distance / propensity_sensitivity(part, 1.0))

    assert largest <= 1
    assert largest > 0.25


def test_smooth_sensitivity_bounds_every_small_data_set_at_every_distance():
    size, records = 4, [(cell, arm, y) for cell in (0, 1) for arm in (0, 1) for y in (0, 1)]
    data = list(combinations_with_replacement(range(len(records)), size))
    effects = {key: float(matched_effect(_cells(records, key), size)) for key in data}
    local = {
        key: max(abs(effects[key] - effects[other]) for other in _neighbours(key, len(records)))
        for key in data
    }
    frontier = {key: {key} for key in data}
    reached = {key: {key} for key in data}
    for distance in range(size):
        for key in data:
            bound = _bound(_cells(records, key).counts, size, distance)
            assert max(local[other] for other in reached[key]) <= bound + 1e-12
        for key in data:
            frontier[key] = {
                other for one in frontier[key] for other in _neighbours(one, len(records))
            } - reached[key]
            reached[key] |= frontier[key]


def test_a_single_balanced_cell_has_local_sensitivity_four_over_n():
    counts = np.array([[50, 50]])

    assert _bound(counts, 100, 0) == pytest.approx(4 / 100)
    assert smooth_sensitivity(counts, 100, 50.0) == pytest.approx(4 / 100)


def _bound(counts, size, distance):
    own = np.maximum(np.concatenate((counts[:, 0], counts[:, 1])) - distance, 1)
    opposite = np.concatenate((counts[:, 1], counts[:, 0])) + distance
    ratio = (np.minimum(opposite, size - own) / own).max()
    return min(2.0, 2 / size * (1 + ratio))


def _cells(records, key):
    counts, sums = np.zeros((2, 2), np.int64), np.zeros((2, 2), np.int64)
    for index in key:
        cell, arm, outcome = records[index]
        counts[cell, arm] += 1
        sums[cell, arm] += outcome << 30
    return Cells(counts, sums)


def _neighbours(key, kinds):
    for place in range(len(key)):
        for kind in range(kinds):
            yield tuple(sorted((*key[:place], kind, *key[place + 1 :])))
