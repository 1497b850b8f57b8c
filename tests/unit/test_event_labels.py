"""Outcomes of labels: which entry is the event is declared, and no entry can fail."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import (
    Binary,
    Domain,
    DomainError,
    Interval,
    Outcome,
    Treatment,
    check_data,
    estimate_ate,
)
from private_ate.charging import binding_of
from private_ate.cli.app import app
from private_ate.data.encoding import read_outcome
from private_ate.data.files import open_table

ROWS = 300
RNG = np.random.default_rng(5)
HAPPENED = RNG.random(ROWS) < 0.4
STATUS = [None if row < 9 else ("dead" if HAPPENED[row] else "alive") for row in range(ROWS)]
FRAME = pl.DataFrame(
    {"t": (RNG.random(ROWS) < 0.5).astype(int), "status": STATUS, "x": RNG.random(ROWS)}
)
ARMS = Treatment("t", treated=1, control=0)
EXPECTED = np.where(np.arange(ROWS) < 9, np.nan, HAPPENED.astype(float))


def domain(outcome):
    return Domain(ARMS, outcome, {"x": Interval(0, 1)})


def forms(tmp_path):
    FRAME.write_csv(tmp_path / "study.csv")
    FRAME.write_parquet(tmp_path / "study.parquet")
    return {
        "polars": (FRAME, "1GB"),
        "categories": (FRAME.with_columns(pl.col("status").cast(pl.Categorical)), "1GB"),
        "pandas": (FRAME.to_pandas(), "1GB"),
        "pandas factor": (FRAME.to_pandas().astype({"status": "category"}), "1GB"),
        "arrow": (FRAME.to_arrow(), "1GB"),
        "csv": (tmp_path / "study.csv", "1GB"),
        "csv in chunks": (tmp_path / "study.csv", "0"),
        "parquet": (tmp_path / "study.parquet", "1GB"),
    }


def test_every_form_of_the_data_reads_the_same_events(tmp_path):
    asked = domain(Outcome("status", missing="public", event_label="dead"))
    told = {
        name: estimate_ate(
            data, domain=asked, level="label", epsilon=1, seed=1, memory_limit=memory
        ).ate
        for name, (data, memory) in forms(tmp_path).items()
    }
    as_numbers = FRAME.with_columns(status=pl.Series(EXPECTED, nan_to_null=True))
    plain = domain(Outcome("status", Binary(), "public"))
    expected = estimate_ate(as_numbers, domain=plain, level="label", epsilon=1, seed=1).ate

    assert told == dict.fromkeys(told, expected)


@pytest.mark.parametrize(
    ("entries", "label", "expected"),
    [
        (["yes", "no", " yes ", "Yes", "", "NA", "maybe"], "yes", [1, 0, 1, 0, None, None, 0]),
        ([1, 2, None, 9], 2, [0, 1, None, 0]),
        ([True, False, None], True, [1, 0, None]),
        (["1", "1.0", "2", "."], 1, [1, 1, 0, None]),
    ],
)
def test_an_entry_is_the_event_any_other_or_missing(entries, label, expected):
    table = open_table(pl.DataFrame({"y": entries}))
    found = read_outcome(table, Outcome("y", event_label=label))

    np.testing.assert_array_equal(found, np.array(expected, dtype=float))


@pytest.mark.parametrize("typed", [True, False])
def test_a_binary_outcome_reads_words_for_zero_and_one(typed, tmp_path):
    frame = pl.DataFrame({"y": ["yes", "No", "TRUE", "false", "0", "1", "", "perhaps"]})
    frame.write_csv(tmp_path / "y.csv")
    table = open_table(frame if typed else tmp_path / "y.csv")
    found = read_outcome(table, Outcome("y", Binary()))

    np.testing.assert_array_equal(found, [1, 0, 1, 0, 0, 1, np.nan, np.nan])


@pytest.mark.parametrize("entry", [b"\xff", object(), "a" * 10_000, 1e308, None])
def test_at_sample_level_no_entry_raises(entry):
    frame = FRAME.to_pandas().astype(object)
    frame.loc[0, "status"] = entry
    asked = domain(Outcome("status", event_label="dead", missing="private"))

    assert estimate_ate(frame, domain=asked, level="sample", epsilon=1, seed=1).n == ROWS


def test_value_labels_of_a_stata_file_name_the_event(tmp_path):
    pytest.importorskip("pyreadstat", reason="FORMATS WERE NOT READ: install the extra formats")
    coded = pd.DataFrame({"t": FRAME["t"], "x": FRAME["x"], "status": np.where(HAPPENED, 2.0, 1.0)})
    labels = {"status": {1: "alive", 2: "dead"}}
    coded.to_stata(tmp_path / "s.dta", write_index=False, value_labels=labels)

    for memory in (1 << 30, 0):
        table = open_table(tmp_path / "s.dta", memory)
        chunks = [table] if memory else list(table.chunks(["status"]))
        for label in ("dead", 2):
            found = [read_outcome(chunk, Outcome("status", event_label=label)) for chunk in chunks]
            np.testing.assert_array_equal(np.concatenate(found), HAPPENED)


def test_a_domain_file_keeps_the_event_label():
    asked = domain(Outcome("status", event_label="dead", missing="private", unit="deaths"))

    assert Domain.from_toml(asked.to_toml()) == asked
    assert asked.outcome.bounds == Binary()
    assert Domain.from_toml(
        '[treatment]\ncolumn = "t"\n[outcome]\ncolumn = "y"\nevent_label = "yes"\nmissing = 0\n'
    ).outcome == Outcome("y", Binary(missing=0), event_label="yes")


def test_an_event_label_has_no_other_bounds():
    with pytest.raises(DomainError, match="0 or 1"):
        Outcome("y", Interval(0, 10), event_label="yes")


def test_another_event_is_another_plan_and_older_plans_keep_their_hash():
    events = [binding_of(domain(Outcome("status", event_label=label))) for label in ("a", "b")]

    assert events[0] != events[1]
    assert "event" not in binding_of(domain(Outcome("status", Binary()))).text


def test_a_release_says_what_was_counted():
    asked = domain(Outcome("status", event_label="dead", missing="private"))
    release = estimate_ate(FRAME, domain=asked, level="sample", epsilon=1, seed=1)

    assert "'dead' counts as 1, any other entry as 0" in release.to_json()


@pytest.mark.parametrize(
    ("label", "severity", "words"),
    [
        ("dead", "ok", '1: "dead"'),
        ("Dead", "bends", 'no entry is the event label "Dead"'),
    ],
)
def test_the_check_says_what_would_be_read(label, severity, words):
    asked = domain(Outcome("status", event_label=label, missing="public"))
    check = check_data(FRAME, domain=asked, level="label")
    (finding,) = (one for one in check.about("status") if one.topic == "event")

    assert (finding.severity, words in finding.sentence) == (severity, True)
    assert not any(one.topic in ("type", "unreadable") for one in check.findings)


def test_the_check_proposes_an_event_label_for_an_outcome_of_labels():
    check = check_data(FRAME, domain=Domain(ARMS, "status"))

    assert 'event_label = ???  # the label that counts as 1, of "alive", "dead"' in check.proposed


def test_the_flag_declares_the_event(tmp_path):
    FRAME.write_csv(tmp_path / "study.csv")
    words = [
        str(tmp_path / "study.csv"), "--level", "label", "--treatment", "t", "--outcome", "status",
        "--covariates", "x", "--event-label", "dead", "--missing-outcomes", "public",
    ]  # fmt: skip

    made = CliRunner().invoke(app, ["estimate", *words, "--epsilon", "1", "--json", "--quiet"])
    looked = CliRunner().invoke(app, ["check", *words, "--quiet"])

    assert "'dead' counts as 1" in made.stdout
    assert '1: "dead"' in looked.stdout
    assert (made.exit_code, looked.exit_code) == (0, 0)
