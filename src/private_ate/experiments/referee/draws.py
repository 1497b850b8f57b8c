"""Releases of all arms on each study of the referee, their memory, and audits of each ε."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from threadpoolctl import threadpool_limits

from private_ate._version import VERSION
from private_ate.api import METHODS, estimate_ate
from private_ate.audit.run import audit_release
from private_ate.data.files import read_table, write_whole
from private_ate.engines.local import LocalStudy
from private_ate.errors import PrivateAteError
from private_ate.experiments.arms import Arm, arm_named
from private_ate.experiments.chunks import finish_each, peak_megabytes
from private_ate.experiments.referee.families import Setting, generate_study
from private_ate.experiments.referee.plan import Task
from private_ate.experiments.references import adjusted_means, plain_means, records_of
from private_ate.methods.composition import takes
from private_ate.release.release import Release
from private_ate.request import Request

__all__ = [
    "CONFIDENCE",
    "Audited",
    "Draw",
    "Memory",
    "Outing",
    "ask",
    "audit_arms",
    "measure_memory",
    "offers_interval",
    "read_audits",
    "read_draws",
    "read_memory",
    "run_tasks",
]

CONFIDENCE = 0.95
Watch = Callable[[int, int], None]
_EPSILON: Final = "1"
_PATIENCE: Final = 10.0  # seconds for an audit


@dataclass(frozen=True, slots=True)
class Outing:
    """One arm at one ε on one study.

    Attributes
    ----------
    arm, epsilon : str
        Who, and with how much.
    seed : int
        With which the release can be had again.
    estimate : float or None
        The effect; None where it was refused, ``note`` then says why.
    interval : pair of float or None
        The 95 % interval, where the method has one.
    cpu : float
        Processor seconds of the release.
    note : str
        The refusal.
    """

    arm: str
    epsilon: str
    seed: int
    estimate: float | None
    interval: tuple[float, float] | None
    cpu: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Draw:
    """What all arms made of one study, with the truth and two estimates without privacy."""

    setting: str
    draw: int
    truth: float
    plain: float
    adjusted: float
    outings: tuple[Outing, ...]


def run_tasks(
    tasks: Sequence[Task],
    folder: Path,
    *,
    epsilons: Sequence[str],
    seed: int,
    jobs: int = 1,
    watch: Watch | None = None,
) -> None:
    """Run what is missing in the folder; an arm that is new joins the draws that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    waiting = [task for task in tasks if _missing(task, folder, epsilons, seed)]
    done = len(tasks) - len(waiting)
    calls = [partial(run_task, task, folder, tuple(epsilons), seed) for task in waiting]
    for _ in finish_each(calls, jobs):
        done += 1
        if watch is not None:
            watch(done, len(tasks))


def read_draws(tasks: Sequence[Task], folder: Path, seed: int) -> list[Draw]:
    """Read the draws that are there, in the order of the tasks."""
    found = (_read(folder / task.name, seed) for task in tasks)
    return [draw for draw in found if draw is not None]


def run_task(task: Task, folder: Path, epsilons: tuple[str, ...], seed: int) -> None:
    """Generate the study of a task, let every arm that is missing see it, and keep the answers."""
    missing = _missing(task, folder, epsilons, seed)
    earlier = _read(folder / task.name, seed)
    # Products of matrices round differently on several threads.
    with threadpool_limits(limits=1):
        dataset = generate_study(task.setting, task.draw, seed)
        study = LocalStudy.encode(read_table(dataset.frame), dataset.domain)
        outings = [
            _outing(study, task, arm_named(label), epsilon, seed) for label, epsilon in missing
        ]
        if earlier is None:
            records = records_of(dataset)
            plain, adjusted = plain_means(records), adjusted_means(records)
            earlier = Draw(
                task.setting.name, task.draw, float(dataset.true_effect or 0.0),
                float(plain[1] - plain[0]), float(adjusted[1] - adjusted[0]), (),
            )  # fmt: skip
    whole = asdict(earlier) | {"outings": [asdict(one) for one in (*earlier.outings, *outings)]}
    write_whole(folder / task.name, json.dumps(whole | {"version": VERSION, "seed": seed}))


def _missing(task: Task, folder: Path, epsilons: Sequence[str], seed: int) -> list[tuple[str, str]]:
    held = _read(folder / task.name, seed)
    known = {(one.arm, one.epsilon) for one in held.outings} if held else set()
    pairs = [(arm.label, epsilon) for arm in task.arms for epsilon in epsilons]
    return [pair for pair in pairs if pair not in known]


def _read(path: Path, seed: int) -> Draw | None:
    """Read a draw; one of another version or base seed is none."""
    if not path.exists():
        return None
    plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if (plain.pop("version"), plain.pop("seed")) != (VERSION, seed):
        return None
    outings = []
    for one in plain.pop("outings"):
        interval = one.pop("interval")
        outings.append(Outing(**one, interval=None if interval is None else tuple(interval)))
    return Draw(**plain, outings=tuple(outings))


def _outing(study: LocalStudy, task: Task, arm: Arm, epsilon: str, seed: int) -> Outing:
    """Ask for one seeded release; a refusal is a result too.

    Ours are asked as a user asks, with an interval that is paid from the same ε. A competitor
    spends all of ε on the effect; where it has an interval, that comes from a second release.
    """
    number = _seed_of(task, arm, epsilon, seed)
    is_ours = not METHODS[arm.method].is_baseline
    start = time.process_time()
    try:
        release = ask(study, task.setting, arm, epsilon, number, with_interval=is_ours)
        seconds = time.process_time() - start
        second = release
        if not is_ours and offers_interval(arm):
            second = ask(study, task.setting, arm, epsilon, number, with_interval=True)
    except PrivateAteError as refusal:
        note = f"{type(refusal).__name__}: {refusal}"
        return Outing(arm.label, epsilon, number, None, None, time.process_time() - start, note)
    interval = None if second.interval is None else (second.interval[0], second.interval[1])
    return Outing(arm.label, epsilon, number, release.ate, interval, seconds)


def ask(
    study: LocalStudy, setting: Setting, arm: Arm, epsilon: str, seed: int, *, with_interval: bool
) -> Release:
    """Ask for one seeded release; in a trial, methods that can use the probability get it."""
    method = METHODS[arm.method]
    is_trial = setting.is_trial and takes(arm.method, arm.level, "probability")
    return estimate_ate(
        study,
        level=arm.level,
        epsilon=epsilon,
        method=arm.method,
        target=arm.target,
        confidence=CONFIDENCE if with_interval else None,
        options=method.options(**dict(arm.options)) if arm.options else None,
        design="randomized" if is_trial else "unknown",
        probability=setting.share if is_trial else None,
        seed=seed,
    )


@lru_cache(maxsize=64)
def offers_interval(arm: Arm) -> bool:
    """Say whether a method's releases have an interval, from one on a small study."""
    setting = Setting("probe", size=400, dimension=5)
    dataset = generate_study(setting, 0)
    study = LocalStudy.encode(read_table(dataset.frame), dataset.domain)
    return ask(study, setting, arm, "1", 0, with_interval=True).interval is not None


def _seed_of(task: Task, arm: Arm, epsilon: str, seed: int) -> int:
    text = json.dumps(["referee", task.setting.name, task.draw, arm.label, epsilon, seed])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True, slots=True)
class Memory:
    """The largest memory of a process that made one release and did nothing else."""

    arm: str
    size: int
    dimension: int
    megabytes: float | None


@dataclass(frozen=True, slots=True)
class Audited:
    """A lower bound on the ε of an arm's releases with a budget, at 99.9 % confidence."""

    arm: str
    epsilon: str
    claimed: str
    bound: float
    runs: int
    passed: bool


def measure_memory(
    arms: Sequence[Arm], settings: Sequence[Setting], folder: Path, slow_size: int
) -> None:
    """Measure what is not there yet: each arm in a fresh process, once for each n and d."""
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        for setting, arm in _pairs(arms, settings, slow_size):
            path = folder / f"{arm.label}-n{setting.size}-d{setting.dimension}.json"
            if not path.exists():
                peak = pool.submit(peak_of, arm.label, setting).result()
                memory = Memory(arm.label, setting.size, setting.dimension, peak)
                write_whole(path, json.dumps(asdict(memory)))


def read_memory(folder: Path) -> list[Memory]:
    """Read what was measured."""
    paths = sorted(folder.glob("*.json"))
    return [Memory(**json.loads(path.read_text(encoding="utf-8"))) for path in paths]


def peak_of(label: str, setting: Setting) -> float | None:
    """Return the largest memory of this process after one release, in megabytes."""
    dataset = generate_study(setting, 0)
    study = LocalStudy.encode(read_table(dataset.frame), dataset.domain)
    try:
        ask(study, setting, arm_named(label), _EPSILON, 0, with_interval=True)
    except PrivateAteError:
        return None
    return peak_megabytes()


def audit_arms(
    arms: Sequence[Arm], epsilons: Sequence[str], folder: Path, runs: int | None
) -> None:
    """Audit what was not audited yet, on the worst neighbours of `audit`."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, arm, epsilon in _audit_files(arms, epsilons, folder):
        if not path.exists():
            write_whole(path, json.dumps(asdict(_audited(arm, epsilon, runs))))


def read_audits(arms: Sequence[Arm], epsilons: Sequence[str], folder: Path) -> list[Audited]:
    """Read what the audits found, in the order of the arms."""
    return [
        Audited(**json.loads(path.read_text(encoding="utf-8")))
        for path, _, _ in _audit_files(arms, epsilons, folder)
        if path.exists()
    ]


def _audit_files(
    arms: Sequence[Arm], epsilons: Sequence[str], folder: Path
) -> Iterator[tuple[Path, Arm, str]]:
    for arm in arms:
        for epsilon in epsilons:
            yield folder / f"{arm.label}-{epsilon}.json", arm, epsilon


def _audited(arm: Arm, epsilon: str, runs: int | None) -> Audited:
    method = METHODS[arm.method]
    options = method.options(**dict(arm.options)) if arm.options else None
    request = Request(arm.level, Fraction(epsilon), target=arm.target, options=options)
    finding = audit_release(method, arm.level, runs, request=request, patience=_PATIENCE)
    bound = 0.0 if finding.bound is None else finding.bound
    return Audited(arm.label, epsilon, finding.claimed, bound, finding.runs, finding.passed)


def _pairs(
    arms: Sequence[Arm], settings: Sequence[Setting], slow_size: int
) -> Iterator[tuple[Setting, Arm]]:
    """Yield the first setting of each size and dimension with each arm that runs there."""
    shapes: dict[tuple[int, int], Setting] = {}
    for setting in settings:
        shapes.setdefault((setting.size, setting.dimension), setting)
    for setting in shapes.values():
        for arm in arms:
            if setting.size <= slow_size or not arm.slow:
                yield setting, arm
