"""Attacks on the roles of columns: an outcome must not leave as somebody's covariate."""

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from private_ate import Domain, Interval, Ledger, LedgerError, Treatment, estimate_ate
from private_ate.ledger.binding import Binding, Charge
from private_ate.ledger.chain import Entry
from private_ate.ledger.cost import BudgetUnits

ROWS = 40
TABLE = pl.DataFrame({
    "t": np.arange(ROWS) % 2,
    "u": np.arange(ROWS) % 2,
    "a": np.linspace(0, 1, ROWS),
    "y": np.linspace(0, 500, ROWS)[::-1],
    "z": np.linspace(0, 1, ROWS) ** 2,
})  # fmt: skip
KINDS = {"a": Interval(0, 1), "y": Interval(0, 500), "z": Interval(0, 1), "u": Interval(0, 1)}


def ask(ledger, outcome, covariates, *, treatment="t", level="label", **changes):
    domain = Domain(
        Treatment(treatment, 1, 0),
        (outcome, KINDS[outcome]),
        {name: KINDS[name] for name in covariates},
    )
    asked = {"epsilon": "0.1", "domain": domain, "covariates": covariates, "level": level}
    asked |= {"data": TABLE, "ledger": ledger} | changes
    return estimate_ate(asked.pop("data"), **asked)


def left(ledger):
    return ledger.accounts("trial")[0].left.epsilon_text


@pytest.fixture
def ledger(location):
    made = Ledger.create(location, "trial", epsilon="1")
    yield made
    made.close()


def test_an_outcome_never_comes_back_as_a_covariate(ledger):
    ask(ledger, "y", ["a"])
    with pytest.raises(LedgerError, match=r"column 'y' is private in data set 'trial': it is an"):
        ask(ledger, "z", ["y"], epsilon="1e-9")
    assert left(ledger) == "0.9"


def test_an_outcome_never_comes_back_as_a_treatment(ledger):
    table = TABLE.with_columns(y=pl.col("t"))
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 500)), {"a": Interval(0, 1)})
    asked = {"level": "label", "epsilon": "0.1", "ledger": ledger}
    estimate_ate(table, domain=domain, **asked)
    # Another declaration of y would be refused as such: the study carries its own domain.
    from private_ate.ledger.roles import Use

    use = Use("label", "y", "z", ("a",))
    with pytest.raises(LedgerError, match=r"column 'y' is private.*cannot be a treatment"):
        ledger.spend(Charge("trial", "two", "p", BudgetUnits(1), use=use))
    assert left(ledger) == "0.9"


def test_after_a_sample_level_release_no_column_becomes_public(ledger):
    ask(ledger, "y", ["a"], level="sample")
    for outcome, covariates in (("z", ["y"]), ("z", ["a"]), ("y", ["a"])):
        with pytest.raises(LedgerError, match="bound to sample level"):
            ask(ledger, outcome, covariates, epsilon="1e-9")
    assert left(ledger) == "0.9"


def test_a_public_column_never_becomes_an_outcome(ledger):
    ask(ledger, "y", ["a"])
    for level in ("label", "sample"):
        with pytest.raises(LedgerError, match="column 'a' is public in data set 'trial'"):
            ask(ledger, "a", [], level=level, method="published")


def test_a_column_that_was_not_named_public_is_private(ledger):
    ask(ledger, "y", ["a"])
    with pytest.raises(
        LedgerError, match=r"'z' is private.*not named public.*\(public: 'a', 't'\)"
    ):
        ask(ledger, "y", ["a", "z"])
    with pytest.raises(LedgerError, match="'u' is private"):
        ask(ledger, "y", ["a"], treatment="u")


def test_a_renamed_column_is_another_table(ledger):
    ask(ledger, "y", ["a"])
    renamed = TABLE.rename({"a": "b", "y": "a"})
    with pytest.raises(LedgerError, match="other columns"):
        ask(ledger, "z", ["a"], data=renamed)


def test_label_level_may_serve_sample_level_and_nothing_new_is_public(ledger):
    ask(ledger, "y", ["a"])
    ask(ledger, "y", ["a", "z"], level="sample")
    ask(ledger, "z", ["a"])
    with pytest.raises(LedgerError, match="'z' is private"):
        ask(ledger, "y", ["a", "z"])
    assert ledger.roles("trial").public == {"a", "t"}
    ledger.verify()


def test_rows_per_person_are_bound(ledger):
    ask(ledger, "y", ["a"], rows_per_person=2)
    for rows in (1, 3):
        with pytest.raises(LedgerError, match="bound to rows_per_person=2"):
            ask(ledger, "y", ["a"], rows_per_person=rows)


def test_a_binding_at_creation_holds_from_the_first_request_on(location):
    ledger = Ledger.create(location, "trial", epsilon="1", level="label", public=["t", "u", "a"])
    with pytest.raises(LedgerError, match="'y' is private"):
        ask(ledger, "z", ["y"])
    with pytest.raises(LedgerError, match="rows_per_person=1"):
        ask(ledger, "y", ["a"], rows_per_person=2)
    ask(ledger, "y", ["a"], treatment="u")
    ask(ledger, "y", ["a"])
    assert left(ledger) == "0.8"
    ledger.verify()
    ledger.close()


def test_a_data_set_created_at_sample_level_serves_no_label_level(location):
    ledger = Ledger.create(location, "trial", epsilon="1", level="sample")
    with pytest.raises(LedgerError, match="bound to sample level"):
        ask(ledger, "y", ["a"])
    ask(ledger, "y", ["a"], level="sample")
    ask(ledger, "a", ["y"], level="sample")
    ledger.verify()
    ledger.close()


def test_a_stored_release_is_still_returned_and_a_bare_charge_is_refused(ledger):
    first = ask(ledger, "y", ["a"], request_id="one")
    assert ask(ledger, "y", ["a"], request_id="one") == first
    with pytest.raises(LedgerError, match="says how it uses"):
        ledger.spend(Charge("trial", "bare", "p", BudgetUnits(1)))


def test_what_was_left_open_is_said_once(ledger):
    ledger.bind("trial", level="label", public=["t", "a"], rows_per_person=2)
    for more in ({"public": ["t", "y"]}, {"rows_per_person": 1}):
        with pytest.raises(LedgerError):
            ledger.bind("trial", level="label", **more)
    with pytest.raises(LedgerError, match="bound to level label already"):
        ledger.bind("trial", level="sample")
    ask(ledger, "y", ["a"], rows_per_person=2)
    ledger.verify()


RACER = """
import sys
from private_ate import Ledger, LedgerError
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.binding import Charge
from private_ate.ledger.roles import Use

location, name, outcome, covariate = sys.argv[1:]
ledger = Ledger.open(location)
print("ready", flush=True)
sys.stdin.readline()
won = 0
for number in range(5):
    use = Use("label", "t", outcome, (covariate,))
    try:
        ledger.spend(Charge("trial", f"{name}-{number}", "p", BudgetUnits(1), use=use))
        won += 1
    except LedgerError:
        pass
print(won, flush=True)
ledger.close()
"""


def test_racing_first_uses_bind_one_way(location):
    ledger = Ledger.create(location, "trial", epsilon="1")
    pairs = [("y", "z"), ("z", "y"), ("y", "z"), ("z", "y")]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, location, str(number), *pair],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number, pair in enumerate(pairs)
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    won = [int(worker.communicate(timeout=120)[0]) for worker in workers]
    assert won in ([5, 0, 5, 0], [0, 5, 0, 5])
    ledger.verify()
    ledger.close()


# What version 0.1 wrote: no use, no roles, no state; and a write-ahead log.
def _age(path, requests):
    """Make a ledger as version 0.1 left it, with these releases in its history."""
    ledger = Ledger.create(path, "trial", epsilon="1")
    ledger.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    for trigger in ("entries_never_change", "entries_never_go"):
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute("DELETE FROM entries")
    previous, spent, declared = "0" * 64, 0, {}
    rows = [("create", "", "", 10**9, Binding().text)]
    for number, (bound, release) in enumerate(requests):
        rows.append(("charge", str(number), "p", 10**8, Binding(None, bound).text))
        declared |= bound
        spent += 10**8
        if release is not None:
            rows.append(("release", str(number), "p", 0, json.dumps(release)))
    for sequence, (kind, request, plan, epsilon, body) in enumerate(rows, 1):
        draft = Entry(
            sequence, kind, "trial", request, "", plan, epsilon, 0, body, "2026", previous
        )
        entry = replace(draft, hash=draft.seal())
        previous = entry.hash
        values = [getattr(entry, name) for name in Entry.__slots__]
        connection.execute(f"INSERT INTO entries VALUES ({','.join('?' * 12)})", values)
    connection.execute("UPDATE accounts SET epsilon_spent = ?", (spent,))
    connection.execute("UPDATE bindings SET body = ?", (Binding(None, declared).text,))
    connection.commit()
    connection.close()
    return Ledger.open(path)


T = "treatment '1' against '0'"
A, Y, Z = "0.0 to 1.0, missing 0.5", "0.0 to 500.0, missing 250.0", "0.0 to 1.0, missing 0.5"


def released(level, *balance, rows=1):
    settings = {"rows_per_person": rows}
    if balance:
        settings["balance"] = {name: [0.1, 0.0] for name in balance}
    return {"level": level, "settings": settings}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def test_an_old_ledger_is_bound_by_the_balances_it_released(path):
    ledger = _age(path, [({"t": T, "y": Y, "a": A}, released("label", "a"))])
    ledger.verify()
    with pytest.raises(LedgerError, match="'y' is private in data set 'trial': it is an outcome"):
        ask(ledger, "z", ["y"], epsilon="1e-9")
    ask(ledger, "y", ["a"])
    ask(ledger, "z", ["a"])
    ledger.verify()
    assert left(ledger) == "0.7"
    ledger.close()


def test_an_old_history_that_is_unclear_is_private_until_its_holder_says(path):
    ledger = _age(path, [({"t": T, "y": Y, "a": A}, released("label"))])
    with pytest.raises(LedgerError, match=r"history does not tell.*Ledger\.bind"):
        ask(ledger, "y", ["a"])
    with pytest.raises(LedgerError, match="'z' is private"):
        ledger.bind("trial", level="label", public=["a", "z"])
    ledger.bind("trial", level="label", public=["a"])
    ask(ledger, "y", ["a"])
    ledger.verify()
    ledger.close()


@pytest.mark.parametrize(
    ("requests", "level", "public", "private"),
    [
        ([], None, "", ""),
        ([({"t": T, "y": Y, "a": A}, None)], None, "", ""),
        ([({"t": T, "y": Y, "a": A}, released("sample"))], "sample", "", "aty"),
        # Label first: what it showed stays public, what sample level used besides is private.
        (
            [
                ({"t": T, "y": Y, "a": A}, released("label", "a")),
                ({"t": T, "y": Y, "a": A, "z": Z}, released("sample")),
            ],
            "label", "at", "yz",
        ),
        # Sample first: nothing is public, whatever was asked afterwards.
        (
            [
                ({"t": T, "y": Y, "a": A}, released("sample")),
                ({"t": T, "y": Y, "a": A}, released("label", "a")),
            ],
            "sample", "", "aty",
        ),
        # The outcome that came back as a covariate is private from now on.
        (
            [
                ({"t": T, "y": Y, "a": A}, released("label", "a")),
                ({"t": T, "z": Z, "y": Y}, released("label", "y")),
            ],
            "label", "at", "yz",
        ),
        # So is the covariate that became an outcome.
        (
            [
                ({"t": T, "y": Y, "a": A}, released("label", "a")),
                ({"t": T, "a": A}, released("label")),
            ],
            "label", "t", "ay",
        ),
    ],
)  # fmt: skip
def test_roles_of_an_old_history(path, requests, level, public, private):
    ledger = _age(path, requests)
    roles = ledger.roles("trial")
    assert (roles.level, roles.public) == (level, set(public))
    assert roles.private == set(private)
    ledger.verify()
    ledger.close()


def test_an_old_history_keeps_its_largest_number_of_rows(path):
    declared = {"t": T, "y": Y, "a": A}
    old = [(declared, released("label", "a", rows=rows)) for rows in (1, 3, 2)]
    ledger = _age(path, old)
    with pytest.raises(LedgerError, match="rows_per_person=3"):
        ask(ledger, "y", ["a"])
    ask(ledger, "y", ["a"], rows_per_person=3)
    ledger.close()


def test_categories_are_recognised_in_a_balance(path):
    declared = {"t": T, "y": Y, "c": '"u" | "v", else None', "d=e": A}
    ledger = _age(path, [(declared, released("label", "c=u", "c=v", "d=e"))])
    assert ledger.roles("trial").public == {"t", "c", "d=e"}
    ledger.close()


@pytest.fixture
def with_ids(location):
    """A ledger whose holder named a column of ids public, and a table of two rows a person."""
    made = Ledger.create(
        location, "visits", epsilon="1", level="label", public=["t", "a", "id"], rows_per_person=3
    )
    yield made
    made.close()


VISITS = TABLE.with_columns(id=np.arange(ROWS) // 2, many=np.arange(ROWS) // 4)


def test_ids_that_the_holder_made_public_hold_to_the_bound_number_of_rows(with_ids):
    release = ask(with_ids, "y", ["a"], data=VISITS, person="id", request_id="one")
    again = ask(with_ids, "y", ["a"], data=VISITS, person="id", request_id="one")

    assert release.settings["rows_per_person"] == 3
    assert again.to_json() == release.to_json()
    assert with_ids.accounts("visits")[0].left.epsilon_text == "0.9"


@pytest.mark.parametrize("column", ["y", "z", "u"])
def test_nobody_counts_the_entries_of_a_private_column_as_if_they_were_ids(with_ids, column):
    """How often an outcome repeats is a fact about it: refused alike, whatever the column holds."""
    said = []
    for table in (VISITS, VISITS.with_columns(pl.lit(1).alias(column))):
        outcome = "z" if column == "y" else "y"
        with pytest.raises(LedgerError, match=f"'{column}' is private.*cannot be a person") as no:
            ask(with_ids, outcome, ["a"], data=table, person=column)
        said.append(str(no.value))

    assert said[0] == said[1]
    assert with_ids.accounts("visits")[0].left.epsilon_text == "1"


def test_somebody_with_more_rows_than_the_data_set_is_bound_to_is_refused(with_ids):
    crowd = VISITS.with_columns(id=pl.col("many"))
    with pytest.raises(LedgerError, match="somebody has 4 rows, and data set 'visits' is bound to"):
        ask(with_ids, "y", ["a"], data=crowd, person="id")
    assert with_ids.accounts("visits")[0].left.epsilon_text == "1"


def test_a_data_set_that_nobody_bound_shows_no_ids(ledger):
    """Otherwise a column could be counted for nothing and be an outcome in the next request."""
    with pytest.raises(LedgerError, match="is not bound, so nobody named 'z' public"):
        ask(ledger, "y", ["a"], person="z")
    assert left(ledger) == "1"
