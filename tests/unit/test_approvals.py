"""What was approved is what is charged: the plan's hash, options from JSON, one transaction."""

import pytest

from private_ate import Ledger, LedgerError, estimate_ate
from private_ate.api import method_for
from private_ate.charging import Approval, bill_for_columns
from private_ate.datasets.clinic import DOMAIN, draw_clinic
from private_ate.datasets.dummy import draw_dummy
from private_ate.diagnostics.exact import exact_effect
from private_ate.domain import Binary, Domain, Interval, Treatment
from private_ate.errors import ArgumentError, PrivateAteError
from private_ate.methods.options import options_from_texts, options_from_values
from private_ate.request import Request

AT = "2026-01-02T03:04:05+00:00"


def kinds_of_errors(kind=PrivateAteError):
    return [kind, *(deep for child in kind.__subclasses__() for deep in kinds_of_errors(child))]


def test_every_error_has_a_code_of_its_own():
    codes = [kind.code for kind in kinds_of_errors() if kind.__module__ == "private_ate.errors"]

    assert len(codes) == len(set(codes)) == 10
    assert ArgumentError("x").code == "argument"


def test_options_from_json_are_those_from_texts():
    texts = options_from_texts("calibrated", "label", {"outcome_sd": "3"})

    assert options_from_values("calibrated", "label", {"outcome_sd": 3}) == texts


@pytest.mark.parametrize("odd", [{"outcome_sd": {}}, {"outcome_sd": [[1]]}, {"no": 1}, [1], {1: 2}])
def test_odd_options_from_json_are_refused(odd):
    with pytest.raises(ArgumentError):
        options_from_values("calibrated", "label", odd)


@pytest.fixture
def charged(tmp_path):
    study = draw_clinic(300)
    path = tmp_path / "clinic.csv"
    study.frame.write_csv(path)
    ledger = Ledger.create(tmp_path / "budget.db", "clinic", epsilon="1")
    request = Request("label", "0.5")
    method = method_for("auto", request)
    plan = bill_for_columns(study.frame.columns, request, method, DOMAIN).plan

    def ask(approval, name="one"):
        return estimate_ate(
            path, domain=DOMAIN, level="label", epsilon="0.5", ledger=ledger, dataset="clinic",
            request_id=name, approval=approval,
        )  # fmt: skip

    yield ledger, plan, ask
    ledger.close()


def test_the_hash_that_is_known_before_a_record_is_read_is_the_one_that_is_charged(charged):
    ledger, plan, ask = charged

    release = ask(Approval(plan, AT))

    charge, kept = ledger.history()[-2:]
    assert (charge.kind, charge.plan, kept.kind) == ("charge", plan, "release")
    assert charge.at == kept.at == release.released_at == AT


def test_another_plan_than_the_approved_one_spends_nothing(charged):
    ledger, plan, ask = charged

    with pytest.raises(LedgerError, match="not the plan that was approved"):
        ask(Approval(plan[:-1] + ("0" if plan[-1] != "0" else "1"), AT))

    assert ledger.accounts()[0].spent.epsilon == 0


def test_what_objects_inside_the_charging_transaction_undoes_the_charge(charged):
    ledger, plan, ask = charged

    def object_to_it(execute):
        execute("CREATE TABLE trace (n BIGINT)", ())
        msg = "withdrawn"
        raise LedgerError(msg)

    with pytest.raises(LedgerError, match="withdrawn"):
        ask(Approval(plan, AT, on_charge=object_to_it))

    assert ledger.accounts()[0].spent.epsilon == 0
    with ledger._store.snapshot() as execute:
        assert not execute("SELECT 1 FROM sqlite_master WHERE name = 'trace'", ()).rows
    assert [entry.kind for entry in ledger.history()] == ["create"]


def test_what_objects_when_the_release_is_kept_leaves_the_charge(charged):
    ledger, plan, ask = charged

    def object_to_it(_execute):
        msg = "too late"
        raise LedgerError(msg)

    with pytest.raises(LedgerError, match="too late"):
        ask(Approval(plan, AT, on_release=object_to_it))

    assert [entry.kind for entry in ledger.history()] == ["create", "charge"]
    assert ledger.accounts()[0].left.epsilon_text == "0.5"


@pytest.mark.parametrize("arms", [{"arms": ("no", "some", "much")}, {"bins": (0, 1, 6, 100)}])
def test_dummy_people_are_in_all_arms(arms):
    domain = Domain(Treatment("dose", **arms), ("y", Interval(0, 1)), {"a": Interval(0, 1)})
    frame = draw_dummy(domain, 3000).frame

    means = [part["y"].mean() for _, part in sorted(frame.group_by("dose"))]
    assert len(means) == 3
    assert max(means) - min(means) == pytest.approx(0.1, abs=0.06)


def test_an_approval_without_a_ledger_is_refused():
    with pytest.raises(ArgumentError, match="belong to a ledger"):
        estimate_ate(
            draw_clinic(50).frame, domain=DOMAIN, level="label", epsilon="1",
            approval=Approval("", AT),
        )  # fmt: skip


@pytest.mark.parametrize("bounds", [Interval(-40, 60), Binary()])
def test_dummy_people_show_the_effect_that_was_built_in_and_stay_in_the_domain(bounds):
    domain = Domain("t", ("y", bounds), {"a": Interval(2, 5), "b": Binary()})
    study = draw_dummy(domain, 20_000)
    outcomes = study.frame["y"].to_numpy()

    assert exact_effect(study.frame, domain=domain) == pytest.approx(
        study.effect, abs=0.02 * bounds.width
    )
    assert bounds.low <= outcomes.min() < outcomes.max() <= bounds.high
    assert set(study.frame["t"]) == {"0", "1"}
    assert study.frame.equals(draw_dummy(domain, 20_000).frame)
