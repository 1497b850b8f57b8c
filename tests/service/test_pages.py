"""The pages without a browser: the whole way of a request, sessions, forged forms, escaping."""

import html
import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest

pytest.importorskip(
    "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
)
from house_people import ALICE, CAROL, CLINIC, DOMAIN
from web_client import Client

from private_ate import Categories, Domain, Interval
from private_ate.service.web.app import make_app
from private_ate.service.web.authentication import Proxy, WebSettings

ORIGIN = "http://127.0.0.1:8470"
HOME = {"Origin": ORIGIN}
POLICY = "/datasets/clinic/policy"


class Reader:
    """A person before a page: follows forms as they are written."""

    def __init__(self, house, who, **settings):
        self.client = Client(make_app(house.service, WebSettings(origin=ORIGIN, **settings)))
        self.page = None
        if who:
            entered = self.client.post("/login", data={"token": house.tokens[who]}, headers=HOME)
            assert (entered.status_code, entered.headers["location"]) == (303, "/")
            self.cookie = entered.set_cookies[0]
            self.open("/")

    def open(self, path):
        self.page = self.client.get(path)
        return self.page

    def forms(self):
        """Return the action and hidden fields of each form on the page."""
        found = []
        pattern = r'<form method="post" action="([^"]+)">(.*?)</form>'
        for action, body in re.findall(pattern, self.page.text, re.DOTALL):
            hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', body)
            found.append((action, {name: html.unescape(value) for name, value in hidden}))
        return found

    def forms_of(self, path):
        self.open(path)
        return self.forms()

    def plan(self, **fields):
        """Fill the form of a question, which leads to the address of its plan."""
        action = re.search(r'<form method="get" action="([^"]+)">', self.page.text)[1]
        return self.open(f"{action}?{urlencode(fields)}")

    def send(self, ending, headers=HOME, **fields):
        action, hidden = next(item for item in self.forms() if item[0].endswith(ending))
        self.page = self.client.post(action, data={**hidden, **fields}, headers=headers)
        if self.page.status_code == 303:
            self.open(self.page.headers["location"])
        return self.page


def test_a_newcomer_gets_from_the_door_to_a_release_by_the_pages_alone(small_house):
    reader = Reader(small_house, "alice")
    assert "clinic" in reader.page.text
    reader.open("/datasets/clinic")
    reader.plan(epsilon="0.3", half_width="9", estimand="ate", design="unknown")
    assert "such answers" in reader.page.text
    reader.send("/requests")
    assert "under way" in reader.page.text
    assert int(reader.page.headers["refresh"]) >= 1
    small_house.worker().step()
    small_house.wait()
    path = re.search(r'href="(/requests/r\w+)"', reader.open("/requests").text)[1]
    link = re.search(r'href="(/releases/r\w+)"', reader.open(path).text)[1]
    assert "Effect of drug on pressure_drop" in reader.open(link).text
    assert reader.open(f"{link}.json").json()["epsilon"] == 0.3


def test_a_form_that_is_sent_twice_is_one_request(small_house):
    reader = Reader(small_house, "alice")
    reader.open("/datasets/clinic")
    reader.plan(epsilon="0.3")
    plan = reader.page
    reader.send("/requests")
    reader.page = plan
    reader.send("/requests")

    assert len(small_house.service.requests(ALICE)) == 1


def test_a_curator_decides_by_the_plan_and_closes_a_data_set(small_house):
    row = small_house.ask(epsilon="0.6")
    other = small_house.ask("other", epsilon="0.7")
    reader = Reader(small_house, "carol")
    reader.open("/queue")
    assert row.plan in reader.page.text
    reader.send(f"{row.id}/approve")
    reader.send(f"{other.id}/refuse", reason="cost")
    assert "Nothing waits" in reader.page.text
    reader.open("/manage")
    reader.send("/manage", name="second", population="patients", level="label", rows="50",
                source="second.csv", columns=", ".join(CLINIC.columns), domain=DOMAIN.to_toml(),
                epsilon="")  # fmt: skip
    assert "second" in reader.page.text
    reader.send("second/close")
    assert reader.page.text.count("closed") == 1
    reader.open("/tokens")
    reader.send("/tokens", owner="erin", role="analyst", scope="full", days="30")
    token = re.search(r"pate_\w{12}_[\w-]{43}", reader.page.text)[0]
    assert token not in reader.open("/tokens").text
    reader.send(f"{token.split('_')[1]}/revoke")
    assert "Both histories verify" in reader.open("/history").text
    assert reader.open("/audit.ndjson").status_code == 200
    states = {item.id: item.state for item in small_house.service.requests(CAROL)}
    assert (states[row.id], states[other.id]) == ("queued", "refused")


def test_a_curator_replaces_a_policy_and_revokes_somebody_by_pages(small_house):
    reader = Reader(small_house, "carol")
    reader.open("/datasets/clinic/policy")
    reader.send(
        "/policy", epsilon_per_request="0.2", epsilon_per_month="1", methods="calibrated",
        estimands="ate, att", outcomes="all", subgroups="smoker", two_persons="yes",
        epsilon_at_least="0.05", requests_per_day="7", confidence_at_least="0.8",
    )  # fmt: skip
    found, _ = small_house.service.dataset("clinic")
    assert found.policy.plain == {
        "automatic": False, "methods": ["calibrated"], "estimands": ["ate", "att"],
        "outcomes": None, "subgroups": ["smoker"], "epsilon_per_request": "0.2",
        "epsilon_per_month": "1", "epsilon_at_least": "0.05", "requests_per_day": 7,
        "needs_interval": False, "confidence_at_least": 0.8, "two_persons": True,
    }  # fmt: skip
    reader.open("/datasets/clinic/policy")
    wrong = reader.send("/policy", methods="magic", epsilon_per_request="1", epsilon_per_month="1")
    assert wrong.status_code == 400
    reader.open("/tokens")
    bob = next(item for item in reader.forms() if item[1].get("name") == "bob")
    assert reader.client.post(bob[0], data=bob[1], headers=HOME).status_code == 303
    assert not any(item[1].get("name") in ("bob", "carol") for item in reader.forms_of("/tokens"))
    outside = reader.client.get("/v1/datasets", headers=bearer(small_house.tokens["bob"]))
    assert outside.status_code == 401
    shown = Reader(small_house, "olga").open("/datasets/clinic/policy")
    assert "smoker" in shown.text
    assert "<textarea" not in shown.text
    assert "Replace the policy" not in shown.text


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_subgroups_and_a_trial_can_be_asked_for_by_pages(small_house):
    reader = Reader(small_house, "alice")
    reader.open("/datasets/clinic")
    reader.plan(epsilon="0.3", by="smoker, age<60", overall="yes", estimand="ate")
    assert "one of 8 subgroups" in reader.page.text
    reader.send("/requests")
    reader.open("/datasets/clinic")
    reader.plan(epsilon="0.1", design="randomized", probability="0,5", confidence="none",
                covariates="age")  # fmt: skip
    reader.send("/requests")

    assert "no interval" in reader.page.text
    second, first = (row.asked for row in small_house.service.requests(ALICE))
    assert (first.by, first.overall, first.probability) == (("smoker", "age<60"), True, None)
    assert (second.probability, second.confidence, second.covariates) == (0.5, None, ("age",))


def test_a_plan_has_an_address_and_asking_made_up_people_leads_to_the_real_ones(small_house):
    reader = Reader(small_house, "alice")
    reader.open("/datasets/clinic")
    reader.plan(epsilon="0.3", estimand="att", by="smoker", purpose="annual report", outcome_sd="9")
    reader.send("/requests", dummy="yes")
    small_house.worker().step(dummy=True)
    small_house.wait()
    path = re.search(r'href="(/requests/r\w+)"', reader.open("/requests").text)[1]
    address = html.unescape(re.search(r'href="([^"]+)">What to expect', reader.open(path).text)[1])
    reader.send("/real")
    real, made_up = small_house.service.requests(ALICE)

    assert "annual report" in reader.page.text
    assert (real.dummy, made_up.dummy) == (0, 1)
    assert real.asked == replace(made_up.asked, dummy=False)
    assert real.asked.outcome_sd == 9
    page = reader.open(address)
    assert (page.status_code, "Your plan" in page.text) == (200, True)
    assert path in reader.open("/datasets/clinic").text
    reader.open(path)
    reader.send("/real")
    assert len(small_house.service.requests(ALICE)) == 3


def test_a_plan_over_the_budget_says_so_and_offers_made_up_people_alone(small_house):
    reader = Reader(small_house, "alice")
    reader.open("/datasets/clinic")
    reader.plan(epsilon="1.5")

    assert "Effect of drug, yes against no, on pressure_drop: ATE." in reader.page.text
    assert "more than is left of the budget" in reader.page.text
    assert [hidden.get("dummy") for path, hidden in reader.forms() if path == "/requests"] == [
        "yes"
    ]


@pytest.mark.parametrize(
    ("field", "text"),
    [("epsilon", "much"), ("confidence", "high"), ("by", "age<"), ("half_width", "wide"),
     ("covariates", "height"), ("probability", "0.5"), ("outcome_sd", "-1"),
     ("purpose", "\u202ereversed"), ("method", "magic")],
)  # fmt: skip
def test_an_error_stands_beside_its_field_and_nothing_that_was_written_is_lost(
    small_house, field, text
):
    reader = Reader(small_house, "alice")
    reader.open("/datasets/clinic")
    page = reader.plan(**{"epsilon": "0.3", "half_width": "7.5", field: text})

    assert page.status_code == 400
    assert 'role="alert"' in page.text
    if field not in ("probability", "method"):  # errors about the design, and about a choice
        assert f'id="{field}-error"' in page.text
    assert field == "half_width" or 'value="7.5"' in page.text


@pytest.mark.parametrize(
    ("field", "text", "status"),
    [
        ("rows", "many", 400), ("name", "a b", 400), ("epsilon", "much", 400),
        ("domain", "[treatment]\ncolumn = ???", 400), ("name", "clinic", 409),
        ("source", "../records.csv", 400),
    ],
)  # fmt: skip
def test_a_data_set_that_cannot_be_added_leaves_its_form_filled_in_with_the_reason(
    small_house, field, text, status
):
    reader = Reader(small_house, "carol")
    reader.open("/manage")
    written = {
        "name": "second", "population": "patients", "level": "label", "rows": "50",
        "source": "second.csv", "sep": ";", "columns": ", ".join(CLINIC.columns),
        "domain": DOMAIN.to_toml(), "epsilon": "",
    }  # fmt: skip
    page = reader.send("/manage", **{**written, field: text})

    assert page.status_code == status
    assert 'role="alert"' in page.text
    assert status != 400 or f'id="{field}-error"' in page.text
    assert 'value=";" selected="selected"' in page.text
    assert ", ".join(CLINIC.columns) in page.text
    assert len(small_house.service.datasets()) == 1


def test_columns_with_spaces_are_asked_for_by_pages(small_house):
    spaced = {"age group": Categories("old", "young"), "body weight": Interval(30, 200)}
    domain = replace(DOMAIN, covariates=spaced)
    columns = (*spaced, "drug", "pressure_drop")
    small_house.add(replace(CLINIC, name="spaced", source="my clinic.csv", domain=domain,
                            columns=columns))  # fmt: skip
    reader = Reader(small_house, "alice")
    reader.open("/datasets/spaced")
    reader.plan(epsilon="0.3", by="age group, body weight<70", covariates="age group, body weight")
    reader.send("/requests")

    asked = small_house.service.requests(ALICE)[0].asked
    assert asked.by == ("age group", "body weight<70")
    assert asked.covariates == ("age group", "body weight")


def test_a_question_that_is_changed_is_filled_in_as_it_was(small_house):
    reader = Reader(small_house, "alice")
    reader.open("/datasets/clinic")
    reader.plan(epsilon="0.123", estimand="att", by="smoker")
    path = html.unescape(re.search(r'href="([^"]+)">Change the question', reader.page.text)[1])
    page = reader.open(path).text

    for text in ('value="0.123"', 'value="smoker"', 'value="att" selected', "<details open"):
        assert text in page
    odd = reader.open('/datasets/clinic?by="><b>&form=stolen&key=k').text
    assert "<b>" not in odd
    assert "stolen" not in odd


def test_long_lists_have_pages(small_house, monkeypatch):
    monkeypatch.setattr("private_ate.service.web.analyst._ROWS", 2)
    monkeypatch.setattr("private_ate.service.web.curator._EVENTS", 3)
    rows = [small_house.ask(str(number)).id for number in range(5)]
    reader = Reader(small_house, "carol")
    seen, path = [], "/requests"
    while path:
        page = reader.open(path).text
        seen += re.findall(r'href="/requests/(r\w+)"', page)
        older = re.search(r'href="([^"]+)">Older', page)
        path = html.unescape(older[1]) if older else ""
    assert sorted(seen) == sorted(rows)
    assert "Newer" in page
    assert "Older" in reader.open("/history").text
    assert "Older" not in reader.open("/history?skip=100").text
    assert reader.open("/history?skip=-1").status_code == 422


@pytest.mark.parametrize(
    ("who", "paths"),
    [
        (
            "alice",
            [
                "/queue",
                "/manage",
                "/tokens",
                "/history",
                "/audit.ndjson",
                "/datasets/clinic/policy",
            ],
        ),
        ("olga", ["/queue", "/manage", "/tokens"]),
    ],
)
def test_pages_of_other_roles_are_closed(small_house, who, paths):
    reader = Reader(small_house, who)

    assert [reader.open(path).status_code for path in paths] == [403] * len(paths)


def test_a_stranger_is_led_to_the_door_and_a_bad_token_stays_outside(small_house):
    reader = Reader(small_house, None)

    assert reader.open("/").headers["location"] == "/login"
    bad = reader.client.post("/login", data={"token": "pate_0_0"}, headers=HOME)
    assert bad.status_code == 401
    assert bad.set_cookies == []
    assert reader.client.post("/requests", data={}, headers=HOME).status_code == 401


def test_the_cookie_is_out_of_reach_and_ends_when_one_leaves(small_house):
    reader = Reader(small_house, "alice")
    cookie = reader.cookie.lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    kept = dict(reader.client.cookies)
    assert next(iter(kept.values())) not in str(dump(small_house))
    reader.send("/logout")
    reader.client.cookies = kept
    assert reader.open("/").headers["location"] == "/login"


def test_over_tls_the_cookie_is_secure_and_bound_to_the_host(small_house):
    client = Client(make_app(small_house.service, WebSettings(origin="https://ate.example.org")))
    entered = client.post(
        "/login", data={"token": small_house.tokens["alice"]},
        headers={"Origin": "https://ate.example.org"},
    )  # fmt: skip

    assert entered.set_cookies[0].startswith("__Host-pate=")
    assert "secure" in entered.set_cookies[0].lower()


def dump(house):
    with house.store.snapshot() as execute:
        return execute("SELECT * FROM service_sessions", ()).rows


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": ORIGIN + ".evil.example"},
    ],
)
def test_a_form_of_another_site_is_refused(small_house, headers):
    row = small_house.ask(epsilon="0.6")
    reader = Reader(small_house, "carol")
    reader.open("/queue")

    assert reader.send(f"{row.id}/approve", headers=headers).status_code == 403
    token = {"token": small_house.tokens["alice"]}
    assert reader.client.post("/login", data=token, headers=headers).status_code == 403


def test_a_form_without_its_session_s_text_is_refused(small_house):
    row = small_house.ask(epsilon="0.6")
    reader = Reader(small_house, "carol")
    reader.open("/queue")

    for text in ("", "x", Reader(small_house, "dave").forms()[0][1]["form"]):
        reader.open("/queue")
        assert reader.send(f"{row.id}/approve", form=text).status_code == 403
    found = reader.client.post(f"/requests/{row.id}/approve", json={}, headers=HOME)
    assert found.status_code == 403


def test_labels_and_names_are_escaped(small_house):
    odd = '<script>alert("x")</script>'
    domain = Domain(odd, ("y&<b>", Interval(0, 1, missing=0)), {"a'\"><i>": Categories("<u>", "b")})
    columns = (odd, "y&<b>", "a'\"><i>")
    small_house.add(replace(CLINIC, name="odd", source="odd.csv", domain=domain, columns=columns))
    page = Reader(small_house, "alice").open("/datasets/odd").text

    assert "<script" not in page
    assert "<i>" not in page
    assert html.escape(odd) in page


def test_a_proxy_s_user_needs_no_session_but_its_own_form_text(small_house):
    row = small_house.ask(epsilon="0.6")
    client = Client(make_app(
        small_house.service, WebSettings(origin=ORIGIN, proxy=Proxy(("127.0.0.1",), "s3cret"))
    ))  # fmt: skip
    header = {"X-Private-Ate-User": "carol", "X-Private-Ate-Secret": "s3cret", **HOME}
    page = client.get("/queue", headers=header).text
    form = re.search(r'name="form" value="(\w+)"', page)[1]

    fields = {"form": form, "plan": row.plan}
    forged = client.post(
        f"/requests/{row.id}/approve", data={**fields, "form": "x"}, headers=header
    )
    assert forged.status_code == 403
    sent = client.post(f"/requests/{row.id}/approve", data=fields, headers=header)
    assert sent.status_code == 303


def test_no_page_needs_a_script_or_an_inline_style(small_house):
    row = small_house.ask(epsilon="0.6")
    for who, paths in {
        "alice": [
            "/login",
            "/",
            "/datasets/clinic",
            "/requests",
            f"/requests/{row.id}",
            "/nothing",
        ],
        "carol": ["/queue", "/manage", "/tokens", "/history"],
    }.items():
        reader = Reader(small_house, who)
        for path in paths:
            text = reader.open(path).text
            assert "<script" not in text
            assert " style=" not in text
            assert text.count("<h1>") == 1
            assert text.count('id="') == len(set(re.findall(r'id="([^"]+)"', text))), path
