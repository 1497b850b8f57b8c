"""Effects in subgroups: which rows are in which, what the table adds up to, what is refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from private_ate import (
    Binary,
    Categories,
    Domain,
    Interval,
    Ledger,
    Outcome,
    Release,
    Treatment,
    estimate_ate,
)
from private_ate.data.files import read_table
from private_ate.domain.domain import Cells
from private_ate.effects.estimate import Quantity
from private_ate.effects.quantities import ReleasedSubgroups, RowForm
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError, LedgerError
from private_ate.methods.calibrated.design import pose
from private_ate.methods.calibrated.method import estimate_rows
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.registry import METHODS
from private_ate.methods.subgroups import learned_for_subgroups, merged_warnings
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.release.intervals import noise_draws
from private_ate.report.effects_table import subgroup_cells
from private_ate.request import Request
from private_ate.settings import SubgroupNote
from several_arms import arm_study

DOMAIN = Domain(
    Treatment("t", 1, 0),
    ("y", Interval(0, 10)),
    {"sex": Categories("f", "m"), "age": Interval(18, 98), "smokes": Binary()},
)
ABSENT_FILE = "no such file.csv"


def clinic(rows=300, seed=1):
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, rows), rng.integers(18, 98, rows).astype(float)
    t = (rng.random(rows) < 0.3 + 0.4 * sex).astype(int)
    y = np.clip(4 + 0.02 * age + t * (1 + sex) + rng.normal(size=rows), 0, 10)
    smokes = rng.integers(0, 2, rows).astype(float)
    labels = np.where(sex == 1, "f", "m")
    return pl.DataFrame({"t": t, "y": y, "sex": labels, "age": age, "smokes": smokes})


def asked(data, by, epsilon="1", **more):
    more = {"domain": DOMAIN, "level": "label", "seed": 5} | more
    return estimate_ate(data, epsilon=epsilon, by=by, **more)


@pytest.mark.parametrize(
    ("by", "part"),
    [
        (["height"], "not by 'height'"),
        (["age"], "name where it is cut, such as 'age<58'"),
        (["age<18"], "above 18 and at most 98"),
        (["age<=65"], "not '=65'"),
        (["age<99"], "at most 98"),
        (["sex<2"], "has labels"),
        (["sex", "sex"], "twice"),
        (["age<30", "age<50", "age<60", "age<70", "sex"], "32 cells; at most 20"),
        ([""], "a list of columns"),
        ([3], "a list of columns"),
        ("", "a list of columns"),
    ],
)
def test_what_makes_no_subgroups_is_refused_before_a_record_is_read(by, part):
    with pytest.raises(ArgumentError, match=part) as caught:
        asked(ABSENT_FILE, by)
    # A column that is not declared yet is declared by its bounds or labels.
    assert caught.value.parameter == ("bounds" if by == ["height"] else "by")


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"method": "aim", "level": "sample"}, "'aim' has no subgroups at sample level"),
        ({"method": "published"}, "method 'published' has no subgroups"),
        ({"rows_per_person": 2}, "one row per person"),
        ({"overall": "yes"}, "overall"),
        ({"by": [], "overall": True}, "name these too"),
        ({"domain": None, "treatment": "t", "outcome": "y"}, "the domain declares"),
    ],
)
def test_what_has_no_subgroups_is_refused_before_a_record_is_read(more, part):
    with pytest.raises(ArgumentError, match=part):
        asked(ABSENT_FILE, **({"by": ["sex"]} | more))


def test_private_missing_outcomes_are_refused():
    domain = Domain(
        Treatment("t", 1, 0), Outcome("y", Interval(0, 10), missing="private"), DOMAIN.covariates
    )
    with pytest.raises(ArgumentError, match="private missing outcomes"):
        asked(ABSENT_FILE, ["sex"], domain=domain)


def test_rows_are_in_the_cells_that_their_entries_say():
    cells = Cells.of(DOMAIN, ["sex", "age<65", "smokes"])
    assert cells.count == 9
    assert cells.names[0] == "sex=f, age<65, smokes=0"
    assert cells.names[-1] == "sex or age or smokes not known"
    columns = [("m", 64.9, 0), ("m", 65, 1), ("f", 18, 1), ("f", 98, 0), (None, 20, 0)]
    table = pl.DataFrame(
        [{"sex": s, "age": float(a), "smokes": float(k), "t": 1, "y": 1} for s, a, k in columns]
    )
    study = LocalStudy.encode(read_table(table), DOMAIN)
    codes = cells.codes(study.covariates.T)
    assert [cells.names[code] for code in codes] == [
        "sex=m, age<65, smokes=0",
        "sex=m, age≥65, smokes=1",
        "sex=f, age<65, smokes=1",
        "sex=f, age≥65, smokes=0",
        "sex or age or smokes not known",
    ]
    margins = dict(cells.margins)
    assert margins["sex=f"] == (0, 1, 2, 3)
    assert margins["smokes=1"] == (1, 3, 5, 7)


def test_missing_entries_of_public_columns_are_a_subgroup_of_their_own():
    data = clinic(400)
    gaps = pl.Series(np.arange(400) % 4 == 0)
    data = data.with_columns(
        age=pl.when(gaps).then(None).otherwise(pl.col("age")),
        sex=pl.when(pl.Series(np.arange(400) % 5 == 0)).then(None).otherwise(pl.col("sex")),
    )
    release = asked(data, ["age<65"])
    cells = {cell["name"]: cell["units"] for cell in release.settings["subgroups"]["cells"]}
    assert cells["age not known"] == 100
    assert sum(cells.values()) == 400
    release = asked(data, ["sex"])
    cells = {cell["name"]: cell["units"] for cell in release.settings["subgroups"]["cells"]}
    assert cells["sex not known"] == 80


@pytest.mark.parametrize("overall", [False, True])
@pytest.mark.parametrize("arms", [2, 3])
def test_margins_and_all_units_are_what_the_finest_cells_add_up_to(arms, overall):
    study = arm_study(arms, rows=400)
    release = estimate_ate(
        study, level="label", epsilon="0.7", by=["x0<0.5", "x1<0.4"], overall=overall, seed=2
    )
    sizes = {cell["name"]: cell["units"] for cell in release.settings["subgroups"]["cells"]}
    for arm in study.domain.treatment.coded[1:]:
        found = {row.subgroup: row.estimate for row in release.effects
                 if row.arm == arm and row.against == "a0"}  # fmt: skip
        for margin in (None, "x0<0.5", "x0≥0.5", "x1<0.4", "x1≥0.4"):
            held = [name for name in sizes if margin is None or margin in name.split(", ")]
            whole = sum(sizes[name] for name in held)
            total = sum(sizes[name] * found[name] for name in held) / whole
            assert found[margin] == pytest.approx(total, abs=1e-12)
    assert release.ate == next(
        row.estimate for row in release.effects
        if row.subgroup is None and row.arm == study.domain.treatment.coded[-1]
    )  # fmt: skip


@pytest.mark.parametrize("arms", [2, 3])
def test_at_a_large_epsilon_a_subgroup_is_the_estimate_of_its_rows_with_features_of_all(arms):
    study = arm_study(arms, rows=400)
    release = estimate_ate(study, level="label", epsilon="200", by=["x0<0.5"], seed=2)
    rows = study.reordered(np.flatnonzero(study.covariates[0] < 0.5))
    request = Request("label", Fraction(200), options=CalibratedOptions())
    learned = learned_for_subgroups(study.public(), request, 2)
    alone = estimate_rows(rows, request, Noise(SeededEntropy(2)), learned)
    last = study.domain.treatment.coded[-1]
    found = next(row.estimate for row in release.effects
                 if (row.subgroup, row.arm, row.against) == ("x0<0.5", last, "a0"))  # fmt: skip
    assert found == pytest.approx(alone.ate, abs=1e-6)


def curved_study(seed, rows=2000):
    """Return a study in which a product and a kink decide about treatment and outcome."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 10))
    shape = x[:, 0] * x[:, 1] + (np.abs(x[:, 2]) - 0.8) / 0.6
    shape = (shape - shape.mean()) / shape.std()
    line = x @ rng.standard_normal(10) / np.sqrt(10)
    t = (rng.random(rows) < 1 / (1 + np.exp(0.4 - 0.9 * shape - 0.44 * line))).astype(int)
    y = 0.8 * shape + 0.5 * line + t + 0.7 * rng.standard_normal(rows)
    return pl.DataFrame({"t": t, "y": y, **{f"x{i}": x[:, i] for i in range(10)}})


@pytest.mark.parametrize("overall", [False, True])
def test_asking_for_subgroups_leaves_all_units_about_as_balanced_as_without(overall):
    covariates = {f"x{i}": Interval(-5, 5) for i in range(10)}
    domain = Domain("t", ("y", Interval(-6, 6)), covariates)
    errors = [
        asked(curved_study(seed), ["x0<0", "x1<0"], "4", domain=domain, overall=overall).ate - 1
        for seed in range(4)
    ]
    # Subgroups of 500 rows that learnt by themselves what to balance left 0.09 and 0.11 here.
    assert abs(np.mean(errors)) < 0.05


def test_features_of_all_rows_are_balanced_around_the_means_of_a_subgroup():
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (800, 2))
    t = (rng.random(800) < 0.3 + 0.2 * (x[:, 1] > 0)).astype(int)
    data = pl.DataFrame({"t": t, "y": t * x[:, 0], "x0": x[:, 0], "x1": x[:, 1]})
    domain = Domain("t", ("y", Interval(-1, 1)), {name: Interval(-1, 1) for name in ("x0", "x1")})
    release = asked(data, ["x0<0"], "100", domain=domain)
    found = {row.subgroup: row.estimate for row in release.effects}
    below = x[:, 0] < 0
    assert found["x0<0"] == pytest.approx(x[below, 0].mean(), abs=0.03)
    assert found["x0≥0"] == pytest.approx(x[~below, 0].mean(), abs=0.03)


@pytest.mark.parametrize(("estimand", "arm"), [("att", "1"), ("atc", "0")])
def test_effects_among_the_units_of_an_arm_are_rolled_up_by_their_numbers(estimand, arm):
    release = asked(clinic(), ["sex"], estimand=estimand)
    found = {row.subgroup: row.estimate for row in release.effects}
    sizes = {cell["name"]: cell["arms"][arm] for cell in release.settings["subgroups"]["cells"]}
    total = sum(sizes[name] * found[name] for name in sizes) / sum(sizes.values())
    assert found[None] == pytest.approx(total, abs=1e-12)


def test_the_overlap_population_is_rolled_up_by_the_overlap_of_the_cells():
    data = clinic(600)
    whole = asked(data, ["sex"], epsilon="400", estimand="ato")
    found = {row.subgroup: row.estimate for row in whole.effects}
    study = LocalStudy.encode(read_table(data), DOMAIN)
    design = pose(study.public(), Request("label", Fraction(1), estimand="ato"))
    chance = design.arms[1].features.probability(study.covariates.T)
    overlap = {
        f"sex={sex}": float((chance * (1 - chance))[(data["sex"] == sex).to_numpy()].sum())
        for sex in ("f", "m")
    }
    total = sum(overlap[name] * found[name] for name in overlap) / sum(overlap.values())
    assert found[None] == pytest.approx(total, abs=1e-12)
    plain = sum(found[name] for name in overlap) / 2
    assert abs(found[None] - plain) > 1e-4  # cells are of unlike overlap
    assert "by their overlap" in whole.settings["population"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimand", ["ate", "att", "atc", "ato"])
def test_all_units_paid_for_are_those_of_a_request_without_subgroups_at_half_epsilon(
    estimand, weighted
):
    data = clinic(400).with_columns(w=pl.Series(1 + np.arange(400) % 7 / 2))
    domain = DOMAIN
    if weighted:
        domain = Domain(
            Treatment("t", 1, 0),
            ("y", Interval(0, 10)),
            DOMAIN.covariates,
            weights=("w", Interval(0, 5)),
        )
        data = data.with_columns(
            w=pl.col("w") * pl.when(pl.col("sex") == "f").then(1).otherwise(0.2)
        )
    more = {"domain": domain, "estimand": estimand, "confidence": None}
    paid = asked(data, ["sex"], epsilon="2000", overall=True, **more)
    alone = estimate_ate(data, level="label", epsilon="1000", seed=1, **more)
    assert paid.ate == pytest.approx(alone.ate, abs=1e-4)
    step = paid.steps[-1]
    assert (step.name, step.part) == ("all units: outcome sum", "")
    found = {row.subgroup: row.estimate for row in paid.effects}
    rolled = asked(data, ["sex"], epsilon="1000", **more)
    # Both tables weigh subgroups alike: what distinguishes them is the common move of all cells.
    moved = [row.estimate - found[row.subgroup] for row in rolled.effects]
    assert min(moved[1:]) - 1e-9 <= moved[0] <= max(moved[1:]) + 1e-9


def test_all_units_paid_for_are_the_rows_of_subgroups_that_have_an_effect():
    data = clinic(400)
    without = data.filter(~((pl.col("sex") == "m") & (pl.col("t") == 1)))
    more = {"domain": DOMAIN, "confidence": None}
    paid = asked(without, ["sex"], epsilon="2000", overall=True, **more)
    rows = without.filter(pl.col("sex") == "f")
    alone = estimate_ate(rows, level="label", epsilon="1000", seed=1, **more)
    assert paid.ate == pytest.approx(alone.ate, abs=1e-4)


def test_an_arm_whose_units_are_meant_is_what_cells_of_three_arms_add_up_to():
    study = arm_study(3, rows=500)
    more = {"level": "label", "among": "a1", "seed": 2, "confidence": None}
    paid = estimate_ate(study, epsilon="2000", by=["x0<0.3"], overall=True, **more)
    alone = estimate_ate(study, epsilon="1000", **more)
    assert paid.ate == pytest.approx(alone.ate, abs=1e-4)
    found = {row.subgroup: row.estimate for row in paid.effects if row.arm == "a2"
             and row.against == "a0"}  # fmt: skip
    sizes = {cell["name"]: cell["arms"]["a1"] for cell in paid.settings["subgroups"]["cells"]}
    total = sum(sizes[name] * found[name] for name in sizes) / sum(sizes.values())
    assert found[None] == pytest.approx(total, abs=1e-12)


def test_cells_of_a_sample_count_by_their_sampling_weights():
    data = clinic(400).with_columns(w=pl.when(pl.col("sex") == "f").then(4.0).otherwise(1.0))
    domain = Domain(
        Treatment("t", 1, 0),
        ("y", Interval(0, 10)),
        DOMAIN.covariates,
        weights=("w", Interval(0, 5)),
    )
    release = asked(data, ["sex"], domain=domain)
    found = {row.subgroup: row.estimate for row in release.effects}
    sizes = {"sex=f": 4 * data["sex"].eq("f").sum(), "sex=m": data["sex"].eq("m").sum()}
    total = sum(sizes[name] * found[name] for name in sizes) / sum(sizes.values())
    assert found[None] == pytest.approx(total, abs=1e-12)
    assert release.settings["sampling_weights"]["largest"] == pytest.approx(
        4 * 400 / sum(sizes.values()), rel=1e-6
    )
    nobody = data.with_columns(w=pl.when(pl.col("sex") == "m").then(0.0).otherwise(1.0))
    left = asked(nobody, ["sex"], domain=domain)
    assert [row.subgroup for row in left.effects] == [None, "sex=f"]
    assert any("no effect in sex=m" in text for text in left.warnings)


def test_warnings_of_many_subgroups_are_told_as_one():
    rng = np.random.default_rng(3)
    data = clinic(2000).with_columns(age=pl.Series(rng.uniform(18, 98, 2000)))
    poor = (rng.random(2000) < np.where(data["age"].to_numpy() > 58, 0.995, 0.005)).astype(int)
    release = asked(data.with_columns(t=pl.Series(poor)), ["sex", "smokes"])
    (text,) = [text for text in release.warnings if "overlap" in text]
    assert text.startswith("poor overlap of the arms in 4 of 4 subgroups (sex=f, smokes=0; ")
    assert text.endswith("Compare fewer or other units")  # each arm is rare somewhere
    assert asked(data.with_columns(t=pl.Series(poor)), ["sex"], estimand="ato").estimand == "ato"
    names = [f"cell {place}" for place in range(6)]
    cells = tuple(SubgroupNote(name, 10, {"0": 0, "1": 10}, False) for name in names)
    (left,) = merged_warnings([], [], cells)
    assert (
        "in 6 subgroups that lack units of some arm (cell 0; cell 1; cell 2; cell 3; 2 more)"
        in left
    )
    assert "their 60 units are in no row" in left


def test_all_units_paid_for_are_as_exact_as_asked_for_alone_at_half_epsilon():
    study = arm_study(2, rows=3000, seed=7)
    by = ["x0<0.5", "x1<0.5", "x2<0.5"]
    release = estimate_ate(study, level="label", epsilon="1", by=by, overall=True, seed=2)
    alone = estimate_ate(study, level="label", epsilon="0.5", seed=2)

    def width(pair):
        return pair[1] - pair[0]

    assert width(release.noise_interval) == pytest.approx(width(alone.noise_interval), rel=0.02)
    assert width(release.interval) == pytest.approx(width(alone.interval), rel=0.2)


def test_empty_cells_are_allowed_and_a_cell_that_lacks_an_arm_has_no_row():
    data = clinic()
    without = data.filter(~((pl.col("sex") == "m") & (pl.col("t") == 1)))
    release = asked(without, ["sex", "age<97.5"])
    names = {row.subgroup for row in release.effects}
    assert "sex=m" not in names
    assert any("no effect in sex=m" in text for text in release.warnings)
    assert "subgroups with units of every arm" in release.settings["population"]
    nobody = asked(data.filter(pl.col("sex") == "f"), ["sex"])
    assert [row.subgroup for row in nobody.effects] == [None, "sex=f"]
    assert not any("no effect in" in text for text in nobody.warnings)


def test_a_release_of_subgroups_comes_back_from_json_and_shows_itself():
    for release in (
        asked(clinic(), ["sex", "age<65"], overall=True),
        asked(clinic(), ["sex"], confidence=None),
        estimate_ate(arm_study(3, 300), level="label", epsilon=1, by=["x0<0.5"], seed=1),
    ):
        assert Release.from_json(release.to_json()) == release
        text = str(release)
        for row in release.effects:
            assert (row.subgroup or "all units") in text
        assert all(row[1] for row in subgroup_cells(release).rows)  # units, of margins too
        assert ("equal effects" in text) == (release.interval is not None)
        page = release.to_html()
        assert "Forest plot" in page
        assert ">Subgroups<" in page
        assert "by=[" in page
        assert "subgroup" in release._repr_html_()
        assert release.to_frame()["subgroup"].null_count() == len(release.contrasts)


def test_all_rows_of_a_request_are_one_charge(tmp_path):
    path = tmp_path / "budget.db"
    Ledger.create(path, "clinic", epsilon="1").close()
    first = asked(clinic(), ["sex"], overall=True, seed=None, ledger=path, request_id="a")
    again = asked(clinic(), ["sex"], overall=True, seed=None, ledger=path, request_id="a")
    assert first == again
    assert first.settings["ledger"]["left"] == 0
    with pytest.raises(LedgerError, match="other parameters"):
        asked(clinic(), ["sex"], seed=None, ledger=path, request_id="a")


def test_three_arms_four_subgroups_and_two_outcomes_are_one_charge_and_one_table(tmp_path):
    path = tmp_path / "budget.db"
    Ledger.create(path, "clinic", epsilon="1").close()
    arms = Treatment("t", arms=("a", "b", "c"))
    outcomes = [Outcome("y", Interval(0, 10)), Outcome("smokes", Binary())]
    columns = {name: DOMAIN.covariates[name] for name in ("sex", "age")}
    data = clinic().with_columns(t=pl.Series(np.array(["a", "b", "c"])[np.arange(300) % 3]))
    release = asked(
        data, ["sex", "age<60"], domain=Domain(arms, outcomes, columns), seed=None, ledger=path,
    )  # fmt: skip
    assert release.settings["ledger"]["left"] == 0
    rows = {(row.outcome, row.subgroup, row.arm, row.against) for row in release.effects}
    assert len(rows) == len(release.effects) == 2 * (3 + 2 * 8)
    assert {row.outcome for row in release.effects} == {"y", "smokes"}
    sizes = {cell["name"]: cell["units"] for cell in release.settings["subgroups"]["cells"]}
    for outcome in ("y", "smokes"):
        found = {row.subgroup: row.estimate for row in release.effects
                 if (row.outcome, row.arm, row.against) == (outcome, "c", "a")}  # fmt: skip
        total = sum(sizes[name] * found[name] for name in sizes) / 300
        assert found[None] == pytest.approx(total, abs=1e-12)


def test_a_combination_of_rolled_up_means_is_refused():
    release = estimate_ate(arm_study(3, 300), level="label", epsilon=1, by=["x0<0.5"], seed=1)
    with pytest.raises(ArgumentError, match="no single distribution"):
        release.combination({"a1": 1, "a0": -1})


def table_of(rng, effects, scale=0.05, deviation=0.1):
    """Return cells with known noise and sampling around given effects, and a direct number."""
    law = NoiseDistribution("staircase", scale, 1.0)
    shares = [0.4, 0.3, 0.2, 0.1]
    sampled = np.array(effects) + deviation * rng.standard_normal(4)
    cells = [[Quantity(float(value + noise_draws(law, rng.random(1))[0]), (law,), (deviation**2,))]
             for value in sampled]  # fmt: skip
    direct = [Quantity(float(shares @ sampled + noise_draws(law, rng.random(1))[0]), (law,))]
    return shares, cells, direct


@pytest.mark.parametrize("with_direct", [False, True])
def test_intervals_cover_and_the_test_of_equal_effects_keeps_its_level(with_direct):
    rng = np.random.default_rng(11)
    rows = [RowForm(tuple(one), (1.0,)) for one in [*np.eye(4).tolist(), [0.4, 0.3, 0.2, 0.1]]]
    own, together, rejected, found = 0, 0, 0, 0
    halves = factor = None
    for _ in range(400):
        shares, cells, direct = table_of(rng, [1.0] * 4)
        made = ReleasedSubgroups.reconcile(shares, cells, direct if with_direct else None)
        if halves is None:
            halves = [made.half(row, 0.95) for row in rows]
            factor = made.simultaneous_factor(rows, halves, 0.95)
        errors = [abs(made.value(row) - 1.0) for row in rows]
        own += sum(error <= half for error, half in zip(errors, halves, strict=True)) / 5
        together += all(error <= factor * half for error, half in zip(errors, halves, strict=True))
    for _ in range(25):
        shares, cells, direct = table_of(rng, [1.0] * 4)
        made = ReleasedSubgroups.reconcile(shares, cells, direct if with_direct else None)
        rejected += made.test_equal((1.0,)).p_value <= 0.2
        shares, cells, direct = table_of(rng, [1.0, 2.0, 1.0, 0.5])
        made = ReleasedSubgroups.reconcile(shares, cells, direct if with_direct else None)
        found += made.test_equal((1.0,)).p_value <= 0.05
    assert 0.93 <= own / 400 <= 0.97
    assert 0.92 <= together / 400 <= 0.98
    assert 1 <= rejected <= 11
    assert found >= 23


def test_what_is_unbalanced_in_all_cells_does_not_average_out():
    rng = np.random.default_rng(5)
    law, shares = NoiseDistribution("staircase", 0.001, 1.0), [0.25] * 4
    rows = [RowForm(tuple(one), (1.0,)) for one in [*np.eye(4).tolist(), shares]]
    covered, together = np.zeros(5), 0
    for _ in range(200):
        lean = 0.2 * rng.standard_normal()  # the same in all cells
        cells = [[Quantity(1 + lean + 0.1 * rng.standard_normal(), (law,), (0.05,), 0.04)]
                 for _ in shares]  # fmt: skip
        made = ReleasedSubgroups.reconcile(shares, cells)
        halves = [made.half(row, 0.95) for row in rows]
        errors = np.array([abs(made.value(row) - 1) for row in rows])
        covered += errors <= halves
        factor = made.simultaneous_factor(rows, halves, 0.95)
        together += bool(np.all(errors <= factor * np.array(halves)))
    assert np.all((covered / 200 > 0.91) & (covered / 200 < 0.98))
    assert 0.91 < together / 200 < 0.99
    assert made.variance(rows[-1]) == pytest.approx(0.04 + 0.01 / 4)


@pytest.mark.parametrize("arms", [2, 3])
def test_cells_tell_how_much_of_their_variance_is_imbalance(arms):
    study = arm_study(arms, rows=300, seed=9)
    asked = Request("label", Fraction(1, 4))  # noise that makes the cap bind
    run = METHODS["calibrated"].run(study, asked, Noise(SeededEntropy(1)))
    assert all(0 <= one.bias <= np.mean(one.variances) for one in run.quantities)
    assert max(one.bias / np.mean(one.variances) for one in run.quantities) > 0.03


def test_cells_add_up_to_the_direct_number_with_its_noise_and_its_variances():
    shares, cells, direct = table_of(np.random.default_rng(1), [1.0] * 4)
    whole = RowForm(tuple(shares), (1.0,))
    direct = [
        replace(direct[0], noise=(NoiseDistribution("staircase", 0.01, 1.0),), variances=(0.003,))
    ]
    made = ReleasedSubgroups.reconcile(shares, cells, direct)
    assert made.value(whole) == pytest.approx(direct[0].value, abs=1e-12)
    assert made.variance(whole) == pytest.approx(0.003)
    alone = ReleasedSubgroups.reconcile([1.0], [direct])
    every = RowForm((1.0,), (1.0,))
    assert made.noise_half(whole, 0.95) == pytest.approx(alone.noise_half(every, 0.95))
    plain = ReleasedSubgroups.reconcile(shares, cells)
    for one in np.eye(4).tolist():
        row = RowForm(tuple(one), (1.0,))
        assert made.noise_half(row, 0.95) < plain.noise_half(row, 0.95)


def test_what_all_cells_leave_unbalanced_moves_them_alike():
    law = NoiseDistribution("staircase", 1e-6, 1.0)
    shares = [0.99, 0.01]  # a small cell has more noise, but is unbalanced like the other
    cells = [[Quantity(1.2, (law.scaled(1 / share),), (0.02,), 0.01)] for share in shares]
    made = ReleasedSubgroups.reconcile(shares, cells, [Quantity(1.0, (law,))])
    assert made.values[:, 0] == pytest.approx([1.0, 1.0], abs=1e-3)


def test_a_budget_of_many_digits_is_halved_and_spent_exactly():
    study = arm_study(2, rows=120)
    release = estimate_ate(
        study, level="label", epsilon="0.123456789012345", by=["x0<0.5"], overall=True, seed=1
    )
    spent = {}
    for step in release.steps:
        spent[step.part] = spent.get(step.part, 0) + step.epsilon
    assert release.epsilon == Fraction("0.123456789012345")
    assert spent[""] + spent["x0<0.5"] == pytest.approx(0.123456789012345, abs=1e-16)


def test_means_and_clipped_outcomes_work_within_subgroups():
    for options in (CalibratedOptions(means=True), CalibratedOptions(clip_share="0.1")):
        release = asked(clinic(), ["sex"], overall=True, options=options)
        assert len(release.effects) == 3
    clipped = estimate_ate(
        arm_study(3, 200), level="label", epsilon=1, by=["x0<0.5"], overall=True, seed=1,
        options=CalibratedOptions(clip_share="0.1"),
    )  # fmt: skip
    assert len(clipped.arms) == 3


def test_three_arms_are_compared_with_the_reference_in_every_subgroup():
    domain = Domain(Treatment("t", arms=("a", "b", "c")), ("y", Interval(0, 10)), DOMAIN.covariates)
    data = clinic().with_columns(t=pl.Series(np.array(["a", "b", "c"])[np.arange(300) % 3]))
    release = asked(data, ["sex"], domain=domain)
    rows = [(row.subgroup, row.arm, row.against) for row in release.effects]
    assert rows == [
        (None, "b", "a"), (None, "c", "a"), (None, "c", "b"),
        ("sex=f", "b", "a"), ("sex=f", "c", "a"), ("sex=m", "b", "a"), ("sex=m", "c", "a"),
    ]  # fmt: skip
    assert [arm.label for arm in release.arms] == ["a", "b", "c"]
    assert len(release.settings["subgroups"]["equal_effects"]) == 2
