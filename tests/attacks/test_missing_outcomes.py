"""Whether an outcome exists is as private as what it is: attacks on the step that says so."""

from fractions import Fraction

import numpy as np
import pytest

from private_ate import Domain, Interval, Outcome, Treatment, estimate_ate
from private_ate.api import METHODS
from private_ate.audit.bounds import epsilon_bound
from private_ate.audit.neighbours import neighbours_for, noisy_steps
from private_ate.audit.replay import Recording, broken_promises
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.request import Request

DRAWS = 3000
PAIRS = [pair for pair in neighbours_for("label", missing=True) if "missing" in pair.title]


def observed_sums(pair):
    steps = noisy_steps(METHODS["calibrated"], "label", pair)
    (step,) = (step for step in steps if step.spend.step == "observed sums")
    return step


def bound_on(step):
    """Tell neighbours apart by one released number, the most telling one of four."""
    first, second = (
        np.array([draw() for _ in range(DRAWS)], dtype=np.float64)
        for draw in (step.first, step.second)
    )
    return max(epsilon_bound(first[:, k], second[:, k]) for k in range(4))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.title)
def test_nobody_learns_who_lacks_an_outcome(pair):
    step = observed_sums(pair)

    assert step.moved
    assert bound_on(step) <= float(step.spend.epsilon)


def test_an_attacker_learns_it_from_a_noise_that_forgets_the_weight(monkeypatch):
    """The planted fault: noise for the sum alone, as if the second number were public."""
    honest = Noise.laplace_disjoint

    def forgetful(self, step, values, *, sensitivities, epsilon):
        sharper = [size if k % 2 == 0 else size // 8 for k, size in enumerate(sensitivities)]
        return honest(self, step, values, sensitivities=sharper, epsilon=epsilon)

    monkeypatch.setattr(Noise, "laplace_disjoint", forgetful)

    assert any(bound_on(step) > float(step.spend.epsilon)
               for pair in PAIRS for step in [observed_sums(pair)])  # fmt: skip


@pytest.mark.parametrize("method", ["blocks"])
def test_at_sample_level_a_missing_outcome_moves_no_step_too_far(method):
    request = Request("sample", Fraction(1))
    for pair in neighbours_for("sample", missing=True):
        first = Recording()
        METHODS[method].run(pair.first, request, Noise(SeededEntropy(0), first))
        second = Recording(source=first)
        METHODS[method].run(pair.second, request, Noise(SeededEntropy(0), second))

        assert not broken_promises(first, second)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_release_holds_no_exact_count_of_private_missing_outcomes(level):
    """Of 1000 rows 123 lack an outcome: no number, note or key of the release may say so."""
    import polars as pl

    rng = np.random.default_rng(0)
    outcome = rng.random(1000)
    outcome[:123] = np.nan
    frame = pl.DataFrame({"x": rng.random(1000), "t": rng.integers(0, 2, 1000), "y": outcome})
    domain = Domain(
        Treatment("t", 1, 0), Outcome("y", Interval(0, 1), "private"), {"x": Interval(0, 1)}
    )

    text = estimate_ate(frame, domain=domain, level=level, epsilon=1).to_json()

    assert "left_out_outcome" not in text
    assert "123" not in [word.strip(',"') for word in text.split()]
    assert "877" not in [word.strip(',"') for word in text.split()]
