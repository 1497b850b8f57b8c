from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from private_ate import ArgumentError, Binary, Categories, Domain, Interval, Treatment, estimate_ate
from private_ate.api import estimate_study, method_for
from private_ate.audit.replay import Recording
from private_ate.baselines.aim import AimOptions
from private_ate.baselines.synthetic_records import (
    NeighbourRule,
    RecordCoding,
    default_bins,
    matched_effect_of,
    rows_for,
)
from private_ate.engines.local import LocalStudy
from private_ate.privacy.accounting import concentrated_budget
from private_ate.request import Request

QUICK = AimOptions(bins=2, outcome_bins=2)


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
        data, level="sample", epsilon=epsilon, method="aim", options=options, seed=seed, **more
    )


@pytest.mark.parametrize("workload", ["pairs", "causal"])
def test_without_noise_the_synthetic_records_have_the_effect_of_the_data(workload):
    table, domain = confounded()
    frame = table.with_columns(pl.col("g").cast(pl.Int64))
    strata = [
        (part.filter(t=1)["y"].mean() - part.filter(t=0)["y"].mean()) * part.height
        for _, part in frame.group_by("g")
    ]
    options = AimOptions(workload)

    found = run(table, "1000000", options, domain=domain)

    # Pairs fix no three-way table, so a small difference to the stratified effect remains.
    assert found.ate == pytest.approx(sum(strata) / table.height, abs=0.03)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("epsilon", ["0.5", "4"])
def test_rounds_spend_rho_exactly(synth, adjacency, epsilon):
    request = Request("sample", Fraction(epsilon), options=replace(QUICK, adjacency=adjacency))
    recording = Recording()

    estimate_study(synth, request, method_for("aim", request), seed=1, recorder=recording)

    spent = sum(spend.rho for spend in recording.spends)
    assert spent == concentrated_budget(Fraction(epsilon), Fraction("1e-6"))
    assert sum(spend.mechanism == "gaussian_cells" for spend in recording.spends) > 22


def test_the_first_scale_is_the_reference_value():
    columns = {f"x{place}": Interval(0, 1) for place in range(6)}
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), columns)
    rng = np.random.default_rng(1)
    study = LocalStudy(
        domain, rng.random((6, 200)), rng.random(200) < 0.5, np.zeros(200, dtype=np.int32)
    )
    request = Request("sample", Fraction(1), options=replace(QUICK, adjacency="add_remove"))
    recording = Recording()
    estimate_study(study, request, method_for("aim", request), seed=1, recorder=recording)

    first = recording.spends[0]
    deviation = math.sqrt(first.sensitivity[0] / (2 * first.rho))
    assert deviation == pytest.approx(54.0, abs=0.05)  # k = 8, δ = 1e-6, tight conversion


def test_a_release_names_its_neighbours_and_hides_n_where_it_is_private():
    table, domain = confounded(500)
    published = replace(QUICK, adjacency="add_remove")
    usual, hidden, again = (
        estimate_ate(table, level="sample", epsilon=1, method="aim", options=o, domain=domain)
        for o in (QUICK, published, published)
    )

    assert usual.adjacency.startswith("replace-one")
    assert usual.n == 500
    assert hidden.adjacency.startswith("add/remove-one")
    assert len({500, hidden.n, again.n}) > 1
    assert usual.guarantee == hidden.guarantee == "(1, 1e-06)-DP, sample level"


def test_a_seed_repeats_a_release():
    table, domain = confounded(300)

    assert run(table, domain=domain).to_json() == run(table, domain=domain).to_json()


def test_a_time_limit_puts_the_rest_of_the_budget_into_one_round(synth):
    found = run(synth, "4", replace(QUICK, time_limit=0))

    assert found.settings["rounds"] == 1


def test_progress_tells_the_share_of_the_budget(synth):
    heard = []
    study = replace(synth, progress=lambda *told: heard.append(told))

    run(study)

    assert heard[-1] == ("AIM budget (%)", 100, 100)


def test_codes_cover_bins_categories_and_the_ends_of_the_outcome():
    domain = Domain(
        Treatment("t", 1, 0),
        ("y", Interval(0, 1)),
        {"a": Interval(0, 1), "c": Categories("u", "v", "w", other="w")},
    )
    columns = RecordCoding.of(domain, 4, 8)
    covariates = np.array([[0.0, 0.25, 1.0], [1, 0, 0], [0, 0, 1], [0, 1, 0]], dtype=float)
    study = LocalStudy(
        domain, covariates, np.array([True, False, True]), np.array([0, 1 << 29, 1 << 30], np.int32)
    )

    codes = columns.codes(study._block(0))

    assert columns.sizes == (4, 3, 2, 8)
    assert codes.tolist() == [[0, 0, 1, 0], [1, 2, 0, 4], [3, 1, 1, 7]]


def test_decoding_and_encoding_again_gives_the_same_codes():
    domain = Domain(
        Treatment("t", 1, 0),
        ("y", Interval(-2, 5)),
        {"a": Interval(0, 9), "c": Categories("u", "v", "w")},
    )
    columns = RecordCoding.of(domain, 4, 8)
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, size, 500) for size in columns.sizes])

    decoded = columns.decode(codes, rng)

    assert np.array_equal(columns.codes(decoded._block(0)), codes)


def test_pair_counts_equal_counted_tables(synth):
    columns = RecordCoding.of(synth.domain, 3, 5)
    pairs = synth.fold(columns.count_pairs)
    tables = columns.count_tables(synth, [(0, 21), (4,)])

    assert np.array_equal(pairs[:3, -5:].ravel(), tables[0])
    assert np.array_equal(np.diag(pairs)[12:15], tables[1])


def test_an_empty_synthetic_arm_has_no_effect(synth):
    assert matched_effect_of(replace(synth, treatment=np.zeros(synth.size, np.bool_)), 5) == 0.0


def test_bins_follow_epsilon_unless_given():
    assert default_bins(Fraction(1), None, None) == (4, 8)
    assert default_bins(Fraction(2), None, None) == (8, 16)
    assert default_bins(Fraction(2), 3, 5) == (3, 5)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: AimOptions(workload="triples"), "workload"),
        (lambda: AimOptions(adjacency="swap"), "adjacency"),
        (lambda: AimOptions(delta=0), "positive delta"),
        (lambda: AimOptions(time_limit=-1), "time limit"),
        (lambda: NeighbourRule("other"), "adjacency"),
    ],
)
def test_impossible_options_are_argument_errors(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


def test_too_many_bins_are_refused(synth):
    with pytest.raises(ArgumentError, match="from 2 to 64"):
        run(synth, options=AimOptions(bins=1))


def test_the_summary_says_that_the_number_of_rows_is_private():
    table, domain = confounded(100)
    options = replace(QUICK, adjacency="add_remove")
    text = str(run(table, options=options, domain=domain))

    assert "units (noisy n)" in text
    assert "whole records and their number are private" in text


def test_the_number_of_synthetic_rows_is_bounded():
    assert rows_for(-5.0) == 20_000
    assert rows_for(30_000.4) == 30_000
    assert rows_for(1e12) == 1_000_000
