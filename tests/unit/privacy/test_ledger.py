"""The ledger: exact amounts, one charge a request, a history that cannot be altered unseen."""

import itertools
import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from private_ate import (
    ArgumentError,
    BudgetError,
    Domain,
    Interval,
    Ledger,
    LedgerError,
    PrivateAteError,
    Release,
    SchemaError,
    Treatment,
    api,
    charging,
    estimate_ate,
)
from private_ate.api import METHODS, Method
from private_ate.ledger.binding import Binding, Charge
from private_ate.ledger.chain import GENESIS
from private_ate.ledger.cost import BudgetUnits
from private_ate.privacy.budget import parse_delta

DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"a": Interval(0, 1)})


def small_table(rows=40):
    rng = np.random.default_rng(3)
    return pl.DataFrame({"t": np.arange(rows) % 2, "y": rng.random(rows), "a": rng.random(rows)})


def charge(request, epsilon, *, analyst="", delta=0, plan="p"):
    return Charge(
        "trial", request, plan, BudgetUnits.of(Fraction(epsilon), Fraction(delta)), analyst
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path):
    made = Ledger.create(
        path, "trial", epsilon="1.0", delta="1e-6", caps={"bob": "0.3"}, uncapped="allowed"
    )
    yield made
    made.close()


def ask(ledger, **changes):
    asked = {"domain": DOMAIN, "level": "label", "epsilon": "0.25", "method": "published"}
    asked |= {"ledger": ledger} | changes
    return estimate_ate(asked.pop("data", small_table()), **asked)


def left(ledger):
    return ledger.accounts("trial")[0].left.epsilon_text


@pytest.mark.parametrize(
    ("total", "parts"),
    [
        ("1.0", ["0.1"] * 10),
        ("0.3", ["0.1", "0.2"]),
        ("1e-9", ["1e-9"]),
        ("1000", ["1e3"]),
        ("0.000000003", ["1e-9"] * 3),
        ("1000", ["999.999999999", "1e-9"]),
    ],
)
def test_decimal_parts_fill_a_budget_exactly(path, total, parts):
    ledger = Ledger.create(path, "trial", epsilon=total)
    for number, part in enumerate(parts):
        ledger.spend(charge(str(number), part))
    assert left(ledger) == "0"
    with pytest.raises(BudgetError, match="nothing more can be released"):
        ledger.spend(charge("one more", "1e-9"))
    ledger.verify()
    ledger.close()


def test_an_epsilon_between_two_units_is_rounded_up(path):
    ledger = Ledger.create(path, "trial", epsilon="1.0")
    ledger.spend(charge("a", Fraction(1, 3)))
    ledger.spend(charge("b", Fraction(1, 10**12)))
    assert ledger.accounts()[0].spent == BudgetUnits(333333334 + 1)
    ledger.close()


def test_delta_has_a_budget_of_its_own(ledger):
    ledger.spend(charge("a", "0.1", delta="6e-7"))
    with pytest.raises(BudgetError, match=r"δ = 0\.0000004 left"):
        ledger.spend(charge("b", "0.1", delta="5e-7"))
    ledger.spend(charge("c", "0.1", delta="4e-7"))
    assert ledger.accounts("trial")[0].spent == BudgetUnits(2 * 10**8, 10**12)


def test_a_refusal_names_what_was_asked_what_is_left_and_what_to_do(ledger):
    ledger.spend(charge("a", "0.8"))
    with pytest.raises(BudgetError) as caught:
        ledger.spend(charge("b", "0.5"))
    assert str(caught.value) == (
        "asked for ε = 0.5 but data set 'trial' has ε = 0.2, δ = 0.000001 left of "
        "ε = 1, δ = 0.000001; ask for no more than that, nothing was spent"
    )
    assert left(ledger) == "0.2"


def test_an_analyst_is_held_to_the_cap_and_others_are_not(ledger):
    ledger.spend(charge("a", "0.3", analyst="bob"))
    with pytest.raises(BudgetError, match="analyst 'bob'"):
        ledger.spend(charge("b", "0.1", analyst="bob"))
    ledger.spend(charge("c", "0.6", analyst="eve"))
    assert [account.left.epsilon_text for account in ledger.accounts()] == ["0.1", "0"]
    ledger.verify()


def test_a_refused_charge_leaves_no_trace(ledger):
    before = ledger.history()
    with pytest.raises(BudgetError):
        ledger.spend(charge("a", "0.4", analyst="bob"))
    assert ledger.history() == before
    assert left(ledger) == "1"


def test_a_request_is_charged_once(ledger):
    ledger.spend(charge("a", "0.1"))
    with pytest.raises(BudgetError, match="charged already"):
        ledger.spend(charge("a", "0.1"))
    assert left(ledger) == "0.9"


def test_a_release_is_stored_once_and_only_after_its_charge(ledger):
    with pytest.raises(LedgerError, match="never charged"):
        ledger.store(charge("a", "0.1"), "{}")
    ledger.spend(charge("a", "0.1"))
    ledger.store(charge("a", "0.1"), "{}")
    with pytest.raises(LedgerError, match="refused an entry"):
        ledger.store(charge("a", "0.1"), "{}")
    ledger.verify()


def test_a_budget_cannot_be_raised_by_creating_it_again(path, ledger):
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(path, "trial", epsilon="100")
    Ledger.create(path, "other", epsilon="2").close()
    assert [account.dataset for account in ledger.accounts()] == ["other", "trial", "trial"]


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": "0"},
        {"epsilon": "-1"},
        {"epsilon": "nan"},
        {"epsilon": "1e-10"},
        {"epsilon": "1", "delta": "1"},
        {"epsilon": "1", "delta": "-1e-9"},
        {"epsilon": "1", "delta": "1e999999999"},
        {"epsilon": "1", "delta": True},
        {"epsilon": "1", "delta": "x"},
        {"epsilon": "1", "caps": {"bob": "2"}},
        {"epsilon": "1", "caps": {"": "0.5"}},
    ],
)
def test_bad_budgets_are_refused_and_leave_no_file(path, bad):
    with pytest.raises(ArgumentError):
        Ledger.create(path, "trial", **bad)
    assert not path.exists()


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", None, 3])
def test_names_are_short_printable_texts(path, name):
    with pytest.raises(ArgumentError):
        Ledger.create(path, name, epsilon="1")
    assert not path.exists()


def test_delta_is_read_as_its_decimal_text_says():
    assert parse_delta(1e-6) == Fraction(1, 10**6)
    assert parse_delta(0) == 0
    assert BudgetUnits.of(Fraction(1), parse_delta("1e-19")).delta == 1


def test_a_missing_ledger_says_how_to_make_one(tmp_path):
    with pytest.raises(LedgerError, match=r"make one with Ledger\.create"):
        Ledger.open(tmp_path / "none.db")
    with pytest.raises(LedgerError, match="postgresql://"):
        Ledger.open("mysql://host/base")
    with pytest.raises(LedgerError, match="no folder"):
        Ledger.create(tmp_path / "none" / "budget.db", "trial", epsilon="1")


def test_a_release_carries_where_it_was_charged(ledger):
    release = ask(ledger, request_id="one")
    assert release.is_private
    note = release.settings["ledger"]
    assert (note["dataset"], note["request"], note["left"]) == ("trial", "one", 0.75)
    assert ledger.verify(note["head"]).entries == 4  # create, cap, charge, release


def test_a_repeated_request_returns_the_stored_release(ledger):
    first = ask(ledger, request_id="one")
    again = ask(ledger, request_id="one")
    assert again == first
    assert left(ledger) == "0.75"
    assert ask(ledger, request_id="two").ate != first.ate


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "0.26"},
        {"level": "sample"},
        {"neighbors": 4},
        {"confidence": 0.9},
        {"rows_per_person": 2},
        {"covariates": []},
        {"analyst": "eve"},
    ],
)
def test_the_same_id_with_another_plan_is_an_error(ledger, change):
    ask(ledger, request_id="one")
    with pytest.raises(LedgerError, match="other parameters"):
        ask(ledger, request_id="one", **change)
    assert left(ledger) == "0.75"


def test_an_interrupted_request_stays_charged_and_is_refused(ledger, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", lambda *_: (_ for _ in ()).throw(OSError("power cut")))
        with pytest.raises(OSError, match="power cut"):
            ask(ledger, request_id="one")
    with pytest.raises(BudgetError, match="interrupted; what it cost stays spent"):
        ask(ledger, request_id="one")
    assert left(ledger) == "0.75"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"epsilon": "x"}, ArgumentError),
        ({"level": "both"}, ArgumentError),
        ({"seed": 1}, ArgumentError),
        ({"bounds": "from-data"}, ArgumentError),
        ({"estimand": "att", "method": "published"}, ArgumentError),
        ({"covariates": ["none"]}, SchemaError),
        ({"data": small_table().with_columns(y=pl.lit("text"))}, SchemaError),
        ({"data": "missing.csv"}, ArgumentError),
        ({"dataset": "another"}, LedgerError),
        ({"request_id": ""}, ArgumentError),
    ],
)
def test_what_is_refused_spends_nothing(ledger, change, error):
    with pytest.raises(error):
        ask(ledger, **change)
    assert left(ledger) == "1"
    assert len(ledger.history()) == 2


def test_an_empty_arm_spends_nothing_and_binds_what_was_told_of_as_public(ledger):
    with pytest.raises(SchemaError):
        ask(ledger, data=small_table().with_columns(t=pl.lit(1)))
    assert left(ledger) == "1"
    assert [entry.kind for entry in ledger.history()][2:] == ["bind"]
    assert "t" in ledger.roles("trial").public


def test_an_unforeseen_error_is_paid_for(ledger, monkeypatch):
    def burst(*_):
        message = "an error that could depend on records"
        raise ZeroDivisionError(message)

    monkeypatch.setattr("private_ate.methods.published.method.private_ate_at_label_level", burst)
    with pytest.raises(ZeroDivisionError):
        ask(ledger)
    assert left(ledger) == "0.75"


def test_a_release_that_costs_more_than_was_charged_is_withheld(ledger, monkeypatch):
    honest = charging.BudgetUnits.of
    monkeypatch.setattr(
        charging,
        "BudgetUnits",
        SimpleNamespace(of=lambda e, d: honest(2 * e if ledger.history()[2:] else e, d)),
    )
    with pytest.raises(PrivateAteError, match="nothing is released"):
        ask(ledger)
    assert [entry.kind for entry in ledger.history()] == ["create", "cap", "charge"]


@dataclass(frozen=True)
class ApproximateOptions:
    delta: str = "1e-7"
    adjacency: str = "replace"


def approximate(name="approximate"):
    published = METHODS["published"]

    def run(study, request, noise):
        return published.run(study, replace(request, options=None), noise)

    return Method(name, ("label",), ApproximateOptions, run)


def test_a_method_with_a_delta_is_charged_for_it(ledger, monkeypatch):
    monkeypatch.setitem(METHODS, "approximate", approximate())
    ask(ledger, method="approximate")
    assert ledger.accounts("trial")[0].spent == BudgetUnits(250_000_000, 10**11)


def test_other_neighbours_are_no_currency_of_a_ledger(ledger, monkeypatch):
    monkeypatch.setitem(METHODS, "approximate", approximate())
    with pytest.raises(ArgumentError, match="replace-one"):
        ask(ledger, method="approximate", options=ApproximateOptions(adjacency="add_remove"))
    assert left(ledger) == "1"


def test_a_release_without_a_promise_is_withheld(ledger, monkeypatch):
    honest = api.release_of

    def void(*arguments, **named):
        return replace(honest(*arguments, **named), guarantee="none")

    monkeypatch.setattr(api, "release_of", void)
    with pytest.raises(PrivateAteError, match="nothing is released"):
        ask(ledger)


def test_ledger_arguments_need_a_ledger():
    with pytest.raises(ArgumentError, match="ledger="):
        ask(None, analyst="somebody")
    assert ask(None, dataset="trial").dataset == "trial"  # a name needs none
    with pytest.raises(ArgumentError, match="postgresql://"):
        ask(3)


def test_a_ledger_may_be_given_by_its_path(path, ledger):
    assert ask(str(path)).settings["ledger"]["left"] == 0.75
    Ledger.create(path, "second", epsilon="1").close()
    with pytest.raises(ArgumentError, match="say which data set"):
        ask(ledger)


def test_the_first_use_binds_a_data_set_to_its_columns(ledger):
    ask(ledger)
    with pytest.raises(LedgerError, match="other columns"):
        ask(ledger, data=small_table().with_columns(b=pl.lit(1.0)))
    assert left(ledger) == "0.75"


def test_a_column_keeps_its_declaration(ledger):
    ask(ledger)
    with pytest.raises(LedgerError, match=r"declares column 'y' as 0\.0 to 1\.0"):
        ask(
            ledger,
            domain=Domain(Treatment("t", 1, 0), ("y", Interval(0, 2)), {"a": Interval(0, 1)}),
        )
    assert left(ledger) == "0.75"


def test_another_outcome_of_the_same_people_shares_their_budget(path):
    ledger = Ledger.create(path, "trial", epsilon="1")
    data = small_table().with_columns(z=pl.lit(0.5))
    ask(ledger, data=data, covariates=["a"])
    other = Domain(Treatment("t", 1, 0), ("z", Interval(0, 1)), {"a": Interval(0, 1)})
    assert ask(ledger, data=data, domain=other).settings["ledger"]["left"] == 0.5
    ledger.verify()
    ledger.close()


def test_a_binding_can_be_given_when_the_data_set_is_created(path):
    ledger = Ledger.create(
        path, "trial", epsilon="1", binding=Binding(None, {"y": "0.0 to 2.0, missing 1.0"})
    )
    with pytest.raises(LedgerError, match="use the same domain"):
        ask(ledger)
    ledger.close()


def test_other_records_in_the_same_columns_are_the_same_data_set(ledger):
    ask(ledger)
    ask(ledger, data=small_table(60).with_columns(y=1 - pl.col("y")))
    assert left(ledger) == "0.5"


def _tampered(path, statement, values=()):
    connection = sqlite3.connect(path)
    for trigger in ("entries_never_change", "entries_never_go"):
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("statement", ["UPDATE entries SET at = 'x'", "DELETE FROM entries"])
def test_the_database_itself_refuses_to_change_the_history(path, statement):
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


COLUMNS = [
    "kind", "dataset", "request", "analyst", "plan", "epsilon", "delta", "body", "at", "previous",
    "hash",
]  # fmt: skip


@pytest.mark.parametrize(("column", "sequence"), list(itertools.product(COLUMNS, [1, 2, 3, 4])))
def test_an_edited_entry_is_found(path, ledger, column, sequence):
    ask(ledger)
    new = 7 if column in {"epsilon", "delta"} else "edited"
    _tampered(path, f"UPDATE entries SET {column} = ? WHERE sequence = ?", (new, sequence))
    with pytest.raises(LedgerError):
        ledger.verify()


@pytest.mark.parametrize("sequence", [1, 2, 3])
def test_a_deleted_entry_is_found(path, ledger, sequence):
    ask(ledger)
    _tampered(path, "DELETE FROM entries WHERE sequence = ?", (sequence,))
    with pytest.raises(LedgerError):
        ledger.verify()


def test_exchanged_entries_are_found(path, ledger):
    ledger.spend(charge("a", "0.1"))
    ledger.spend(charge("b", "0.1"))
    _tampered(path, "UPDATE entries SET sequence = 99 WHERE sequence = 3")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE entries SET sequence = 3 WHERE sequence = 4")
    connection.execute("UPDATE entries SET sequence = 4 WHERE sequence = 99")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="altered"):
        ledger.verify()


def test_a_cut_end_is_found_by_the_head_of_a_release(path, ledger):
    connection = sqlite3.connect(path)
    unused = connection.execute("SELECT body FROM bindings").fetchone()
    connection.close()
    release = ask(ledger)
    head = release.settings["ledger"]["head"]
    _tampered(path, "DELETE FROM entries WHERE sequence > 2")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE accounts SET epsilon_spent = 0")
    connection.execute("UPDATE bindings SET body = ?", unused)
    connection.commit()
    connection.close()
    assert ledger.verify().entries == 2
    with pytest.raises(LedgerError, match="end of the history is missing"):
        ledger.verify(head)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts SET epsilon_spent = 0",
        "UPDATE accounts SET epsilon_total = 9000000000",
        "DELETE FROM accounts WHERE analyst = 'bob'",
        "UPDATE bindings SET body = 'null'",
    ],
)
def test_edited_balances_are_found(path, ledger, statement):
    ledger.spend(charge("a", "0.1", analyst="bob"))
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="differ from what its history"):
        ledger.verify()


def test_the_hash_before_the_first_entry_is_no_head(ledger):
    with pytest.raises(LedgerError, match="no entry has the hash"):
        ledger.verify(GENESIS)


def test_threads_share_a_ledger(path):
    ledger = Ledger.create(path, "trial", epsilon="1")

    def attempt(number):
        try:
            ledger.spend(charge(str(number), "0.1"))
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(40))) == 10
    assert left(ledger) == "0"
    ledger.verify()
    ledger.close()


def test_a_pickled_ledger_opens_the_same_file(ledger):
    copy = pickle.loads(pickle.dumps(ledger))  # noqa: S301  # our own bytes
    copy.spend(charge("a", "0.4"))
    assert left(ledger) == "0.6"
    copy.close()


def test_every_commit_is_synchronised(ledger):
    connection = ledger._store._open()
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("truncate",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_stored_release_reads_back_equal(ledger):
    release = ask(ledger, epsilon=Fraction(1, 8), request_id="eighth")
    assert Release.from_json(release.to_json()) == release
    assert ask(ledger, epsilon="0.125", request_id="eighth") == release
