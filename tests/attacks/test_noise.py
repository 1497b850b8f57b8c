"""Attacks on the noise: precision, reachable outputs, forced slow paths, repeated streams."""

import multiprocessing
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import spearmanr

from children import draw_some
from private_ate import NumericRangeError
from private_ate.audit.bounds import epsilon_bound
from private_ate.audit.samplers import check_rate, check_samplers
from private_ate.privacy import samplers
from private_ate.privacy.entropy import SecureEntropy, SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.samplers import Coin, flip, flip_rows, geometric, geometric_rows

PLACES = [0, 1, 1 << 20]


class Zeros:
    """An entropy that always ties: every bit is zero for a while, then ones."""

    def __init__(self, ties):
        self.ties = ties

    def draw(self, count):
        self.ties -= 1
        return bytes(count) if self.ties >= 0 else b"\xff" * count


def drawn(mechanism, place, count, *, sensitivity=1, epsilon=1):
    noise = Noise(SeededEntropy(place + 7))
    epsilon = Fraction(epsilon)
    if mechanism == "laplace_rows":
        values = np.full(count, place, dtype=np.int64)
        return noise.laplace_rows("t", values, sensitivity=sensitivity, epsilon=epsilon)
    if mechanism == "laplace":
        return np.array(
            noise.laplace("t", [place] * count, sensitivity=sensitivity, epsilon=epsilon)
        )
    return np.array(
        [
            noise.staircase("t", place, sensitivity=sensitivity, epsilon=epsilon)
            for _ in range(count)
        ]
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mechanism", ["laplace", "laplace_rows", "staircase"])
def test_the_low_digits_of_an_output_say_nothing(mechanism, place):
    first = drawn(mechanism, place, 2_500)
    second = drawn(mechanism, place + 1, 2_500)
    assert np.all(first % 2 == 1)
    assert np.all(second % 2 == 1)
    for event in (lambda v: v, lambda v: (v // 2) % 2, lambda v: (v // 2) % 8):
        assert epsilon_bound(event(first).astype(float), event(second).astype(float)) <= 1.0


@pytest.mark.parametrize("sensitivity", [1, 3, 17])
@pytest.mark.parametrize("mechanism", ["laplace_rows", "staircase"])
def test_neighbours_can_reach_the_same_outputs(mechanism, sensitivity):
    count = 2_500
    first = drawn(mechanism, 0, count, sensitivity=sensitivity, epsilon="0.5")
    second = drawn(mechanism, sensitivity, count, sensitivity=sensitivity, epsilon="0.5")
    near = range(1, 2 * sensitivity, 2)
    assert set(near) <= set(first.tolist())
    assert set(near) <= set(second.tolist())


@pytest.mark.parametrize("rows", [1, 2, 63, 65, 127, 1000])
def test_every_lane_is_tossed_when_the_rows_do_not_fill_the_words(rows):
    turns = 200_000 // rows if rows < 200 else 400
    turns = min(turns, 1000)
    coin = Coin.logistic(Fraction(1))
    entropy = SeededEntropy(rows)
    heads = sum(flip_rows(coin, rows, entropy).astype(np.int64) for _ in range(turns))
    expected = turns / (1 + np.e)
    spread = np.sqrt(expected * (1 - 1 / (1 + np.e)))
    assert heads.shape == (rows,)
    assert np.abs(heads - expected).max() < 6 * spread


@pytest.fixture
def fresh_digits():
    samplers._remembered_coins.cache_clear()
    samplers._remembered_thresholds.cache_clear()
    yield
    samplers._remembered_coins.cache_clear()
    samplers._remembered_thresholds.cache_clear()


@pytest.mark.usefixtures("fresh_digits")
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 1000)])
def test_the_slow_path_beyond_the_last_digit_keeps_the_law(monkeypatch, rate):
    monkeypatch.setattr(samplers, "_TAIL", 1)  # one draw in three now leaves the digits
    sizes = geometric_rows(rate, 30_000, SeededEntropy(4))
    singles = [geometric(rate, SeededEntropy(seed)) for seed in range(3_000)]
    for sample in (sizes, np.array(singles)):
        signed = np.where(np.arange(sample.size) % 2 == 0, 1, -1) * (2 * sample + 1)
        tests = {test.name.split(": ")[1]: test for test in check_rate(rate, signed)}
        assert tests["chi-square"].passed
        assert tests["binary digits"].passed


@pytest.mark.parametrize("shared", [1, 2, 5])
def test_the_slow_path_after_the_shared_bits_keeps_the_law(monkeypatch, shared):
    monkeypatch.setattr(samplers, "_SHARED_BITS", shared)
    coin = Coin.logistic(Fraction(7, 3))
    heads = int(flip_rows(coin, 100_000, SeededEntropy(shared)).sum())
    share = 1 / (1 + np.exp(7 / 3))
    assert abs(heads - 100_000 * share) < 6 * np.sqrt(100_000 * share)


@pytest.mark.parametrize("ties", [1, 3, 20])
def test_a_toss_that_ties_again_and_again_is_decided_at_last(ties):
    tiny = Coin.decay(Fraction(10**6))  # its expansion begins with more than a million zeros
    assert flip(tiny, Zeros(ties)) is False
    assert flip_rows(tiny, 130, Zeros(ties + 11)).sum() == 0


def test_a_tie_can_end_in_heads():
    coin = Coin.logistic(Fraction(1))
    agreed = coin.expansion(128)

    class Agreeing:
        turns = 0

        def draw(self, count):
            self.turns += 1
            return agreed.to_bytes(16) if self.turns == 1 else bytes(count)

    assert flip(coin, Agreeing()) is True


def test_expansions_of_one_probability_agree_with_each_other():
    for coin in (
        Coin.logistic(Fraction(1, 97)),
        Coin.decay(Fraction(3)),
        Coin(5, 5, 7, Fraction(2)),
    ):
        long = coin.expansion(500)
        for bits in (1, 10, 64, 128, 333):
            assert coin.expansion(bits) == long >> (500 - bits)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**12), Fraction(1), Fraction(10**6)])
@pytest.mark.parametrize("sensitivity", [1, 10**6, 1 << 90])
def test_extreme_rates_are_exact_and_never_wrap(epsilon, sensitivity):
    noise = Noise(SeededEntropy(0))
    values = [-(1 << 200), 0, 1 << 200]
    noisy = noise.laplace("t", values, sensitivity=sensitivity, epsilon=epsilon)
    rate = float(epsilon / sensitivity)
    for value, output in zip(values, noisy, strict=True):
        assert abs(output - 2 * value) <= 2 * (60 / rate + 1)
    rows = noise.laplace_rows(
        "t", np.array([0, 1 << 60, -(1 << 60)]), sensitivity=sensitivity, epsilon=epsilon
    )
    for value, output in zip((0, 1 << 60, -(1 << 60)), rows.tolist(), strict=True):
        assert abs(output - 2 * value) <= 2 * (60 / rate + 1)
    stair = noise.staircase("t", 5, sensitivity=sensitivity, epsilon=epsilon)
    assert abs(stair - 10) <= 2 * sensitivity * (60 / float(epsilon) + 1)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(0, 1), (-1, 1), (1, 0), (1, -1)])
def test_no_sensitivity_or_no_budget_is_a_typed_error(sensitivity, epsilon):
    noise = Noise(SeededEntropy(0))
    for draw in (
        lambda: noise.laplace("t", [1], sensitivity=sensitivity, epsilon=Fraction(epsilon)),
        lambda: noise.laplace_rows(
            "t", np.array([1]), sensitivity=sensitivity, epsilon=Fraction(epsilon)
        ),
        lambda: noise.staircase("t", 1, sensitivity=sensitivity, epsilon=Fraction(epsilon)),
        lambda: noise.laplace_disjoint(
            "t", [1], sensitivities=[sensitivity], epsilon=Fraction(epsilon)
        ),
    ):
        with pytest.raises(NumericRangeError):
            draw()


@pytest.mark.parametrize(("changes", "epsilon"), [(0, 1), (-1, 1), (1, 0), (1, -1)])
def test_randomised_response_needs_a_budget_and_a_change(changes, epsilon):
    bits = np.zeros(10, dtype=np.bool_)
    with pytest.raises(NumericRangeError):
        Noise(SeededEntropy(0)).randomized_response(
            "t", bits, changes=changes, epsilon=Fraction(epsilon)
        )


def test_rows_that_would_wrap_are_refused():
    with pytest.raises(NumericRangeError):
        Noise(SeededEntropy(0)).laplace_rows(
            "t", np.array([1 << 61]), sensitivity=1, epsilon=Fraction(1)
        )


@pytest.mark.system_bytes
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_never_repeat_a_stream(start):
    context = multiprocessing.get_context(start)
    draw_some()
    with context.Pool(2) as pool:
        drawn_there = pool.map_async(draw_some, range(8), chunksize=1).get(timeout=120)
    everything = [value for part in (*drawn_there, draw_some()) for value in part]
    assert len(set(everything)) == len(everything)


@pytest.mark.system_bytes
def test_threads_and_pickles_never_repeat_a_stream():
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(draw_some, range(100)))
    copies = [pickle.loads(pickle.dumps(SecureEntropy())) for _ in range(3)]  # noqa: S301  # our own bytes
    parts += [(copy.draw(16),) for copy in copies]
    everything = [value for part in parts for value in part]
    assert len(set(everything)) == len(everything)


@pytest.mark.audit
def test_all_samplers_pass_with_many_draws():
    assert [test for test in check_samplers(400_000) if not test.passed] == []


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["laplace", "staircase"])
def test_time_does_not_follow_the_noise(mechanism):
    noise = Noise(SecureEntropy())
    best = 0.0
    for _ in range(3):  # another process's burst may look like a trend once
        sizes, times = [], []
        for _ in range(20_000):
            start = time.perf_counter_ns()
            if mechanism == "laplace":
                (value,) = noise.laplace("t", [0], sensitivity=1 << 20, epsilon=Fraction(1))
            else:
                value = noise.staircase("t", 0, sensitivity=1 << 20, epsilon=Fraction(1))
            times.append(time.perf_counter_ns() - start)
            sizes.append(abs(value))
        best = max(best, float(spearmanr(sizes, times).pvalue))
    assert best > 0.001
