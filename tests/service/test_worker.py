"""The worker: one process a job, charged once, visible at its tick, never repeated."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from house_people import ALICE, CAROL, CLINIC

from private_ate import Ledger, Release
from private_ate.datasets.clinic import draw_clinic
from private_ate.service.histories import require_heads, visible_heads
from private_ate.service.store.events import read_events, verify_events
from private_ate.service.store.requests import find_request
from private_ate.service.vocabulary import NotReady

pytestmark = pytest.mark.service

KINDS = ["create", "charge", "release"]


def row_of(house, name):
    with house.store.snapshot() as execute:
        return find_request(execute, name)


def test_a_request_is_charged_computed_and_shown_at_its_tick(house):
    asked = house.ask()
    assert house.worker().step()
    assert not house.worker().step()

    row = row_of(house, asked.id)
    assert (row.state, row.visible) == ("done", row.due)
    assert row.shown(row.due - 1) == "queued"
    with pytest.raises(NotReady):
        house.service.release(ALICE, row.id)
    assert len(visible_heads(house.store, house.clock())) == 1
    house.wait()
    release = Release.from_json(house.service.release(ALICE, row.id))
    assert release.is_private
    assert float(release.epsilon) == 0.1
    ledger = house.ledger
    assert [entry.kind for entry in ledger.history()] == KINDS
    assert ledger.verify(visible_heads(house.store, house.clock())[0].hash).entries == 3
    with house.store.snapshot() as execute:
        verify_events(read_events(execute))
    require_heads(house.store, house.folder / "heads.ndjson")


def test_neither_ledger_nor_release_tells_how_long_it_took(small_house):
    asked = small_house.ask()
    time.sleep(1.1)
    small_house.worker().step()
    small_house.wait()

    _, charge, kept = small_house.ledger.history()
    release = Release.from_json(small_house.service.release(ALICE, asked.id))
    assert charge.at == kept.at == release.released_at
    assert int(time.mktime(time.strptime(charge.at[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone) == (
        asked.submitted // 1000
    )


def test_the_balance_that_people_see_does_not_move_while_work_goes_on(small_house):
    small_house.ask()
    before = small_house.service.dataset("clinic")[1]
    small_house.worker().step()

    assert small_house.service.dataset("clinic")[1] == before
    small_house.wait()
    assert small_house.service.dataset("clinic")[1] == before
    assert before.left.epsilon_text == "0.9"


def test_a_dummy_request_costs_nothing_and_tells_the_true_effect(small_house):
    asked = small_house.ask(dummy=True, epsilon="3")
    assert asked.state == "queued"
    small_house.worker().step(dummy=True)
    small_house.wait()

    release = Release.from_json(small_house.service.release(ALICE, asked.id))
    assert release.guarantee == "none (dummy data)"
    assert release.warnings[0].endswith("a known effect of 10")
    assert release.ate == pytest.approx(10, abs=3)
    assert [entry.kind for entry in small_house.ledger.history()] == ["create"]


def test_records_that_cannot_be_read_are_charged_and_lost_without_a_word(small_house):
    small_house.add(replace(CLINIC, name="broken", source="broken.parquet"))
    (small_house.folder / "data" / "broken.parquet").write_bytes(b"PAR1 no parquet PAR1")
    small_house.ask("fine")
    asked = small_house.ask("broken", dataset="broken")
    worker = small_house.worker()
    while worker.step():
        pass

    row = row_of(small_house, asked.id)
    # A schema that cannot be read is public; it costs nothing and is told by a constant.
    assert row.state == "refused"
    assert row.reason.startswith("the data set cannot be used at the moment")
    assert str(small_house.folder) not in row.reason


def test_a_file_that_was_exchanged_is_refused_and_one_that_is_gone_too(small_house):
    small_house.ask("first")
    worker = small_house.worker()
    worker.step()
    draw_clinic(401).frame.write_csv(small_house.folder / "data" / "clinic.csv")
    small_house.wait()
    swapped = small_house.ask("second")
    worker.step()
    (small_house.folder / "data" / "clinic.csv").unlink()
    small_house.wait()
    gone = small_house.ask("third")
    worker.step()

    for name in (swapped.id, gone.id):
        row = row_of(small_house, name)
        assert (row.state, row.code) == ("refused", "ledger")
        assert row.reason.startswith("the data set cannot be used at the moment")
    assert [entry.kind for entry in small_house.ledger.history()] == KINDS


def test_undeclared_public_entries_are_told_and_cost_nothing(small_house):
    path = small_house.folder / "data" / "clinic.csv"
    lines = path.read_text().splitlines()
    lines[1] = lines[1].replace("yes", "perhaps").replace("no", "perhaps")
    path.write_text("\n".join(lines))
    asked = small_house.ask()
    small_house.worker().step()

    row = row_of(small_house, asked.id)
    assert (row.state, row.code) == ("refused", "undeclared")
    assert row.shown(small_house.clock()) == "queued"
    assert small_house.service.dataset("clinic")[1].left.epsilon_text == "0.9"
    small_house.wait()
    assert small_house.service.dataset("clinic")[1].left.epsilon_text == "1"


def test_a_job_that_dies_without_a_word_is_charged_and_lost(small_house, monkeypatch):
    asked = small_house.ask()
    worker = small_house.worker()
    worker.settings = replace(worker.settings, memory=64 << 20)  # too little to import numpy
    run = type(worker)._run

    def roomy(self, row, aim):
        self.settings = replace(self.settings, memory=(8 << 30) if aim == "charge" else 64 << 20)
        return run(self, row, aim)

    monkeypatch.setattr(type(worker), "_run", roomy)
    worker.step()

    row = row_of(small_house, asked.id)
    assert (row.state, row.code) == ("lost", "lost")
    assert small_house.ledger.accounts()[0].spent.epsilon_text == "0.1"
    small_house.wait()
    with pytest.raises(NotReady):
        small_house.service.release(ALICE, asked.id)


def test_a_job_that_takes_too_long_is_ended_charged_and_lost(small_house, monkeypatch):
    asked = small_house.ask()
    worker = small_house.worker()
    worker.settings = replace(worker.settings, seconds=0)
    monkeypatch.setattr("private_ate.service.worker._BEAT", 10)
    run = type(worker)._run

    def patient(self, row, aim):
        self.settings = replace(self.settings, seconds=60 if aim == "charge" else 0)
        return run(self, row, aim)

    monkeypatch.setattr(type(worker), "_run", patient)
    worker.step()

    assert row_of(small_house, asked.id).state == "lost"


def test_one_data_set_has_one_job_at_a_time(house):
    house.add(replace(CLINIC, name="again", source="again.csv"))
    first, second, other = house.ask("a"), house.ask("b"), house.ask("c", dataset="again")
    one, two, three = (house.worker(name) for name in ("one", "two", "three"))

    taken = [one.claim(), two.claim(), three.claim()]

    assert [row and row.id for row in taken[:2]] == [first.id, other.id]
    assert taken[2] is None
    assert row_of(house, second.id).claim == ""


def test_nobody_starts_before_the_grace_is_over(small_house):
    small_house.grace = 60
    small_house.ask()

    assert small_house.worker().claim() is None


@pytest.mark.parametrize("point", ["claimed", "charged"])
def test_what_a_worker_left_is_charged_and_lost_and_its_job_can_keep_nothing(house, point):
    asked = house.ask()
    row = house.worker("one").claim()
    if point == "charged":
        with house.store.transaction() as execute:
            execute("UPDATE service_requests SET state = 'charged' WHERE id = ?", (row.id,))
    worker = house.worker("one")  # the same name: it was started again
    worker.abandon_claims("one")

    found = row_of(house, asked.id)
    assert found.state == "lost"
    assert found.claim != row.claim
    # The ledger was charged where the dead worker had not done so.
    charges = [entry.kind for entry in house.ledger.history()].count("charge")
    assert charges == (1 if point == "claimed" else 0)
    assert not worker.step()


def test_a_worker_without_a_beat_is_buried_by_another(house, monkeypatch):
    asked = house.ask()
    house.worker("one").claim()
    two = house.worker("two")
    two.beat()
    assert row_of(house, asked.id).state == "queued"
    monkeypatch.setattr("private_ate.service.worker.LEASE", -1)
    two._beaten = 0
    two.beat()

    assert row_of(house, asked.id).state == "lost"


def test_a_population_s_budget_holds_inside_the_charging_transaction(small_house):
    first, second = small_house.ask("a", epsilon="0.5"), small_house.ask("b", epsilon="0.5")
    with small_house.store.transaction() as execute:  # somebody bypassed the service
        execute("UPDATE service_populations SET epsilon = 600000000", ())
    worker = small_house.worker()
    worker.step()
    small_house.wait()  # until the second one's slot
    worker.step()

    states = {row_of(small_house, name).state for name in (first.id, second.id)}
    assert states == {"done", "refused"}
    assert small_house.ledger.accounts()[0].spent.epsilon_text == "0.5"


def test_a_plan_that_was_changed_after_its_approval_is_not_charged(small_house):
    asked = small_house.ask(epsilon="0.1")
    question = json.loads(asked.question)
    with small_house.store.transaction() as execute:
        execute(
            "UPDATE service_requests SET question = ? WHERE id = ?",
            (json.dumps({**question, "epsilon": "0.5"}), asked.id),
        )
    small_house.worker().step()

    assert row_of(small_house, asked.id).state == "refused"
    assert small_house.ledger.accounts()[0].spent.epsilon == 0


def test_a_worker_that_is_killed_leaves_no_job_behind(small_house):
    asked = small_house.ask()
    code = (
        "import sys, threading\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "from private_ate.service.store.tables import connect\n"
        "from private_ate.service.worker import WorkerSettings, Worker\n"
        f"folder = Path({str(small_house.folder)!r})\n"
        f"with connect({small_house.location!r}) as store:\n"
        f"    place, key = {small_house.location!r}, 'ab' * 32\n"
        "    bench = WorkerSettings(place, folder / 'data', key, folder / 'heads', 1.0)\n"
        "    Worker(store, bench, 'one').run(threading.Event())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    give_up = time.monotonic() + 30
    while not row_of(small_house, asked.id).claim and time.monotonic() < give_up:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    small_house.worker("one").abandon_claims("one")
    row = row_of(small_house, asked.id)
    opened = Ledger.open(small_house.location)
    assert row.state == "lost"
    assert [entry.kind for entry in opened.history()] == ["create", "charge"]
    opened.verify()
    opened.close()
    assert not small_house.worker("one").step()
    assert small_house.service.requests(CAROL)[0].state == "lost"
