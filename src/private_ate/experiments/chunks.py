"""What is to be run: the points of a grid, cut into chunks that run on processes.

Seeds and file names of chunks are hashes; a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from private_ate._version import VERSION
from private_ate.api import METHODS, estimate_ate
from private_ate.data.files import write_whole
from private_ate.datasets.dataset import Dataset, pairs_of_arms
from private_ate.errors import PrivateAteError
from private_ate.experiments.arms import arm_named
from private_ate.experiments.references import References, open_source, reference_effects
from private_ate.release.release import Release

__all__ = [
    "Cell",
    "Chunk",
    "ChunkResult",
    "Run",
    "Watch",
    "chunks_of",
    "finish_each",
    "peak_megabytes",
    "read_chunk",
    "run_chunk",
    "run_chunks",
]

_CHUNK_REPETITIONS = 10  # small enough to lose little in a crash, large enough to be few files
Parameter = tuple[str, str | int | float | tuple[str, ...] | None]
Watch = Callable[[int, int], None]  # chunks done, chunks in all


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a curve: everything about a run but its repetition.

    ``draw`` numbers the data sets of a family, such as twenty draws of Synth; ``parameters``
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


def run_chunks(
    chunks: Sequence[Chunk], folder: Path, *, jobs: int = 1, watch: Watch | None = None
) -> None:
    """Run every chunk that has no result in the folder yet.

    Chunks run in the order of their hashes: a fair sample at any time, so that the time left is
    estimated well although cells differ a thousandfold in cost.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    done = {path.name for path in folder.iterdir()}
    todo = sorted((chunk for chunk in chunks if chunk.name not in done), key=lambda c: c.name)
    finished = len(chunks) - len(todo)
    calls = [partial(run_chunk, chunk, folder) for chunk in todo]
    for _ in finish_each(calls, jobs, isolated=any(chunk.isolated for chunk in todo)):
        finished += 1
        if watch is not None:
            watch(finished, len(chunks))


def finish_each(
    calls: Sequence[Callable[[], None]], jobs: int, *, isolated: bool = False
) -> Iterator[None]:
    """Make calls on so many processes and yield after each; ``isolated`` ones have one each."""
    if jobs == 1 and not isolated:
        for call in calls:
            call()
            yield
        return
    with ProcessPoolExecutor(
        # Measurements share the machine with nothing else of ours.
        max_workers=1 if isolated else jobs,
        # Spawned, not forked: polars and numba hold threads that do not survive a fork.
        mp_context=multiprocessing.get_context("spawn"),
        max_tasks_per_child=1 if isolated else None,
    ) as pool:
        futures = [pool.submit(call) for call in calls]
        try:
            for future in as_completed(futures):
                future.result()
                yield
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


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
    """Ask `estimate_ate` for one seeded release; a refusal is a result too."""
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
