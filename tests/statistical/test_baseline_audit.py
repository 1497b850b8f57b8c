"""What releases of the newer baselines tell about one record, in forms that no default reaches."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from private_ate import BalancingOptions, GroupedOptions, IpwOptions
from private_ate.api import METHODS, Method, estimate_study
from private_ate.audit.bounds import epsilon_bound
from private_ate.audit.run import audit_release, audit_steps
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

ONE = Fraction(1)
WINSORIZED = GroupedOptions(groups=80, centre="winsorized")
ASKED = {
    "groups of three rows": ("grouped", {"options": GroupedOptions(groups=8)}),
    "winsorised groups": (
        "grouped",
        {"epsilon": Fraction(7), "options": GroupedOptions(groups=12, centre="winsorized")},
    ),
    "balance of all units": ("balancing", {}),
    "balance, scores near one half": ("balancing", {"options": BalancingOptions(0.4, "0.2")}),
    "balance of the treated": ("balancing", {"estimand": "att"}),
    "balance of the overlap": ("balancing", {"estimand": "ato"}),
    "blocks": ("blocking", {}),
    "blocks of the overlap": ("blocking", {"estimand": "ato"}),
    "weights of all rows": ("ipw", {"options": IpwOptions(split=False)}),
    "weights of all rows, pure": ("ipw", {"options": IpwOptions(split=False, delta=0)}),
}
every_form = pytest.mark.parametrize("form", ASKED)
# A window is chosen at large ε only, and steps are looked at with ε = 1 each: its two draws have
# their exact distributions compared in tests/baselines/test_private_window.py.
every_step = pytest.mark.parametrize("form", [form for form in ASKED if "winsor" not in form])


def request_of(form):
    method, asked = ASKED[form]
    asked = {"epsilon": ONE, "confidence": 0.95} | asked
    return METHODS[method], Request("sample", **asked)


def asking_always(form):
    """Return the form's method as one of its own, which asks for it whatever it is asked."""
    method, request = request_of(form)
    asked = {"estimand": request.estimand, "options": request.options}

    def run(study, other, noise):
        return method.run(study, replace(other, **asked), noise)

    return Method(form, ("sample",), method.options, run, estimands=method.estimands)


def pairs(rows=160):
    """Return two studies of pairs of rows that differ in one outcome, an effect apart from all."""
    arms = np.arange(rows) % 2 == 0
    outcome = np.where(np.arange(rows) % 3, OUTCOME_STEPS // 2, OUTCOME_STEPS // 3)
    for end in (0, OUTCOME_STEPS):
        outcome[0] = end
        domain = Domain("t", ("y", Interval(0, 1)), {})
        yield LocalStudy(domain, np.zeros((0, rows)), arms, outcome.astype(np.int32))


def winsorized_draws(runs):
    request = Request("sample", ONE, options=WINSORIZED)
    for study in pairs():
        found = [estimate_study(study, request, METHODS["grouped"]) for _ in range(runs)]
        assert found[0].settings["centre"] == "winsorized"
        yield np.array(
            [(one.ate, one.settings["midpoint"], one.settings["spread"]) for one in found]
        )


@every_form
def test_every_form_is_released_and_looked_at(form):
    method, request = request_of(form)
    line = audit_release(method, "sample", 40, request=request, patience=0.3)

    assert line.passed, line
    assert line.runs == 40


@pytest.mark.audit
@every_form
def test_releases_tell_no_more_than_they_claim(form):
    method, request = request_of(form)
    line = audit_release(method, "sample", None, request=request, patience=60)

    assert line.passed, line


@pytest.mark.audit
@every_step
def test_no_step_of_any_form_claims_too_little(form):
    lines = list(audit_steps(asking_always(form), "sample", 10_000))

    assert lines
    assert [line for line in lines if not line.passed] == []


@pytest.mark.audit
def test_no_number_of_a_winsorised_mean_tells_more_than_it_claims():
    first, second = winsorized_draws(4000)
    bounds = [epsilon_bound(first[:, column], second[:, column]) for column in range(3)]

    assert max(bounds) <= 1
