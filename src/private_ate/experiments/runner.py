"""Releases of a grid, cut into chunks that run on processes: one runner for all experiments.

Seeds and file names of chunks are hashes; a run that was killed goes on where it stopped, and a
method that is new joins what is there.
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
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from threadpoolctl import threadpool_limits

from private_ate._version import VERSION
from private_ate.api import METHODS, estimate_ate
from private_ate.data.files import write_whole
from private_ate.datasets.dataset import pairs_of_arms
from private_ate.errors import PrivateAteError
from private_ate.experiments.arms import Arm, arm_named
from private_ate.experiments.references import Source, open_source, reference_effects
from private_ate.methods.composition import takes
from private_ate.release.release import Release

__all__ = [
    "CONFIDENCE",
    "Cell",
    "Chunk",
    "Parameter",
    "Run",
    "Scale",
    "Watch",
    "ask",
    "chunks_of",
    "offers_interval",
    "peak_megabytes",
    "read_chunk",
    "run_chunk",
    "run_chunks",
]

CONFIDENCE: Final = 0.95
_TOGETHER: Final = 10  # small enough to lose little in a crash, large enough to be few files
_PROBE: Final = "linear-n1000-d20"
Parameter = tuple[str, str | int | float | tuple[str, ...] | None]
_EPSILONS: Final = ("0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4")
_QUICK_EPSILONS: Final = ("0.5", "1", "3", "4")
_LARGE_SETS: Final = ("ihdp", "acic")  # where synthesisers take minutes
Watch = Callable[[int, int], None]  # chunks done, chunks in all


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a curve: everything about a run but its repetition.

    ``draw`` numbers the data sets of a family, such as twenty draws of Synth; ``parameters``
    are options of the method that differ from its defaults. Without intervals all of ε goes to
    the estimate; with them a method is asked as a user asks. ``isolated`` cells get a process of
    their own, so that its memory can be measured.
    """

    dataset: str
    arm: str
    epsilon: str
    draw: int = 0
    neighbors: int = 5
    parameters: tuple[Parameter, ...] = ()
    repetitions: int = 100
    with_intervals: bool = False
    isolated: bool = False

    @property
    def parameters_text(self) -> str:
        """The parameters as one text for a results file."""
        return ";".join(f"{name}={_plain(value)}" for name, value in self.parameters)

    @property
    def curve(self) -> tuple[object, ...]:
        """All but ε and the repetitions: cells of one curve are run together."""
        return self.dataset, self.draw, self.arm, self.neighbors, self.parameters, self.isolated


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run: quick or in full, on which data sets, with which arms, from which seed."""

    quick: bool
    datasets: tuple[str, ...]
    arms: tuple[Arm, ...]
    is_appendix_wanted: bool = True
    seed: int = 1

    @property
    def neighbors(self) -> tuple[int, ...]:
        """Numbers of neighbours (N): the paper's figure, then those of its appendix."""
        return (5, 1, 3, 7) if self.is_appendix_wanted and not self.quick else (5,)

    @property
    def epsilons(self) -> tuple[str, ...]:
        """The paper's budgets."""
        return _QUICK_EPSILONS if self.quick else _EPSILONS

    @property
    def fast_arms(self) -> tuple[Arm, ...]:
        """The arms whose releases take less than seconds."""
        return tuple(arm for arm in self.arms if not arm.slow)

    def pick(self, full: int, quick: int) -> int:
        """Return the number for this scale."""
        return quick if self.quick else full

    def arms_named(self, *labels: str) -> tuple[Arm, ...]:
        """Return those of the runnable arms that have one of the labels."""
        return tuple(arm for arm in self.arms if arm.label in labels)

    def repetitions(self, arm: Arm, dataset: str, neighbors: int = 5) -> int:
        """Return how often a cell is repeated: 100, fewer for appendices and slow arms."""
        if not arm.slow:
            return self.pick(100 if neighbors == 5 else 30, 5)
        if self.quick:
            return 0 if dataset in _LARGE_SETS else 1
        if dataset == "acic":  # half a minute a release
            return 3 if neighbors == 5 else 0
        return 10 if neighbors == 5 else 3


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some releases of one method on one data set, run in one go and written to one file."""

    experiment: str
    releases: tuple[tuple[Cell, int], ...]
    seed: int

    @property
    def cell(self) -> Cell:
        """The first cell; others differ from it in ε alone."""
        return self.releases[0][0]

    @property
    def name(self) -> str:
        """The file name: a hash of all that decides the numbers inside."""
        plain = asdict(self) | {"version": VERSION}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:24]

    def seed_of(self, cell: Cell, repetition: int) -> int:
        """Return the seed of one repetition, whoever runs it and in whatever order."""
        known = ("arm", "dataset", "draw", "epsilon", "neighbors", "parameters")
        text = json.dumps(
            [self.experiment, {key: getattr(cell, key) for key in known}, repetition, self.seed],
            sort_keys=True,
        )
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def chunks_of(experiment: str, cells: Iterable[Cell], *, seed: int) -> Iterator[Chunk]:
    """Cut every curve into chunks, in the order of the cells."""
    for _, members in groupby(cells, key=lambda cell: cell.curve):
        releases = [(cell, number) for cell in members for number in range(cell.repetitions)]
        for first in range(0, len(releases), _TOGETHER):
            yield Chunk(experiment, tuple(releases[first : first + _TOGETHER]), seed)


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(value)
    return "none" if value is None else str(value)


def run_chunks(
    chunks: Sequence[Chunk],
    folder: Path,
    *,
    jobs: int = 1,
    watch: Watch | None = None,
    stage: Callable[[Cell], tuple[object, ...]] = lambda _: (),
) -> None:
    """Run every chunk that has no result in the folder yet, in the order of their stages.

    Within a stage they run in the order of their hashes: a fair sample at any time, so that the
    time left is estimated well although cells differ a thousandfold in cost.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    done = {path.name for path in folder.iterdir()}
    todo = [chunk for chunk in chunks if chunk.name not in done]
    todo.sort(key=lambda chunk: (chunk.cell.isolated, *stage(chunk.cell), chunk.name))
    finished = len(chunks) - len(todo)
    for isolated, members in groupby(todo, key=lambda chunk: chunk.cell.isolated):
        calls = [partial(run_chunk, chunk, folder) for chunk in members]
        for _ in _finish_each(calls, jobs, isolated=isolated):
            finished += 1
            if watch is not None:
                watch(finished, len(chunks))


def _finish_each(
    calls: Sequence[Callable[[], None]], jobs: int, *, isolated: bool
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
    """One release: its seed, what came out or the reason why nothing did, and its time.

    ``effects`` are the contrasts in the order of the references, one for two arms, and
    ``intervals`` their 95 % intervals; ``cpu`` are processor seconds.
    """

    seed: int
    effects: list[float] | None = None
    intervals: list[list[float]] | None = None
    note: str = ""
    seconds: float = 0.0
    cpu: float = 0.0


def run_chunk(chunk: Chunk, folder: Path) -> None:
    """Run a chunk and write its result under its name."""
    cell = chunk.cell
    # Products of matrices round differently on several threads; one thread for everybody makes
    # the results the same for any number of jobs.
    with threadpool_limits(limits=1):
        if cell.isolated:
            _run(cell, chunk.seed_of(cell, -1))  # compiles and loads what a first release needs
        runs = [_run(one, chunk.seed_of(one, number)) for one, number in chunk.releases]
        peak = peak_megabytes() if cell.isolated else None
        known = (cell.dataset, cell.draw, cell.neighbors)
        references = {} if cell.isolated else reference_effects(*known)
    result = {
        "references": references,
        "runs": [asdict(run) for run in runs],
        "peak_megabytes": peak,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / chunk.name, json.dumps(result))


def read_chunk(chunk: Chunk, folder: Path) -> dict[str, Any] | None:
    """Read the result of a chunk: references, runs, largest memory; None if it was not run."""
    path = folder / chunk.name
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found | {"runs": [Run(**run) for run in found["runs"]]}


def _run(cell: Cell, seed: int) -> Run:
    """Make one seeded release; a refusal is a result too.

    Where intervals are wanted, ours is paid from the same ε, as for a user. A competitor spends
    all of ε on the effect; where it has an interval, that comes from a second release.
    """
    arm, source = arm_named(cell.arm), open_source(cell.dataset, cell.draw)
    is_ours = not METHODS[arm.method].is_baseline
    start, start_cpu = time.perf_counter(), time.process_time()
    try:
        with_interval = cell.with_intervals and is_ours
        release = ask(source, arm, cell, seed, with_interval=with_interval)
        seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
        second = release
        if cell.with_intervals and not is_ours and offers_interval(arm):
            second = ask(source, arm, cell, seed, with_interval=True)
    except PrivateAteError as refusal:
        seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
        return Run(seed, note=f"{type(refusal).__name__}: {refusal}", seconds=seconds, cpu=cpu)
    coded = source.dataset.domain.treatment.coded
    effects = [effect for effect, _ in _contrasts(release, coded)]
    intervals = [list(ends) for _, ends in _contrasts(second, coded) if ends is not None]
    kept = intervals if cell.with_intervals and intervals else None
    return Run(seed, effects, kept, "", seconds, cpu)


def ask(source: Source, arm: Arm, cell: Cell, seed: int, *, with_interval: bool) -> Release:
    """Ask for one seeded release; in a trial, methods that can use the probability get it."""
    chosen = dict(arm.options) | dict(cell.parameters)
    is_trial = source.probability is not None and takes(arm.method, arm.level, "probability")
    return estimate_ate(
        source.study,
        level=arm.level,
        epsilon=cell.epsilon,
        method=arm.method,
        target=arm.target,
        neighbors=cell.neighbors,
        confidence=CONFIDENCE if with_interval else None,
        options=METHODS[arm.method].options(**chosen) if chosen else None,
        design="randomized" if is_trial else "unknown",
        probability=source.probability if is_trial else None,
        seed=seed,
    )


@lru_cache(maxsize=64)
def offers_interval(arm: Arm) -> bool:
    """Say whether a method's releases have an interval, from one on a small study."""
    source, cell = open_source(_PROBE, 0), Cell(_PROBE, arm.label, "1")
    return ask(source, arm, cell, 0, with_interval=True).interval is not None


def _contrasts(
    release: Release, coded: Sequence[str]
) -> list[tuple[float, tuple[float, float] | None]]:
    """Return a release's effects and intervals in the order of the references."""
    if len(coded) == 2:
        return [(release.ate, release.interval)]
    found = {(one.arm, one.against): one for one in release.contrasts}
    pairs = [found[pair] for pair in pairs_of_arms(coded)]
    return [(one.effect, one.interval) for one in pairs]


def peak_megabytes() -> float | None:
    """Return the largest memory this process held, where the system says it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    # Not getrusage: a child's largest memory starts at that of the parent it was started from.
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
    return None if peak is None else int(peak[1]) / 1024
