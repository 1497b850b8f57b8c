"""What is to be run: cells of a grid, cut into chunks whose seeds and names are hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from private_ate._version import VERSION

__all__ = ["Cell", "Chunk", "chunks_of"]

_CHUNK_REPETITIONS = 10  # small enough to lose little in a crash, large enough to be few files

Parameter = tuple[str, str | int | float | tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a curve: everything about a run but its repetition.

    ``draw`` tells apart the data sets of a family, such as twenty draws of Synth; ``parameters``
    are options of the method that differ from its defaults.
    """

    dataset: str
    arm: str
    epsilon: str
    draw: int = 0
    neighbors: int = 5
    parameters: tuple[Parameter, ...] = ()
    repetitions: int = 100

    @property
    def parameters_text(self) -> str:
        """The parameters as one text for a results file."""
        return ";".join(f"{name}={_plain(value)}" for name, value in self.parameters)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some repetitions of a cell, run in one go and written to one file.

    ``isolated`` chunks get a process of their own, so that its memory can be measured.
    """

    experiment: str
    cell: Cell
    first: int
    count: int
    seed: int
    isolated: bool = False

    @property
    def name(self) -> str:
        """The file name: a hash of all that decides the numbers inside."""
        plain = asdict(self) | {"version": VERSION}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:24]

    def seed_of(self, repetition: int) -> int:
        """Return the seed of one repetition, whoever runs it and in whatever order."""
        cell = {key: value for key, value in asdict(self.cell).items() if key != "repetitions"}
        text = json.dumps([self.experiment, cell, repetition, self.seed], sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def chunks_of(
    experiment: str, cells: Iterable[Cell], *, seed: int, isolated: bool = False
) -> Iterator[Chunk]:
    """Cut every cell into chunks, in the order of the cells."""
    for cell in cells:
        for first in range(0, cell.repetitions, _CHUNK_REPETITIONS):
            count = min(_CHUNK_REPETITIONS, cell.repetitions - first)
            yield Chunk(experiment, cell, first, count, seed, isolated)


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(value)
    return "none" if value is None else str(value)
