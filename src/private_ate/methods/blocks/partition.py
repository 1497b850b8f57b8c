"""Row positions to blocks: a keyed shuffle of the positions, which never looks at a row.

The shuffle is a Feistel network on as many bits as positions need, walked along its cycle until
it is back among them. It is a bijection for every key, costs no memory, and a row's place
follows from its position alone, so that a cluster can key its rows without a table. It need not
be secret: the proof holds for every fixed partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Integers, Words
from private_ate.privacy.noise import Noise

_ROUNDS: Final = 6
_KEY_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A partition of ``size`` positions into ``count`` blocks of equal size, or one row more."""

    size: int
    count: int
    key: int

    def places(self, first: int, rows: int) -> Integers:
        """Return the shuffled places of a run of positions, a bijection on all of them."""
        half = max((self.size - 1).bit_length() + 1, 2) // 2
        state = _encrypt(np.arange(first, first + rows, dtype=np.uint64), half, self.key)
        outside = np.flatnonzero(state >= self.size)
        while outside.size:  # a few rounds: the network is at most four times too wide
            state[outside] = _encrypt(state[outside], half, self.key)
            outside = outside[state[outside] >= self.size]
        return state.astype(np.int64)


def draw_shuffles(size: int, count: int, partitions: int, keys: bytes) -> list[Shuffle]:
    """Return independent partitions of the same positions, keyed by fresh bytes."""
    parts = [keys[_KEY_BYTES * i : _KEY_BYTES * (i + 1)] for i in range(partitions)]
    return [Shuffle(size, count, int.from_bytes(part)) for part in parts]


def draw_keys(partitions: int, noise: Noise) -> bytes:
    """Draw the keys of some partitions; nothing about a row goes in."""
    return noise.secret_bytes(_KEY_BYTES * partitions)


def _encrypt(values: Words, half: int, key: int) -> Words:
    """Run the Feistel network on ``2·half`` bits."""
    mask = np.uint64((1 << half) - 1)
    left, right = values >> np.uint64(half), values & mask
    for number in range(_ROUNDS):
        left, right = right, left ^ (_mix(right, key, number) & mask)
    encrypted: Words = (left << np.uint64(half)) | right
    return encrypted


def _mix(values: Words, key: int, number: int) -> Words:
    """Hash words with a key and the number of the round (splitmix64)."""
    start = (key + number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    state = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
