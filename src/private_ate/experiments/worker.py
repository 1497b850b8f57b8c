"""Runs one chunk through the public estimators and writes what came out, all or nothing."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from private_ate.data.files import write_whole
from private_ate.datasets.dataset import Dataset, pairs_of_arms
from private_ate.errors import PrivateAteError
from private_ate.estimation import METHODS, estimate_ate
from private_ate.experiments.arms import arm_named
from private_ate.experiments.grid import Cell, Chunk
from private_ate.experiments.sources import References, open_source, reference_effects
from private_ate.release import Release

__all__ = ["ChunkResult", "Run", "peak_megabytes", "read_chunk", "run_chunk"]


@dataclass(frozen=True, slots=True)
class Run:
    """One repetition: its seed, its effects or the reason why there are none, and its time.

    ``effects`` are the contrasts in the order of `References`: one effect for two arms.
    """

    seed: int
    effects: list[float] | None
    note: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What a chunk produced, with the effects it is compared with."""

    references: References
    runs: list[Run]
    peak_megabytes: float | None


def run_chunk(chunk: Chunk, folder: Path) -> None:
    """Run a chunk and write its result under its name."""
    # Products of matrices round differently on several threads; one thread for everybody makes
    # the results the same for any number of jobs.
    with threadpool_limits(limits=1):
        result = _run(chunk)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / chunk.name, json.dumps(asdict(result)))


def read_chunk(chunk: Chunk, folder: Path) -> ChunkResult:
    """Read the result of a chunk that was run before."""
    plain = json.loads((folder / chunk.name).read_text(encoding="utf-8"))
    runs = [Run(**run) for run in plain["runs"]]
    return ChunkResult(References(**plain["references"]), runs, plain["peak_megabytes"])


def _run(chunk: Chunk) -> ChunkResult:
    cell = chunk.cell
    references = reference_effects(cell.dataset, cell.draw, cell.neighbors)
    if chunk.isolated:
        _release(cell, chunk.seed_of(-1))  # compiles and loads what a first release needs
    repetitions = range(chunk.first, chunk.first + chunk.count)
    runs = [_timed(cell, chunk.seed_of(repetition)) for repetition in repetitions]
    return ChunkResult(references, runs, peak_megabytes() if chunk.isolated else None)


def _timed(cell: Cell, seed: int) -> Run:
    start = time.perf_counter()
    effects, note = _release(cell, seed)
    return Run(seed, effects, note, time.perf_counter() - start)


def _release(cell: Cell, seed: int) -> tuple[list[float] | None, str]:
    """Ask the front door for one seeded release; a refusal is a result too."""
    arm = arm_named(cell.arm)
    chosen = dict(arm.options) | dict(cell.parameters)
    try:
        release = estimate_ate(
            open_source(cell.dataset, cell.draw).study,
            level=arm.level,
            epsilon=cell.epsilon,
            method=arm.method,
            target=arm.target,
            neighbors=cell.neighbors,
            confidence=None,  # all of ε goes to the estimate, as in the paper
            options=METHODS[arm.method].options(**chosen) if chosen else None,
            seed=seed,
        )
    except PrivateAteError as refusal:
        return None, f"{type(refusal).__name__}: {refusal}"
    return _effects(release, open_source(cell.dataset, cell.draw).dataset), ""


def _effects(release: Release, dataset: Dataset) -> list[float]:
    """Return a release's contrasts in the order of the references: one for two arms."""
    if dataset.domain.treatment.size == 2:
        return [release.ate]
    effects = {(contrast.arm, contrast.against): contrast.effect for contrast in release.contrasts}
    return [effects[pair] for pair in pairs_of_arms(dataset.domain.treatment.coded)]


def peak_megabytes() -> float | None:
    """Return the largest memory this process held, where the system says it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    # Not getrusage: a child's largest memory starts at that of the parent it was started from.
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
    return None if peak is None else int(peak[1]) / 1024
