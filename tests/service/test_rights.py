"""A web process with a role of its own: it asks, and can neither pay, nor allow, nor approve."""

import json
import threading

import pytest
from house_people import ALICE, CAROL, DAVE, furnish

from private_ate.errors import ArgumentError, BudgetError, LedgerError
from private_ate.ledger.stores import store_for
from private_ate.service.histories import verify_service
from private_ate.service.job import estimate
from private_ate.service.operations import Service
from private_ate.service.policy import Policy, Question
from private_ate.service.processes import approve_plan
from private_ate.service.store.catalogue import close_dataset, set_policy
from private_ate.service.store.requests import find_request, move
from private_ate.service.store.tables import connect, grant_web
from private_ate.service.store.users import find_session, open_session, read_token
from private_ate.service.vocabulary import Forbidden

# What a web process that was taken over might try.
FORBIDDEN = [
    "INSERT INTO entries SELECT * FROM entries",
    "UPDATE accounts SET epsilon_spent = 0",
    "UPDATE accounts SET epsilon_total = 9000000000",
    "UPDATE bindings SET body = '{}'",
    "UPDATE service_populations SET epsilon = 9000000000",
    "INSERT INTO service_populations VALUES ('more', 'label', 9000000000, 0)",
    "UPDATE service_datasets SET policy = '{}'",
    "UPDATE service_datasets SET source = 'other.csv'",
    "INSERT INTO service_datasets SELECT * FROM service_datasets",
    "INSERT INTO service_approvals VALUES ('r', 'p', 'carol')",
    "UPDATE service_requests SET plan = '', question = '{}'",
    "UPDATE service_requests SET claim = 'mine'",
    "DELETE FROM service_events",
    "DELETE FROM service_requests",
    "TRUNCATE entries",
    "DROP TABLE entries",
    "LOCK TABLE entries IN EXCLUSIVE MODE",
]


@pytest.fixture
def team(postgres_url, tmp_path):
    """A service in PostgreSQL, as its worker's side opens it."""
    import psycopg

    name = f"rights{abs(hash(str(tmp_path))):x}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    house = furnish(postgres_url.replace("/postgres?", f"/{name}?"), tmp_path)
    yield house
    house.store.close()


@pytest.fixture
def web(team):
    """Return the service of a web process with a role of its own."""
    import psycopg

    house = team
    with psycopg.connect(house.location, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'web'").fetchall():
            connection.execute("CREATE ROLE web LOGIN")
    grant_web(house.store, "web")
    store = store_for(house.location.replace("//ledger@", "//web@"), must_exist=True)
    yield Service(store, tick=1.0, grace=0.0, clock=house.clock, manages=False)
    store.close()


def work(house):
    """Do the next job in this process; return how it ended."""
    worker = house.worker()
    row = worker.claim()
    try:
        report = estimate(worker._order(row, "estimate"))
    except (BudgetError, LedgerError) as error:
        return str(error)
    worker._finish(row, report)
    with house.store.snapshot() as execute:
        return find_request(execute, row.id).state


def ask(service, key, **changes):
    return service.submit(
        ALICE, Question.read({"dataset": "clinic", "epsilon": "0.1", **changes}), key
    )


def test_on_postgres_the_web_s_role_does_what_people_do_by_pages(team, web):
    token = team.tokens["alice"]
    with web.store.transaction() as execute:
        actor = read_token(execute, token, web.clock())
        secret = open_session(execute, actor, web.clock())
        assert find_session(execute, secret, web.clock()).actor.name == "alice"
    done, waits = ask(web, "a"), ask(web, "b", epsilon="0.6")
    assert (done.state, waits.state) == ("queued", "waiting")
    assert web.refuse(CAROL, waits.id, "cost").state == "refused"
    assert work(team) == "done"
    team.wait()
    assert json.loads(web.release(ALICE, done.id))["epsilon"] == 0.1
    assert web.checks.newest().problem == ""
    verify_service(team.store)


def test_on_postgres_the_web_s_role_can_neither_pay_nor_allow(team, web):
    ask(web, "a")

    for statement in FORBIDDEN:
        refused = pytest.raises(LedgerError, match=r"permission denied|must be owner")
        with refused, web.store.transaction() as execute:
            execute(statement, ())
    verify_service(team.store)


def test_on_postgres_a_web_that_is_taken_over_cannot_have_a_plan_charged_that_nobody_approved(
    team, web
):
    row = ask(web, "a", epsilon="0.6")
    with web.store.transaction() as execute:
        move(execute, row.id, "waiting", "approved", "carol", approvers='["carol"]')
        move(execute, row.id, "approved", "queued", "carol")

    assert "the policy does not approve it: one request may cost ε = 0.5" in work(team)
    assert team.ledger.accounts()[0].spent.epsilon == 0


def test_on_postgres_a_web_that_is_taken_over_cannot_revive_what_was_cancelled(team, web):
    row = ask(web, "a", epsilon="0.6")
    team.grace = 60
    approve_plan(team.service, row.id, row.plan, "carol")
    web.cancel(ALICE, row.id)
    team.wait()

    with (
        pytest.raises(LedgerError, match="no state has a way back"),
        web.store.transaction() as execute,
    ):
        execute("UPDATE service_requests SET state = 'queued' WHERE id = ?", (row.id,))
    assert team.worker().claim() is None
    with pytest.raises(LedgerError, match="must be owner"), web.store.transaction() as execute:
        execute("DROP TRIGGER service_requests_never_go_back ON service_requests", ())


@pytest.mark.parametrize("whose", ["carol", "alice"])
def test_on_postgres_a_web_that_is_taken_over_cannot_undo_that_somebody_was_revoked(
    team, web, whose
):
    row = ask(web, "a", epsilon="0.6")
    approve_plan(team.service, row.id, row.plan, "carol")
    team.wait()  # it has started by the clock, so it is not cancelled with its people
    web.revoke(DAVE, whose)
    with web.store.transaction() as execute:
        execute("UPDATE service_users SET revoked = 0", ())

    assert "nothing was spent" in work(team)
    assert team.ledger.accounts()[0].spent.epsilon == 0
    with pytest.raises(LedgerError, match="'revoke user', and it was undone"):
        verify_service(team.store)


def test_on_postgres_a_web_that_is_taken_over_cannot_open_a_closed_data_set(team, web):
    before = ask(web, "before")
    with web.store.transaction() as execute:
        close_dataset(execute, "clinic", "carol", web.clock())
        execute("UPDATE service_datasets SET closed = 0", ())
    ask(web, "after")
    team.wait()

    with pytest.raises(LedgerError, match="'close', and it was undone"):
        verify_service(team.store)
    assert work(team) == "done"
    with team.store.snapshot() as execute:
        assert find_request(execute, before.id).state == "done"
    team.wait()
    assert "after its data set was closed; nothing was spent" in work(team)


@pytest.mark.usefixtures("web")
def test_on_postgres_the_web_s_role_opens_no_database_of_an_earlier_version(team):
    with team.store.transaction() as execute:
        execute("DROP TRIGGER service_requests_never_go_back ON service_requests", ())
    location = team.location.replace("//ledger@", "//web@")

    refused = pytest.raises(LedgerError, match="open it once on the worker's side")
    with refused, connect(location):
        pass
    with connect(team.location):
        pass
    with connect(location) as store:
        verify_service(store)


def test_on_postgres_approvals_are_written_on_the_worker_s_side(team, web):
    row = ask(web, "a", epsilon="0.6")
    with pytest.raises(Forbidden, match="written on the worker's side"):
        web.approve(CAROL, row.id, row.plan)

    assert approve_plan(team.service, row.id, row.plan, "carol") == "queued"
    assert work(team) == "done"


def test_on_postgres_a_writer_of_either_role_waits_for_the_other(team, web):
    order, inside, go_on = [], threading.Event(), threading.Event()

    def hold():
        with team.store.transaction():
            inside.set()
            go_on.wait(30)
            order.append("worker")

    def follow():
        ask(web, "a")
        order.append("web")

    threads = [threading.Thread(target=hold), threading.Thread(target=follow)]
    threads[0].start()
    assert inside.wait(30)
    threads[1].start()
    threads[1].join(0.3)
    go_on.set()
    for thread in threads:
        thread.join()

    assert order == ["worker", "web"]


def test_on_postgres_only_a_role_that_is_there_is_given_rights(team):
    for name in ("nobody_there", "web; DROP TABLE entries", "Web", ""):
        with pytest.raises(ArgumentError):
            grant_web(team.store, name)


def narrow(house, **changes):
    with house.store.transaction() as execute:
        set_policy(execute, "clinic", Policy(**changes), "carol")


def test_a_policy_that_was_made_narrower_holds_for_what_is_not_charged_yet(small_house):
    small_house.ask(epsilon="0.3")
    narrow(small_house, epsilon_per_request="0.2")

    assert "the policy does not approve it" in work(small_house)
    assert small_house.ledger.accounts()[0].spent.epsilon == 0


def test_what_a_curator_approved_stays_approved_and_two_persons_are_two(small_house):
    row = small_house.ask(epsilon="0.6")
    small_house.service.approve(CAROL, row.id, row.plan)
    narrow(small_house, automatic=False, two_persons=True)
    assert "every request is looked at by a curator" in work(small_house)
    small_house.wait()  # until the first one's slot is over
    second = small_house.ask("second", epsilon="0.1")
    small_house.service.approve(CAROL, second.id, second.plan)
    small_house.service.approve(DAVE, second.id, second.plan)

    with small_house.store.transaction() as execute:  # the first has ended
        execute("UPDATE service_requests SET state = 'refused' WHERE id = ?", (row.id,))
    assert work(small_house) == "done"
