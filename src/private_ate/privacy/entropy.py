"""Random bytes: the operating system's for releases, seeded ones for experiments."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field

import numpy as np

__all__ = [
    "GENERATOR_BYTES", "Entropy", "Generator", "SecureEntropy", "SeededEntropy", "entropy_for",
    "generator_from",
]  # fmt: skip

Generator = np.random.Generator  # for post-processing, such as drawing synthetic rows
GENERATOR_BYTES = 16  # a key of Philox


@dataclass(frozen=True, slots=True)
class SecureEntropy:
    """Bytes from the system's cryptographic generator; holds no state of its own.

    OpenSSL reseeds after a fork and is safe under threads, so forked or threaded
    workers never repeat a stream. The operating system answers where OpenSSL cannot.
    """

    def draw(self, count: int) -> bytes:
        """Return ``count`` unpredictable bytes."""
        try:
            return ssl.RAND_bytes(count)
        except ssl.SSLError:
            return os.urandom(count)


@dataclass(frozen=True, slots=True)
class SeededEntropy:
    """Repeatable bytes for experiments and tests; a release made with it is not private."""

    seed: int
    _stream: Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_stream", np.random.Generator(np.random.Philox(self.seed)))

    def draw(self, count: int) -> bytes:
        """Return the next ``count`` bytes of the seeded stream."""
        return self._stream.bytes(count)


Entropy = SecureEntropy | SeededEntropy


def entropy_for(seed: int | None) -> Entropy:
    """Choose the source: the operating system unless a seed is spelled out."""
    return SecureEntropy() if seed is None else SeededEntropy(seed)


def generator_from(drawn: bytes) -> Generator:
    """Return the generator for post-processing that secret bytes determine; never for noise."""
    return np.random.Generator(np.random.Philox(int.from_bytes(drawn)))
