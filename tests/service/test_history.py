"""The service's history: ends are final, the worker's steps are told when they are public."""

import json
from datetime import UTC, datetime

import pytest
from house_people import ALICE, BOB

from private_ate.errors import LedgerError
from private_ate.service.histories import verify_service
from private_ate.service.job import estimate
from private_ate.service.store.events import read_events, verify_events, write_event
from private_ate.service.store.requests import find_request, state_of_events
from private_ate.service.store.tables import connect

TRIGGERS = ("service_requests_never_go_back", "service_requests_stay")


def drop_triggers(house):
    """Make the database one of an earlier version."""
    where = " ON service_requests" if house.location.startswith("postgres") else ""
    with house.store.transaction() as execute:
        for name in TRIGGERS:
            execute(f"DROP TRIGGER {name}{where}", ())


def cancelled(house):
    house.grace = 60
    row = house.ask()
    house.service.cancel(ALICE, row.id)
    house.wait()
    return row


def do_next_job(house):
    """Do a job in this process, as a worker's process would."""
    worker = house.worker()
    row = worker.claim()
    report = estimate(worker._order(row, "estimate"))
    worker._finish(row, report)
    return row


def kinds_about(house, name):
    with house.store.snapshot() as execute:
        return [event.kind for event in read_events(execute) if event.subject == name]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE service_requests SET state = 'queued'",
        "UPDATE service_requests SET visible = 0",
        "DELETE FROM service_requests",
    ],
)
def test_a_request_that_has_ended_cannot_be_revived(house, change):
    row = cancelled(house)

    with (
        pytest.raises(LedgerError, match="no state has a way back"),
        house.store.transaction() as execute,
    ):
        execute(change, ())
    assert house.service.show(ALICE, row.id).state == "cancelled"
    assert house.worker().claim() is None


@pytest.mark.parametrize("state", ["planned", "waiting", "approved"])
def test_a_request_goes_no_way_back(house, state):
    house.ask()

    with pytest.raises(LedgerError, match="way back"), house.store.transaction() as execute:
        execute("UPDATE service_requests SET state = ?", (state,))


@pytest.mark.parametrize("forged", [False, True])
def test_what_was_revived_behind_the_triggers_is_neither_charged_nor_verified(house, forged):
    row = cancelled(house)
    drop_triggers(house)
    with house.store.transaction() as execute:
        execute("UPDATE service_requests SET state = 'queued' WHERE id = ?", (row.id,))
        if forged:
            write_event(execute, "queued", row.id, "policy")

    with pytest.raises(LedgerError, match=r"queued"):
        do_next_job(house)
    assert house.ledger.accounts()[0].spent.epsilon == 0
    with pytest.raises(LedgerError, match=row.id):
        verify_service(house.store)


def test_a_database_of_an_earlier_version_gets_what_it_lacks(house):
    row = cancelled(house)
    drop_triggers(house)

    with (
        connect(house.location) as store,
        pytest.raises(LedgerError, match="way back"),
        store.transaction() as execute,
    ):
        execute("UPDATE service_requests SET state = 'queued' WHERE id = ?", (row.id,))
    verify_service(house.store)


def test_the_worker_s_steps_are_told_with_the_time_at_which_the_answer_appears(house):
    row = house.ask()
    do_next_job(house)
    worker = house.worker()
    worker.publish()
    assert kinds_about(house, row.id) == ["planned", "approved", "queued"]
    verify_service(house.store)

    house.wait()
    house.ask("later", actor=BOB)
    worker.publish()
    worker.publish()  # once is enough

    with house.store.snapshot() as execute:
        events, found = read_events(execute), find_request(execute, row.id)
    verify_events(events)
    told = [event for event in events if event.actor == "one" and event.subject == row.id]
    assert [event.kind for event in told] == ["claim", "charged", "done"]
    times = {datetime.fromisoformat(event.at) for event in told}
    assert times == {datetime.fromtimestamp(found.visible / 1000, UTC)}
    assert events[-3:] == told  # among other events they stand by when they became public
    verify_service(house.store)


def test_the_first_use_of_a_file_is_told_with_the_start_of_its_slot(small_house):
    row = small_house.ask()
    do_next_job(small_house)

    with small_house.store.snapshot() as execute:
        pin = next(event for event in read_events(execute) if event.kind == "pin")
    assert datetime.fromisoformat(pin.at) == datetime.fromtimestamp(row.start / 1000, UTC)


def test_events_that_no_request_can_have_are_an_error(small_house):
    cancelled(small_house)
    with small_house.store.snapshot() as execute:
        events = read_events(execute)
    ways = [event for event in events if event.kind in ("planned", "approved", "queued")]

    assert state_of_events(ways) == "queued"
    assert state_of_events([]) is None
    with pytest.raises(LedgerError, match="was approved after queued"):
        state_of_events([*ways, ways[1]])


def test_an_auditor_sees_nothing_of_an_answer_before_it_appears(small_house):
    pytest.importorskip(
        "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
    )
    from web_client import Client

    from private_ate.service.web.app import make_app

    row = small_house.ask()
    do_next_job(small_house)
    client = Client(make_app(small_house.service))
    token = small_house.tokens["olga"]
    home = {"Origin": "http://127.0.0.1:8470"}
    client.post("/login", data={"token": token}, headers=home)

    def exported():
        answer = client.get("/v1/audit.ndjson", headers={"Authorization": f"Bearer {token}"})
        lines = [json.loads(line) for line in answer.iter_lines()]
        about = ((line["kind"], line.get("subject"), line.get("request")) for line in lines)
        return [kind for kind, *names in about if row.id in names]

    assert exported() == ["planned", "approved", "queued"]
    page = client.get("/history").text
    assert "1 public entries" in page
    assert "charged" not in page
    small_house.wait()
    small_house.worker().publish()
    assert exported()[:2] == ["charge", "release"]
    assert exported()[-3:] == ["claim", "charged", "done"]
    assert client.get("/history").text.count("charged") == 1
