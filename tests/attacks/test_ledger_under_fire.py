"""Races and crashes: no process spends what is not there, no release leaves unpaid."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from private_ate import BudgetError, Ledger, LedgerError
from private_ate.ledger.binding import Charge
from private_ate.ledger.cost import BudgetUnits

RACER = """
import sys
from fractions import Fraction
from private_ate import BudgetError, Ledger
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.binding import Charge

location, name, tries = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = Ledger.open(location)
print("ready", flush=True)
sys.stdin.readline()
won = 0
for number in range(tries):
    charge = Charge("trial", f"{name}-{number}", "plan", BudgetUnits.of(Fraction(1, 100)))
    try:
        ledger.spend(charge)
        ledger.store(charge, "{}")
        won += 1
    except BudgetError:
        pass
print(won, flush=True)
ledger.close()
"""

# One process forks a worker a round, kills it after a random while and looks at what is left.
CRASHER = """
import json, os, random, signal, sys, time
from pathlib import Path
import numpy as np
from private_ate import Domain, Interval, Ledger, estimate_ate
from private_ate.engines.local import LocalStudy

location, folder, rounds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(1)
domain = Domain("t", ("y", Interval(0, 1)), {"a": Interval(0, 1)})
study = LocalStudy(
    domain, rng.random((1, 20)), np.arange(20) % 2 == 0, np.full(20, 5, dtype=np.int32)
)
asked = {"level": "label", "epsilon": "0.01", "method": "published"}
estimate_ate(study, **asked)  # compiles the kernel before the first fork


def work(number, turns):
    ledger = Ledger.open(location)
    for turn in range(turns):
        name = f"{number}-{turn}"
        release = estimate_ate(study, ledger=ledger, request_id=name, **asked)
        (folder / name).write_text(release.to_json())
    ledger.close()


for number in range(rounds):
    child = os.fork()
    if child == 0:
        try:
            work(number, 1000)
        finally:
            os._exit(1)
    time.sleep(0.005 + random.random() * 0.06)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    ledger = Ledger.open(location)
    ledger.verify()
    assert all(account.left.epsilon >= 0 for account in ledger.accounts())
    ledger.close()
work("last", 3)  # on a busy machine every worker may have died too young
print("done")
"""


def _run_processes(location, processes, tries):
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, location, str(number), str(tries)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(processes)
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return sum(int(worker.communicate(timeout=300)[0]) for worker in workers)


@pytest.mark.parametrize(
    ("processes", "tries", "budget"),
    [(4, 12, 20), pytest.param(16, 50, 100, marks=pytest.mark.audit)],
)
def test_racing_processes_spend_the_budget_and_no_more(location, processes, tries, budget):
    ledger = Ledger.create(location, "trial", epsilon=Fraction(budget, 100))
    assert _run_processes(location, processes, tries) == budget
    assert ledger.accounts()[0].left == BudgetUnits(0)
    assert ledger.verify().entries == 1 + 2 * budget
    ledger.close()


@pytest.mark.parametrize("rounds", [6, pytest.param(200, marks=pytest.mark.audit)])
def test_killed_processes_leave_no_release_without_its_charge(location, tmp_path, rounds):
    ledger = Ledger.create(location, "trial", epsilon="1000")
    released = tmp_path / "released"
    released.mkdir()
    quiet = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CRASHER, location, str(released), str(rounds)],
        check=True, capture_output=True, text=True, timeout=900, env=quiet,
    )  # fmt: skip
    assert done.stdout == "done\n"
    charged = {entry.request for entry in ledger.history() if entry.kind == "charge"}
    stored = {entry.request: entry.body for entry in ledger.history() if entry.kind == "release"}
    whole = [path for path in released.iterdir() if path.stat().st_size]
    assert whole, "no worker lived long enough to release anything"
    for path in whole:
        note = json.loads(path.read_text())["settings"]["ledger"]
        ledger.verify(note["head"])
        assert stored[path.name] == path.read_text()
    assert set(stored) <= charged
    assert ledger.accounts()[0].spent == BudgetUnits(len(charged) * 10**7)
    ledger.close()


def test_both_stores_tell_the_same_story(location):
    ledger = Ledger.create(location, "trial", epsilon="1", delta="1e-6", caps={"bob": "0.5"})
    bob = Charge("trial", "one", "plan", BudgetUnits.of(Fraction(1, 2), Fraction(1, 10**7)), "bob")
    ledger.spend(bob)
    with pytest.raises(BudgetError, match="charged already"):
        ledger.spend(bob)
    with pytest.raises(BudgetError, match="interrupted"):
        ledger.stored(bob)
    ledger.store(bob, '{"ate": 1}')
    assert ledger.stored(bob) == '{"ate": 1}'
    with pytest.raises(LedgerError, match="refused an entry"):
        ledger.store(bob, "{}")
    with pytest.raises(BudgetError, match="analyst 'bob'"):
        ledger.spend(Charge("trial", "two", "plan", BudgetUnits(1), "bob"))
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(location, "trial", epsilon="9")
    kinds = [entry.kind for entry in ledger.history("trial")]
    assert kinds == ["create", "cap", "charge", "release"]
    again = Ledger.open(location)
    assert again.verify() == ledger.verify()
    again.close()
    ledger.close()


def test_postgres_refuses_to_change_the_history(postgres_url):
    import psycopg

    ledger = Ledger.create(postgres_url, "trial", epsilon="1")
    for statement in ("UPDATE entries SET at = 'x'", "DELETE FROM entries", "TRUNCATE entries"):
        with psycopg.connect(postgres_url) as connection, pytest.raises(psycopg.Error):
            connection.execute(statement)
    ledger.verify()
    ledger.close()


def test_a_torn_file_is_refused_with_a_sentence(tmp_path):
    path = tmp_path / "budget.db"
    Ledger.create(path, "trial", epsilon="1").close()
    whole = path.read_bytes()
    for size in (0, 1, 50, 100, len(whole) // 2):
        Path(path).write_bytes(whole[:size])
        with pytest.raises(LedgerError):
            Ledger.open(path).verify()
