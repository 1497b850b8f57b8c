"""What a release costs in memory, and what an audit finds of each ε, arm by arm."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from private_ate.audit.run import audit_release
from private_ate.data.files import write_whole
from private_ate.data.tables import read_table
from private_ate.engines.local import LocalStudy
from private_ate.errors import PrivateAteError
from private_ate.estimation import METHODS
from private_ate.estimators.request import Request
from private_ate.experiments.arms import Arm, arm_named
from private_ate.experiments.referee.families import Setting, generate_study
from private_ate.experiments.referee.running import ask
from private_ate.experiments.worker import peak_megabytes

__all__ = ["Audited", "Memory", "audit_arms", "measure_memory", "read_audits", "read_memory"]

_EPSILON: Final = "1"
_PATIENCE: Final = 10.0  # seconds for an audit


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
    """Audit what was not audited yet, on the worst neighbours of the audit room."""
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
