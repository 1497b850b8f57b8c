"""Random bytes: the operating system's for releases, seeded ones for experiments."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Entropy", "Generator", "SecureEntropy", "SeededEntropy", "entropy_for"]

Generator = np.random.Generator  # for post-processing, such as drawing synthetic rows


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

    def generator(self) -> Generator:
        """Return a fresh generator for post-processing, never for noise."""
        return _generator(self.draw(16))


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

    def generator(self) -> Generator:
        """Return a generator that the seed determines, for post-processing."""
        return _generator(self.draw(16))


Entropy = SecureEntropy | SeededEntropy


def entropy_for(seed: int | None) -> Entropy:
    """Choose the source: the operating system unless a seed is spelled out."""
    return SecureEntropy() if seed is None else SeededEntropy(seed)


def _generator(drawn: bytes) -> Generator:
    return np.random.Generator(np.random.Philox(int.from_bytes(drawn)))
