"""The interface for programs: who may do what, one answer per key, errors without a value."""

import json
import logging
import re

import pytest

pytest.importorskip(
    "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
)
from house_people import CLINIC, DOMAIN
from web_client import Client

from private_ate import Release
from private_ate.service.histories import RecentCheck
from private_ate.service.store.users import issue_token
from private_ate.service.web.app import make_app
from private_ate.service.web.authentication import Buckets, Proxy, WebSettings

ROLES = ("stranger", "alice", "reader", "carol", "olga")
PLAIN = {"dataset": "clinic", "epsilon": "0.1"}
NEW = {
    "name": "second", "population": "others", "level": "label", "epsilon": "2",
    "domain": DOMAIN.to_toml(), "columns": list(CLINIC.columns), "rows": 100,
    "source": "second.csv",
}  # fmt: skip
# Who may, for each operation: what the other roles get is 403, a stranger 401.
MAY = {
    "GET /v1/datasets": {"alice", "reader", "carol", "olga"},
    "GET /v1/datasets/{name}": {"alice", "reader", "carol", "olga"},
    "GET /v1/datasets/{name}/dummy.csv": {"alice", "reader", "carol", "olga"},
    "POST /v1/datasets": {"carol"},
    "POST /v1/datasets/{name}/close": {"carol"},
    "PUT /v1/datasets/{name}/policy": {"carol"},
    "DELETE /v1/users/{name}": {"carol"},
    "POST /v1/plans": {"alice", "reader", "carol"},
    "GET /v1/requests": {"alice", "reader", "carol", "olga"},
    "POST /v1/requests": {"alice"},
    "GET /v1/requests/{name}": {"alice", "reader", "carol", "olga"},
    "DELETE /v1/requests/{name}": {"alice", "carol"},
    "POST /v1/requests/{name}/approve": {"carol"},
    "POST /v1/requests/{name}/refuse": {"carol"},
    "GET /v1/releases/{name}": {"alice", "reader", "carol", "olga"},
    "GET /v1/releases/{name}.json": {"alice", "reader", "carol", "olga"},
    "GET /v1/releases/{name}.html": {"alice", "reader", "carol", "olga"},
    "GET /v1/users": {"carol"},
    "POST /v1/tokens": {"carol"},
    "GET /v1/tokens": {"carol"},
    "DELETE /v1/tokens/{name}": {"carol"},
    "GET /v1/ledger/verify": {"alice", "reader", "carol", "olga"},
    "GET /v1/audit.ndjson": {"carol", "olga"},
    "GET /v1/heads": set(ROLES),
    "GET /v1/healthz": set(ROLES),
}
BODIES = {
    "PUT /v1/datasets/{name}/policy": {"automatic": False},
    "POST /v1/datasets": NEW, "POST /v1/plans": PLAIN, "POST /v1/requests": PLAIN,
    "POST /v1/requests/{name}/refuse": {"reason": "cost"},
    "POST /v1/tokens": {"owner": "new", "role": "analyst"},
}  # fmt: skip


class Web:
    """An application, its client, and headers for each person."""

    def __init__(self, house, **settings):
        self.house = house
        loose = {"users": Buckets(1e9, 1e9), "unauthenticated": Buckets(1e9, 1e9)}
        self.app = make_app(house.service, WebSettings(**{**loose, **settings}))
        self.client = Client(self.app, client=("127.0.0.1", 5000))
        with house.store.transaction() as execute:
            house.tokens["reader"] = issue_token(
                execute, "alice", "test", house.clock(), scope="read"
            )

    def call(self, method, path, who="alice", **more):
        headers = more.pop("headers", {})
        if who != "stranger":
            headers = {"Authorization": f"Bearer {self.house.tokens[who]}", **headers}
        return self.client.request(method, path, headers=headers, **more)

    def ask(self, key="k", who="alice", **changes):
        return self.call(
            "POST", "/v1/requests", who, json={**PLAIN, **changes}, headers={"Idempotency-Key": key}
        )


@pytest.fixture
def web(small_house):
    return Web(small_house)


def operations(web):
    described = web.client.get("/openapi.json").json()
    return {
        f"{method.upper()} {path}" for path, found in described["paths"].items() for method in found
    }


def test_the_matrix_names_every_operation(web):
    assert operations(web) == set(MAY)


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize("operation", MAY)
def test_each_role_may_do_what_the_matrix_says(web, operation, who):
    method, _, path = operation.partition(" ")
    row = web.house.ask("mine", epsilon="0.6")
    names = {
        "tokens": web.house.tokens["reader"].split("_")[1],
        "datasets": "clinic",
        "users": "bob",
    }
    name = names.get(path.split("/")[2], row.id)
    body = BODIES.get(operation, {"plan": row.plan} if "approve" in path else None)
    headers = {"Idempotency-Key": "new"} if operation == "POST /v1/requests" else {}

    found = web.call(method, path.replace("{name}", name), who, json=body, headers=headers)

    if who in MAY[operation]:
        # The release is not there yet; that is no matter of roles.
        assert found.status_code in ({409} if "releases" in path else {200, 201, 202, 204})
    else:
        assert found.status_code == (401 if who == "stranger" else 403)
        assert found.json()["code"] in ("unauthorized", "forbidden")
        assert found.headers["content-type"] == "application/problem+json"


def test_what_belongs_to_another_analyst_is_not_there(web):
    row = web.house.ask("mine")

    for method, path in (
        ("GET", f"/v1/requests/{row.id}"), ("DELETE", f"/v1/requests/{row.id}"),
        ("GET", f"/v1/releases/{row.id}"), ("GET", f"/v1/releases/{row.id}.html"),
    ):  # fmt: skip
        assert web.call(method, path, "bob").status_code == 404
    assert web.call("GET", "/v1/requests", "bob").json() == []


def test_from_a_plan_to_a_release_over_http(web):
    plan = web.call("POST", "/v1/plans", json={**PLAIN, "half_width": 9}).json()
    asked = web.ask()
    assert asked.status_code == 202
    assert asked.json()["plan"] == plan["plan"]
    assert plan["expected"]["half_width"] > plan["expected"]["noise_error"] > 0
    assert plan["automatic"]
    assert int(asked.headers["retry-after"]) >= 1
    name = asked.json()["id"]
    assert web.call("GET", f"/v1/releases/{name}").status_code == 409
    web.house.worker().step()
    assert web.call("GET", f"/v1/requests/{name}").json()["state"] == "queued"
    web.house.wait()

    assert web.call("GET", f"/v1/requests/{name}").json()["state"] == "done"
    release = web.call("GET", f"/v1/releases/{name}.json").text
    assert release == web.call("GET", f"/v1/releases/{name}").text
    head = Release.from_json(release).settings["ledger"]["head"]
    found = web.call("GET", "/v1/ledger/verify", params={"head": head}).json()
    assert found["verified"]
    assert not web.call("GET", "/v1/ledger/verify", params={"head": "f" * 64}).json()["verified"]
    assert found["head"] == web.client.get("/v1/heads").json()[0]["hash"]
    page = web.call("GET", f"/v1/releases/{name}.html")
    assert "sandbox" in page.headers["content-security-policy"]
    lines = [json.loads(line) for line in web.call("GET", "/v1/audit.ndjson", "olga").iter_lines()]
    assert {line["chain"] for line in lines} == {"ledger", "event"}
    assert not any(token.split("_", 2)[2] in str(lines) for token in web.house.tokens.values())


def test_duplicate_posts_are_one_charge(web):
    answers = {json.dumps(web.ask("same").json()) for _ in range(100)}
    web.house.worker().step()
    assert not web.house.worker().step()
    web.ask("same")

    assert len(answers) == 1
    assert web.ask("same", epsilon="0.2").status_code == 409
    kinds = [entry.kind for entry in web.house.ledger.history()]
    assert kinds == ["create", "charge", "release"]


def test_what_waits_is_approved_by_its_hash(web):
    row = web.ask("big", epsilon="0.6").json()
    assert (row["state"], row["reason"]) == ("waiting", "one request may cost ε = 0.5 at most")
    wrong = web.call("POST", f"/v1/requests/{row['id']}/approve", "carol", json={"plan": "0" * 64})
    assert wrong.status_code == 409
    right = web.call(
        "POST", f"/v1/requests/{row['id']}/approve", "carol", json={"plan": row["plan"]}
    )
    assert right.json()["approved_by"] == ["carol"]
    assert right.json()["state"] == "queued"


def test_a_budget_that_is_gone_is_a_conflict_with_its_code(web):
    assert web.ask("a", epsilon="0.5").status_code == 202
    assert web.ask("b", epsilon="0.5").status_code == 202
    found = web.ask("c", epsilon="0.1")

    assert (found.status_code, found.json()["code"]) == (409, "budget")


def test_a_new_data_set_is_bound_and_its_domain_comes_back(web):
    made = web.call("POST", "/v1/datasets", "carol", json=NEW)

    assert made.status_code == 201
    assert made.json()["domain"] == NEW["domain"]
    assert made.json()["budget"]["left"] == "2"
    again = web.call("POST", "/v1/datasets", "carol", json={**NEW, "name": "third"})
    assert again.status_code == 409  # the population is there; budgets are never raised
    odd = web.call(
        "POST",
        "/v1/datasets",
        "carol",
        json={**NEW, "name": "x", "epsilon": None, "source": "../x.csv"},
    )
    assert odd.status_code == 400
    missing = {**NEW, "name": "x", "epsilon": None, "columns": ["drug"], "source": "x.csv"}
    assert web.call("POST", "/v1/datasets", "carol", json=missing).status_code == 400


def test_a_policy_is_replaced_and_a_user_is_revoked(web):
    strict = {"automatic": False, "methods": ["calibrated"]}
    told = web.call("PUT", "/v1/datasets/clinic/policy", "carol", json=strict).json()["policy"]
    assert (told["automatic"], told["methods"]) == (False, ["calibrated"])
    assert web.ask().json()["state"] == "waiting"
    odd = {"methods": ["magic"]}
    assert web.call("PUT", "/v1/datasets/clinic/policy", "carol", json=odd).status_code == 400
    assert web.call("DELETE", "/v1/users/alice", "carol").status_code == 204
    assert web.call("GET", "/v1/datasets").status_code == 401
    assert web.call("DELETE", "/v1/users/alice", "carol").status_code == 404
    assert web.call("DELETE", "/v1/users/carol", "carol").status_code == 409


def test_dummy_people_come_with_their_effect(web):
    found = web.call("GET", "/v1/datasets/clinic/dummy.csv", params={"rows": 50})

    assert found.headers["x-known-effect"] == "10"
    assert len(found.text.splitlines()) == 51
    assert set(found.text.splitlines()[0].split(",")) == set(CLINIC.columns)


def test_an_error_never_quotes_what_was_sent(web):
    canary = "canary-7f3a"
    bodies = [
        {**PLAIN, "epsilon": [canary]}, {**PLAIN, "options": {canary: {canary: 1}}},
        {**PLAIN, "confidence": canary}, {**PLAIN, "extra": canary}, [canary], canary,
    ]  # fmt: skip
    for body in bodies:
        found = web.call("POST", "/v1/plans", json=body)
        assert found.status_code == 422
        assert found.json()["detail"].count(canary) <= body_fields(body, canary)


def body_fields(body, canary):
    """Names of fields are told, as OpenAPI does; here one body uses the canary as a name."""
    return 1 if isinstance(body, dict) and canary in body.get("options", {}) else 0


def test_the_unforeseen_is_a_constant_and_an_id(web, monkeypatch, caplog):
    def fail(*_):
        msg = "value 93.75 of record 17"
        raise RuntimeError(msg)

    monkeypatch.setattr("private_ate.service.web.api.visible_heads", fail)
    with caplog.at_level(logging.DEBUG):
        found = web.client.get("/v1/heads")

    assert found.status_code == 500
    assert "93.75" not in found.text + caplog.text
    assert len(found.json()["instance"]) == 16
    assert found.json()["instance"] in caplog.text


def test_a_store_that_is_gone_is_told_without_its_path(small_house, monkeypatch):
    web = Web(small_house)
    monkeypatch.setattr(
        "private_ate.service.web.authentication.read_token",
        lambda *_: small_house.store._connection.execute("SELECT * FROM nowhere"),
    )
    found = web.call("GET", "/v1/datasets")

    assert (found.status_code, found.json()["code"]) == (503, "unavailable")
    assert str(small_house.folder) not in found.text


def test_bodies_are_limited_and_callers_too(small_house):
    web = Web(small_house, most_bytes=2000, users=Buckets(0, 5), unauthenticated=Buckets(0, 3))

    assert web.ask(method="x" * 3000).status_code == 413
    chunks = (b"x" * 1000 for _ in range(3))
    assert web.call("POST", "/v1/plans", content=chunks).status_code == 413
    assert [web.call("GET", "/v1/datasets").status_code for _ in range(6)] == [200] * 5 + [429]
    strangers = [web.call("GET", "/v1/datasets", "stranger").status_code for _ in range(4)]
    assert strangers == [401] * 3 + [429]


def test_a_proxy_is_believed_by_address_and_secret_only(small_house, caplog):
    header = {"X-Private-Ate-User": "carol", "X-Private-Ate-Secret": "s3cret"}

    def status(proxy, headers, address="127.0.0.1"):
        web = Web(small_house, proxy=proxy)
        web.client = Client(web.app, client=(address, 5000))
        return web.call("GET", "/v1/tokens", "stranger", headers=headers).status_code

    good = Proxy(("127.0.0.1",), "s3cret")
    assert status(good, header) == 200
    assert "dropped" not in caplog.text
    assert status(good, header, "10.0.0.9") == 401
    assert status(good, {**header, "X-Private-Ate-Secret": "guess"}) == 401
    assert status(good, {"X-Private-Ate-User": "carol"}) == 401
    assert status(Proxy(), {"X-Private-Ate-User": "carol", "X-Private-Ate-Secret": ""}) == 401
    assert status(good, {**header, "X-Private-Ate-User": "mallory"}) == 401
    assert caplog.text.count("a proxy's header was dropped") == 4


def test_every_answer_carries_the_headers_of_safety(web):
    for path in ("/v1/healthz", "/login", "/nothing", "/v1/datasets"):
        headers = web.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"


def test_a_path_names_all_its_methods(web):
    found = web.client.put("/v1/datasets")

    assert found.status_code == 405
    assert found.headers["allow"] == "GET, POST"


def test_a_list_of_requests_names_the_next_ones(web):
    for number in range(3):
        web.ask(str(number))
    first = web.call("GET", "/v1/requests?limit=2")
    following = re.fullmatch(r'<(.+)>; rel="next"', first.headers["link"])[1]
    second = web.call("GET", following)

    assert [len(first.json()), len(second.json())] == [2, 1]
    assert "link" not in second.headers
    assert len({row["id"] for row in first.json() + second.json()}) == 3
    assert web.call("GET", "/v1/requests?limit=0").status_code == 422


def test_a_check_is_made_by_the_clock_and_never_because_work_went_on(web, monkeypatch):
    made = []
    check = RecentCheck._check
    monkeypatch.setattr(RecentCheck, "_check", lambda self, at: made.append(at) or check(self, at))
    first = web.call("GET", "/v1/ledger/verify").json()
    web.ask()
    second = web.call("GET", "/v1/ledger/verify").json()
    assert (first["verified"], second["checked"], len(made)) == (True, first["checked"], 1)
    with web.house.store.transaction() as execute:  # an entry is altered in place
        execute("DROP TRIGGER entries_never_change", ())
        execute("UPDATE entries SET at = 'x'", ())
    web.house.wait(61)
    third = web.call("GET", "/v1/ledger/verify").json()
    assert (third["verified"], len(made)) == (False, 2)
    assert "does not verify at entry 1" in third["reason"]


def test_a_hash_that_the_ledger_does_not_hold_is_told(web):
    head = web.call("GET", "/v1/heads").json()[0]["hash"]

    assert web.call("GET", f"/v1/ledger/verify?head={head}").json()["verified"]
    lacking = web.call("GET", f"/v1/ledger/verify?head={'f' * 64}").json()
    assert not lacking["verified"]
    assert "the end of the history is missing" in lacking["reason"]
