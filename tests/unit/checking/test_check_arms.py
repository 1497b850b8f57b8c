"""The curator's check of several arms: sizes, labels, doses and overlap by arm."""

import json

import numpy as np
import polars as pl
import pytest

from private_ate import Domain, Interval, SchemaError, Treatment, check_data
from private_ate.checking import arms as weighing
from private_ate.data.files import read_table
from private_ate.release.public_facts import ArmOverlap, Overlap

ROWS = 1200
THREE = Treatment("t", arms=("none", "low", "high"))
DOSES = Treatment("t", bins=(0, 1, 6, 100), labels=("zero", "few", "many"))


def domain(treatment=THREE, **covariates):
    return Domain(treatment, ("y", Interval(0, 10)), covariates or {"x": Interval(0, 1)})


def study(labels=("none", "low", "high"), shares=None, *, pull=0.0, seed=4, rows=ROWS):
    """Return a study whose covariate is pulled up by one step of the arm's code."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(labels), rows, p=shares)
    x = np.clip(rng.normal(0.5 + pull * (codes - 1), 0.15, rows), 0, 1)
    return pl.DataFrame(
        {"t": np.array(labels)[codes], "y": rng.normal(5, 1, rows).clip(0, 10), "x": x}
    )


def found(check, topic, column="t"):
    (one,) = (item for item in check.findings if (item.topic, item.column) == (topic, column))
    return one


def test_several_arms_in_order_are_counted_by_label_with_the_reference_marked():
    frame = study()
    check = check_data(frame, domain=domain())
    sizes = dict(frame["t"].value_counts().iter_rows())

    assert check.bends == ()
    assert check.arms.counts == {label: sizes[label] for label in ("none", "low", "high")}
    assert f'{sizes["none"]:,} "none" (reference)' in found(check, "arms").sentence
    assert json.loads(check.to_json())["arms"]["counts"] == sizes
    assert (check.arms.treated, check.arms.control) == (sizes["high"], sizes["none"])
    assert "No problem found that would bias the estimate" in check.to_text()


def test_an_empty_arm_and_a_tiny_arm_are_findings_that_say_what_to_do():
    declared = domain(Treatment("t", arms=("none", "low", "high", "never seen")))
    empty = found(check_data(study(), domain=declared), "arms")
    assert (empty.severity, "never seen" in empty.sentence) == ("bends", True)
    assert "remove it from the declared arms" in empty.remedy
    tiny = found(check_data(study(shares=(0.59, 0.4, 0.01)), domain=domain()), "arms")
    assert tiny.severity == "note"
    assert 'merge "high" with another arm' in tiny.remedy


def test_a_third_label_of_a_two_arm_declaration_is_proposed_as_an_arm():
    check = check_data(study(), domain=domain(Treatment("t", "high", "none")))
    assert found(check, "undeclared labels").severity == "bends"
    assert "arms = [...]" in found(check, "undeclared labels").remedy
    lines = check.proposed.replace("  # from the data: confirm with the code book", "")
    assert 'arms = ["none", "high", "low"]' in lines
    full = f'{lines}\n[outcome]\ncolumn = "y"\nlow = 0\nhigh = 10\n'
    proposed = Domain.from_toml(full).treatment
    assert proposed == Treatment("t", arms=("none", "high", "low"), reference="none")
    again = check_data(study(), domain=domain(proposed))
    assert again.bends == ()
    assert not again.proposed


def test_a_proposal_keeps_the_declared_reference_whatever_it_is_called():
    check = check_data(study(), domain=domain(Treatment("t", treated="none", control="high")))
    assert 'arms = ["high", "none", "low"]' in check.proposed
    assert 'reference = "high"' in check.proposed


def test_a_slip_of_the_pen_is_no_arm_and_rows_left_out_on_purpose_are_none_either():
    frame = study().with_columns(
        t=pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("hgih")).otherwise("t")
    )
    check = check_data(frame, domain=domain())
    assert found(check, "undeclared labels").counts["rows"] == 3
    assert not check.proposed
    on_purpose = check_data(
        study(), domain=domain(Treatment("t", "high", "none")), leave_out_undeclared=True
    )
    assert not on_purpose.bends
    assert not on_purpose.proposed


def test_labels_that_none_of_the_declared_ones_match_are_proposed_in_their_order():
    frame = study(labels=("10", "9", "2"))
    check = check_data(frame, domain=domain())
    assert found(check, "arms").severity == "bends"
    assert 'arms = ["2", "9", "10"]' in check.proposed


def test_more_numbers_than_arms_are_a_dose_to_be_declared_by_bins():
    rng = np.random.default_rng(2)
    frame = study().with_columns(t=pl.Series(rng.integers(0, 60, ROWS)))
    check = check_data(frame, domain=domain(Treatment("t")))
    assert "bins = ???  # edges of a dose" in check.proposed
    assert "bins = [...]" in found(check, "undeclared labels").remedy


def test_one_misspelt_label_of_two_keeps_the_role_of_the_other():
    frame = study(labels=("A", "B"), shares=(0.5, 0.5))
    check = check_data(frame, domain=domain(Treatment("t", treated="A", control="b")))
    assert 'treated = "A"' in check.proposed
    assert 'control = "B"' in check.proposed


def test_doses_are_counted_in_bins_and_unreadable_or_far_ones_are_told(tmp_path):
    rng = np.random.default_rng(5)
    doses = [*map(str, rng.choice([0, 3, 20], ROWS - 6)), "two", "3,5", "", "nan", "1000", "-2"]
    frame = study().with_columns(t=pl.Series(doses))
    path = tmp_path / "study.csv"
    frame.write_csv(path)
    check = check_data(path, domain=domain(DOSES))

    unread = found(check, "unreadable")
    assert (unread.severity, unread.counts["rows"]) == ("bends", 2)
    assert found(check, "missing").counts["rows"] == 2
    assert found(check, "beyond the bins").counts["rows"] == 2
    assert sum(check.arms.counts.values()) == ROWS - 4
    assert check.arms.counts["many"] == doses.count("20") + 1
    assert isinstance(check.support.overlap, ArmOverlap)


def test_doses_of_a_text_type_are_refused_as_the_estimate_refuses_them():
    with pytest.raises(SchemaError, match="'t'"):
        check_data(study(), domain=domain(DOSES))


def test_two_bins_are_checked_as_treated_and_control():
    frame = study().with_columns(t=pl.Series(np.random.default_rng(1).uniform(0, 10, ROWS)))
    check = check_data(frame, domain=domain(Treatment("t", bins=(0, 5, 10))))
    assert check.bends == ()
    assert (check.arms.treated, check.arms.control) == (
        frame.filter(pl.col("t") >= 5).height,
        frame.filter(pl.col("t") < 5).height,
    )
    assert isinstance(check.support.overlap, Overlap)


def test_rows_that_the_domain_counts_as_an_arm_belong_to_it():
    frame = study(labels=("none", "low", "high", "odd"))
    frame = frame.with_columns(y=pl.when(pl.col("t") == "odd").then(None).otherwise("y"))
    declared = domain(Treatment("t", arms=("none", "low", "high"), other="low"))
    check = check_data(frame, domain=declared)
    odd = frame.filter(pl.col("t") == "odd").height
    assert found(check, "undeclared labels").severity == "note"
    assert found(check, "missing", "y").counts["arms"] == {"none": 0, "low": odd, "high": 0}


def test_poor_overlap_of_one_arm_is_a_problem_and_names_it():
    good = check_data(study(pull=0.02), domain=domain())
    poor = check_data(study(pull=0.35), domain=domain())
    assert found(good, "overlap", None).severity == "ok"
    assert found(poor, "overlap", None).severity == "bends"
    assert 'units of "' in found(poor, "overlap", None).sentence
    assert "among" in found(poor, "overlap", None).remedy
    assert set(poor.support.effective) == {"none", "low", "high"}


@pytest.mark.parametrize("kind", ["label", "one arm", "number", "gap"])
def test_a_column_that_reveals_an_arm_biases_the_estimate(kind):
    frame = study()
    arm = frame["t"]
    column = {
        "label": arm.replace({"none": "a", "low": "b", "high": "c"}),
        "one arm": pl.Series(np.where(arm == "low", "pills", "no pills")),
        "number": frame["x"] + (arm == "high").cast(pl.Float64) * 5,
        "gap": frame.select(pl.when(arm != "none").then("x")).to_series(),
    }[kind]
    check = check_data(frame.with_columns(after=column), domain=domain(), covariates=["x", "after"])
    assert found(check, "follows treatment", "after").severity == "bends"
    assert not [one for one in check.about("x") if one.topic == "follows treatment"]


def test_twenty_arms_are_looked_at_and_the_sentences_stay_short():
    labels = tuple(f"arm {place:02d}" for place in range(20))
    frame = study(labels=labels, rows=4000)
    frame = frame.with_columns(y=pl.when(pl.int_range(pl.len()) % 9 == 0).then(None).otherwise("y"))
    check = check_data(frame, domain=domain(Treatment("t", arms=labels)))
    assert len(check.support.effective) == 20
    assert found(check, "missing", "y").sentence.count("arm ") == 5
    assert found(check, "overlap", None).sentence.count("an effective sample size of") == 5
    assert "arm 19" in check.to_html()


def test_two_arms_are_weighed_by_the_inverse_of_their_own_probability():
    frame = study(labels=("a", "b"), shares=(0.6, 0.4), pull=0.1)
    pair = domain(Treatment("t", arms=("a", "b")))
    two = weighing.weigh_arms(read_table(frame), pair, (), None, all_in_arms=True)

    encoded = weighing.LocalStudy.encode_public(read_table(frame), pair, None)
    scores = weighing._scores(encoded, weighing.fit_propensity(encoded, 0.01 / ROWS), 1)
    weights = 1 + np.exp(np.where(encoded.treated, -scores, scores))
    x = encoded.covariates[0]
    for label, rows, others in (
        ("b", encoded.treated, ~encoded.treated), ("a", ~encoded.treated, encoded.treated),
    ):  # fmt: skip
        own, theirs = scores[rows], scores[others]
        effective = weights[rows].sum() ** 2 / (weights[rows] ** 2).sum()
        assert two.effective[label] == pytest.approx(effective)
        assert two.outside[label] == ((own < theirs.min()) | (own > theirs.max())).sum()
    spread = np.sqrt((x[encoded.treated].var() + x[~encoded.treated].var()) / 2)
    means = [
        np.average(x[rows], weights=weight[rows])
        for weight in (np.ones(ROWS), weights)
        for rows in (encoded.treated, ~encoded.treated)
    ]
    wanted = (means[0] - means[1]) / spread, (means[2] - means[3]) / spread
    assert two.balance["x"] == pytest.approx(wanted)


def test_chunks_of_rows_give_the_same_as_all_at_once(tmp_path):
    path = tmp_path / "study.parquet"
    study(labels=("none", "low", "high", "odd")).write_parquet(path)
    whole = check_data(path, domain=domain())
    streamed = check_data(path, domain=domain(), memory_limit=1)
    assert whole.arms == streamed.arms
    assert [one.sentence for one in whole.findings] == [one.sentence for one in streamed.findings]
