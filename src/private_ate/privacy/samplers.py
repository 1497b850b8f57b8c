"""Exact samplers of integer noise from random bits; nothing here rounds a probability.

A geometric variable with ``P(G ≥ g) = exp(−x g)`` has independent binary digits: digit ``j`` is
one with probability ``1/(1 + exp(2ʲ x))``. Each digit is a coin whose probability is known to any
precision, so it is tossed by comparing random bits with the coin's binary expansion until they
differ. Sixty-four rows share a machine word and all digits are tossed together, so the work does
not follow the values drawn. Proof: docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Codes, Integers, Words
from private_ate.privacy.entropy import Entropy

__all__ = [
    "Coin",
    "add_two_sided",
    "cauchy",
    "decide",
    "flip",
    "flip_rows",
    "geometric",
    "geometric_rows",
    "move_codes",
    "random_order",
    "stair",
    "two_sided",
    "uniform_below",
    "uniform_rows",
]

_LANES: Final = 64  # rows in one machine word
_BLOCK_ROWS: Final = 1 << 16
_SHARED_BITS: Final = 10  # bits that all rows compare; one row in 1024 needs more
_EXCHANGES: Final = tuple(
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in (
        (7, 0x00AA00AA00AA00AA),
        (14, 0x0000CCCC0000CCCC),
        (28, 0x00000000F0F0F0F0),
    )
)
_TAIL: Final = 44  # the geometric digits stop where exp(−x·2ᴶ) ≤ exp(−44)


@dataclass(frozen=True, slots=True)
class Coin:
    """The probability ``heads / (rest + tails·exp(exponent))``, known to any precision.

    Digits of a ``public`` coin, one whose probability follows from public numbers alone, may be
    remembered. Those of any other are computed anew each time: how long a look into a memory
    takes shows whether the same number was there before, which is a test for equality.
    """

    heads: int
    rest: int
    tails: int
    exponent: Fraction
    public: bool = field(default=False, kw_only=True)

    @classmethod
    def logistic(cls, exponent: Fraction, *, public: bool = False) -> Coin:
        """Return the coin ``1/(1 + exp(exponent))``."""
        return cls(1, 1, 1, exponent, public=public)

    @classmethod
    def decay(cls, exponent: Fraction, *, public: bool = False) -> Coin:
        """Return the coin ``exp(−exponent)``."""
        return cls(1, 0, 1, exponent, public=public)

    def expansion(self, bits: int) -> int:
        """Return ``floor(2^bits · probability)`` exactly."""
        expand = _remembered_expansion if self.public else _expansion
        return expand(self.heads, self.rest, self.tails, self.exponent, bits)


def _expansion(heads: int, rest: int, tails: int, exponent: Fraction, bits: int) -> int:
    if heads == 0:
        return 0
    if exponent == 0 or tails == 0:
        return (heads << bits) // (rest + tails)
    if exponent * 10 > 7 * (bits + heads.bit_length() + 8):
        return 0  # exp(exponent) alone exceeds heads·2^bits
    digits = bits // 3 + 40 + len(str(max(heads, rest, tails)))
    while True:
        low, high = _enclosure(heads, rest, tails, exponent, digits)
        scale = 1 << bits
        first, last = math.floor(low * scale), math.floor(high * scale)
        if first == last:
            return first
        digits *= 2


_remembered_expansion = lru_cache(maxsize=4096)(_expansion)


def _enclosure(
    heads: int, rest: int, tails: int, exponent: Fraction, digits: int
) -> tuple[Fraction, Fraction]:
    """Return two fractions that hold the probability between them."""
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=10**9, Emin=-(10**9))
    argument = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    power = Fraction(context.exp(argument))
    # The argument is off by a relative 10^(1−digits), the exponential by half a unit more.
    slack = Fraction(10) ** (2 - digits) * (1 + math.ceil(exponent))
    low = Fraction(heads) / (rest + tails * power * (1 + slack))
    high = Fraction(heads) / (rest + tails * power * (1 - slack))
    return low, high


def flip(coin: Coin, entropy: Entropy) -> bool:
    """Toss one coin; 128 bits are always read, more only when all of them agree."""
    return decide(coin, int.from_bytes(entropy.draw(16)), 128, entropy)


def uniform_below(bound: int, entropy: Entropy) -> int:
    """Return an integer drawn uniformly from ``{0, …, bound − 1}``."""
    bits = (bound - 1).bit_length()
    if bits == 0:
        return 0
    size = (bits + 7) // 8
    while True:
        drawn = int.from_bytes(entropy.draw(size)) >> (8 * size - bits)
        if drawn < bound:
            return drawn


def uniform_rows(bound: int, rows: int, entropy: Entropy) -> Codes:
    """Draw an integer uniformly from ``{0, …, bound − 1}`` for every row; at most 255 of them.

    Bytes beyond the last whole multiple of the bound are drawn anew, so none is favoured.
    """
    if bound == 1:
        return np.zeros(rows, dtype=np.uint8)
    last = 255 - 256 % bound
    drawn = np.frombuffer(entropy.draw(rows), dtype=np.uint8).copy()
    while (again := np.flatnonzero(drawn > last)).size:
        drawn[again] = np.frombuffer(entropy.draw(again.size), dtype=np.uint8)
    drawn %= np.uint8(bound)
    return drawn


def random_order(rows: int, entropy: Entropy) -> Integers:
    """Return an order of the rows drawn uniformly from all orders.

    Rows are sorted by words of 64 random bits. Given that no two words are equal, every order is
    equally likely; equal words (at 2³¹ rows one draw in nine) are all drawn anew.
    """
    while True:
        words = np.frombuffer(entropy.draw(8 * rows), dtype=np.uint64)
        order = np.argsort(words)
        drawn = words[order]
        if not np.any(drawn[1:] == drawn[:-1]):
            return order


def flip_rows(coin: Coin, rows: int, entropy: Entropy) -> npt.NDArray[np.bool_]:
    """Toss the same coin once for every row."""
    if coin.exponent == 0 and 2 * coin.heads == coin.rest + coin.tails:
        fair = np.frombuffer(entropy.draw((rows + 7) // 8), dtype=np.uint8)
        return np.unpackbits(fair, count=rows).view(np.bool_)
    tossed = np.empty(rows, dtype=np.uint8)
    for block in _blocks(rows, 8 * _BLOCK_ROWS):
        size = tossed[block].size
        tossed[block] = _unpack(_flip_words((coin,), _words_for(size), entropy)[0], size)
    return tossed.view(np.bool_)


def geometric(rate: Fraction, entropy: Entropy, *, public: bool = True) -> int:
    """Draw one geometric variable with ``P(G ≥ g) = exp(−rate·g)``.

    What a ``public`` rate needs is remembered; nothing is kept of a rate that follows records.
    """
    thresholds, tail = _remembered_thresholds(rate) if public else _digit_thresholds(rate)
    size, count = 16, len(thresholds)
    drawn = entropy.draw(size * count)
    # A leading one keeps the number equally long whatever its digits are: each toss does the same
    # work for heads as for tails, so that time does not follow the noise.
    value = 1
    for digit in range(count - 1, -1, -1):
        part = int.from_bytes(drawn[digit * size : (digit + 1) * size])
        heads = part < thresholds[digit]
        if part == thresholds[digit]:  # once in 2¹²⁸ tosses
            coin = Coin.logistic(rate * (1 << digit), public=public)
            heads = decide(coin, part, 128, entropy)
        value = (value << 1) | heads
    value ^= 1 << count
    if flip(tail, entropy):
        value += _overflow(tail, entropy) << count
    return value


def geometric_rows(rate: Fraction, rows: int, entropy: Entropy) -> npt.NDArray[np.generic]:
    """Draw one geometric variable per row, as int64 or, where that could wrap, as integers.

    The rate is public.
    """
    coins, tail = _remembered_coins(rate)
    if len(coins) > 55:
        values = np.empty(rows, dtype=object)
        values[:] = [geometric(rate, entropy) for _ in range(rows)]
        return values
    drawn = np.zeros(rows, dtype=np.int64)
    for block in _blocks(rows):
        _draw_geometric(drawn[block], coins, tail, entropy)
    return drawn


def two_sided(rate: Fraction, entropy: Entropy, *, public: bool = True) -> int:
    """Draw Laplace noise in half steps: an odd integer, ``P(v) ∝ exp(−rate·|v|/2)``."""
    return _signed(2 * geometric(rate, entropy, public=public) + 1, entropy)


def add_two_sided(values: Integers, rate: Fraction, entropy: Entropy) -> npt.NDArray[np.generic]:
    """Return twice each value plus `two_sided` noise, as int64 or, where it could wrap, integers.

    The rate is public.
    """
    drawn = geometric_rows(rate, values.size, entropy)
    negative = flip_rows(Coin.logistic(Fraction(0)), values.size, entropy)
    if drawn.dtype == object:
        odd = np.where(negative, -1, 1).astype(object) * (2 * drawn + 1)
        wide: npt.NDArray[np.generic] = 2 * values.astype(object) + odd
        return wide
    noisy: Integers = drawn.astype(np.int64, copy=False)
    noisy *= 2
    noisy += 1
    flipped = negative.astype(np.int64)
    np.negative(flipped, out=flipped)
    noisy ^= flipped  # two's complement: (v ^ −1) − (−1) = −v
    noisy -= flipped
    noisy += values
    noisy += values
    return noisy


def stair(sensitivity: int, inner: int, epsilon: Fraction, entropy: Entropy) -> int:
    """Draw staircase noise in half steps, of an inner part that is ``inner`` steps wide."""
    whole = geometric(epsilon, entropy)
    outer = sensitivity - inner
    outside = flip(Coin(outer, outer, inner, epsilon, public=True), entropy)
    within = uniform_below(inner, entropy)
    beyond = inner + uniform_below(max(outer, 1), entropy)
    return _signed(2 * (whole * sensitivity + (beyond if outside else within)) + 1, entropy)


def move_codes(codes: Codes, arms: int, coin: Coin, entropy: Entropy) -> Codes:
    """Move the codes for which the coin shows heads by 1 to K − 1 places, in a circle."""
    moved = np.flatnonzero(flip_rows(coin, codes.size, entropy))
    places = uniform_rows(arms - 1, moved.size, entropy).astype(np.int64) + 1
    answers = codes.copy()
    answers[moved] = (codes[moved] + places) % arms
    return answers


def cauchy(entropy: Entropy) -> float:
    """Draw a standard Cauchy variable in floating point: the tangent of a uniform angle."""
    middle = 1 << 62
    steps = 2 * uniform_below(middle, entropy) + 1 - middle
    return math.tan(math.pi * (steps / (2 * middle)))


def _signed(odd: int, entropy: Entropy) -> int:
    return odd if entropy.draw(1)[0] & 1 else -odd


def _draw_geometric(out: Integers, coins: tuple[Coin, ...], tail: Coin, entropy: Entropy) -> None:
    words = _flip_words((*coins, tail), _words_for(out.size), entropy)
    for lowest in range(0, len(coins), 8):
        octets = _transpose(words[lowest : min(lowest + 8, len(coins))])
        out |= octets[: out.size].astype(np.int64) << lowest
    for row in np.flatnonzero(_unpack(words[-1], out.size)):
        out[row] += _overflow(tail, entropy) << len(coins)


def _transpose(planes: Words) -> npt.NDArray[np.uint8]:
    """Gather up to eight planes of binary digits into one byte per row.

    Eight bytes, one per plane, form a matrix of 8 × 8 bits that three exchanges transpose.
    """
    octets = np.zeros((planes.shape[1] * 8, 8), dtype=np.uint8)
    for place, plane in enumerate(planes):
        octets[:, place] = plane.view(np.uint8)
    square = octets.reshape(-1).view("<u8")
    for shift, mask in _EXCHANGES:
        moved = square >> shift
        moved ^= square
        moved &= mask
        square ^= moved
        moved <<= shift
        square ^= moved
    return octets.reshape(-1)


def _unpack(words: Words, rows: int) -> npt.NDArray[np.uint8]:
    return np.unpackbits(words.view(np.uint8), count=rows, bitorder="little")


def _flip_words(coins: tuple[Coin, ...], words: int, entropy: Entropy) -> Words:
    """Toss every coin for every lane; shape ``(len(coins), words)``, heads are ones."""
    prefix = np.array([coin.expansion(_SHARED_BITS) for coin in coins], dtype=np.int64)[:, None]
    heads = np.zeros((len(coins), words), dtype=np.uint64)
    undecided = np.full_like(heads, np.iinfo(np.uint64).max)
    for place in reversed(range(_SHARED_BITS)):
        wanted = np.negative((prefix >> place) & 1).view(np.uint64)
        drawn = np.frombuffer(entropy.draw(heads.nbytes), dtype=np.uint64).reshape(heads.shape)
        differs = np.bitwise_xor(drawn, wanted)
        differs &= undecided
        undecided ^= differs
        differs &= wanted  # the coin's bit is one and the drawn one zero: below, so heads
        heads |= differs
    _settle(coins, heads, undecided, entropy)
    return heads


def _settle(coins: tuple[Coin, ...], heads: Words, undecided: Words, entropy: Entropy) -> None:
    """Decide the lanes whose shared bits all agreed, 64 further bits at a time."""
    coin_index, word_index = np.nonzero(undecided)
    words = undecided[coin_index, word_index]
    lanes = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    entry, lane = np.nonzero(lanes)
    which = coin_index[entry]
    mask = (1 << 64) - 1
    following = np.array(
        [coin.expansion(_SHARED_BITS + 64) & mask for coin in coins], dtype=np.uint64
    )
    drawn = np.frombuffer(entropy.draw(8 * entry.size), dtype=np.uint64)
    won = drawn < following[which]
    for tie in np.flatnonzero(drawn == following[which]):  # once in 2⁶⁴
        coin = coins[int(which[tie])]
        agreed = coin.expansion(_SHARED_BITS + 64)
        won[tie] = decide(coin, agreed, _SHARED_BITS + 64, entropy)
    octets = heads.view(np.uint8).reshape(heads.shape[0], heads.shape[1], 8)
    entry, lane = entry[won], lane[won]
    np.bitwise_or.at(
        octets,
        (coin_index[entry], word_index[entry], lane // 8),
        (1 << (lane % 8)).astype(np.uint8),
    )


def decide(coin: Coin, drawn: int, bits: int, entropy: Entropy) -> bool:
    """Compare drawn bits, and 64 more as long as all agree, with the coin's expansion."""
    while drawn == (threshold := coin.expansion(bits)):
        drawn = (drawn << 64) | int.from_bytes(entropy.draw(8))
        bits += 64
    return drawn < threshold


def _overflow(tail: Coin, entropy: Entropy) -> int:
    """Count the whole turns beyond the last digit, given that there is one."""
    turns = 1
    while flip(tail, entropy):
        turns += 1
    return turns


def _digit_coins(rate: Fraction, *, public: bool = False) -> tuple[tuple[Coin, ...], Coin]:
    count = max(0, math.ceil(Fraction(_TAIL) / rate) - 1).bit_length()
    coins = tuple(Coin.logistic(rate * (1 << digit), public=public) for digit in range(count))
    return coins, Coin.decay(rate * (1 << count), public=public)


def _digit_thresholds(rate: Fraction, *, public: bool = False) -> tuple[tuple[int, ...], Coin]:
    coins, tail = _digit_coins(rate, public=public)
    return tuple(coin.expansion(128) for coin in coins), tail


@lru_cache(maxsize=256)
def _remembered_coins(rate: Fraction) -> tuple[tuple[Coin, ...], Coin]:
    return _digit_coins(rate, public=True)


@lru_cache(maxsize=256)
def _remembered_thresholds(rate: Fraction) -> tuple[tuple[int, ...], Coin]:
    return _digit_thresholds(rate, public=True)


def _words_for(rows: int) -> int:
    return -(-rows // _LANES)


def _blocks(rows: int, size: int = _BLOCK_ROWS) -> list[slice]:
    return [slice(first, first + size) for first in range(0, rows, size)]
