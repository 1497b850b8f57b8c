"""Run the whole audit: samplers, single steps, whole releases; and its pictures."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from private_ate.api import METHODS, Method, estimate_study
from private_ate.arrays import Floats
from private_ate.audit.bounds import epsilon_bound, joint_evidence, largest_gap
from private_ate.audit.neighbours import (
    EPSILON,
    Neighbours,
    Step,
    arm_neighbours,
    neighbours_for,
    noisy_steps,
)
from private_ate.audit.samplers import RATES, SMALLEST_P, check_samplers
from private_ate.engines.local import LocalStudy, Progress
from private_ate.errors import ArgumentError
from private_ate.methods.composition import takes
from private_ate.privacy.levels import Level
from private_ate.request import Request

Outputs = npt.NDArray[np.float64]  # one row per run, one column per number that is seen

_PILOT = 60
_USUAL_RUNS = 20_000
_PATIENCE = 20.0
# Where no number of runs is asked for: draws of a sampler, draws of a step, and seconds for the
# releases of one method.
_THOROUGH = (200_000, _USUAL_RUNS, _PATIENCE)
_FAST = (20_000, 1_000, 0.6)
_COLUMNS = 64
_CUT = ("x<0.5",)  # subgroups between which neighbours that change ends move
_LARGEST_TOTAL = Fraction(64)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the audit: what is claimed, what was measured, and whether they agree.

    ``samples`` are the two outputs behind a bound on ε, for a picture, and ``bound`` its value.
    """

    what: str
    claimed: str
    measured: str
    runs: int
    passed: bool
    samples: tuple[Floats, Floats] | None = field(default=None, repr=False, compare=False)
    bound: float | None = None


def run_audit(
    runs: int | None = None, progress: Progress | None = None, *, fast: bool = False
) -> Iterator[Finding]:
    """Yield a line for the samplers, for each noisy step and for each method's releases.

    Parameters
    ----------
    runs : int, optional
        Draws of each step and releases of each method, for either neighbour. By default 20,000
        draws, and as many releases as fit into twenty seconds a method.
    progress : callable, optional
        Called as ``progress(title, done, total)``.
    fast : bool
        Without ``runs``: be done within two minutes, by fewer draws and releases; what they find
        is as sure, but they find larger flaws only.
    """
    usual, many, patience = _FAST if fast else _THOROUGH
    draws = usual if runs is None else max(2_000, min(10 * runs, 2_000_000))
    yield _sampler_line(draws, progress)
    for method in METHODS.values():
        for level in method.levels:
            for several in (False, True)[: 1 + takes(method.name, level, "arms")]:
                yield from audit_steps(method, level, runs or many, progress, several_arms=several)
                yield audit_release(
                    method, level, runs, progress, several_arms=several, patience=patience
                )
            if takes(method.name, level, "subgroups"):
                yield audit_release(method, level, runs, progress, by=_CUT, patience=patience)


def audit_steps(
    method: Method,
    level: Level,
    runs: int,
    progress: Progress | None = None,
    *,
    several_arms: bool = False,
) -> Iterator[Finding]:
    """Yield a line for each noisy step that a record can move, on its worst neighbours.

    Each step is looked at with a total budget that leaves it about ε = 1, where a bound says most.
    With ``several_arms`` the neighbours are those of three arms.
    """
    pairs = _pairs(method, level, several_arms=several_arms)
    for (name, spread), (_, pair, share) in _worst_steps(method, level, pairs).items():
        steps = noisy_steps(method, level, pair, _total_for(share))
        step = next(step for step in steps if step.spend.step == name)
        title = f"{_title(method, level, several_arms=several_arms)}: {name}"
        title += ", several moved" if spread else ""

        def measure(title: str = title, step: Step = step) -> tuple[Outputs, Outputs]:
            return _draw_both(_values(step.first), _values(step.second), runs, title, progress)

        delta = float(getattr(step.spend, "delta", 0))
        yield _bound_line(title, float(step.spend.epsilon), delta, measure)


def _worst_steps(
    method: Method, level: Level, pairs: list[Neighbours]
) -> dict[tuple[str, bool], tuple[float, Neighbours, Fraction]]:
    """Find for each step the neighbours that move its input most, and its share of ε.

    Sums of arms are looked at twice: where one of them moves, and where several do.
    """
    worst: dict[tuple[str, bool], tuple[float, Neighbours, Fraction]] = {}
    for pair in pairs:
        for step in noisy_steps(method, level, pair):
            share = step.spend.epsilon / EPSILON
            if step.moved and share > 0:
                gap = _pilot_gap(_values(step.first), _values(step.second))
                key = (step.spend.step, step.spread)
                if gap >= worst.get(key, (0.0,))[0]:
                    worst[key] = (gap, pair, share)
    return worst


def _total_for(share: Fraction) -> Fraction:
    """Return a total of which a step with this share gets about ε = 1, as short as an ε must be."""
    return Fraction(f"{float(min(EPSILON / share, _LARGEST_TOTAL)):.6g}")


def _pairs(method: Method, level: Level, *, several_arms: bool) -> list[Neighbours]:
    if several_arms:
        return list(arm_neighbours(level))
    return list(neighbours_for(level, missing=takes(method.name, level, "private missing")))


def _title(method: Method, level: Level, *, several_arms: bool) -> str:
    return f"{method.name}, {level} level" + (", three arms" if several_arms else "")


def audit_release(  # noqa: PLR0913  # one value per question about the releases
    method: Method,
    level: Level,
    runs: int | None,
    progress: Progress | None = None,
    *,
    several_arms: bool = False,
    by: tuple[str, ...] = (),
    request: Request | None = None,
    patience: float = _PATIENCE,
) -> Finding:
    """Return the line of a method's whole releases, on its worst neighbours.

    The usual request asks for the method's defaults at ε = 1; another one has its own options.
    With ``by`` releases are those of subgroups without intervals, and all rows of their tables
    are looked at. Where no number of runs is asked for, as many as fit into ``patience`` seconds
    are made.
    """
    if request is None:
        request = Request(level, EPSILON, by=by, confidence=None if by else 0.95)
    pairs = _pairs(method, level, several_arms=several_arms)
    if by:
        pairs = list(neighbours_for(level))  # at label level no subgroup may lack an outcome
    delta = estimate_study(pairs[0].first, request, method).delta
    start = time.monotonic()  # of a second release: the first one may compile
    estimate_study(pairs[0].first, request, method)
    cost = max(time.monotonic() - start, 1e-4)
    pilot = int(np.clip(patience / (4 * cost * len(pairs)), 3, _PILOT))
    gaps = [_pilot_gap(*_makers(method, request, pair), pilot) for pair in pairs]
    pair = pairs[int(np.argmax(gaps))]
    fitting = int(np.clip(patience / (2 * cost), 20, _USUAL_RUNS))
    kind = "tables of subgroups" if by else "releases"
    title = f"{_title(method, level, several_arms=several_arms)}: {kind}"

    def measure() -> tuple[Outputs, Outputs]:
        return _draw_both(*_makers(method, request, pair), runs or fitting, title, progress)

    return _bound_line(f"{title} ({pair.title})", float(request.epsilon), delta, measure)


def _bound_line(
    title: str, claimed: float, delta: float, measure: Callable[[], tuple[Outputs, Outputs]]
) -> Finding:
    """Measure once; a bound above the claim must be found a second time to count."""
    for _ in range(2):
        outputs = _with_evidence(measure())
        bound, column = _best_bound(outputs, delta)
        if bound <= claimed:
            break
    first, second = outputs
    promise = f"ε = {claimed:g}" + (f", δ = {delta:g}" if delta else "")
    samples = (first[:, column], second[:, column])
    return Finding(title, promise, f"ε ≥ {bound:.3f}", len(first), bound <= claimed, samples, bound)


def _with_evidence(outputs: tuple[Outputs, Outputs]) -> tuple[Outputs, Outputs]:
    """Add a column for what all numbers of a run say together."""
    first, second = outputs
    together = joint_evidence(first, second, _pilot_size(first))
    return np.column_stack((first, together[0])), np.column_stack((second, together[1]))


def _pilot_size(outputs: Outputs) -> int:
    return max(10, len(outputs) // 10)


def _best_bound(outputs: tuple[Outputs, Outputs], delta: float) -> tuple[float, int]:
    """Choose the most telling number on the first tenth of the runs, bound ε on the rest."""
    first, second = outputs
    tenth = _pilot_size(first)
    gaps = [
        largest_gap(first[:tenth, column], second[:tenth, column])
        for column in range(first.shape[1])
    ]
    column = int(np.argmax(gaps))
    return epsilon_bound(first[tenth:, column], second[tenth:, column], delta), column


def _sampler_line(draws: int, progress: Progress | None) -> Finding:
    total = 6 * len(RATES) + 6 * len(RATES[2::4]) + 3
    tests = []
    for done, test in enumerate(check_samplers(draws), 1):
        tests.append(test)
        if progress is not None:
            progress("samplers", done, total)
    odd = [test for test in tests if not test.passed]
    least = min(tests, key=lambda test: test.p)
    measured = f"least p = {least.p:.2g}" if not odd else f"{odd[0].name}: p = {odd[0].p:.2g}"
    what = f"samplers: {len(tests)} tests (chi-square, digits, signs, lags, flips)"
    return Finding(what, f"p ≥ {SMALLEST_P:g}", measured, draws, not odd)


def _makers(
    method: Method, request: Request, pair: Neighbours
) -> tuple[Callable[[], list[float]], Callable[[], list[float]]]:
    def make(study: LocalStudy) -> list[float]:
        release = estimate_study(study, request, method)
        rows = [row.estimate for row in release.effects if row.subgroup is not None]
        return [release.ate, *(release.interval or ()), *rows]

    return partial(make, pair.first), partial(make, pair.second)


def _values(draw: Callable[[], Any]) -> Callable[[], list[float]]:
    """Return a draw as plain numbers: of a long vector, the first coordinates."""
    return lambda: [float(value) for value in np.ravel(draw()).tolist()[:_COLUMNS]]


def _pilot_gap(
    first: Callable[[], list[float]], second: Callable[[], list[float]], runs: int = _PILOT
) -> float:
    one, other = _draw_both(first, second, runs, "", None)
    return max(largest_gap(one[:, column], other[:, column]) for column in range(one.shape[1]))


def _draw_both(
    first: Callable[[], list[float]],
    second: Callable[[], list[float]],
    runs: int,
    title: str,
    progress: Progress | None,
) -> tuple[Outputs, Outputs]:
    one: list[list[float]] = []
    other: list[list[float]] = []
    for done in range(1, runs + 1):
        one.append(first())
        other.append(second())
        if progress is not None and done % 50 == 0:
            progress(title, done, runs)
    return np.array(one, dtype=np.float64), np.array(other, dtype=np.float64)


def plot_findings(findings: Sequence[Finding], folder: Path) -> list[Path]:
    """Write one SVG for each bound on ε; returns nothing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure  # the `plots` extra
    except ImportError:
        return []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        msg = f"the folder {str(folder)!r} cannot be made"
        raise ArgumentError(msg) from cause
    written = []
    for finding in findings:
        if finding.samples is None:
            continue
        figure = Figure(figsize=(6, 3.4), layout="constrained")
        axes = figure.subplots()
        pooled = np.concatenate(finding.samples)
        low, high = np.quantile(pooled, [0.005, 0.995])
        bins = np.linspace(low, high if high > low else low + 1, 61).tolist()
        for sample, label in zip(finding.samples, ("one study", "its neighbour"), strict=True):
            axes.hist(sample, bins, density=True, histtype="step", linewidth=1.4, label=label)
        axes.set_title(f"{finding.what}\nclaimed {finding.claimed}, measured {finding.measured}",
                       fontsize=8)  # fmt: skip
        axes.set_xlabel("output")
        axes.set_ylabel("density")
        axes.legend(frameon=False)
        path = folder / (re.sub(r"[^a-z0-9]+", "-", finding.what.lower()).strip("-") + ".svg")
        figure.savefig(path)
        written.append(path)
    return written
