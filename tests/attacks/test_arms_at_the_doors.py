"""Several arms at every door: one charge, the arms bound, and nothing of a record in an error."""

import traceback
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import (
    ArgumentError,
    Domain,
    Interval,
    Ledger,
    LedgerError,
    PrivateAteError,
    Treatment,
    UndeclaredError,
    check_data,
    estimate_ate,
)
from private_ate.charging import bill_for
from private_ate.cli import main
from private_ate.cli.app import app
from private_ate.methods.composition import takes
from private_ate.methods.registry import METHODS
from private_ate.request import Request

ROWS = 240
CANARY = "secret-4711"
THREE = Treatment("t", arms=("none", "low", "high"))
COVARIATES = {"x": Interval(0, 1)}
OUTCOME = ("y", Interval(0, 10))
SEVERAL = [one for one in METHODS.values() if takes(one.name, one.levels[0], "arms")]
ASKED = {"level": "label", "epsilon": "1"}


def domain(treatment=THREE):
    return Domain(treatment, OUTCOME, COVARIATES)


def frame(labels=("none", "low", "high"), seed=3, rows=ROWS):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {"t": rng.choice(labels, rows), "x": rng.random(rows), "y": rng.uniform(0, 10, rows)}
    )


@pytest.fixture
def ledger(location):
    made = Ledger.create(location, "trial", epsilon="10")
    yield made
    made.close()


def left(ledger):
    return ledger.accounts("trial")[0].left.epsilon_text


@pytest.mark.parametrize("level", ["label", "sample"])
def test_one_request_about_several_arms_is_one_charge_whatever_is_read_of_it(ledger, level):
    asked = {"level": level, "epsilon": "1", "domain": domain(), "ledger": ledger}
    release = estimate_ate(frame(), **asked, request_id="first")
    assert len(release.contrasts) == 3
    assert left(ledger) == "9"
    again = estimate_ate(frame(), **asked, request_id="first")
    assert again == release
    assert left(ledger) == "9"
    assert [entry.kind for entry in ledger.history("trial")].count("charge") == 1


@pytest.mark.parametrize(
    "other",
    [
        Treatment("t", arms=("none", "low", "high"), reference="low"),
        Treatment("t", arms=("none", "high", "low")),
        Treatment("t", arms=("none", "low", "high", "more")),
        Treatment("t", arms=("none", "low", "high"), other="none"),
        Treatment("t", treated="high", control="none"),
    ],
)
def test_other_arms_are_another_declaration_of_the_same_data_set(ledger, other):
    estimate_ate(frame(), domain=domain(), ledger=ledger, **ASKED)
    with pytest.raises(LedgerError, match=r"declares column 't' as arms .* use the same domain"):
        estimate_ate(frame(), domain=domain(other), ledger=ledger, **ASKED)
    assert left(ledger) == "9"


def test_bins_are_bound_by_their_edges_and_not_by_their_number(ledger):
    doses = frame().with_columns(t=pl.Series(np.random.default_rng(1).uniform(0, 3, ROWS)))
    known = domain(Treatment("t", bins=(0, 1, 2, 3), labels=("a", "b", "c")))
    moved = domain(Treatment("t", bins=(0, 1, 2.5, 3), labels=("a", "b", "c")))
    estimate_ate(doses, domain=known, ledger=ledger, **ASKED)
    with pytest.raises(LedgerError, match=r"in bins \[0.0, 1.0, 2.0, 3.0\], not as"):
        estimate_ate(doses, domain=moved, ledger=ledger, **ASKED)


def test_a_repeat_with_the_id_of_another_question_is_refused(ledger):
    asked = {**ASKED, "domain": domain(), "ledger": ledger, "request_id": "one"}
    estimate_ate(frame(), **asked)
    with pytest.raises(PrivateAteError, match="request"):
        estimate_ate(frame(), among="low", **asked)
    assert left(ledger) == "9"


def plan(treatment, request, *, left_out=False):
    method = METHODS["calibrated"]
    known = domain(treatment)
    request = replace(request, leave_out_undeclared=left_out)
    return bill_for(request, method.name, method.options, known, None).plan


def test_the_hash_of_a_request_knows_arms_and_units_and_nothing_of_how_two_were_named():
    ask = Request("label", Fraction(1))
    two = plan(Treatment("t", treated="b", control="a"), ask)
    assert plan(Treatment("t", arms=("a", "b")), ask) == two
    assert plan(Treatment("t", arms=("b", "a"), reference="a"), ask) == two
    among = Request("label", Fraction(1), among="low")
    hashes = {
        two, plan(Treatment("t", arms=("b", "a")), ask), plan(THREE, ask), plan(THREE, among),
        plan(Treatment("t", arms=("none", "low", "high"), reference="low"), ask),
        plan(Treatment("t", arms=("none", "low", "high"), other="low"), ask),
        plan(THREE, ask, left_out=True),
    }  # fmt: skip
    assert len(hashes) == 7


def test_a_label_with_the_sign_between_labels_is_no_other_declaration():
    ask = Request("label", Fraction(1))
    joined = plan(Treatment("t", arms=('a" | "b', "c", "d")), ask)
    apart = plan(Treatment("t", arms=("a", "b", "c", "d")), ask)
    assert joined != apart


@pytest.mark.parametrize("method", [one.name for one in SEVERAL if "label" in one.levels])
def test_undeclared_rows_are_told_for_nothing_and_left_out_when_asked(ledger, method):
    odd = frame(labels=("none", "low", "high", "odd"))
    asked = {**ASKED, "domain": domain(), "method": method, "ledger": ledger}
    with pytest.raises(UndeclaredError, match="none of 'none', 'low', 'high'"):
        estimate_ate(odd, **asked)
    assert left(ledger) == "10"
    release = estimate_ate(odd, leave_out_undeclared=True, **asked)
    assert release.n == odd.filter(pl.col("t") != "odd").height
    assert sum(arm.units for arm in release.arms) == release.n


@pytest.mark.parametrize("method", [one.name for one in SEVERAL if "label" in one.levels])
def test_rows_of_other_labels_are_in_the_arm_that_is_named_for_them(method):
    odd = frame(labels=("none", "low", "high", "odd"))
    renamed = odd.with_columns(t=pl.col("t").replace({"odd": "low"}))
    asked = {**ASKED, "method": method, "seed": 5}
    named = Treatment("t", arms=("none", "low", "high"), other="low")
    found = estimate_ate(odd, domain=domain(named), **asked)
    wanted = estimate_ate(renamed, domain=domain(), **asked)
    assert [row.effect for row in found.contrasts] == [row.effect for row in wanted.contrasts]


ODD = [None, "", "NA", CANARY, "LOW", "none,low"]


@pytest.mark.parametrize("method", [one.name for one in SEVERAL if "sample" in one.levels])
@pytest.mark.parametrize("entry", ODD)
def test_at_sample_level_an_odd_arm_raises_nothing_and_is_not_told(method, entry, tmp_path):
    odd = frame().with_columns(
        t=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit(entry)).otherwise("t")
    )
    odd.write_csv(tmp_path / "study.csv")
    for data in (tmp_path / "study.csv", pd.DataFrame(odd.to_dict(as_series=False))):
        release = estimate_ate(
            data, domain=domain(), level="sample", epsilon="1", method=method, seed=2
        )
        assert release.n == ROWS
        assert CANARY not in release.to_json() + str(release)


@pytest.mark.parametrize("method", [one.name for one in SEVERAL if "sample" in one.levels])
def test_at_sample_level_an_arm_that_nobody_has_raises_nothing(method):
    known = domain(Treatment("t", arms=("none", "low", "high", "nobody")))
    release = estimate_ate(
        frame(), domain=known, level="sample", epsilon="1", method=method, seed=2
    )
    assert len(release.contrasts) == 6
    assert all(arm.units is None for arm in release.arms)


@pytest.mark.parametrize("column", ["x", "y"])
def test_an_error_about_arms_holds_no_entry_of_another_column(column):
    odd = frame(labels=("none", "low", "odd")).to_dict(as_series=False)
    odd[column][5] = CANARY
    with pytest.raises(UndeclaredError) as caught:
        estimate_ate(pd.DataFrame(odd).astype(object), domain=domain(), **ASKED)
    assert "'odd' in" in str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_an_empty_arm_is_named_at_label_level_with_what_to_do():
    known = domain(Treatment("t", arms=("none", "low", "high", "nobody")))
    with pytest.raises(PrivateAteError, match="nobody"):
        estimate_ate(frame(), domain=known, **ASKED)


@pytest.mark.parametrize("entries", [["1", "1.0", " 1 ", "1e0"], [1, 1.0, True, "1"]])
def test_a_label_that_is_a_number_is_one_arm_however_it_is_written(entries):
    rng = np.random.default_rng(6)
    column = [*entries, *rng.choice(["0", "1", "2"], ROWS - 4)]
    data = pd.DataFrame(frame().to_dict(as_series=False)).assign(t=column).astype({"t": object})
    check = check_data(data, domain=domain(Treatment("t", arms=(0, 1, 2))))
    assert check.arms.neither == 0
    assert check.arms.counts["1"] == 4 + column[4:].count("1")


def test_twenty_arms_are_compared_and_twenty_one_refused_before_a_record_is_read(tmp_path):
    labels = [f"arm {place:02d}" for place in range(20)]
    release = estimate_ate(
        frame(labels=labels, rows=2000), domain=domain(Treatment("t", arms=labels)), seed=1, **ASKED
    )
    assert len(release.arms) == 20
    assert len(release.contrasts) == 190
    flags = ["--treatment", "t", "--outcome", "y", "--outcome-bounds", "0", "10"]
    done = CliRunner().invoke(
        app, ["estimate", str(tmp_path / "absent.csv"), "--level", "label", "--epsilon", "1",
              *flags, "--arms", ",".join([*labels, "one more"])],
    )  # fmt: skip
    assert "21 arms are declared and 20 are the most" in str(done.exception)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('treated = "a"\ncontrol = "b"\narms = ["a", "b", "c"]', "keep one of them"),
        ('arms = ["a", "b", "c"]\nbins = [0, 1, 2]', "keep one of them"),
        ('arms = "abc"', "arms are a list"),
        ('arms = ["a", "b", ["c"]]', "a label is"),
        ("bins = [0, 1, '2']", "finite numbers"),
        ("bins = [2, 1, 0]", "rise"),
        ('arms = ["a", "b", "c"]\nreference = "d"', "'d' is none of"),
        ('labels = ["a", "b"]', "labels name the bins"),
        ('arms = ["a", " a", "b"]', "'a' is declared twice"),
        ("arms = [1, 1.0, 2]", "'1' is declared twice"),
        ('arms = [1, "1.0", 2]', "the same number"),
    ],
)
def test_a_file_that_declares_arms_wrongly_is_an_error_of_one_sentence(
    lines, message, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "domain.toml"
    path.write_text(
        f'[treatment]\ncolumn = "t"\n{lines}\n[outcome]\ncolumn = "y"\nlow = 0\nhigh = 1\n', "utf-8"
    )
    words = ["estimate", "absent.csv", "--domain", str(path), "--level", "label", "--epsilon", "1"]
    monkeypatch.setattr("sys.argv", ["private-ate", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    error = capsys.readouterr().err
    assert stopped.value.code == 2
    assert message in error
    assert error.count("\n") == 1


def test_estimands_named_for_two_arms_are_refused_with_the_flag_that_helps(monkeypatch, capsys):
    words = ["estimate", "absent.csv", "--level", "label", "--epsilon", "1", "--treatment", "t",
             "--outcome", "y", "--outcome-bounds", "0", "1", "--arms", "a,b,c",
             "--estimand", "att"]  # fmt: skip
    monkeypatch.setattr("sys.argv", ["private-ate", *words])
    with pytest.raises(SystemExit):
        main()
    assert "here: --among LABEL" in capsys.readouterr().err


def test_baselines_refuse_three_arms_before_a_record_is_read():
    for method in METHODS.values():
        if method not in SEVERAL:
            with pytest.raises(ArgumentError, match="compares two arms; 3 are declared"):
                estimate_ate(
                    object(), domain=domain(), level=method.levels[0], epsilon=1,
                    method=method.name,
                )  # fmt: skip
