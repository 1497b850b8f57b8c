"""Neighbouring records through private subgroups: two moves, each at half of what a cell costs."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.audit.bounds import epsilon_bound
from private_ate.domain import Domain, Interval, Outcome
from private_ate.engines.local import LocalStudy, single_threaded_blas
from private_ate.errors import PrivateAteError
from private_ate.estimation import estimate_study
from private_ate.estimators.blocks import unadjusted
from private_ate.estimators.blocks.method import BlocksOptions
from private_ate.estimators.registry import METHODS
from private_ate.estimators.request import Request
from private_ate.estimators.subgroups import private_cells
from private_ate.estimators.subgroups.method import estimate_subgroups
from private_ate.privacy.sums import OUTCOME_STEPS

BY = ("x0<0.5", "x1<0.4")
BLOCKS, MEANS = BlocksOptions(adjust=True, partitions=3), BlocksOptions(adjust=False)
ROW = 7
TOP = OUTCOME_STEPS
# Covariates, arm and outcome before and after; x0 and x1 tell the cell.
RECORDS = {
    "changes its cell": (([0.1, 0.1, 0.0], True, TOP), ([0.9, 0.1, 1.0], True, 0)),
    "changes its cell and arm": (([0.1, 0.1, 0.0], True, 0), ([0.9, 0.9, 1.0], False, TOP)),
    "stays and changes its outcome": (([0.1, 0.1, 0.0], True, 0), ([0.1, 0.1, 1.0], True, TOP)),
    "stays and changes its arm": (([0.9, 0.1, 0.0], True, 0), ([0.6, 0.2, 1.0], False, 0)),
}


def study(rows=240, seed=0, missing=None):
    rng = np.random.default_rng(seed)
    covariates = rng.beta(2, 2, (3, rows))
    treatment = rng.random(rows) < 0.3 + 0.4 * covariates[0]
    outcome = rng.integers(0, TOP + 1, rows).astype(np.int32)
    names = {f"x{place}": Interval(0, 1) for place in range(3)}
    domain = Domain("t", Outcome("y", Interval(0, 1), missing), names)
    return LocalStudy(domain, covariates, treatment, outcome, takes_part=np.ones(rows, np.bool_))


def with_record(one, covariates, treated, outcome):
    x, t, y = one.covariates.copy(), one.treatment.copy(), one.outcome.copy()
    x[:, ROW], t[ROW], y[ROW] = covariates, treated, outcome
    return replace(one, covariates=x, treatment=t, outcome=y)


def without_record(one):
    takes_part = one.takes_part.copy()
    takes_part[ROW] = False
    return replace(one, takes_part=takes_part)


def pair(name):
    return tuple(with_record(study(), *record) for record in RECORDS[name])


def asked(options=BLOCKS, epsilon=4, **more):
    return Request(
        "sample", Fraction(epsilon), by=BY, options=options, design="observational", **more
    )


def run(one, request, noise):
    with single_threaded_blas():
        return estimate_subgroups(one, request, METHODS["blocks"], noise)


def moves(first, second, request):
    """Return by part and step how many moves lead from one input to the other."""
    one = replay.record(run, first, request)
    other = replay.record(run, second, request, source=one.heard)
    assert one.noise.spends == other.noise.spends
    return {
        (a.spend.part, a.spend.step): replay.moved_share(a, b) * a.spend.moves
        for a, b in zip(one.tape, other.tape, strict=True)
    }


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize(
    ("options", "more"),
    [
        (BLOCKS, {}),
        (BLOCKS, {"overall": True}),
        (MEANS, {"overall": True}),
        (MEANS, {"confidence": None}),
        (replace(BLOCKS, model="doubly_robust"), {"estimand": "att", "confidence": None}),
    ],
)
def test_no_replaced_record_breaks_a_promise(name, options, more):
    assert replay.replay_findings(run, *pair(name), asked(options, **more)) == []


@pytest.mark.parametrize("options", [BLOCKS, MEANS])
def test_a_record_that_leaves_is_one_move_of_its_cell_alone(options):
    here, _ = pair("changes its cell")
    found = moves(here, without_record(here), asked(options))
    parts = {part for (part, _), size in found.items() if size}

    assert parts == {"x0<0.5, x1<0.4"}
    assert max(found.values()) == 1


@pytest.mark.parametrize("options", [BLOCKS, MEANS])
def test_a_record_that_changes_its_cell_is_one_move_of_each(options):
    found = moves(*pair("changes its cell"), asked(options))
    parts = {part for (part, _), size in found.items() if size}

    assert parts == {"x0<0.5, x1<0.4", "x0≥0.5, x1<0.4"}
    assert max(found.values()) == 1


def test_a_record_that_stays_is_two_moves_of_its_cell_at_most():
    found = moves(*pair("stays and changes its outcome"), asked(MEANS))

    assert max(found.values()) == 2
    assert len({part for (part, _), size in found.items() if size}) == 1


@pytest.mark.parametrize("overall", [False, True])
def test_every_cell_costs_all_that_is_not_paid_for_all_units(overall):
    spends = replay.record(run, study(), asked(overall=overall)).noise.spends
    spent = {}
    for spend in spends:
        spent[spend.part] = spent.get(spend.part, 0) + spend.epsilon

    assert spent.pop("", Fraction(0)) == (2 if overall else 0)
    assert len(spent) == 4
    assert set(spent.values()) == {Fraction(2 if overall else 4)}
    assert {spend.moves for spend in spends if spend.part} == {2}


@pytest.mark.parametrize("options", [BLOCKS, MEANS])
def test_no_constant_comes_from_the_size_of_a_cell(options):
    """Other records altogether: with what was released replayed, every call is the same."""
    crowded = study()
    empty = replace(study(seed=5), covariates=np.full((3, 240), 0.9))
    first = replay.record(run, crowded, asked(options))
    second = replay.record(run, empty, asked(options), source=first.heard)

    assert first.noise.spends == second.noise.spends
    assert first.estimate == second.estimate


def test_privately_missing_outcomes_keep_the_promise():
    one = study(missing="private")
    seen = np.ones(one.size, np.bool_)
    hidden = seen.copy()
    hidden[ROW] = False
    there, gone = (replace(one, observed=mask) for mask in (seen, hidden))

    assert replay.replay_findings(run, there, gone, asked(MEANS)) == []


def test_cells_that_are_run_at_all_of_epsilon_are_found(monkeypatch):
    monkeypatch.setattr(private_cells, "cell_budget", lambda request: request.epsilon)
    found = replay.replay_findings(run, *pair("changes its cell"), asked(MEANS))
    assert found == ["the steps cost 8: they do not add up to 4"]
    with pytest.raises(PrivateAteError, match="did not spend exactly"):
        estimate_study(study(), asked(MEANS), METHODS["blocks"], seed=1)


def test_cells_at_all_of_epsilon_that_are_booked_as_public_ones_are_found(monkeypatch):
    monkeypatch.setattr(private_cells, "_MOVES", 1)
    found = replay.replay_findings(run, *pair("changes its cell"), asked(MEANS))
    assert any("one record moves several parts" in finding for finding in found)


@pytest.mark.parametrize(
    ("honest", "faulty", "step"),
    [("_count_arms", 3, "treated count"), ("_add_outcomes", 3, "arm sums")],
)
def test_sums_that_move_further_than_one_record_may_are_found(monkeypatch, honest, faulty, step):
    kernel = getattr(unadjusted, honest)

    def tripled(block):
        total = kernel(block)
        return type(total)(faulty * total.treated, faulty * total.control)

    monkeypatch.setattr(unadjusted, honest, tripled)
    found = replay.replay_findings(run, *pair("changes its cell"), asked(MEANS))
    assert any(f"step {step!r} moves by" in finding for finding in found)


def test_a_run_on_the_rows_of_a_cell_alone_is_found(monkeypatch):
    monkeypatch.setattr(LocalStudy, "masked", LocalStudy.divided)
    found = replay.replay_findings(run, *pair("changes its cell"), asked())
    assert any("step 'effect' moves by" in finding for finding in found), found  # all blocks


def test_rows_that_are_in_two_cells_are_found(monkeypatch):
    honest = LocalStudy.masked

    def overlapping(self, cell_of, cells):
        _, *others = honest(self, cell_of, cells)
        return (self, *others)

    monkeypatch.setattr(LocalStudy, "masked", overlapping)
    name = "stays and changes its arm"
    found = replay.replay_findings(run, *pair(name), asked(MEANS))
    assert any("one record moves several parts" in finding for finding in found)


def _evidence(calls, first, second, draws):
    """Return draws of both cells' effects as one number: how far they speak for the second."""
    places = [place for place, call in enumerate(calls) if call.spend.step == "effect"][:2]
    found = []
    for tape in (first, second):
        total = np.zeros(draws)
        for place in places:
            half = calls[place].spend.sensitivity[0]
            middle = int(first[place].values) + int(second[place].values)
            sign = 1 if int(second[place].values) > int(first[place].values) else -1
            drawn = np.array([float(tape[place].draw() - middle) for _ in range(draws)])
            total += sign * np.clip(drawn / half, -1, 1)
        found.append(total)
    return found


@pytest.mark.parametrize(("at_all_of_epsilon", "is_private"), [(False, True), (True, False)])
def test_an_attack_on_both_cells_of_a_record_that_moves(monkeypatch, at_all_of_epsilon, is_private):
    """The record gives all of its score to one sum and takes it from another."""
    if at_all_of_epsilon:
        monkeypatch.setattr(private_cells, "_MOVES", 1)
    ends = [([0.1, 0.1, 0.5], True, TOP), ([0.9, 0.1, 0.5], True, TOP)]
    first, second = (with_record(study(), *record) for record in ends)
    request = replace(asked(MEANS, epsilon=2, confidence=None), by=("x0<0.5",))
    one = replay.record(run, first, request, seed=3)
    other = replay.record(run, second, request, source=one.heard, seed=3)
    step = next(spend.epsilon for spend in one.noise.spends if spend.step == "effect")
    samples = _evidence(one.tape, one.tape, other.tape, 6_000)
    bound = epsilon_bound(*samples, 0.0)

    assert (bound <= float(step)) is is_private
    assert bound > 0.6 * float(step)  # the attack sees most of what there is to see
