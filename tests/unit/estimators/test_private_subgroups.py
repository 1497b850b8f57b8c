"""Effects in private subgroups: what the table adds up to, whom it speaks of, what is refused."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from private_ate import Categories, Domain, Interval, Ledger, Release, Treatment, estimate_ate
from private_ate.domain import SamplingWeights
from private_ate.effects.quantities import Quantity
from private_ate.effects.table import ReleasedEffect, private_table, rolled_up
from private_ate.errors import ArgumentError, BudgetError
from private_ate.estimators.blocks.cell import laplace_of, packed, packed_length
from private_ate.estimators.blocks.method import MODELS, BlocksOptions
from private_ate.estimators.blocks.models import linear_effects
from private_ate.estimators.blocks.plan import Scope, plan_blocks
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.study import Groups

DOMAIN = Domain(
    Treatment("t", 1, 0),
    ("y", Interval(0, 10)),
    {"sex": Categories("f", "m"), "age": Interval(18, 98), "risk": Interval(0, 1)},
)
ABSENT_FILE = "no such file.csv"
MEANS = BlocksOptions(adjust=False)


def clinic(rows=2000, seed=1):
    rng = np.random.default_rng(seed)
    sex, age, risk = rng.integers(0, 2, rows), rng.uniform(18, 98, rows), rng.random(rows)
    t = (rng.random(rows) < 0.2 + 0.6 * risk).astype(int)
    y = np.clip(3 + 2 * risk + t * (1 + sex) + 0.5 * rng.normal(size=rows), 0, 10)
    labels = np.where(sex == 1, "f", "m")
    return pl.DataFrame({"t": t, "y": y, "sex": labels, "age": age, "risk": risk})


def asked(data, by=("sex",), epsilon="4", **more):
    more = {"domain": DOMAIN, "level": "sample", "seed": 5} | more
    return estimate_ate(data, epsilon=epsilon, by=list(by), **more)


def by_name(release):
    return {row.subgroup: row for row in release.effects}


@pytest.mark.parametrize(
    ("more", "part", "parameter"),
    [
        ({"method": "orthogonal"}, "use method 'blocks'", "method"),
        ({"rows_per_person": 2}, "one row per person", "rows_per_person"),
        ({"estimand": "ato"}, "does not add up", "estimand"),
        ({"design": "randomized", "probability": 0.5}, "leave it out", "probability"),
        ({"options": BlocksOptions(model="overlap")}, "another model", "model"),
        ({"epsilon": "0.123456789012345", "overall": True}, "at most 13 digits", "epsilon"),
        ({"by": ["age"]}, "name where it is cut", "by"),
        ({"domain": None, "treatment": "t", "outcome": "y"}, "the domain declares", "bounds"),
        ({"domain": replace(DOMAIN, weights=SamplingWeights("w", 100))}, "sampling weights", ""),
        (
            {"domain": replace(DOMAIN, treatment=Treatment("t", arms=("a", "b", "c")))},
            "no subgroups at sample level",
            "method",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_before_a_record_is_read(more, part, parameter):
    with pytest.raises(ArgumentError, match=part) as caught:
        asked(ABSENT_FILE, **more)
    assert parameter in ("", caught.value.parameter)


@pytest.mark.parametrize("estimand", ["ate", "att", "atc"])
def test_margins_and_all_units_are_sums_weighted_by_the_noisy_numbers(estimand):
    release = asked(clinic(), ("sex", "age<60"), estimand=estimand, options=MEANS)
    found = by_name(release)
    cells = {cell["name"]: cell for cell in release.settings["subgroups"]["cells"]}
    units = {
        name: {"ate": cell["units"], "att": cell["arms"]["1"], "atc": cell["arms"]["0"]}[estimand]
        for name, cell in cells.items()
    }
    assert list(found)[:3] == [None, "sex=f", "sex=m"]
    for row, held in {None: list(cells), "sex=f": [c for c in cells if "sex=f" in c]}.items():
        mean = sum(units[name] * found[name].estimate for name in held)
        assert found[row].estimate == pytest.approx(mean / sum(units[c] for c in held), abs=0.01)
    assert release.ate == found[None].estimate
    assert release.settings["subgroups"]["overall"] == "rolled up"


def test_at_large_epsilon_cells_are_those_of_their_rows_alone():
    frame = clinic(3000)
    means = asked(frame, epsilon="2000", options=MEANS, design="randomized", confidence=None)
    for label in "fm":
        rows = frame.filter(pl.col("sex") == label)
        arms = [rows.filter(pl.col("t") == arm)["y"].mean() for arm in (0, 1)]
        row = by_name(means)[f"sex={label}"]
        assert row.estimate == pytest.approx(arms[1] - arms[0], abs=0.03)
        assert row.estimand == "ate"
    adjusted = by_name(asked(frame, epsilon="40"))
    assert adjusted["sex=f"].estimate == pytest.approx(2, abs=0.12)
    assert adjusted["sex=m"].estimate == pytest.approx(1, abs=0.12)


def test_the_noisy_numbers_of_units_are_near_the_true_ones():
    frame = clinic()
    cells = asked(frame, ("sex", "age<60")).settings["subgroups"]["cells"]
    true = frame.group_by(pl.col("sex"), pl.col("age") < 60).len()
    sizes = {(sex, below): size for sex, below, size in true.iter_rows()}
    for cell in cells:
        key = (cell["name"][4], "age<60" in cell["name"])
        assert abs(cell["units"] - sizes[key]) < 100
        assert cell["units"] == sum(cell["arms"].values())


def test_all_units_that_are_paid_for_are_those_of_a_run_on_all_rows():
    frame = clinic()
    both = asked(frame, overall=True, epsilon="80")
    alone = estimate_ate(frame, domain=DOMAIN, level="sample", epsilon="40", seed=6)
    assert both.ate == pytest.approx(alone.ate, abs=0.1)
    assert by_name(both)[None].estimate == both.ate
    assert both.settings["subgroups"]["overall"] == "paid for"
    assert any("not reconciled" in note for note in both.settings["notes"])
    spent = {}
    for step in both.steps:
        spent[step.part] = spent.get(step.part, 0.0) + step.epsilon
    assert spent == pytest.approx({"": 40, "sex=f": 40, "sex=m": 40})


def test_a_subgroup_that_holds_nobody_has_a_row_that_says_nothing():
    frame = clinic(1500).with_columns(sex=pl.lit("f"))
    for options in (MEANS, BlocksOptions(adjust=True)):
        empty = by_name(asked(frame, options=options, design="observational"))["sex=m"]
        assert empty.interval[1] - empty.interval[0] > 10
        assert np.isfinite(empty.estimate)


def test_rows_of_which_no_subgroup_is_known_are_in_none():
    frame = clinic().with_columns(sex=pl.when(pl.col("age") < 58).then(None).otherwise("sex"))
    domain = replace(DOMAIN, covariates={**DOMAIN.covariates, "sex": Categories("f", "m")})
    note = asked(frame, domain=domain, options=MEANS).settings["subgroups"]
    assert [cell["name"] for cell in note["cells"]] == ["sex=f", "sex=m"]
    assert sum(cell["units"] for cell in note["cells"]) < 1200


def test_a_subgroup_too_small_to_adjust_is_headed_as_a_difference_in_means():
    release = asked(clinic(4000), ("age<24",), epsilon="4")
    small, large = (by_name(release)[name] for name in ("age<24", "age≥24"))
    assert (small.estimand, large.estimand) == ("difference", "ate")
    assert release.estimand == "difference"  # all units include the small subgroup
    assert "too few rows to adjust in age<24" in release.warnings[0]
    text = str(release)
    assert "age≥24 (adjusted)" in text
    paid = asked(clinic(4000), ("age<24",), epsilon="8", overall=True)
    assert paid.estimand == "ate"
    assert "age<24 (not adjusted)" in str(paid)


def test_a_release_is_shown_and_read_back_with_its_rows():
    release = asked(clinic(), ("sex", "age<60"))
    text = str(release)
    assert "sex=f, age<60" in text
    assert "≈ " in text
    assert "equal effects" in text
    assert "all at once" in text
    assert Release.from_json(release.to_json()) == release
    page = release.to_html()
    assert ">Subgroups<" in page
    assert "≈ " in page
    note = json.loads(release.to_json())["settings"]["subgroups"]
    assert {cell["adjusted"] for cell in note["cells"]} <= {True, False}
    for row in release.effects:
        low, high = row.simultaneous
        assert low <= row.interval[0] <= row.estimate <= row.interval[1] <= high


def test_one_request_is_one_charge(tmp_path):
    path = tmp_path / "budget.db"
    Ledger.create(path, "clinic", epsilon="5").close()
    frame = clinic(400)
    more = {"seed": None, "ledger": path, "dataset": "clinic", "options": MEANS}
    asked(frame, ("sex", "age<60"), **more)
    with pytest.raises(BudgetError, match="ε = 1 left of ε = 5"):
        asked(frame, ("sex", "age<60"), epsilon="2", **more)


def test_without_an_interval_only_noise_is_told():
    release = asked(clinic(), confidence=None)
    assert release.interval is None
    assert {row.interval for row in release.effects} == {None}
    assert all(row.noise_interval for row in release.effects)
    assert "equal_effects" not in release.settings["subgroups"]


def effect(value, units=100.0, spread=0.0, variance=0.01, *, adjusted=True):
    law = NoiseDistribution("laplace", 0.05, 1.0)
    return ReleasedEffect(Quantity(value, (law,), (variance,)), units, spread, adjusted)


def test_rows_also_err_by_their_noisy_weights():
    rng = np.random.default_rng(4)
    cells = [effect(0.0, 300, 400), effect(2.0, 100, 400), effect(1.0, 200, 400)]
    row = rolled_up("all", cells, (0, 1, 2))
    sizes = np.array([300.0, 100, 200]) + 20 * rng.standard_normal((100_000, 3))
    means = sizes @ np.array([0.0, 2.0, 1.0]) / sizes.sum(axis=1)
    assert row.extra == pytest.approx(means.var(), rel=0.05)
    assert rolled_up("one", cells, (1,)).extra == 0


def test_a_row_is_adjusted_if_all_of_its_cells_are():
    cells = [effect(0.0), effect(1.0, adjusted=False)]
    assert not rolled_up(None, cells, (0, 1)).adjusted
    assert rolled_up("first", cells, (0,)).adjusted


@pytest.mark.parametrize(
    ("adjusted", "degrees"),
    [
        ((True, True, True), 2),
        ((False, False, False), 2),
        ((True, True, False), 1),
        ((True, False, False), None),
    ],
)
def test_adjusted_subgroups_are_never_tested_against_others(adjusted, degrees):
    # A difference in means that is far off, as confounding makes it, among equal effects.
    cells = [effect(0.0 if one or not any(adjusted) else 9.0, adjusted=one) for one in adjusted]
    rows = [rolled_up(str(place), cells, (place,)) for place in range(3)]
    table = private_table(cells, rows, ("1", "0"), coverage=0.95, width=20.0, cells=3)
    assert (None if table.equal is None else table.equal.degrees) == degrees
    assert table.equal is None or table.equal.p_value > 0.9


def test_a_table_of_adjusted_and_other_subgroups_has_no_test_between_them():
    release = asked(clinic(4000), ("age<24",), epsilon="4")
    assert "equal_effects" not in release.settings["subgroups"]
    assert "do not compare it with adjusted subgroups" in release.warnings[0]


def test_intervals_cover_one_by_one_and_all_at_once():
    rng = np.random.default_rng(8)
    truth, sizes = np.array([0.3, -0.2, 0.5]), np.array([500.0, 200, 300])
    mean = truth @ sizes / sizes.sum()
    single, together, rejected, runs = 0, 0, 0, 120
    for _ in range(runs):
        values = truth + 0.1 * rng.standard_normal(3) + rng.laplace(0, 0.05, 3)
        counted = sizes + 10 * rng.standard_normal(3)
        cells = [effect(v, u, 100) for v, u in zip(values, counted, strict=True)]
        groups = [(None, (0, 1, 2)), *((str(place), (place,)) for place in range(3))]
        rows = [rolled_up(name, cells, members) for name, members in groups]
        table = private_table(cells, rows, ("1", "0"), coverage=0.95, width=5.0, cells=3)
        held = [
            (row.contrast.interval[0] <= true <= row.contrast.interval[1],
             row.contrast.simultaneous[0] <= true <= row.contrast.simultaneous[1])
            for row, true in zip(table.rows, [mean, *truth], strict=True)
        ]  # fmt: skip
        single += sum(one for one, _ in held)
        together += all(both for _, both in held)
        rejected += table.equal.p_value < 0.05
    assert 0.93 < single / (4 * runs) < 0.99
    assert together / runs > 0.92
    assert rejected / runs > 0.9


def test_the_laplace_law_of_a_centre_has_its_quantile():
    law = laplace_of(0.3, 0.95)
    sizes = np.abs(np.random.default_rng(1).laplace(0, law.unit / float(law.epsilon), 100_000))
    assert np.mean(sizes > 0.3) == pytest.approx(0.05, abs=0.003)


def groups_of(rows=24, seed=0):
    rng = np.random.default_rng(seed)
    return Groups(
        rng.random((3, rows, 2)), rng.random((3, rows)) < 0.5,
        rng.integers(0, 1 << 30, (3, rows)).astype(np.int32), rng.random((3, rows)) < 0.4,
    )  # fmt: skip


def test_packed_rows_are_those_of_the_cell_in_their_order():
    one = groups_of()
    most = int(one.takes_part.sum(axis=1).max())
    short = packed(one, most)
    for group in range(3):
        kept = one.takes_part[group]
        there = short.takes_part[group]
        assert np.array_equal(one.outcome[group][kept], short.outcome[group][there])
        assert np.array_equal(one.covariates[group][kept], short.covariates[group][there])
    whole = linear_effects(one, length=most).effect
    assert linear_effects(short, length=most).effect == pytest.approx(whole)


def test_a_packed_block_depends_on_its_own_rows_alone():
    one = groups_of()
    other = replace(one, takes_part=np.vstack([one.takes_part[:2], np.ones((1, 24), bool)]))
    kept = [linear_effects(packed(each, 12), length=8).effect[:2] for each in (one, other)]
    assert np.array_equal(*kept)


def test_models_see_as_many_rows_as_a_subgroup_has_in_a_block(monkeypatch):
    seen = []

    def watched(groups, **more):
        seen.append((groups.covariates.shape[1], more["length"], groups.takes_part.mean()))
        return linear_effects(groups, **more)

    monkeypatch.setitem(MODELS, "linear", watched)
    options = BlocksOptions(adjust=True, model="linear", partitions=1)
    asked(clinic(), options=options, design="observational")
    for places, rows, share in seen:
        assert places <= packed_length(rows)
        assert share * places == pytest.approx(rows, rel=0.3)


def test_places_of_a_block_are_enough_for_nearly_all_rows():
    rng = np.random.default_rng(2)
    for rows in (10, 60, 500):
        held = rng.binomial(20 * rows, 1 / 20, 20_000)
        assert np.mean(held > packed_length(rows)) < 1e-3


def test_a_cell_is_planned_by_an_equal_share_and_cut_by_its_count():
    scope = Scope(20_000, 4)
    assert scope.in_cell
    assert scope.expected == 5000
    small, large = (
        plan_blocks(scope.expected, 5, 1.0, members=members, rows=scope.rows)
        for members in (1500, 15_000)
    )
    assert small.blocks < large.blocks
    assert small.effect == large.effect  # the budget is planned before the count is known
    assert Scope(20_000).expected == 20_000
    assert Fraction(large.effect) > 0
