"""Runs the referee from its extent to its page; what was finished before is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from private_ate.data.files import write_whole
from private_ate.experiments.chunks import Cell
from private_ate.experiments.claims import Claim
from private_ate.experiments.plans import Scale
from private_ate.experiments.referee.draws import (
    audit_arms,
    measure_memory,
    read_audits,
    read_draws,
    read_memory,
    run_tasks,
)
from private_ate.experiments.referee.families import FAMILIES
from private_ate.experiments.referee.figures import draw_families, draw_overview
from private_ate.experiments.referee.page import Outcome, claims_of_referee, referee_page
from private_ate.experiments.referee.plan import FULL, QUICK, Extent
from private_ate.experiments.referee.tables import results_csv, summary_csv
from private_ate.experiments.referee.verdicts import cells_of

__all__ = ["plan_referee", "run_referee", "write_results"]


def plan_referee(scale: Scale) -> Iterator[Cell]:
    """Yield what is run, as cells of a grid whose repetitions are studies."""
    extent = QUICK if scale.quick else FULL
    for setting in extent.settings:
        for arm in extent.contestants(setting):
            draws = extent.draws[setting.size]
            repetitions = min(draws, extent.slow_draws) if arm.slow else draws
            for epsilon in extent.epsilons:
                yield Cell(setting.name, arm.label, epsilon, repetitions=repetitions)


def run_referee(  # noqa: PLR0913  # what the command line says about a run
    folder: Path,
    *,
    quick: bool,
    seed: int,
    jobs: int,
    resume: bool,
    origin: str,
    watch: Callable[[int, int], None] | None = None,
    extent: Extent | None = None,
) -> tuple[list[Claim], list[Path]]:
    """Run what is missing, then write results, figures and the page."""
    chosen = (QUICK if quick else FULL) if extent is None else extent
    if not resume:
        for part in (".draws", ".memory", ".audits"):
            shutil.rmtree(folder / part, ignore_errors=True)
    run_tasks(
        chosen.tasks(), folder / ".draws", epsilons=chosen.epsilons, seed=seed, jobs=jobs,
        watch=watch,
    )  # fmt: skip
    arms = tuple(arm for arm in chosen.arms if chosen.slow_draws or not arm.slow)
    measured = chosen.settings if chosen.audit_runs is None else chosen.settings[:1]
    measure_memory(arms, measured, folder / ".memory", chosen.slow_size)
    audit_arms(arms, chosen.epsilons, folder / ".audits", chosen.audit_runs)
    return write_results(folder, chosen, seed=seed, origin=origin)


def write_results(
    folder: Path, extent: Extent, *, seed: int, origin: str
) -> tuple[list[Claim], list[Path]]:
    """Write what the draws, measurements and audits that are there say.

    What is missing is counted on the page: a run that was cut short has one too.
    """
    studies = extent.studies
    draws = read_draws(studies, folder / ".draws", seed)
    cells = cells_of(draws)
    outcome = Outcome(
        draws=draws,
        cells=cells,
        memories=read_memory(folder / ".memory"),
        audits=read_audits(extent.arms, extent.epsilons, folder / ".audits"),
        figures=[*draw_overview(cells, folder), *draw_families(FAMILIES, cells, folder)],
        planned=len(studies),
    )
    write_whole(folder / "summary.csv", summary_csv(cells, outcome.memories, outcome.audits))
    write_whole(folder / "results.csv", _results(outcome))
    write_whole(folder / "page.md", referee_page(outcome, origin))
    return claims_of_referee(cells), list(outcome.figures)


def _results(outcome: Outcome) -> str:
    header = (
        "setting", "draw", "truth", "plain", "adjusted", "method", "epsilon", "seed", "estimate",
        "low", "high", "cpu_seconds", "note",
    )  # fmt: skip
    rows = [
        (
            draw.setting, draw.draw, draw.truth, draw.plain, draw.adjusted, one.arm, one.epsilon,
            str(one.seed), one.estimate, *(one.interval or (None, None)), one.cpu, one.note,
        )
        for draw in outcome.draws
        for one in draw.outings
    ]  # fmt: skip
    return results_csv(header, rows)
