"""Runs that are drawn together: one answer for all, in order, and no thread left behind."""

import threading
from fractions import Fraction

import pytest

from private_ate.errors import NumericRangeError
from private_ate.privacy.composed_noise import run_together
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise

ONE = Fraction(1)


class Ear:
    """Answers every question with what went in, in half steps, and keeps the spends."""

    def __init__(self):
        self.heard = []

    def record(self, spend, values, draw):
        self.heard.append((spend, values))
        return [[2 * one for one in row] for row in values] if spend.groups else draw()


def job(place, steps=("variance", "outcome sum")):
    def run(noise):
        found = [noise.laplace(steps[0], [10 * place], sensitivity=place + 1, epsilon=ONE / 10)]
        found.append(noise.staircase(steps[1], place, sensitivity=5, epsilon=ONE * 9 / 10))
        return noise.outcomes, found

    return run


def test_every_run_is_answered_with_its_own_numbers():
    ear = Ear()
    noise = Noise(SeededEntropy(1), ear)

    found = run_together(noise, [job(0), job(1), job(2)])

    assert found == [(3, [[0], 0]), (3, [[20], 2]), (3, [[40], 4])]
    assert [spend.mechanism for spend, _ in ear.heard] == ["cubes", "cubes"]
    assert [values for _, values in ear.heard] == [[[0, 10, 20]], [[0, 1, 2]]]
    assert [spend.sensitivity for spend, _ in ear.heard] == [(1, 2, 3), (5, 5, 5)]
    assert noise.cost.epsilon == ONE


def test_sums_of_arms_are_rows_and_outcomes_columns():
    ear = Ear()

    def arms(place):
        return lambda noise: noise.staircase_disjoint(
            "sums", [place, 10 + place], sensitivities=[1 + place, 7], epsilon=ONE
        )

    found = run_together(Noise(SeededEntropy(1), ear), [arms(0), arms(1)])

    ((spend, values),) = ear.heard
    assert values == [[0, 1], [10, 11]]
    assert spend.sensitivity == (1, 2, 7, 7)
    assert spend.groups == 2
    assert found == [[0, 20], [2, 22]]


def test_several_moves_are_paid_for():
    ear = Ear()

    def moved(noise):
        return noise.staircase_by_arm("sums", [3, 4], sensitivities=[5, 6], moves=3, epsilon=ONE)

    run_together(Noise(SeededEntropy(1), ear), [moved, moved])

    assert ear.heard[0][0].sensitivity == (15, 15, 18, 18)


def test_staircases_share_the_budget_where_they_are_quieter():
    noise = Noise(SeededEntropy(1))

    def large(run):
        return run.staircase("sum", 4, sensitivity=10**9, epsilon=ONE * 90)

    found = run_together(noise, [large, large, large])

    (spend,) = noise.spends
    assert (spend.mechanism, spend.moves, spend.epsilon) == ("staircase_by_arm", 3, 90)
    assert all(isinstance(value, int) for value in found)


def test_runs_that_ask_for_different_steps_are_refused_before_a_draw():
    noise = Noise(SeededEntropy(1))
    with pytest.raises(NumericRangeError, match="different steps"):
        run_together(noise, [job(0), job(1, steps=("spread", "outcome sum"))])
    assert noise.spends == []


def test_a_run_that_ends_early_is_refused():
    with pytest.raises(NumericRangeError, match="still asked"):
        run_together(Noise(SeededEntropy(1)), [job(0), lambda _: None])


@pytest.mark.parametrize(
    "ask",
    [
        lambda noise: noise.choose("x", [1, 2], sensitivity=1, epsilon=ONE),
        lambda noise: noise.laplace("x", [1, 2], sensitivity=1, epsilon=ONE),
        lambda noise: noise.secret_bytes(8),
    ],
)
def test_what_is_no_sum_is_not_drawn_together(ask):
    noise = Noise(SeededEntropy(1))
    with pytest.raises(NumericRangeError):
        run_together(noise, [ask, ask])
    assert noise.spends == []


def test_an_error_of_one_run_is_raised_and_ends_the_others():
    before = threading.active_count()

    def broken(_):
        msg = "one of them"
        raise ValueError(msg)

    noise = Noise(SeededEntropy(1))
    with pytest.raises(ValueError, match="one of them"):
        run_together(noise, [job(0), broken, job(2)])
    assert noise.spends == []
    assert threading.active_count() == before


def test_the_first_draw_is_authorized_by_the_caller_itself():
    asked = []
    noise = Noise(SeededEntropy(1), authorize=lambda: asked.append(threading.current_thread()))

    run_together(noise, [job(0), job(1)])

    assert asked == [threading.current_thread()]


def test_the_same_seed_draws_the_same():
    first, second = (run_together(Noise(SeededEntropy(7)), [job(0), job(1)]) for _ in range(2))
    assert first == second
