from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from private_ate import ArgumentError, Binary, Categories, Domain, Treatment, estimate_ate
from private_ate.api import estimate_study, method_for
from private_ate.audit.replay import Recording
from private_ate.baselines.marginals import (
    NoisyMarginal,
    agree,
    common_total,
    independent_rows,
    project,
    synthesise,
)
from private_ate.baselines.privsyn import (
    PrivSynOptions,
    choose_pairs,
    combine_pairs,
    dependence,
    dependence_sensitivity,
)
from private_ate.baselines.synthetic_records import NeighbourRule
from private_ate.privacy.accounting import concentrated_budget
from private_ate.request import Request

QUICK = PrivSynOptions(bins=2, outcome_bins=2, iterations=3)


def confounded(rows=4000, seed=1):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, rows)
    treatment = rng.random(rows) < np.array([0.2, 0.5, 0.8])[group]
    outcome = rng.random(rows) < 0.1 + 0.2 * group + 0.3 * treatment
    domain = Domain(Treatment("t", 1, 0), ("y", Binary()), {"g": Categories("0", "1", "2")})
    table = {"g": group.astype(str), "t": treatment.astype(int), "y": outcome.astype(int)}
    return pl.DataFrame(table), domain


def run(data, epsilon="1", options=QUICK, seed=5, **more):
    return estimate_ate(
        data, level="sample", epsilon=epsilon, method="privsyn", options=options, seed=seed, **more
    )


def test_without_noise_the_synthetic_records_have_the_effect_of_the_data():
    table, domain = confounded()
    frame = table.with_columns(pl.col("g").cast(pl.Int64))
    strata = [
        (part.filter(t=1)["y"].mean() - part.filter(t=0)["y"].mean()) * part.height
        for _, part in frame.group_by("g")
    ]

    found = run(table, "1000000", PrivSynOptions(), domain=domain)

    # All three pairs form one clique, so the whole table is measured.
    assert found.settings["marginals"] == [[0, 1, 2]]
    assert found.ate == pytest.approx(sum(strata) / table.height, abs=0.02)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("epsilon", ["0.001", "4"])
def test_three_shares_spend_rho_exactly(synth, adjacency, epsilon):
    request = Request("sample", Fraction(epsilon), options=replace(QUICK, adjacency=adjacency))
    recording = Recording()

    estimate_study(synth, request, method_for("privsyn", request), seed=1, recorder=recording)

    rho = concentrated_budget(Fraction(epsilon), Fraction("1e-6"))
    steps = {"column": Fraction(0), "dependence": Fraction(0), "marginal": Fraction(0)}
    for spend in recording.spends:
        steps[spend.step] += spend.rho
    assert steps == {"column": rho / 10, "dependence": rho / 10, "marginal": rho * Fraction(4, 5)}


def test_a_release_states_its_promise_and_a_seed_repeats_it():
    table, domain = confounded(200)
    first, again = (run(table, domain=domain) for _ in range(2))
    published = replace(QUICK, adjacency="add_remove")
    hidden = [run(table, options=published, domain=domain, seed=seed) for seed in (1, 2)]

    assert first.to_json() == again.to_json()
    assert first.delta == 1e-6
    assert first.n == 200
    assert hidden[0].adjacency.startswith("add/remove-one")
    assert len({200, hidden[0].n, hidden[1].n}) > 1


def test_moved_records_match_all_pairs_of_a_correlated_table():
    sizes, rows = (4, 4, 4, 4, 8), 2000
    rng = np.random.default_rng(1)
    values = rng.normal(size=(rows, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(rows, 5))
    ranks = values.argsort(axis=0).argsort(axis=0)
    codes = np.column_stack([ranks[:, c] * size // rows for c, size in enumerate(sizes)])
    tables = [
        NoisyMarginal(pair, _table(codes, pair, sizes), 1.0) for pair in combinations(range(5), 2)
    ]

    start = independent_rows(tables, 5, 20_000, rng)
    made = synthesise(start, tables, iterations=25, rng=rng, watch=lambda done: done < 25)

    def distance(synthetic):
        return np.mean(
            [
                np.abs(_table(synthetic, t.columns, sizes) / 20_000 - t.values / rows).sum() / 2
                for t in tables
            ]
        )

    assert distance(start) > 0.1
    assert distance(made) < 0.03


def _table(codes, columns, sizes):
    shape = tuple(sizes[c] for c in columns)
    index = np.ravel_multi_index(tuple(codes[:, c] for c in columns), shape)
    return np.bincount(index, minlength=int(np.prod(shape))).reshape(shape).astype(float)


def test_watching_can_stop_the_moves():
    table = NoisyMarginal((0, 1), np.array([[10.0, 0.0], [0.0, 10.0]]), 1.0)
    rng = np.random.default_rng(1)
    told = []

    synthesise(
        np.zeros((20, 2), np.int64), [table], iterations=9, rng=rng,
        watch=lambda done: bool(told.append(done)),
    )  # fmt: skip

    assert told == [1]


def test_consistent_tables_share_marginals_and_hold_nothing_negative():
    rng = np.random.default_rng(2)
    truth = rng.multinomial(1000, rng.dirichlet(np.ones(24))).reshape(2, 3, 4).astype(float)
    noisy = [
        NoisyMarginal(columns, truth.sum(axis=axes) + rng.normal(0, 15, shape), 1.0)
        for columns, axes, shape in (((0, 1), 2, (2, 3)), ((1, 2), 0, (3, 4)), ((2,), (0, 1), (4,)))
    ]

    tables = agree(noisy, 1000.0)

    for table in tables:
        assert table.values.min() >= 0
        assert table.values.sum() == pytest.approx(1000.0)
    assert np.allclose(tables[0].onto((1,)), tables[1].onto((1,)), atol=1.0)
    assert np.allclose(tables[1].onto((2,)), tables[2].values, atol=1.0)


def test_projection_is_the_nearest_table_of_its_total():
    values = np.array([5.0, -3.0, 1.0, 0.5])
    projected = project(values, 4.0)
    rng = np.random.default_rng(3)

    assert projected.sum() == pytest.approx(4.0)
    assert projected.min() >= 0
    for _ in range(200):
        other = rng.dirichlet(np.ones(4)) * 4
        assert np.sum((projected - values) ** 2) <= np.sum((other - values) ** 2) + 1e-9


def test_totals_are_averaged_by_their_variance():
    precise, loose = (
        NoisyMarginal((0,), np.full(2, 50.0), 3.0),
        NoisyMarginal((1,), np.full(4, 50.0), 2.0),
    )

    assert common_total([precise, loose]) == pytest.approx((1.5 * 100 + 0.5 * 200) / 2)


def test_dependence_is_zero_for_independent_counts_and_two_n_for_opposite_ends():
    independent = np.outer([10, 20], [3, 6]) // 3
    diagonal = np.diag([50, 50])

    assert dependence(independent, independent.sum(1), independent.sum(0)) == 0
    assert dependence(diagonal, diagonal.sum(1), diagonal.sum(0)) == 100 << 10
    assert dependence(np.zeros((2, 2), np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)) == 0


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_one_record_never_moves_dependence_beyond_its_stated_sensitivity(adjacency):
    rng = np.random.default_rng(4)
    largest = 0.0
    for _ in range(4000):
        shape, size = tuple(rng.integers(2, 5, 2)), int(rng.integers(2, 40))
        cells = int(np.prod(shape))
        counts = rng.multinomial(size, rng.dirichlet(np.full(cells, 0.2)))
        other = counts.copy()
        other[rng.integers(cells)] += 1
        if adjacency == "replace":
            other[rng.choice(np.flatnonzero(counts))] -= 1
        first, second = (
            dependence(c.reshape(shape), c.reshape(shape).sum(1), c.reshape(shape).sum(0))
            for c in (counts, other)
        )
        allowed = dependence_sensitivity(NeighbourRule(adjacency))
        largest = max(largest, abs(first - second) / allowed)

    assert largest <= 1
    assert largest > (0.66 if adjacency == "replace" else 0.85)


def test_the_published_sensitivity_of_dependence_is_too_small_for_replacements():
    before = np.array([[5, 0, 0], [5, 0, 1], [0, 1, 0]])
    after = np.array([[5, 0, 1], [5, 0, 1], [0, 0, 0]])

    moved = [dependence(counts, counts.sum(1), counts.sum(0)) for counts in (before, after)]

    assert abs(moved[0] - moved[1]) == pytest.approx(4.5 * 1024, abs=1)


def test_pairs_are_chosen_while_they_beat_their_noise():
    cells = np.array([16.0, 16.0, 16.0, 4096.0])

    assert choose_pairs(np.array([500.0, 400.0, -50.0, 300.0]), cells, 0.1, 1) == [0, 1]
    assert choose_pairs(np.full(4, 0.1), cells, 0.001, 1) == []
    assert sorted(choose_pairs(np.full(4, 1e9), cells, 1.0, 2)) == [0, 1, 2, 3]


def test_triangles_of_small_columns_are_combined_and_large_ones_are_not():
    triangle = [(0, 1), (1, 2), (0, 2), (2, 3)]

    assert combine_pairs(triangle, (4, 4, 4, 4)) == [(0, 1, 2), (2, 3)]
    assert combine_pairs(triangle, (40, 40, 40, 40)) == triangle
    assert combine_pairs([], (4, 4)) == []


def test_all_pairs_of_many_columns_do_not_explode():
    pairs = list(combinations(range(40), 2))
    combined = combine_pairs(pairs, [4] * 40)

    assert all(any(set(pair) <= set(marginal) for marginal in combined) for pair in pairs)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: PrivSynOptions(adjacency="swap"), "adjacency"),
        (lambda: PrivSynOptions(delta=0), "positive delta"),
        (lambda: PrivSynOptions(iterations=0), "iterations"),
        (lambda: PrivSynOptions(time_limit=-1), "time limit"),
    ],
)
def test_impossible_options_are_argument_errors(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


def test_progress_and_time_limit_are_kept(synth):
    heard = []
    study = replace(synth, progress=lambda *told: heard.append(told))

    run(study, options=replace(QUICK, time_limit=0))

    assert heard == [("moving records", 1, 3)]
