"""Cases made from the OpenAPI description: no 5xx, no answer that is not described, no canary."""

import os
from collections import Counter
from dataclasses import replace

import pytest

pytest.importorskip(
    "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
)
pytest.importorskip("schemathesis", reason="schemathesis is not installed")
import schemathesis
from house_people import CLINIC, DOMAIN, furnish
from hypothesis import HealthCheck, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from private_ate.service.web.app import make_app
from private_ate.service.web.authentication import Buckets, WebSettings

pytestmark = pytest.mark.service

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance,
    response_schema_conformance,
]  # fmt: skip
CANARY = "93.7512345"  # an outcome of the data set's first record


def known_names(case, row, turn):
    """Turn every second case towards things that are there, so that it gets past the door."""
    if turn % 2:
        return
    if case.path_parameters and "name" in case.path_parameters:
        known = "spare" if case.path.endswith("close") else "clinic"
        case.path_parameters["name"] = known if "datasets" in case.path else row.id
    if isinstance(case.body, dict):
        case.body.update({"dataset": "clinic"} if "dataset" in case.body else {})
        case.body.update({"domain": DOMAIN.to_toml()} if "domain" in case.body else {})
        if turn % 4 == 0 and "epsilon" in case.body:
            plain = {"epsilon": "0.01", "method": "auto", "options": {}, "covariates": None}
            case.body.update({name: plain[name] for name in plain if name in case.body})


def attack(house, examples, capsys):
    """Call every operation with made-up cases of both roles that may change things."""
    loose = Buckets(1e9, 1e9)
    app = make_app(house.service, WebSettings(users=loose, unauthenticated=loose))
    described = schemathesis.openapi.from_asgi("/openapi.json", app)
    house.add(replace(CLINIC, name="spare", source="spare.csv"))
    row, seen = house.ask("known", epsilon="0.6"), Counter()

    for found in described.get_all_operations():
        operation = found.ok()

        @seed(1)
        @settings(
            max_examples=examples, deadline=None, database=None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @schemathesis_given(operation)
        def run(case):
            turn = sum(seen.values())
            known_names(case, row, turn // 2)
            who = ("alice", "carol")[turn % 2]
            headers = {"Authorization": f"Bearer {house.tokens[who]}"}
            answer = case.call_and_validate(checks=CHECKS, headers=headers, timeout=120)
            seen[answer.status_code] += 1
            assert CANARY not in answer.text

        run()
    with capsys.disabled():
        print(f"\n{sum(seen.values())} cases: {dict(sorted(seen.items()))}")  # noqa: T201
    return seen


def schemathesis_given(operation):
    from hypothesis import given

    return given(case=operation.as_strategy())


def with_canary(house):
    path = house.folder / "data" / "clinic.csv"
    lines = path.read_text().splitlines()
    lines[1] = lines[1].rpartition(",")[0] + f",{CANARY}"
    path.write_text("\n".join(lines))


def test_made_up_cases_find_no_answer_that_is_not_described(tmp_path, capsys):
    house = furnish(tmp_path / "service.db", tmp_path, epsilon="100")
    with_canary(house)
    seen = attack(house, int(os.environ.get("PRIVATE_ATE_CASES", "16")), capsys)

    assert {200, 202, 400, 403, 404, 422} <= set(seen)
    assert house.ledger.verify().entries
    house.store.close()


@pytest.mark.audit
def test_ten_thousand_made_up_cases(tmp_path, capsys):
    house = furnish(tmp_path / "service.db", tmp_path, epsilon="100")
    with_canary(house)

    assert sum(attack(house, 460, capsys).values()) >= 10_000
    house.store.close()
