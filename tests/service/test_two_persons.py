"""Two persons: who counts as a second one, what both see, and what ends with somebody."""

import json
import re
from dataclasses import fields, replace

import pytest
from house_people import ALICE, BOB, CAROL, CLINIC, DAVE, OLGA
from test_pages import Reader
from typer.testing import CliRunner

from private_ate.cli.serve import app
from private_ate.errors import ArgumentError
from private_ate.ledger.stores import insert
from private_ate.service.policy import Policy, Question
from private_ate.service.processes import create_service, open_service, read_config
from private_ate.service.store.catalogue import proposed_policy, set_policy
from private_ate.service.store.events import are_two_persons
from private_ate.service.store.requests import approvers_of, find_request
from private_ate.service.store.users import add_user, issue_token
from private_ate.service.vocabulary import Actor, Conflict, Forbidden

ERIN, FRED = Actor("erin", "curator"), Actor("fred", "curator")
TWO = Policy(automatic=False, two_persons=True)


def issue(house, owner, issuer):
    with house.store.transaction() as execute:
        add_user(execute, owner, "curator", issuer, house.clock())
        issue_token(execute, owner, issuer, house.clock())


def hold(house, policy, actor="carol"):
    with house.store.transaction() as execute:
        return set_policy(execute, "clinic", policy, actor)


def state_of(house, name):
    with house.store.snapshot() as execute:
        return find_request(execute, name).state


@pytest.mark.parametrize(
    ("issued", "first", "second", "are_two"),
    [
        ([], CAROL, DAVE, True),
        ([("erin", "carol")], CAROL, ERIN, False),
        ([("erin", "carol")], ERIN, CAROL, False),
        ([("erin", "carol")], ERIN, DAVE, True),
        # A token for an account that somebody else made is the issuer's too.
        ([("dave", "carol")], CAROL, DAVE, False),
        ([("erin", "carol"), ("fred", "erin")], CAROL, FRED, False),
        ([("erin", "carol"), ("fred", "carol")], ERIN, FRED, False),
        # Two who issued to a third can both act for her, and not for each other.
        ([("erin", "carol"), ("erin", "dave")], CAROL, DAVE, True),
        ([("erin", "carol"), ("erin", "dave")], ERIN, DAVE, False),
        # What somebody issues to herself, or on the machine, makes nobody else's hands of hers.
        ([("carol", "carol"), ("erin", "setup")], CAROL, ERIN, True),
    ],
)
def test_an_issuer_and_who_was_issued_to_are_one_pair_of_hands(
    small_house, issued, first, second, are_two
):
    hold(small_house, TWO)
    for owner, issuer in issued:
        issue(small_house, owner, issuer)
    row = small_house.ask()

    assert small_house.service.approve(first, row.id, row.plan).state == "waiting"
    if are_two:
        assert small_house.service.approve(second, row.id, row.plan).state == "queued"
    else:
        with pytest.raises(Conflict, match="another person decides"):
            small_house.service.approve(second, row.id, row.plan)
        assert state_of(small_house, row.id) == "waiting"


@pytest.mark.service
def test_the_worker_counts_persons_when_it_charges(house):
    """Two names of one person stand below a plan, whoever wrote them there."""
    row = house.ask(epsilon="0.6")
    house.service.approve(CAROL, row.id, row.plan)
    issue(house, "erin", "carol")
    hold(house, TWO)
    with house.store.transaction() as execute:
        insert(execute, "service_approvals", request=row.id, plan=row.plan, approver="erin")

    house.worker().step()

    assert state_of(house, row.id) == "refused"
    assert [entry.kind for entry in house.ledger.history()] == ["create"]


LOOSER = [
    {"automatic": True}, {"methods": ("calibrated", "blocks", "ipw")},
    {"estimands": ("ate", "att", "atc", "ato", "difference")}, {"subgroups": None},
    {"outcomes": ("pressure_drop", "x")}, {"epsilon_per_request": "0.6"},
    {"epsilon_per_month": "1.1"}, {"epsilon_at_least": "0.009"}, {"requests_per_day": 51},
    {"needs_interval": False}, {"confidence_at_least": 0.8}, {"two_persons": False},
]  # fmt: skip
HELD = replace(TWO, subgroups=("smoker",), outcomes=("pressure_drop",), needs_interval=True)
TIGHTER = [
    {"methods": ("calibrated",)}, {"estimands": ()}, {"subgroups": ()}, {"outcomes": ()},
    {"epsilon_per_request": "0.4"}, {"epsilon_at_least": "0.1"}, {"requests_per_day": 0},
    {"confidence_at_least": 0.99},
]  # fmt: skip


@pytest.mark.parametrize("change", LOOSER, ids=str)
def test_a_looser_policy_needs_two_persons_where_two_are_required(small_house, change):
    hold(small_house, HELD)
    looser = replace(HELD, **change)

    assert not hold(small_house, looser, "carol")
    with pytest.raises(Conflict, match="another person confirms"):
        hold(small_house, looser, "carol")
    assert small_house.service.dataset("clinic")[0].policy == HELD
    assert hold(small_house, looser, "dave")
    assert small_house.service.dataset("clinic")[0].policy == looser


@pytest.mark.parametrize("change", TIGHTER, ids=str)
def test_a_tighter_policy_holds_at_once(small_house, change):
    hold(small_house, HELD)

    assert hold(small_house, replace(HELD, **change))


def test_every_limit_of_a_policy_has_a_looser_value():
    told = {name for change in LOOSER for name in change}

    assert told == {item.name for item in fields(Policy)}


def test_a_second_person_confirms_what_was_proposed_and_nothing_else(house):
    hold(house, HELD)
    hold(house, replace(HELD, automatic=True), "carol")

    assert not hold(house, replace(HELD, epsilon_per_request="9"), "dave")
    issue(house, "erin", "dave")
    with pytest.raises(Conflict, match="another person confirms"):
        hold(house, replace(HELD, epsilon_per_request="9"), "erin")
    assert house.service.dataset("clinic")[0].policy == HELD
    house.service.revoke(CAROL, "dave")
    with house.store.snapshot() as execute:
        assert proposed_policy(execute, "clinic") is None


def test_nobody_goes_round_two_persons_by_a_second_data_set(small_house):
    hold(small_house, HELD)

    with pytest.raises(Conflict, match="two persons decide about data set 'clinic'"):
        small_house.add(replace(CLINIC, name="again"))
    small_house.add(replace(CLINIC, name="again", policy=HELD))


def test_an_approval_ends_with_the_curator_who_gave_it(house):
    hold(house, TWO)
    row = house.ask()
    house.service.approve(CAROL, row.id, row.plan)

    house.service.revoke(DAVE, "carol")

    assert house.service.show(DAVE, row.id).has_approved == ()
    assert house.service.approve(DAVE, row.id, row.plan).state == "waiting"


@pytest.mark.service
def test_a_plan_whose_curator_was_revoked_is_not_charged(house):
    row = house.ask(epsilon="0.6")
    assert house.service.approve(CAROL, row.id, row.plan).state == "queued"

    house.service.revoke(DAVE, "carol")
    house.worker().step()

    assert state_of(house, row.id) == "refused"
    with house.store.snapshot() as execute:
        assert approvers_of(execute, find_request(execute, row.id)) == ()
    assert [entry.kind for entry in house.ledger.history()] == ["create"]


@pytest.mark.service
def test_requests_of_a_revoked_analyst_end_and_cost_nothing(house):
    started, waiting = house.ask("started"), house.ask("waiting", epsilon="0.6")
    later = house.ask("later")

    house.service.revoke(CAROL, "alice")

    states = [state_of(house, row.id) for row in (started, waiting, later)]
    assert states == ["queued", "cancelled", "cancelled"]
    house.worker().step()
    assert state_of(house, started.id) == "refused"
    assert [entry.kind for entry in house.ledger.history()] == ["create"]


def test_what_a_revoked_analyst_leaves_gives_others_its_time(small_house):
    small_house.ask("first")
    small_house.ask("bob's", actor=BOB)
    last = small_house.ask("last")

    small_house.service.revoke(CAROL, "bob")

    with small_house.store.snapshot() as execute:
        assert find_request(execute, last.id).ends < last.ends


@pytest.mark.parametrize("actor", [ALICE, OLGA, Actor("carol", "curator", "read")])
def test_only_a_curator_who_may_write_revokes(small_house, actor):
    with pytest.raises(Forbidden):
        small_house.service.revoke(actor, "bob")


# For every word of a question another value than the usual, and what a card says of it.
UNUSUAL = {
    "method": ("published", "published"),
    "estimand": ("att", "att"),
    "among": ("yes", "att"),
    "target": ("track", "track"),
    "design": ("randomized", "randomized"),
    "probability": (0.4, "0.4"),
    "by": (["smoker"], "smoker"),
    "overall": (True, "yes"),
    "confidence": (0.5, "0.5"),
    "neighbors": (7, "7"),
    "covariates": (["age"], "age"),
    "outcome_sd": (3.25, "3.25"),
    "leave_out_undeclared": (True, "yes"),
    "options": ({"clip_share": 0.125}, "0.125"),
}
WITH = {"probability": {"design": "randomized"}, "overall": {"by": ["smoker"]},
        "options": {"method": "calibrated"}, "neighbors": {"method": "published"}}  # fmt: skip
# Two stand on every card, a dummy never waits, and a purpose is no part of the plan.
BESIDE = {"dataset", "epsilon", "dummy", "purpose"}


def test_a_card_shows_every_word_that_is_not_as_usual(small_house):
    assert set(UNUSUAL) | BESIDE == {item.name for item in fields(Question)}
    hold(small_house, replace(TWO, two_persons=False))
    usual = small_house.ask("usual")
    settled = small_house.service.settle(usual.asked)
    plain = settled.stated()
    for name, (value, shown) in UNUSUAL.items():
        asked = {name: value, **WITH.get(name, {})}
        row = small_house.ask(name, **asked)
        settled = small_house.service.settle(row.asked)
        stated = settled.stated()
        changed = {key: text for key, text in stated.items() if plain.get(key) != text}
        flat = json.dumps(list(changed.values())) + str(changed)
        said = {"yes": "True"}.get(shown, shown)
        assert said in flat, name
        assert settled.bill.plan == row.plan


def test_the_page_of_plans_that_wait_shows_what_is_not_as_usual(small_house):
    small_house.ask(
        epsilon="0.6", by=["smoker"], overall=True, leave_out_undeclared=True, purpose="A paper"
    )
    odd = small_house.ask("odd", epsilon="0.7")
    with small_house.store.transaction() as execute:
        question = json.dumps({**odd.asked.plain, "method": "forgotten"})
        execute("UPDATE service_requests SET question = ? WHERE id = ?", (question, odd.id))
    page = Reader(small_house, "carol").open("/queue").text

    for fact in ("Overall", "Leave out undeclared"):
        assert re.search(f"{fact}</th><td[^>]*>yes</td>", page)
    assert "A paper" in page
    assert "Cannot be answered" in page


@pytest.mark.parametrize("name", ["setup", "Policy", "nobody"])
def test_nobody_is_called_what_the_service_calls_itself(small_house, name):
    with small_house.store.transaction() as execute, pytest.raises(Conflict, match="another name"):
        add_user(execute, name, "curator", "carol", 0)


def test_the_first_curators_are_named_on_the_machine(tmp_path):
    create_service(tmp_path)

    done = CliRunner().invoke(app, ["user", str(tmp_path), "dave"])

    assert "pate_" in done.stdout
    with open_service(read_config(tmp_path)) as (store, _), store.snapshot() as execute:
        assert are_two_persons(execute, ("curator", "dave"))
    wrong = CliRunner().invoke(app, ["user", str(tmp_path), "eve", "--role", "king"])
    assert isinstance(wrong.exception, ArgumentError)
