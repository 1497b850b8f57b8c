"""Users, data sets and requests: what is kept, what is refused, and that nothing is spent twice."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from house_people import ALICE, BOB, CAROL, CLINIC, DAVE, OLGA

from private_ate import Binary, Domain, Interval, Ledger, Outcome, Treatment, estimate_ate
from private_ate.datasets import clinic
from private_ate.datasets.clinic import draw_clinic
from private_ate.errors import ArgumentError, LedgerError
from private_ate.methods.registry import METHODS
from private_ate.service.histories import (
    publish_heads,
    require_heads,
    verify_service,
    visible_heads,
)
from private_ate.service.policy import Policy, Question, Wish
from private_ate.service.release_times import JobSize, due_time, running_bound, visible_time
from private_ate.service.settling import settle_question
from private_ate.service.store.catalogue import (
    add_population,
    check_source,
    close_dataset,
    pin_digest,
    set_policy,
)
from private_ate.service.store.events import read_events, verify_events
from private_ate.service.store.requests import find_request, move
from private_ate.service.store.tables import connect
from private_ate.service.store.users import (
    DAY,
    add_user,
    find_session,
    issue_token,
    open_session,
    read_token,
    revoke_token,
    revoke_user,
)
from private_ate.service.vocabulary import (
    MOVES,
    BudgetRefusal,
    Conflict,
    Forbidden,
    Missing,
    NotReady,
    Unauthorized,
)


def test_a_token_names_its_owner_and_only_its_hash_is_kept(house):
    token = house.tokens["alice"]

    with house.store.snapshot() as execute:
        actor = read_token(execute, token, house.clock())
        kept = execute("SELECT * FROM service_tokens", ()).rows

    assert (actor.name, actor.role) == ("alice", "analyst")
    assert token.split("_", 2)[2] not in str(kept)


@pytest.mark.parametrize("change", [
    lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
    lambda token: token.replace("pate_", "xate_"),
    lambda _: "pate_000000000000_" + "a" * 43,
    lambda _: "", lambda _: "pate", lambda _: "\ud800_\ud800_\ud800",
])  # fmt: skip
def test_a_token_that_is_not_one_gives_one_answer(small_house, change):
    with small_house.store.snapshot() as execute, pytest.raises(Unauthorized) as refusal:
        read_token(execute, change(small_house.tokens["alice"]), small_house.clock())

    assert str(refusal.value) == "show a valid token: Authorization: Bearer pate_…"


def test_a_known_and_an_unknown_id_take_the_same_steps(house):
    known = house.tokens["alice"].split("_")[1]
    steps = {}
    with house.store.snapshot() as execute:
        for name in (known, "000000000000", "ffffffffffff", "zzzzzzzzzzzz", "", "%", "é" * 12):
            seen = steps.setdefault(name, [])

            def watched(statement, values, seen=seen):
                answer = execute(statement, values)
                seen.append((statement, [len(row) for row in answer.rows]))
                return answer

            with pytest.raises(Unauthorized):
                read_token(watched, f"pate_{name}_wrong", house.clock())

    assert len({str(taken) for taken in steps.values()}) == 1
    assert len(steps[known]) == 1


def test_expired_and_revoked_tokens_end_with_their_sessions(house):
    token, moment = house.tokens["alice"], house.clock()
    with house.store.transaction() as execute:
        actor = read_token(execute, token, moment)
        secret = open_session(execute, actor, moment)
        assert find_session(execute, secret, moment).actor.name == "alice"
        assert find_session(execute, secret, moment + DAY) is None
        with pytest.raises(Unauthorized):
            read_token(execute, token, moment + 91 * DAY)
        revoke_token(execute, actor.token, "carol", moment)
        assert find_session(execute, secret, moment) is None
        with pytest.raises(Unauthorized):
            read_token(execute, token, moment)
        other = read_token(execute, house.tokens["bob"], moment)
        secret = open_session(execute, other, moment)
        revoke_user(execute, "bob", "carol", moment)
        assert find_session(execute, secret, moment) is None
        with pytest.raises(Unauthorized):
            read_token(execute, house.tokens["bob"], moment)
        with pytest.raises(Missing):
            issue_token(execute, "bob", "carol", moment)


def test_all_spellings_of_a_name_are_one_user(small_house):
    with small_house.store.transaction() as execute, pytest.raises(Conflict):
        add_user(execute, "ALICE", "curator", "carol", 0)


def test_a_request_within_the_policy_is_queued_and_one_beyond_waits(house):
    assert house.ask("a").state == "queued"
    row = house.ask("b", epsilon="0.6")

    assert row.state == "waiting"
    assert row.reason == "one request may cost ε = 0.5 at most"
    assert house.service.approve(CAROL, row.id, row.plan).state == "queued"


def test_the_month_of_an_analyst_is_limited(small_house):
    with small_house.store.transaction() as execute:
        set_policy(execute, "clinic", Policy(epsilon_per_month="0.25"), "carol")

    states = [small_house.ask(str(turn)).state for turn in range(3)]

    assert states == ["queued", "queued", "waiting"]
    assert small_house.ask("bob's", actor=BOB).state == "queued"
    small_house.wait(31 * 24 * 3600)
    assert small_house.ask("later").state == "queued"


@pytest.mark.parametrize(("wish", "why"), [
    ({}, ""), ({"method": "ipw"}, "'ipw'"), ({"estimands": ("atc",)}, "ATC"),
    ({"estimands": ("ate", "ato")}, "the ATO"), ({"estimands": ("difference",)}, "as they are"),
    ({"epsilon": 300_000_001}, "0.3"), ({"delta": 1}, "δ"), ({"confidence": None}, "interval"),
    ({"month": 800_000_000}, "thirty days"), ({"epsilon": 9_999_999}, "0.01 at least"),
    ({"confidence": 0.89}, "at least 0.9"), ({"today": 50}, "50 requests in 24 hours"),
])  # fmt: skip
def test_a_policy_says_why(wish, why):
    policy = Policy(estimands=("ate",), epsilon_per_request=0.3, needs_interval=True)
    usual = {"method": "calibrated", "estimands": ("ate",), "epsilon": 300_000_000, "delta": 0,
             "confidence": 0.95, "month": 0, "today": 49}  # fmt: skip

    found = policy.objections(Wish(**{**usual, **wish}))

    assert bool(found) == bool(why)
    assert why in " ".join(found)
    assert Policy.read(json.loads(json.dumps(policy.plain))) == policy


SWAPPED = Domain(
    "drug", ("age", Interval(18, 95, missing=50)), {"pressure_drop": Interval(-40, 60)}
)
ARMS = Domain(
    Treatment("drug", arms=("0", "1", "2")), CLINIC.domain.outcome, CLINIC.domain.covariates
)


@pytest.mark.parametrize(
    ("dataset", "asked", "why"),
    [
        ("clinic", {}, ""),
        ("clinic", {"among": "yes"}, "the ATT is not on the list"),
        ("arms", {"among": "2"}, "the ATT is not on the list"),
        ("arms", {"among": "0"}, "the ATC is not on the list"),
        ("clinic", {"confidence": 0.5}, "at least 0.9"),
        ("clinic", {"epsilon": "1e-12"}, "ε = 0.01 at least"),
        ("many", {}, ""),
        ("many", {"epsilon": "0.01"}, "arms as they are"),  # n·ε is too small to adjust
        ("many", {"epsilon": "0.01", "design": "randomized"}, ""),
        ("many", {"method": "blocks", "options": {"adjust": False}}, "as they are"),
        ("records", {}, "arms as they are"),
        ("records", {"by": ["smoker"]}, "arms as they are"),
        ("records", {"method": "difference_in_means", "options": {"delta": 0}}, "as they are"),
        ("records", {"method": "published"}, "arms as they are"),
        ("many", {"estimand": "ato"}, "the ATO is not on"),
        ("records", {"method": "blocks", "options": {"adjust": False}}, "arms as they are"),
    ],
)
def test_a_policy_judges_what_would_be_released(small_house, dataset, asked, why):
    ate = Policy(estimands=("ate",), methods=tuple(METHODS))
    with small_house.store.transaction() as execute:
        add_population(execute, "others", "sample", "1", "0", "carol")
        set_policy(execute, "clinic", ate, "carol")
    small_house.add(replace(CLINIC, name="arms", domain=ARMS, source="arms.csv", policy=ate))
    small_house.add(
        replace(CLINIC, name="records", population="others", level="sample", source="records.csv",
                policy=ate)
    )  # fmt: skip
    small_house.add(
        replace(CLINIC, name="many", population="others", level="sample", source="many.csv",
                size=5_000, policy=ate)
    )  # fmt: skip

    row = small_house.ask(dataset=dataset, **asked)

    assert row.state == ("waiting" if why else "queued")
    assert why in row.reason


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": "0.02"},
        {"epsilon": "2"},
        {"epsilon": "0.02", "design": "randomized"},
        {"epsilon": "0.02", "options": {"adjust": True}, "method": "blocks"},
        {"epsilon": "1", "by": ["smoker"]},
        {"epsilon": "2", "method": "published"},
        {"epsilon": "2", "method": "difference_in_means", "options": {"delta": 0}},
    ],
    ids=str,
)
def test_a_release_is_about_what_its_policy_judged(asked):
    records = replace(CLINIC, level="sample", size=2000)
    settled = settle_question(Question.read({"dataset": "clinic", **asked}), records)
    request = settled.request
    release = estimate_ate(
        draw_clinic(2000).frame, domain=records.domain, level="sample", epsilon=request.epsilon,
        method=settled.method.name, by=request.by, design=request.design, options=request.options,
        seed=5,
    )  # fmt: skip

    assert release.estimand in settled.asks.estimands


def test_requests_of_a_day_are_counted_whatever_became_of_them(house):
    house.grace = 60
    with house.store.transaction() as execute:
        set_policy(execute, "clinic", Policy(requests_per_day=2), "carol")

    for turn in range(2):
        asked = house.ask(str(turn))
        assert asked.state == "queued"
        house.service.cancel(ALICE, asked.id)

    assert house.ask("third").reason == "an analyst may make 2 requests in 24 hours"
    assert house.ask("bob's", actor=BOB).state == "queued"
    house.wait(24 * 3600)
    assert house.ask("tomorrow").state == "queued"


@pytest.mark.parametrize(
    "odd", [
        {"methods": ["magic"]}, {"automatic": 1}, {"epsilon_per_month": "x"}, {"no": 1}, 3,
        {"requests_per_day": -1}, {"confidence_at_least": 0.4}, {"epsilon_at_least": "-1"},
    ]
)  # fmt: skip
def test_an_odd_policy_is_refused(odd):
    with pytest.raises(ArgumentError):
        Policy.read(odd)


def test_the_same_key_and_plan_give_the_same_request_and_another_plan_is_refused(house):
    first = house.ask("key")

    assert house.ask("key") == first
    with pytest.raises(Conflict, match="another plan"):
        house.ask("key", epsilon="0.2")
    assert house.ask("key", actor=BOB).id != first.id
    assert len(house.service.requests(CAROL)) == 2


def test_requests_under_way_count_as_spent(house):
    for turn in range(10):
        assert house.ask(str(turn)).state == "queued"

    with pytest.raises(BudgetRefusal, match="has ε = 0 left of ε = 1"):
        house.ask("more")
    assert house.service.dataset("clinic")[1].left.epsilon == 0


def test_two_data_sets_of_the_same_people_share_one_budget(house):
    house.add(replace(CLINIC, name="again", source="other.csv"))
    for turn in range(9):
        house.ask(str(turn), dataset=("clinic", "again")[turn % 2])

    with pytest.raises(BudgetRefusal):
        house.ask("more", dataset="again", epsilon="0.2")


def test_one_file_has_one_population_and_an_outcome_is_nowhere_public(small_house):
    with small_house.store.transaction() as execute:
        add_population(execute, "others", "label", "1", "0", "carol")
    with pytest.raises(Conflict, match="the same persons have one budget"):
        small_house.add(replace(CLINIC, name="b", population="others"))
    with pytest.raises(Conflict, match="is private in"):
        small_house.add(replace(CLINIC, name="b", domain=SWAPPED))
    gaps = replace(CLINIC.domain, outcome=CLINIC.domain.outcome.with_missing("public"))
    with pytest.raises(Conflict, match="public in one of 'b' and 'clinic' and private in the"):
        small_house.add(replace(CLINIC, name="b", domain=gaps))
    with pytest.raises(Conflict, match="level"):
        small_house.add(replace(CLINIC, name="b", level="sample"))
    with pytest.raises(Conflict, match="already"):
        small_house.add(CLINIC)


def test_a_curator_s_domain_says_what_a_missing_outcome_is(small_house):
    for outcome in (clinic.DOMAIN.outcome, Outcome("pressure_drop", Binary())):
        silent = replace(CLINIC, name="b", domain=replace(CLINIC.domain, outcome=outcome))
        with pytest.raises(ArgumentError, match="does not say what a missing 'pressure_drop' is"):
            small_house.add(silent)
    for rule in ("public", "private", 0.0):
        said = replace(CLINIC.domain, outcome=CLINIC.domain.outcome.with_missing(rule))
        small_house.add(replace(CLINIC, name=f"b{rule}", source=f"b{rule}.csv", domain=said))


def test_a_curator_s_domain_says_whose_gaps_are_public(small_house):
    gaps = replace(CLINIC.domain, outcome=CLINIC.domain.outcome.with_missing("public"))
    small_house.add(replace(CLINIC, name="b", domain=gaps, source="b.csv"))

    ledger = small_house.ledger
    assert ledger.roles("b").public_gaps == {"pressure_drop"}
    assert ledger.roles("clinic").public_gaps == set()


def test_a_copy_of_a_file_is_known_by_its_digest_once_both_are_pinned(house):
    house.add(replace(CLINIC, name="copy", source="copy.csv", domain=SWAPPED))
    house.add(replace(CLINIC, name="fine", source="fine.csv"))
    with house.store.transaction() as execute:
        pin_digest(execute, "clinic", "a" * 64, "one", 0)
        pin_digest(execute, "fine", "a" * 64, "one", 0)

    with house.store.transaction() as execute, pytest.raises(Conflict, match="is private in"):
        pin_digest(execute, "copy", "a" * 64, "one", 0)


@pytest.mark.parametrize(
    "source", ["../a.csv", "/etc/passwd", "a/../b.csv", "a.csv\n", "a", ".a.csv", "a//b.csv", 3]
)
def test_a_source_cannot_leave_the_worker_s_folder(source):
    with pytest.raises(ArgumentError):
        check_source(source)


def test_a_closed_data_set_takes_no_more_requests(house):
    with house.store.transaction() as execute:
        close_dataset(execute, "clinic", "carol", house.clock())

    with pytest.raises(Conflict, match="is closed"):
        house.ask()


def test_a_curator_approves_the_hash_that_waits_and_nothing_else(house):
    row = house.ask("b", epsilon="0.6")

    with pytest.raises(Conflict, match="not the hash"):
        house.service.approve(CAROL, row.id, "0" * 64)
    with pytest.raises(Forbidden):
        house.service.approve(ALICE, row.id, row.plan)
    with pytest.raises(Forbidden):
        house.service.approve(OLGA, row.id, row.plan)
    assert house.service.show(ALICE, row.id).state == "waiting"


def test_two_persons_approve_where_the_policy_says_so(small_house):
    with small_house.store.transaction() as execute:
        set_policy(execute, "clinic", Policy(automatic=False, two_persons=True), "carol")
    row = small_house.ask()

    assert small_house.service.approve(CAROL, row.id, row.plan).state == "waiting"
    with pytest.raises(Conflict, match="another curator"):
        small_house.service.approve(CAROL, row.id, row.plan)
    assert small_house.service.approve(DAVE, row.id, row.plan).state == "queued"


def test_a_refusal_has_one_of_the_listed_reasons(small_house):
    row = small_house.ask(epsilon="0.6")

    with pytest.raises(ArgumentError, match="the reason is one of"):
        small_house.service.refuse(CAROL, row.id, "the treated did badly")
    assert small_house.service.refuse(CAROL, row.id, "cost").state == "refused"
    with pytest.raises(Conflict):
        small_house.service.approve(CAROL, row.id, row.plan)


def test_cancelling_follows_the_clock_alone(house):
    house.grace = 5
    early, late = house.ask("early"), house.ask("late")

    assert house.service.cancel(ALICE, early.id).state == "cancelled"
    assert house.service.dataset("clinic")[1].left.epsilon_text == "0.9"
    house.wait(5)
    with pytest.raises(Conflict, match="has started"):
        house.service.cancel(ALICE, late.id)  # no worker has touched it
    with pytest.raises(Missing):
        house.service.cancel(BOB, late.id)
    assert house.service.cancel(ALICE, house.ask("waits", epsilon="0.6").id).state == "cancelled"


def test_others_requests_are_not_there(house):
    row = house.ask()

    for act in (house.service.show, house.service.release):
        with pytest.raises(Missing):
            act(BOB, row.id)
    assert house.service.show(OLGA, row.id).id == row.id
    with pytest.raises(NotReady):
        house.service.release(ALICE, row.id)


def test_no_state_has_a_way_back_and_every_way_is_conditional(small_house):
    row = small_house.ask()
    order = list(MOVES)

    for before, afters in MOVES.items():
        assert all(order.index(after) > order.index(before) for after in afters)
    with small_house.store.transaction() as execute:
        assert not move(execute, row.id, "charged", "done", "x")
        assert not move(execute, row.id, "queued", "charged", "x", claim="someone's")
        with pytest.raises(ValueError, match="no request goes"):
            move(execute, row.id, "done", "queued", "x")
        assert find_request(execute, row.id) == row


def test_events_cannot_be_changed_and_a_change_shows(house):
    house.ask()
    with house.store.snapshot() as execute:
        events = read_events(execute)

    assert verify_events(events) == events[-1].hash
    with pytest.raises(LedgerError, match="at event 3"):
        verify_events([*events[:2], replace(events[2], actor="mallory"), *events[3:]])
    with pytest.raises(LedgerError, match="the end of the history is missing"):
        verify_events(events[:-1], events[-1].hash)
    for change in ("UPDATE service_events SET actor = 'm'", "DELETE FROM service_events"):
        with pytest.raises(LedgerError, match="append-only"), house.store.transaction() as execute:
            execute(change, ())


def test_a_store_without_the_newest_published_head_is_refused(house, tmp_path):
    heads = tmp_path / "heads.ndjson"
    require_heads(house.store, heads)  # nothing was published yet
    publish_heads(house.store, heads)
    house.ask()
    publish_heads(house.store, heads)

    require_heads(house.store, heads)
    newest = json.loads(heads.read_text().splitlines()[-1])
    heads.write_text(json.dumps({**newest, "event": "f" * 64}) + "\n")
    with pytest.raises(LedgerError, match="it is an older copy"):
        require_heads(house.store, heads)


def test_an_old_backup_is_refused(small_house, tmp_path):
    heads, backup = tmp_path / "heads.ndjson", tmp_path / "backup.db"
    shutil.copy(small_house.location, backup)
    small_house.ask()
    publish_heads(small_house.store, heads)

    with connect(backup) as older, pytest.raises(LedgerError, match="it is an older copy"):
        require_heads(older, heads)
    (tmp_path / "cut.ndjson").write_text(heads.read_text() + '{"at": "20')
    with connect(backup) as older, pytest.raises(LedgerError, match="it is an older copy"):
        require_heads(older, tmp_path / "cut.ndjson")


def test_the_public_heads_are_those_of_the_ledger(house):
    (head,) = visible_heads(house.store, house.clock())

    assert head.hash == house.ledger.verify().head
    assert head.entries == 1


def test_the_ledger_of_the_service_is_a_ledger(house):
    opened = Ledger.open(house.location)

    assert opened.verify().entries == 1
    assert opened.roles("clinic").private == {"pressure_drop"}
    opened.close()


def test_what_was_asked_before_counts_in_the_time_of_an_answer(small_house):
    first, second = small_house.ask("a"), small_house.ask("b")
    small_house.add(replace(CLINIC, name="other", source="other.csv"))
    other = small_house.ask("c", dataset="other")
    bound = running_bound(JobSize("calibrated", "label", 400, len(CLINIC.domain.features)))

    assert second.due - first.due >= 1000 * bound - 1000
    assert second.ends == first.ends + round(1000 * bound)
    assert other.due - other.queued == first.due - first.queued


def test_due_times_are_whole_ticks_that_cover_the_bound():
    assert due_time(1_000, 61.0, 60.0) == 121_000
    assert visible_time(121_000, 100_000, 60.0) == 121_000
    assert visible_time(121_000, 121_001, 60.0) == 181_000
    assert (
        running_bound(JobSize("calibrated", "label", 100_000, 20)) > 10.9
    )  # measured in docs/scale.md
    assert running_bound(JobSize("blocks", "sample", 10**6, 20)) > 10.7
    assert running_bound(JobSize("aim", "sample", 1000, 5)) > 600


def test_a_database_without_a_service_is_told_so(tmp_path):
    Ledger.create(tmp_path / "plain.db", "trial", epsilon="1").close()
    (tmp_path / "empty.db").touch()

    for name in ("plain.db", "empty.db"):
        refused = pytest.raises(LedgerError, match="this database has no service")
        with refused, connect(tmp_path / name):
            pass


def test_a_copy_that_is_made_while_the_service_runs_holds_all_of_it(small_house, tmp_path):
    small_house.ask()
    heads, copy = tmp_path / "heads.ndjson", tmp_path / "copy.db"
    publish_heads(small_house.store, heads)
    with (
        closing(sqlite3.connect(small_house.location)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)

    with connect(copy) as restored:
        require_heads(restored, heads)
        assert verify_service(restored).requests == 1


def test_a_store_that_cannot_be_used_is_an_error(small_house, monkeypatch):
    def broken(_):
        msg = "the disk is full"
        raise LedgerError(msg)

    monkeypatch.setattr(type(small_house.store), "transaction", broken)

    with pytest.raises(LedgerError, match="the disk is full"):
        small_house.ask()
