"""Attacks on who lacks a value: only the holder of a data set makes that public."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from private_ate import ArgumentError, Domain, Interval, Ledger, LedgerError, Outcome, estimate_ate
from private_ate.charging import binding_of
from private_ate.domain import SamplingWeights
from private_ate.ledger.accounts import state_of
from private_ate.ledger.chain import Entry

ROWS = 400
VICTIM = 137  # the row whose x everybody knows
X = np.linspace(0, 1, ROWS)
RNG = np.random.default_rng(3)
TABLE = pl.DataFrame({
    "t": RNG.integers(0, 2, ROWS),
    "x": X,
    "p": np.full(ROWS, 0.5),
    "y": RNG.random(ROWS),
    "z": np.where(np.arange(ROWS) == VICTIM, np.nan, RNG.random(ROWS)),
})  # fmt: skip
UNIT = Interval(0, 1)
HOLDER = Domain("t", ("y", UNIT), {"x": UNIT})


def ask(ledger, outcome, rule=None, *, covariates=None, weights=None, **asked):
    kinds = {"x": UNIT} if covariates is None else covariates
    domain = Domain("t", Outcome(outcome, UNIT, rule), kinds, weights=weights)
    wanted = {"level": "label", "epsilon": "1e-9", "dataset": "trial", **asked}
    return estimate_ate(TABLE, domain=domain, ledger=ledger, **wanted)


def spent(ledger):
    return ledger.accounts("trial")[0].spent.epsilon


@pytest.fixture
def bound(location):
    """Return a ledger that its holder bound: level, public columns and domain."""
    made = Ledger.create(
        location, "trial", epsilon="1", level="label", public=["t", "x"],
        binding=binding_of(HOLDER),
    )  # fmt: skip
    yield made
    made.close()


def test_two_cuts_around_one_person_do_not_show_that_a_value_is_missing(bound):
    between = [f"x<{(X[VICTIM] + X[VICTIM + step]) / 2}" for step in (-1, 1)]
    for cut in between:
        with pytest.raises(LedgerError, match=r"who lacks a value of column 'z' is private"):
            ask(bound, "z", "public", by=[cut])
    assert spent(bound) == 0
    bound.verify()


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"outcome": "z", "rule": "public"}, "who lacks a value of column 'z'"),
        ({"outcome": "y", "covariates": {"x": UNIT, "z": UNIT}}, "column 'z' is private"),
        (
            {"outcome": "y", "covariates": {"x": UNIT, "z": UNIT}, "by": ["z<0.5"]},
            "column 'z' is private",
        ),
        ({"outcome": "y", "weights": SamplingWeights("z", 1)}, "column 'z' is private"),
        (
            {
                "outcome": "y", "covariates": {"x": UNIT, "p": Interval(0.1, 0.9)},
                "design": "randomized", "probability": "p",
            },
            "column 'p' is private",
        ),
        (
            {"outcome": "y", "covariates": {"x": UNIT, "z": UNIT}, "leave_out_undeclared": True},
            "column 'z' is private",
        ),
        ({"outcome": "y", "rows_per_person": 2}, "bound to rows_per_person=1"),
        ({"outcome": "x", "covariates": {"p": UNIT}}, "column 'p' is private"),
    ],
)  # fmt: skip
def test_no_word_of_an_analyst_makes_a_private_column_public(bound, asked, why):
    with pytest.raises(LedgerError, match=why):
        ask(bound, **asked)
    assert spent(bound) == 0


def test_a_covariate_that_is_declared_and_not_used_makes_no_subgroups(bound):
    covariates = {"x": UNIT, "z": UNIT}
    domain = Domain("t", ("y", UNIT), covariates)
    with pytest.raises(ArgumentError, match="covariates that the domain declares"):
        estimate_ate(
            TABLE, domain=domain, covariates=["x"], by=["z<0.5"], level="label", epsilon="1e-9",
            ledger=bound, dataset="trial",
        )  # fmt: skip
    assert spent(bound) == 0


@pytest.mark.parametrize("when", ["create", "bind"])
def test_the_holder_names_whose_gaps_are_public(location, when):
    named = {"public_gaps": ["z"]}
    ledger = Ledger.create(
        location, "trial", epsilon="1", level="label", public=["t", "x"],
        **(named if when == "create" else {}),
    )  # fmt: skip
    if when == "bind":
        ledger.bind("trial", **named)
    ask(ledger, "z", "public")
    with pytest.raises(LedgerError, match=r"column 'y' is private.*public gaps: 'z'"):
        ask(ledger, "y", "public")
    assert ledger.roles("trial").public_gaps == {"z"}
    ledger.verify()
    ledger.close()


def test_the_holders_domain_says_whose_gaps_are_public(location):
    binding = binding_of(Domain("t", Outcome("z", UNIT, "public"), {"x": UNIT}))
    ledger = Ledger.create(
        location, "trial", epsilon="1", level="label", public=["t", "x"], binding=binding
    )
    ask(ledger, "z", "public")
    ledger.verify()
    ledger.close()


def test_the_first_use_of_an_unbound_data_set_binds_its_public_gaps(location):
    ledger = Ledger.create(location, "trial", epsilon="1")
    ask(ledger, "z", "public")
    with pytest.raises(LedgerError, match="who lacks a value of column 'y' is private"):
        ask(ledger, "y", "public")
    ask(ledger, "y")
    assert ledger.roles("trial").public_gaps == {"z"}
    ledger.verify()
    ledger.close()


def test_a_rule_that_a_request_has_followed_is_not_undone_by_the_holder(bound):
    ask(bound, "z", "private")
    with pytest.raises(LedgerError, match="its gaps are private and stay so"):
        bound.bind("trial", public_gaps=["z"])
    bound.verify()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"level": "sample", "public_gaps": ["z"]}, "belong to level 'label'"),
        ({"public_gaps": ["z"]}, "belong to level 'label'"),
        ({"level": "label", "public": ["x"], "public_gaps": ["x"]}, "'x' is public, its gaps"),
        ({"level": "label", "public": ["x"], "public_gaps": "z"}, "a list of column names"),
    ],
)
def test_public_gaps_are_those_of_private_columns_at_label_level(tmp_path, said, why):
    with pytest.raises(ArgumentError, match=why):
        Ledger.create(tmp_path / "budget.db", "trial", epsilon="1", **said)


def _without_gaps(path):
    """Write a ledger as the version before did: no word of gaps in roles and uses."""
    connection = sqlite3.connect(path, isolation_level=None)
    for trigger in ("entries_never_change", "entries_never_go"):
        connection.execute(f"DROP TRIGGER {trigger}")
    (kept,) = connection.execute("SELECT body FROM bindings").fetchone()
    connection.execute("UPDATE bindings SET body = ?", (_stripped(kept),))

    class Result:
        def __init__(self, rows):
            self.rows = rows

    state = state_of(lambda text, values: Result(connection.execute(text, values).fetchall()))
    previous = "0" * 64
    names = ", ".join(Entry.__slots__)
    for row in connection.execute(f"SELECT {names} FROM entries ORDER BY sequence").fetchall():
        entry = Entry(*row)
        body = entry.body if entry.kind == "release" else _stripped(entry.body, state)
        draft = replace(entry, body=body, previous=previous, hash="")
        previous = draft.seal()
        connection.execute(
            "UPDATE entries SET body = ?, previous = ?, hash = ? WHERE sequence = ?",
            (body, draft.previous, previous, entry.sequence),
        )
    connection.close()
    return Ledger.open(path)


def _stripped(body, state=None):
    plain = json.loads(body)
    for part in ("use", "roles"):
        if plain.get(part):
            plain[part].pop("public_gaps", None)
    if "state" in plain:
        plain["state"] = state
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def test_a_ledger_of_an_earlier_version_is_bound_by_its_history(tmp_path):
    path = tmp_path / "budget.db"
    ledger = Ledger.create(path, "trial", epsilon="1")
    ask(ledger, "z", "public")
    ask(ledger, "y")
    ledger.close()

    old = _without_gaps(path)

    old.verify()
    assert old.roles("trial").public_gaps == {"z"}
    ask(old, "z", "public")
    domain = Domain("t", Outcome("p", UNIT, "public"), {"x": UNIT})
    with pytest.raises(LedgerError, match="who lacks a value of column 'p' is private"):
        estimate_ate(
            TABLE, domain=domain, level="label", epsilon="1e-9", ledger=old, dataset="trial"
        )
    old.verify()
    old.close()


@pytest.mark.parametrize("declared", [True, False])
def test_a_ledger_that_an_earlier_version_bound_holds_what_its_holder_declared(tmp_path, declared):
    path = tmp_path / "budget.db"
    rule = "public" if declared else None
    binding = binding_of(Domain("t", Outcome("z", UNIT, rule), {"x": UNIT}))
    Ledger.create(
        path, "trial", epsilon="1", level="label", public=["t", "x"], binding=binding
    ).close()

    old = _without_gaps(path)

    assert old.roles("trial").public_gaps == ({"z"} if declared else set())
    old.verify()
    old.close()
