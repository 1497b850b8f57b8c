"""Nothing that is missing or undeclared tells of a private column, at either level."""

import traceback

import numpy as np
import pandas as pd
import polars as pl
import pytest

from private_ate import (
    ArgumentError,
    Categories,
    Domain,
    Interval,
    Ledger,
    LedgerError,
    SchemaError,
    Treatment,
    UndeclaredError,
    estimate_ate,
)
from private_ate.data.missing_rules import Reading
from private_ate.engines.open_table import open_table
from private_ate.methods.registry import METHODS

ROWS = 80
DOMAIN = Domain(
    Treatment("t", "yes", "no"),
    ("y", Interval(0, 10)),
    {"x": Interval(0, 1), "g": Categories("a", "b")},
)
CANARY = "secret-4711"
ODD = {"t": [None, "", "NA", CANARY], "x": [None, "0,5", "NA", CANARY],
       "g": [None, "", "null", CANARY], "y": [None, "0,5", "", CANARY]}  # fmt: skip
CASES = [(column, entry) for column, entries in ODD.items() for entry in entries]
SAMPLE = [name for name, one in METHODS.items() if "sample" in one.levels and not one.is_slow]


def columns(column=None, entry=None):
    rng = np.random.default_rng(3)
    plain = {
        "t": rng.choice(["yes", "no"], ROWS).tolist(),
        "x": rng.random(ROWS).round(3).astype(str).tolist(),
        "g": rng.choice(["a", "b"], ROWS).tolist(),
        "y": rng.uniform(0, 10, ROWS).round(3).astype(str).tolist(),
    }
    if column is not None:
        plain[column][5] = entry
    return plain


def as_data(plain, form, folder):
    if form == "memory":
        return pd.DataFrame(plain).astype(object)
    path = folder / "study.csv"
    pl.DataFrame(plain).write_csv(path)
    return path


def shape(value):
    """Return the structure of plain values with every number replaced by its type."""
    if isinstance(value, dict):
        return {key: shape(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [shape(entry) for entry in value]
    return value if isinstance(value, str) else type(value).__name__


def encoded(data, level, memory=1 << 30):
    asked = {"treatment": None, "outcome": None, "covariates": None, "domain": DOMAIN}
    opened = open_table(
        data, {**asked, "level": level, "from_data": False}, memory=memory, engine="auto",
        master=None,
    )  # fmt: skip
    with opened.encoded(None, Reading(level)) as study:
        return study


@pytest.mark.parametrize("memory", [0, 1 << 30])
@pytest.mark.parametrize("form", ["memory", "csv"])
@pytest.mark.parametrize(("column", "entry"), CASES)
def test_at_sample_level_an_odd_entry_changes_its_own_row_and_nothing_else(
    column, entry, form, memory, tmp_path
):
    usual = encoded(as_data(columns(), form, tmp_path), "sample", memory)
    odd = encoded(as_data(columns(column, entry), form, tmp_path), "sample", memory)

    assert odd.domain == usual.domain == DOMAIN  # no indicator follows a private entry
    assert odd.rules == usual.rules
    assert odd.rules.left_out_treatment is None
    assert (odd.rules.filled, odd.rules.undeclared) == ({}, {})
    assert (odd.size, odd.dimension) == (usual.size, usual.dimension)
    assert odd.everyone_takes_part is usual.everyone_takes_part
    rest = np.arange(ROWS) != 5
    for mine, theirs in (
        (odd.covariates[:, :], usual.covariates[:, :]),
        (odd.treatment, usual.treatment),
        (odd.outcome, usual.outcome),
        (odd.takes_part, usual.takes_part),
    ):
        np.testing.assert_array_equal(mine[..., rest], theirs[..., rest])


@pytest.mark.parametrize("method", SAMPLE)
@pytest.mark.parametrize("column", [*ODD, None])
def test_at_sample_level_no_method_raises_or_says_more(method, column, tmp_path):
    plain = columns()
    odd = columns()
    for name in ODD if column is None else [column]:
        odd[name] = [ODD[name][row % 4] for row in range(ROWS)]
    asked = {"domain": DOMAIN, "level": "sample", "epsilon": 1, "method": method, "seed": 1}

    usual, strange = (
        estimate_ate(as_data(each, "csv", tmp_path), **asked) for each in (plain, odd)
    )

    assert np.isfinite(strange.ate)
    assert shape(strange.to_dict()) == shape(usual.to_dict())


@pytest.mark.parametrize("form", ["memory", "csv"])
@pytest.mark.parametrize("entry", ODD["y"])
@pytest.mark.parametrize("left_out", [False, True])
def test_at_label_level_an_outcome_is_never_told_of(entry, left_out, form, tmp_path):
    usual = encoded(as_data(columns(), form, tmp_path), "label")
    data = as_data(columns("y", entry), form, tmp_path)

    assert encoded(data, "label").rules == usual.rules
    release = estimate_ate(
        data, domain=DOMAIN, level="label", epsilon=1, leave_out_undeclared=left_out
    )
    assert release.n == ROWS


def test_what_is_told_of_public_columns_does_not_depend_on_outcomes():
    told = []
    for outcome in ("0", CANARY, "", "9.5"):
        frame = pd.DataFrame(columns("x", "0,5") | {"y": [outcome] * ROWS}).astype(object)
        with pytest.raises(UndeclaredError) as caught:
            estimate_ate(frame, domain=DOMAIN, level="label", epsilon=1)
        told.append("".join(traceback.format_exception_only(caught.value)))
    assert len(set(told)) == 1
    assert CANARY not in told[0]


def test_a_text_in_a_column_of_numbers_is_counted_and_never_quoted():
    frame = pd.DataFrame(columns("x", CANARY)).astype(object)
    with pytest.raises(UndeclaredError, match="'x' is declared as numbers") as caught:
        estimate_ate(frame, domain=DOMAIN, level="label", epsilon=1)
    assert CANARY not in str(caught.value)


def test_a_column_cannot_be_asked_about_for_nothing_and_then_be_an_outcome(tmp_path):
    """An error that tells of a column binds it as public before it is told."""
    ledger = Ledger.create(tmp_path / "budget.db", "trial", epsilon="5")
    frame = pd.DataFrame(columns("y", CANARY)).astype(object)
    asked = {"level": "label", "epsilon": 1, "ledger": ledger}
    probing = Domain(DOMAIN.treatment, ("x", Interval(0, 1)), {"y": Interval(0, 10)})

    with pytest.raises(UndeclaredError, match="column 'y' is declared as numbers"):
        estimate_ate(frame, domain=probing, **asked)
    with pytest.raises(LedgerError, match="column 'y' is public in data set 'trial'"):
        estimate_ate(frame, domain=DOMAIN, covariates=[], **asked)
    ledger.close()


def test_a_private_column_of_a_bound_data_set_is_refused_before_it_is_looked_at(tmp_path):
    ledger = Ledger.create(
        tmp_path / "budget.db", "trial", epsilon="5", level="label", public=["t", "x", "g"]
    )
    frame = pd.DataFrame(columns("y", CANARY)).astype(object)
    probing = Domain(DOMAIN.treatment, ("x", Interval(0, 1)), {"y": Interval(0, 10)})
    with pytest.raises(LedgerError, match="column 'y' is private in data set 'trial'"):
        estimate_ate(frame, domain=probing, level="label", epsilon=1, ledger=ledger)
    assert ledger.accounts()[0].left.epsilon_text == "5"
    ledger.close()


def test_a_study_that_was_looked_over_is_never_released_at_sample_level():
    study = encoded(pd.DataFrame(columns("x", None)).astype(object), "label")
    assert estimate_ate(study, level="label", epsilon=1).n == ROWS
    with pytest.raises(ArgumentError, match="was encoded for label level"):
        estimate_ate(study, level="sample", epsilon=1)


def test_at_sample_level_no_error_binds_anything(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "trial", epsilon="5")
    path = tmp_path / "none.csv"
    path.write_text("t,x,g,y\n")
    with pytest.raises(SchemaError, match="no rows"):
        estimate_ate(path, domain=DOMAIN, level="sample", epsilon=1, ledger=ledger)
    assert ledger.roles("trial").level is None
    ledger.close()
