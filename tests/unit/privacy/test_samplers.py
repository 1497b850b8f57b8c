"""Exact coins and geometric variables: expansions, forced slow paths, odd sizes."""

import math
from collections.abc import Iterable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_ate.privacy import samplers
from private_ate.privacy.entropy import SecureEntropy, SeededEntropy, entropy_for
from private_ate.privacy.samplers import (
    Coin,
    flip,
    flip_rows,
    geometric,
    geometric_rows,
    uniform_below,
)

EXPONENTS = st.fractions(min_value=0, max_value=60, max_denominator=10**12)


class Script:
    """Entropy that reads prepared bytes and then zeros, and says how much was asked."""

    def __init__(self, prepared: Iterable[int] = (), after: int = 0) -> None:
        self.prepared = bytes(prepared)
        self.after = after
        self.asked = 0

    def draw(self, count: int) -> bytes:
        self.asked += count
        head, self.prepared = self.prepared[:count], self.prepared[count:]
        return head + bytes([self.after]) * (count - len(head))


def reference(coin: Coin, bits: int) -> int:
    """Return floor(2^bits · p) with two hundred digits to spare."""
    with localcontext(Context(prec=bits // 3 + 250, Emax=10**9, Emin=-(10**9))):
        power = (Decimal(coin.exponent.numerator) / Decimal(coin.exponent.denominator)).exp()
        share = Decimal(coin.heads) / (Decimal(coin.rest) + Decimal(coin.tails) * power)
        return int(share * (1 << bits))


@given(
    heads=st.integers(0, 10**6), extra=st.integers(0, 10**6), tails=st.integers(1, 10**6),
    exponent=EXPONENTS, bits=st.sampled_from([1, 8, 10, 64, 74, 128, 192, 500]),
)  # fmt: skip
def test_an_expansion_is_the_floor_of_the_exact_probability(heads, extra, tails, exponent, bits):
    coin = Coin(heads, heads + extra, tails, exponent)
    assert coin.expansion(bits) == reference(coin, bits)


@given(exponent=EXPONENTS, bits=st.integers(1, 300))
def test_expansions_of_the_two_named_coins_are_exact(exponent, bits):
    for coin in (Coin.logistic(exponent), Coin.decay(exponent)):
        assert coin.expansion(bits) == reference(coin, bits)


@given(exponent=EXPONENTS, bits=st.integers(1, 200))
def test_a_longer_expansion_starts_with_the_shorter_one(exponent, bits):
    coin = Coin.logistic(exponent)
    assert coin.expansion(bits + 37) >> 37 == coin.expansion(bits)


@pytest.mark.parametrize("exponent", [Fraction(1, 10**30), Fraction(10**6), Fraction(10**400)])
def test_extreme_exponents_are_expanded_without_trouble(exponent):
    coin = Coin.logistic(exponent)
    if exponent > 1:
        assert coin.expansion(128) == 0
        assert Coin.decay(exponent).expansion(4096) == 0
    else:
        assert coin.expansion(64) == (1 << 63) - 1  # a little below one half
        assert Coin.decay(exponent).expansion(64) == (1 << 64) - 1


def test_a_fair_coin_and_a_coin_without_heads_are_exact():
    assert Coin.logistic(Fraction(0)).expansion(10) == 512
    assert Coin.decay(Fraction(0)).expansion(10) == 1024
    assert Coin(0, 0, 5, Fraction(1)).expansion(64) == 0
    assert Coin(3, 3, 1, Fraction(0)).expansion(8) == 192


def test_a_toss_that_ties_for_128_bits_reads_on_until_it_is_decided():
    coin = Coin.logistic(Fraction(1))
    first = coin.expansion(128).to_bytes(16)
    following = coin.expansion(192) & ((1 << 64) - 1)
    further = coin.expansion(256) & ((1 << 64) - 1)

    for last, heads in ((further - 1, True), (further + 1, False)):
        script = Script(first + following.to_bytes(8) + last.to_bytes(8))
        assert flip(coin, script) is heads
        assert script.asked == 16 + 8 + 8


@pytest.mark.parametrize("position", [0, 5, 63, 64, 99])
@pytest.mark.parametrize("won", [True, False])
def test_a_lane_that_ties_for_74_bits_is_settled_by_the_exact_expansion(position, won):
    """All lanes lose at the first differing bit but one, which agrees with the coin throughout."""
    coin, rows = Coin.logistic(Fraction(1, 3)), 100
    prefix = coin.expansion(10)
    planes = []
    for place in reversed(range(10)):
        bit = (prefix >> place) & 1
        plane = np.ones(128, dtype=np.uint8)  # a drawn one is never below the coin's bit
        plane[position] = bit
        planes.append(np.packbits(plane, bitorder="little").tobytes())
    agreed = coin.expansion(74) & ((1 << 64) - 1)
    undecided = undecided_lanes(prefix, position)
    words = [agreed if lane == position else (1 << 64) - 1 for lane in undecided]
    last = (coin.expansion(138) & ((1 << 64) - 1)) + (-1 if won else 1)
    script = Script(
        b"".join(planes) + b"".join(word.to_bytes(8, "little") for word in words) + last.to_bytes(8)
    )

    tossed = flip_rows(coin, rows, script)

    assert np.flatnonzero(tossed).tolist() == ([position] if won else [])
    assert script.prepared == b""


def undecided_lanes(prefix: int, position: int) -> list[int]:
    """Lanes of all ones stay undecided only if the coin's bits are all ones too."""
    return list(range(128)) if prefix == 1023 else [position]


def test_a_scalar_digit_that_ties_is_settled_by_the_exact_expansion():
    rate = Fraction(1)
    thresholds, _ = samplers._digit_thresholds(rate)
    digits = [thresholds[0], *[(1 << 128) - 1] * (len(thresholds) - 1)]
    further = Coin.logistic(rate).expansion(192) & ((1 << 64) - 1)
    start = b"".join(digit.to_bytes(16) for digit in digits)

    for last, value in ((further - 1, 1), (further + 1, 0)):
        # The tie reads eight more bytes, then the tail's toss finds ones: no overflow.
        assert geometric(rate, Script(start + last.to_bytes(8), after=255)) == value


def test_a_scalar_whose_tail_comes_up_counts_whole_turns():
    rate = Fraction(1)
    thresholds, tail = samplers._digit_thresholds(rate)
    digits = b"\xff" * 16 * len(thresholds)
    heads, tails = b"\x00" * 16, b"\xff" * 16

    value = geometric(rate, Script(digits + heads + heads + heads + tails))

    assert tail == Coin.decay(rate * (1 << len(thresholds)))
    assert value == 3 << len(thresholds)


def test_rows_whose_tail_comes_up_take_the_slow_path():
    """Zeros lie below every coin, so all digits are ones and the tail comes up in each row."""
    rate, rows = Fraction(1), 70
    coins, _ = samplers._digit_coins(rate)
    tossed = (*coins, Coin.decay(rate * (1 << len(coins))))
    shared = 10 * 8 * len(tossed) * 2  # two words of 64 lanes
    settled = 8 * 128 * sum(coin.expansion(10) == 0 for coin in tossed)
    tied = 8 * 128 * sum(coin.expansion(74) == 0 for coin in tossed)
    script = Script(bytes(shared + settled + tied) + b"\xff" * 16 * rows)

    drawn = geometric_rows(rate, rows, script)

    largest = (1 << len(coins)) - 1 + (1 << len(coins))
    assert drawn.tolist() == [largest] * rows
    assert script.prepared == b""


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 127, 1000, 65_535, 65_537])
def test_any_number_of_rows_is_drawn(rows):
    entropy = SeededEntropy(1)
    assert geometric_rows(Fraction(1, 1000), rows, entropy).shape == (rows,)
    assert flip_rows(Coin.logistic(Fraction(1)), rows, entropy).shape == (rows,)
    assert flip_rows(Coin.logistic(Fraction(0)), rows, entropy).shape == (rows,)


def test_rows_of_a_last_word_that_is_not_full_are_not_copies_of_each_other():
    entropy = SeededEntropy(2)
    drawn = geometric_rows(Fraction(1, 1 << 44), 65_536 + 65, entropy)
    assert np.unique(drawn).size == drawn.size


@pytest.mark.parametrize("rate", [Fraction(1, 10**18), Fraction(1, 10**30)])
def test_noise_beyond_64_bits_is_drawn_as_python_integers(rate):
    drawn = geometric_rows(rate, 50, SeededEntropy(3))
    assert drawn.dtype == object
    assert all(isinstance(value, int) for value in drawn)
    assert max(drawn) > (1 << 55)


@pytest.mark.parametrize("rate", [Fraction(44), Fraction(45), Fraction(1000), Fraction(10**6)])
def test_a_rate_without_digits_gives_zero_or_the_tail(rate):
    assert geometric_rows(rate, 1000, SeededEntropy(4)).tolist() == [0] * 1000
    assert geometric(rate, SeededEntropy(4)) == 0


@given(digits=st.integers(0, 2**20 - 1), rate=st.fractions(min_value="1e-6", max_value=3))
@settings(max_examples=30)
def test_the_binary_digits_make_up_the_geometric_law(digits, rate):
    """The product of digit and tail probabilities is exp(−x g)(1 − exp(−x)), on paper."""
    coins, tail = samplers._digit_coins(rate)
    rest = digits >> len(coins)
    share = 1.0
    for place, coin in enumerate(coins):
        one = 1 / (1 + math.exp(coin.exponent))
        share *= one if digits >> place & 1 else 1 - one
    share *= math.exp(-float(tail.exponent) * rest) * -math.expm1(-float(tail.exponent))
    expected = math.exp(-float(rate) * digits) * -math.expm1(-float(rate))
    assert share == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 256, 257, 10**30])
def test_uniform_draws_stay_below_their_bound_and_reach_its_ends(bound):
    entropy = SeededEntropy(5)
    drawn = [uniform_below(bound, entropy) for _ in range(4000)]
    assert min(drawn) >= 0
    assert max(drawn) < bound
    if bound <= 257:
        assert set(drawn) == set(range(bound))


def test_uniform_draws_above_the_bound_are_thrown_away():
    script = Script([255, 128 + 63, 96])  # three bits each: 7 and 5 are thrown away, 3 stays
    assert uniform_below(5, script) == 3
    assert script.asked == 3


@pytest.mark.system_bytes
def test_secure_entropy_is_the_default_and_a_seed_repeats_itself():
    assert isinstance(entropy_for(None), SecureEntropy)
    assert entropy_for(3).draw(40) == entropy_for(3).draw(40)
    assert entropy_for(3).draw(40) != entropy_for(4).draw(40)
    assert SecureEntropy().draw(32) != SecureEntropy().draw(32)
    assert SecureEntropy().draw(0) == b""


def test_the_operating_system_answers_where_openssl_cannot(monkeypatch):
    import ssl

    def fail(_count):
        raise ssl.SSLError

    monkeypatch.setattr(ssl, "RAND_bytes", fail)
    assert len(SecureEntropy().draw(16)) == 16


@given(exponent=st.fractions(min_value="0.01", max_value=60, max_denominator=997))
@settings(max_examples=50)
def test_an_enclosure_of_few_digits_still_holds_the_probability(exponent):
    low, high = samplers._enclosure(3, 5, 7, exponent, 6)
    exact = Fraction(reference(Coin(3, 5, 7, exponent), 400), 1 << 400)
    assert low < exact < high
