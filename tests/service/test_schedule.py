"""The queue: slots of public length, turns, limits, and made-up data that delays nobody."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from house_people import ALICE, BOB, CAROL, CLINIC, WIDE

from private_ate.service.limits import Limits
from private_ate.service.policy import Policy
from private_ate.service.release_times import (
    JobSize,
    Pending,
    dummy_bound,
    job_seconds,
    running_bound,
    take_turns,
)
from private_ate.service.store.catalogue import set_policy
from private_ate.service.store.requests import find_request
from private_ate.service.vocabulary import Conflict, TooMany


def slots(house):
    """Return the slots of all requests, from when the first was asked."""
    rows = sorted(house.service.requests(CAROL), key=lambda row: row.submitted)
    zero = rows[0].submitted
    return [(row.analyst, row.start - zero, row.ends - zero) for row in rows]


def wait_of(row):
    return row.due - row.queued


def test_made_up_data_does_not_move_the_next_answer(small_house):
    for turn in range(300):
        small_house.ask(f"d{turn}", dummy=True)

    alone, later = small_house.ask("mine"), small_house.ask("bob's", actor=BOB)

    assert wait_of(alone) == 301_000  # one slot; a tick is a second
    assert later.start == alone.ends


def test_what_was_asked_and_cancelled_does_not_move_the_next_answer(small_house):
    small_house.grace = 600
    for turn in range(50):
        row = small_house.ask(f"c{turn}", actor=BOB)
        small_house.service.cancel(BOB, row.id)

    assert wait_of(small_house.ask("mine")) == 901_000  # its grace and one slot


def test_requests_before_one_that_stays_free_their_time_when_they_are_cancelled(small_house):
    small_house.grace = 600
    kept = small_house.ask("c0", actor=BOB)
    for turn in range(1, 20):
        following = small_house.ask(f"c{turn}", actor=BOB)
        small_house.service.cancel(BOB, kept.id)
        kept = following
    mine = small_house.ask("mine")
    shown = small_house.service.show(BOB, kept.id)

    assert wait_of(shown) == 901_000
    assert mine.start == shown.ends


def test_analysts_take_turns(small_house):
    many = [small_house.ask(f"a{turn}").id for turn in range(6)]
    one = small_house.ask("b", actor=BOB)
    rows = {row.id: row for row in small_house.service.requests(CAROL)}

    assert one.start == rows[many[0]].ends  # after the one that has begun
    assert [rows[name].start for name in many] == sorted(rows[name].start for name in many)
    assert rows[many[1]].start == one.ends


def test_turns_go_to_whoever_was_served_longest_ago_and_then_to_the_oldest():
    pending = [
        Pending("a1", "alice", 0, 10), Pending("a2", "alice", 1, 10), Pending("b1", "bob", 2, 10),
        Pending("b2", "bob", 3, 10), Pending("c1", "carl", 100, 10),
    ]  # fmt: skip

    begins = take_turns(pending, 5, {"alice": 4})

    assert begins == {"b1": 5, "a1": 15, "b2": 25, "a2": 35, "c1": 100}


@pytest.mark.parametrize("seed", range(20))
def test_a_later_request_never_moves_a_slot_that_has_begun(seed):
    luck = random.Random(seed)
    asked, held, last, free = [], {}, {}, 0
    for moment in sorted(luck.randrange(500) for _ in range(40)):
        begun = {name: begin for name, begin in held.items() if begin <= moment}
        pending = [one for one in asked if one.id not in begun]
        new = Pending(f"r{len(asked)}", luck.choice("abc"), moment, luck.randrange(1, 20))
        asked.append(new)
        lengths = {one.id: one.length for one in asked}
        free = max([moment, *(begin + lengths[name] for name, begin in begun.items())])
        last = {}
        for one in asked:
            if one.id in begun:
                last[one.analyst] = max(last.get(one.analyst, 0), begun[one.id])
        held = begun | take_turns([*pending, new], free, last)
        spans = sorted((begin, begin + lengths[name]) for name, begin in held.items())
        assert all(first[1] <= second[0] for first, second in pairwise(spans))


def test_slots_are_the_same_whether_the_work_is_done_or_not(small_house):
    small_house.ask("a")
    second = small_house.ask("b")
    before = slots(small_house)
    assert small_house.worker().step()  # the first is answered long before its slot is over

    assert not small_house.worker().step()  # and the second does not start before its own
    third = small_house.ask("c")
    assert slots(small_house)[:2] == before
    assert third.start == second.ends


def test_made_up_data_has_a_lane_of_its_own(small_house):
    small_house.ask("dummy", dummy=True)
    real = small_house.ask("real")

    assert small_house.worker("one").claim().id == real.id
    assert small_house.worker("two").claim(dummy=True).dummy


def test_made_up_data_obeys_the_methods_of_the_policy(small_house):
    with pytest.raises(Conflict, match=r"by the methods of its policy \(calibrated, blocks\)"):
        small_house.ask(dummy=True, method="published")
    with small_house.store.transaction() as execute:
        set_policy(execute, "clinic", Policy(methods=("published",)), "carol")
    assert small_house.ask(dummy=True, method="published").state == "queued"


def test_a_job_has_time_by_its_bound_and_made_up_data_a_minute():
    assert job_seconds(50_000, is_dummy=False) == 200
    assert job_seconds(5_000, is_dummy=False) == 60
    assert job_seconds(5_000_000, is_dummy=True) == 60
    assert dummy_bound(JobSize("aim", "sample", 10**6, 20)) == 60


def test_a_job_of_a_small_question_does_not_hold_its_data_set_for_an_hour(small_house):
    with small_house.store.transaction() as execute:
        set_policy(execute, "clinic", WIDE, "carol")
    small_house.ask(epsilon="0.000001")
    worker = small_house.worker()
    row = worker.claim()

    bound = running_bound(JobSize("calibrated", "label", 400, len(CLINIC.domain.features)))
    assert worker._order(row, "estimate").seconds <= 4 * bound + 1
    # What died without a word is charged, however slow the machine is.
    assert worker._order(row, "charge").seconds == worker.settings.seconds


@pytest.mark.parametrize(
    ("question", "longer"),
    [
        ({"by": ["smoker"]}, 2),
        ({"by": ["smoker", "age<60"], "overall": True}, 3),
        ({"target": "track"}, 5),
        ({"estimand": "att"}, 1),
    ],
)
def test_the_bound_knows_what_was_asked(small_house, question, longer):
    plain, more = small_house.ask("a"), small_house.ask("b", actor=BOB, **question)
    start = 300_000  # of any job in tests

    length = more.ends - more.start - start
    assert length == pytest.approx(longer * (plain.ends - plain.start - start), abs=2)


@pytest.mark.real_ticks
def test_the_bound_of_blocks_follows_its_partitions():
    few = running_bound(JobSize("blocks", "sample", 20_000, 6))
    many = running_bound(JobSize("blocks", "sample", 20_000, 6, partitions=100))

    assert many > 10.8  # measured, in seconds of a processor
    assert few < many / 5
    wide = running_bound(JobSize("blocks", "sample", 100_000, 20, partitions=30))
    assert wide > 25.8  # measured


@pytest.mark.parametrize("dummy", [False, True])
def test_an_analyst_has_so_many_requests_under_way_and_no_more(small_house, dummy):
    small_house.limits = Limits(under_way=2, waiting=1, a_day=100)
    small_house.grace = 10
    first = small_house.ask("a", dummy=dummy)
    small_house.ask("b", dummy=dummy)

    with pytest.raises(TooMany, match=r"2 requests .*under way"):
        small_house.ask("c", dummy=dummy)
    assert small_house.ask("a", dummy=dummy).id == first.id  # the same request again is none
    assert small_house.ask("c", actor=BOB, dummy=dummy).state == "queued"
    assert small_house.ask("other", dummy=not dummy).state == "queued"
    small_house.service.cancel(ALICE, first.id)
    assert small_house.ask("c", dummy=dummy).state == "queued"


def test_an_answer_that_is_ready_counts_as_under_way_until_it_appears(small_house):
    small_house.limits = Limits(under_way=1, waiting=1, a_day=100)
    asked = small_house.ask("a")
    small_house.worker().step()
    with small_house.store.snapshot() as execute:
        assert find_request(execute, asked.id).state == "done"

    with pytest.raises(TooMany, match="under way"):
        small_house.ask("b")
    small_house.wait()
    assert small_house.ask("b").state == "queued"


def test_requests_that_wait_for_a_curator_are_limited_and_those_of_a_day_too(small_house):
    small_house.limits = Limits(under_way=10, waiting=1, a_day=3)
    waits = small_house.ask("w", epsilon="0.6")
    with pytest.raises(TooMany, match="1 requests that wait for a curator"):
        small_house.ask("x", epsilon="0.6")
    assert small_house.ask("x", actor=BOB, epsilon="0.6").state == "waiting"
    assert small_house.ask("y").state == "queued"
    small_house.service.cancel(ALICE, waits.id)
    assert small_house.ask("z", epsilon="0.6").state == "waiting"

    with pytest.raises(TooMany, match="3 requests in a day"):
        small_house.ask("more")
    small_house.wait(24 * 3600)
    assert small_house.ask("more").state == "queued"


def test_one_data_set_does_not_delay_another(house):
    house.add(replace(CLINIC, name="again", source="again.csv"))
    for turn in range(3):
        house.ask(f"a{turn}")

    assert wait_of(house.ask("b", dataset="again")) == 301_000
