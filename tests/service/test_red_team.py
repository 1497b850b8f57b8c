"""What somebody with bad intentions would try at the service's doors."""

import asyncio
import logging
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip(
    "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
)
from house_people import CAROL
from web_client import Client

from private_ate.errors import ArgumentError
from private_ate.service import settling
from private_ate.service.job import Order
from private_ate.service.limits import Shares
from private_ate.service.processes import hold_worker_name
from private_ate.service.store.catalogue import close_dataset
from private_ate.service.vocabulary import Conflict, TooMany
from private_ate.service.web.app import make_app
from private_ate.service.web.authentication import Buckets, Proxy, WebSettings

ORIGIN = "http://127.0.0.1:8470"
HOME = {"Origin": ORIGIN}
LOOSE = {"users": Buckets(1e9, 1e9), "unauthenticated": Buckets(1e9, 1e9)}


def client_of(house, **settings):
    return Client(make_app(house.service, WebSettings(**{"origin": ORIGIN, **LOOSE, **settings})))


def bearer(house, who):
    return {"Authorization": f"Bearer {house.tokens[who]}"}


def test_entering_ends_the_session_that_the_browser_held(small_house):
    client = client_of(small_house)
    client.post("/login", data={"token": small_house.tokens["alice"]}, headers=HOME)
    planted = dict(client.cookies)
    client.post("/login", data={"token": small_house.tokens["carol"]}, headers=HOME)

    assert client.cookies != planted
    assert "carol, curator" in client.get("/").text
    client.cookies = planted  # what somebody planted or kept is of no use any more
    assert client.get("/").headers["location"] == "/login"


def test_a_session_that_nobody_opened_is_none(small_house):
    client = client_of(small_house)
    client.cookies = {"pate": "chosen-by-somebody-else"}
    entered = client.post("/login", data={"token": small_house.tokens["alice"]}, headers=HOME)

    assert "chosen-by-somebody-else" not in entered.set_cookies[0]


def test_a_body_that_does_not_come_is_given_up(small_house):
    client = client_of(small_house, patience=0.05)

    async def slow():
        sent, first = [], asyncio.Event()

        async def receive():
            if not first.is_set():
                first.set()
                return {"type": "http.request", "body": b'{"da', "more_body": True}
            return await asyncio.Event().wait()

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http", "method": "POST", "path": "/v1/plans", "raw_path": b"/v1/plans",
            "query_string": b"", "headers": [], "client": ("127.0.0.1", 1), "scheme": "http",
            "http_version": "1.1", "server": ("x", 80), "root_path": "",
        }  # fmt: skip
        await client.app(scope, receive, send)
        return sent[0]["status"]

    assert asyncio.run(asyncio.wait_for(slow(), 10)) == 408


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 40_000,
        b'{"dataset": "clinic", "epsilon": ' + b"1" * 5000 + b"}",
        b'{"dataset": "clinic", "epsilon": 1e999}',
        b'{"dataset": "clinic", "epsilon": "0.1", "confidence": NaN}',
        b'{"dataset": "clinic", "epsilon": "0.1", "method": "\\u0000"}',
        b'{"dataset": "clinic", "epsilon": "0.1", "among": "\\ud800"}',
        b'{"dataset": "clinic", "epsilon": "0.1", "by": ["\\ud800", "\\u0000"]}',
        b"\xff\xfe",
    ],
)
def test_odd_bodies_are_told_so(small_house, body):
    headers = {**bearer(small_house, "alice"), "Content-Type": "application/json"}
    answer = client_of(small_house).post("/v1/plans", headers=headers, content=[body])

    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/datasets/clinic'%20OR%20'1'='1",
        "/v1/datasets/..%2f..%2fworker.toml",
        "/v1/datasets/clinic;DROP TABLE entries",
        "/v1/requests/r' OR 1=1 --",
        "/v1/releases/../../worker.key",
        "/v1/tokens/%00",
        "/datasets/clinic/../../worker.key",
        "/requests/%2e%2e",
    ],
)
def test_ids_that_are_none_lead_nowhere(small_house, path):
    client = client_of(small_house)
    client.post("/login", data={"token": small_house.tokens["carol"]}, headers=HOME)
    answer = client.get(path, headers=bearer(small_house, "carol"))

    assert answer.status_code in (404, 405, 422)
    assert small_house.ledger.verify().entries == 1


def test_a_key_cannot_write_a_header(small_house):
    headers = {**bearer(small_house, "alice"), "Idempotency-Key": "k\r\nSet-Cookie: pate=x"}
    body = {"dataset": "clinic", "epsilon": "0.1"}
    answer = client_of(small_house).post("/v1/requests", headers=headers, json=body)

    assert answer.status_code == 400
    assert answer.set_cookies == []


@pytest.fixture
def held_plans(monkeypatch):
    """Plans that take until they are let go; the first value says how many are at work."""
    inside, go_on = threading.Semaphore(0), threading.Event()

    def slow(*_, **__):
        inside.release()
        assert go_on.wait(30)
        msg = "enough"
        raise ArgumentError(msg)

    monkeypatch.setattr(settling, "plan_ate", slow)
    yield inside, go_on
    go_on.set()


def test_one_analyst_s_plans_do_not_keep_others_from_planning(small_house, held_plans):
    inside, go_on = held_plans
    service, found = small_house.service, []
    client = Client(make_app(service, WebSettings(origin=ORIGIN, **LOOSE)))
    body = {"dataset": "clinic", "epsilon": "0.1"}

    def plan(who):
        answer = client.post("/v1/plans", headers=bearer(small_house, who), json=body)
        found.append((who, answer.status_code))

    threads = [threading.Thread(target=plan, args=("alice",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert inside.acquire(timeout=30)  # one of Alice's is at work
    give_up = time.monotonic() + 30
    while len(found) < 6 and time.monotonic() < give_up:
        time.sleep(0.01)
    assert found == [("alice", 429)] * 6  # one more of hers waits
    path = "/v1/datasets/clinic/dummy.csv"
    assert client.get(path, headers=bearer(small_house, "alice")).status_code == 429
    assert client.get(path, headers=bearer(small_house, "bob")).status_code == 200
    threads.append(threading.Thread(target=plan, args=("bob",)))
    threads[-1].start()
    assert inside.acquire(timeout=30)  # Bob's is at work beside hers
    go_on.set()
    for thread in threads:
        thread.join()

    assert sorted(found[6:]) == [("alice", 400), ("alice", 400), ("bob", 400)]
    assert client.get(path, headers=bearer(small_house, "alice")).status_code == 200


def test_users_have_one_place_each_when_half_of_them_are_taken():
    shares = Shares(at_once=9, places=4)
    with shares.turn("a"), shares.turn("b"):
        refused = pytest.raises(TooMany, match="more plans")
        with refused, shares.turn("a"):
            pass
        with shares.turn("c"), shares.turn("d"), pytest.raises(TooMany), shares.turn("e"):
            pass
    with shares.turn("e"):
        pass


def test_what_is_open_to_everybody_is_not_open_without_end(small_house):
    client = client_of(small_house, everybody=Buckets(0.001, 3), health=Buckets(0.001, 4))

    assert [client.get("/v1/heads").status_code for _ in range(5)] == [200] * 3 + [429] * 2
    # Whoever asks for heads too often does not keep others from seeing that the service answers.
    assert [client.get("/v1/healthz").status_code for _ in range(5)] == [200] * 4 + [429]


def test_a_full_memory_of_callers_forgets_the_one_who_was_silent_for_longest(monkeypatch):
    monkeypatch.setattr("private_ate.service.web.authentication._MOST_CALLERS", 3)
    buckets = Buckets(0, 1)
    for name in ("first", "second", "third"):
        buckets.take(name)
    with pytest.raises(TooMany):
        buckets.take("first")  # refused, but not silent
    buckets.take("fourth")

    for known in ("first", "third", "fourth"):
        with pytest.raises(TooMany):
            buckets.take(known)
    buckets.take("second")


@pytest.mark.parametrize("path", ["/v1/datasets/", "/requests/", "/v1/heads/", "//evil.example/.."])
def test_no_redirect_repeats_the_host_of_the_caller(small_house, path):
    headers = {**bearer(small_house, "alice"), "Host": "evil.example"}
    answer = client_of(small_house).get(path, headers=headers)

    assert "evil" not in answer.headers.get("location", "")


PROXIED = {"X-Private-Ate-User": "carol", "X-Private-Ate-Secret": "s3cret"}
HERE = {"Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://evil.example", **HERE}, 403),
        ({"Origin": f"{ORIGIN}.evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        (HOME, 200),
        (HERE, 200),
        ({"Origin": "http://localhost:8470"}, 200),
    ],
)
def test_with_a_proxy_s_name_nothing_is_changed_from_another_site(small_house, said, status):
    client = client_of(small_house, proxy=Proxy(("127.0.0.1",), "s3cret"))
    closed = client.post("/v1/datasets/clinic/close", headers={**PROXIED, **said})

    assert closed.status_code == status
    found = client.get("/v1/datasets/clinic", headers=PROXIED)
    assert (found.status_code, found.json()["closed"]) == (200, status == 200)


def test_where_no_origin_is_set_an_empty_one_is_not_ours(small_house):
    client = client_of(small_house, proxy=Proxy(("127.0.0.1",), "s3cret"), origin="")
    closed = client.post("/v1/datasets/clinic/close", headers={**PROXIED, "Origin": ""})

    assert closed.status_code == 403


def test_with_a_token_no_origin_is_needed(small_house):
    closed = client_of(small_house).post(
        "/v1/datasets/clinic/close", headers=bearer(small_house, "carol")
    )

    assert closed.status_code == 200


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_a_body_is_json_by_its_name(small_house, kind):
    row = small_house.ask(epsilon="0.6")
    client = client_of(small_house, proxy=Proxy(("127.0.0.1",), "s3cret"))
    said = {} if kind is None else {"Content-Type": kind}
    body = [f'{{"plan": "{row.plan}"}}'.encode()]
    path = f"/v1/requests/{row.id}/approve"

    assert client.post(path, headers={**PROXIED, **HERE, **said}, content=body).status_code == 422
    said = {"Content-Type": "application/json"}
    assert client.post(path, headers={**PROXIED, **HERE, **said}, content=body).status_code == 200


def test_nothing_is_approved_for_a_data_set_that_was_closed_since(small_house):
    row = small_house.ask(epsilon="0.6")
    with small_house.store.transaction() as execute:
        close_dataset(execute, "clinic", "carol", small_house.clock())

    with pytest.raises(Conflict, match="is closed"):
        small_house.service.approve(CAROL, row.id, row.plan)


def test_a_second_worker_of_the_same_name_does_not_start(tmp_path):
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "from private_ate.service.processes import hold_worker_name\n"
        f"with hold_worker_name(Path({str(tmp_path)!r}), 'one'):\n"
        "    print('in', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        refused = pytest.raises(ArgumentError, match="runs here already")
        with refused, hold_worker_name(tmp_path, "one"):
            pass
        with hold_worker_name(tmp_path, "two"):
            pass
        other.kill()  # without a word: the name is free at once
        other.wait()
    with hold_worker_name(tmp_path, "one"):
        pass


def test_an_order_shows_neither_key_nor_file():
    text = repr(Order("store", "r", "claim-secret", "one", 1.0, "/data/x.csv", "key-secret"))

    assert not any(word in text for word in ("claim-secret", "x.csv", "key-secret"))


def test_logs_hold_no_token_body_or_record(small_house, caplog):
    caplog.set_level(logging.DEBUG)
    client, token = client_of(small_house), small_house.tokens["alice"]
    body = {"dataset": "clinic", "epsilon": "0.1", "method": "canary-in-a-body"}
    client.post("/v1/plans", headers=bearer(small_house, "alice"), json=body)
    client.post("/login", data={"token": token[:-1] + "x"}, headers=HOME)
    client.get("/v1/datasets", headers={"Authorization": "Bearer canary-token"})
    told = "\n".join(record.getMessage() for record in caplog.records)

    assert "canary" not in told
    assert token[-20:] not in told
