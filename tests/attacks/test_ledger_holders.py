"""Attacks on the ledger's file, balances, heads and names: each shows more budget than is left."""

import shutil
import sqlite3
import subprocess
import sys

import pytest

from private_ate import ArgumentError, BudgetError, Ledger, LedgerError
from private_ate.ledger.binding import Charge
from private_ate.ledger.cost import BudgetUnits

TENTH = BudgetUnits(10**8)
SPELLINGS = ["ann", "ANN", " Ann ", "\u0410nn", "\u0391nn", "A\uff4en"]


def spend(ledger, request, analyst=""):
    return ledger.spend(Charge("trial", request, "p", TENTH, analyst))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def test_a_copy_of_the_one_file_shows_all_that_is_spent(tmp_path, path):
    ledger = Ledger.create(path, "trial", epsilon="1")
    for number in range(3):
        receipt = spend(ledger, str(number))
        shutil.copy(path, tmp_path / "copy.db")
        copy = Ledger.open(tmp_path / "copy.db")
        assert copy.accounts()[0].spent == BudgetUnits((number + 1) * 10**8)
        copy.verify(receipt.head)
        copy.close()
    assert {file.name for file in tmp_path.iterdir()} <= {
        "budget.db",
        "budget.db-journal",
        "copy.db",
        "copy.db-journal",
    }
    ledger.close()


OPENER = """
import sys
from private_ate import Ledger
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.binding import Charge
ledger = Ledger.open(sys.argv[1])
ledger.spend(Charge("trial", sys.argv[2], "p", BudgetUnits(10**8)))
ledger.close()
"""


def test_a_write_ahead_log_of_an_old_ledger_is_taken_in_by_all_who_open_it_at_once(path):
    ledger = Ledger.create(path, "trial", epsilon="1")
    ledger.close()
    old = sqlite3.connect(path)
    old.execute("PRAGMA journal_mode=WAL")
    old.close()
    workers = [
        subprocess.Popen([sys.executable, "-c", OPENER, path, str(number)]) for number in range(4)
    ]
    assert [worker.wait(timeout=120) for worker in workers] == [0] * 4
    assert not path.with_name("budget.db-wal").exists()
    ledger = Ledger.open(path)
    assert ledger.accounts()[0].spent == BudgetUnits(4 * 10**8)
    ledger.close()


ALTERATIONS = [
    "UPDATE accounts SET epsilon_spent = 0",
    "UPDATE accounts SET epsilon_spent = 0 WHERE analyst = ''",
    "UPDATE accounts SET epsilon_spent = 0 WHERE analyst = 'ann'",
    "UPDATE accounts SET epsilon_total = 9000000000",
    "DELETE FROM accounts WHERE analyst = 'ann'",
    'UPDATE bindings SET body = \'{"columns":null,"declared":{}}\'',
]


def _execute(location, statement):
    if location.startswith("postgresql"):
        import psycopg

        with psycopg.connect(location) as connection:
            connection.execute(statement)
        return
    connection = sqlite3.connect(location)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("statement", ALTERATIONS)
@pytest.mark.parametrize("stored", [False, True])
def test_an_altered_balance_is_refused_when_it_is_charged(location, statement, stored):
    ledger = Ledger.create(location, "trial", epsilon="1", caps={"ann": "0.5"})
    spend(ledger, "one", "ann")
    if stored:
        ledger.store(Charge("trial", "one", "p", TENTH, "ann"), "{}")
    _execute(location, statement)
    for attempt in (ledger.check, ledger.spend):
        with pytest.raises(LedgerError, match="differ from what its history adds up to"):
            attempt(Charge("trial", "two", "p", TENTH, "ann"))
    with pytest.raises(LedgerError, match="differ from what its history adds up to"):
        Ledger.create(location, "another", epsilon="1")
    ledger.close()


def test_an_altered_last_entry_is_refused_when_it_is_charged(path):
    ledger = Ledger.create(path, "trial", epsilon="1")
    spend(ledger, "one")
    _execute(str(path), "DROP TRIGGER entries_never_change")
    _execute(str(path), "UPDATE entries SET epsilon = 1 WHERE sequence = 2")
    with pytest.raises(LedgerError, match="does not verify at entry 2"):
        spend(ledger, "two")
    ledger.close()


@pytest.mark.parametrize("head", ["0" * 64, "f" * 64, "", "0"])
def test_only_the_hash_of_an_entry_is_a_head(path, head):
    ledger = Ledger.create(path, "trial", epsilon="1")
    receipt = spend(ledger, "one")
    with pytest.raises(LedgerError, match="no entry has the hash"):
        ledger.verify(head)
    ledger.verify(receipt.head)
    ledger.close()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_all_spellings_of_a_name_share_one_cap(location, spelling):
    ledger = Ledger.create(location, "trial", epsilon="1", caps={"Ann": "0.1"})
    spend(ledger, "one", "Ann")
    with pytest.raises(BudgetError, match="analyst 'Ann'"):
        spend(ledger, "two", spelling)
    ledger.verify()
    ledger.close()


def test_a_charge_under_another_spelling_counts_and_verifies(location):
    ledger = Ledger.create(location, "trial", epsilon="1", caps={"Ann": "0.2"})
    spend(ledger, "one", " ANN")
    assert [account.spent for account in ledger.accounts()] == [TENTH, TENTH]
    ledger.verify()
    ledger.close()


def test_where_caps_exist_others_are_refused(location):
    ledger = Ledger.create(location, "trial", epsilon="1", caps={"Ann": "0.2"})
    with pytest.raises(BudgetError, match="analyst 'Eve' has no cap"):
        spend(ledger, "one", "Eve")
    with pytest.raises(BudgetError, match="say who asks"):
        spend(ledger, "one")
    assert ledger.accounts()[0].spent == BudgetUnits(0)
    ledger.bind("trial", uncapped="allowed")
    spend(ledger, "one", "Eve")
    with pytest.raises(LedgerError, match="allowed already"):
        ledger.bind("trial", uncapped="refused")
    ledger.verify()
    ledger.close()


def test_without_caps_names_are_free(path):
    ledger = Ledger.create(path, "trial", epsilon="1")
    spend(ledger, "one", "Eve")
    spend(ledger, "two")
    ledger.close()


@pytest.mark.parametrize(
    "caps",
    [
        {"Ann": "0.1", "ann ": "0.1"},
        {"Ann": "0.1", "\u0410nn": "0.1"},
        {"   ": "0.1"},
        {"An\u05d0": "0.1"},
        {"Ann\u0431": "0.1"},
    ],
)
def test_names_that_could_be_mistaken_are_refused(path, caps):
    with pytest.raises(ArgumentError):
        Ledger.create(path, "trial", epsilon="1", caps=caps)
    assert not path.exists()


@pytest.mark.parametrize(
    "name", ["Ann", "Zoë Müller", "Анна Жукова", "Γιώργος", "李娜", "Anna 李", "山田 はな", "R2-D2"]
)
def test_names_in_one_alphabet_are_names(path, name):
    from private_ate.arguments import fold_name

    ledger = Ledger.create(path, "trial", epsilon="1", caps={name: "0.1"})
    spend(ledger, "one", name.upper())
    assert ledger.accounts()[1].analyst == name
    assert fold_name(name) == fold_name(f" {name.upper()} ")
    ledger.close()
