"""All experiments by name: what is run, what is drawn, what is compared with the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from private_ate.experiments import figures, markdown, plans
from private_ate.experiments.chunks import Cell, Watch
from private_ate.experiments.claims import Claim, claims_of_end_to_end
from private_ate.experiments.claims_parameters import (
    claims_of_allocation,
    claims_of_coefficient_c,
    claims_of_coefficient_h,
    claims_of_limit_label,
    claims_of_limit_sample,
)
from private_ate.experiments.findings import (
    against_matching,
    against_truth,
    claims_of_timings,
    findings_of_arms,
    findings_of_size,
    findings_of_ten_percent,
    findings_of_truth,
)
from private_ate.experiments.plans import Scale
from private_ate.experiments.referee.run import plan_referee, run_referee
from private_ate.experiments.results import Summary, Timing

__all__ = ["EXPERIMENTS", "Experiment", "OwnRun", "PageTable"]


class OwnRun(Protocol):
    """Runs an experiment in a way of its own and writes its page."""

    def __call__(
        self,
        folder: Path,
        *,
        quick: bool,
        seed: int,
        jobs: int,
        resume: bool,
        origin: str,
        watch: Watch | None = None,
    ) -> tuple[list[Claim], list[Path]]:
        """Return what is said and measured, and the figures without their endings."""


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a results page and the sentence above it."""

    caption: str
    write: Callable[[Summary, Sequence[Timing]], str]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A named experiment.

    Attributes
    ----------
    name, title, origin : str
        How it is called, what it asks, and which figure or table of the paper it repeats.
    plan : callable
        From a scale to the cells to run.
    claims : callable
        From the summary and the timings to sentences and verdicts.
    draw : callable or None
        Draws figures into a folder and returns their paths without endings.
    tables : sequence of Table
        What the page shows beside the figures.
    figure_note : str
        How to read the figures.
    isolated : bool
        Whether every chunk runs in a process of its own, one after the other.
    own_run : callable or None
        Runs the experiment in a way of its own; the plan then only says how much is run.
    """

    name: str
    title: str
    origin: str
    plan: Callable[[Scale], Iterable[Cell]]
    claims: Callable[[Summary, Sequence[Timing]], list[Claim]]
    draw: Callable[[Summary, Path], list[Path]] | None
    tables: Sequence[PageTable] = ()
    figure_note: str = "Bars are standard errors of the mean."
    isolated: bool = False
    own_run: OwnRun | None = None


_BY_EPSILON: Final = PageTable(
    "Relative error, mean ± standard deviation, N = 5.",
    lambda summary, _: markdown.table_by_epsilon(summary),
)
_OURS: Final = "nothing like it; a comparison of our own"

_ALL: Final = (
    Experiment(
        "end-to-end",
        "All methods on the paper's data sets",
        "end-to-end comparison (N = 5), and its appendix (N = 1, 3, 7)",
        plans.plan_end_to_end,
        lambda summary, _: claims_of_end_to_end(summary),
        figures.draw_by_method,
        (_BY_EPSILON,),
    ),
    Experiment(
        "limit-label",
        "Adaptive and fixed matching limits at label level",
        "matching limit at label level (N = 5), and its appendix (N = 1, 3, 7)",
        plans.plan_limit_label,
        lambda summary, _: claims_of_limit_label(summary),
        figures.draw_by_limit,
        (_BY_EPSILON,),
    ),
    Experiment(
        "coefficient-c",
        "The error coefficient c at label level",
        "error coefficient c (N = 5), and its appendix (N = 1, 3, 7)",
        plans.plan_coefficient_c,
        lambda summary, _: claims_of_coefficient_c(summary),
        figures.draw_by_coefficient,
        (_BY_EPSILON,),
    ),
    Experiment(
        "limit-sample",
        "Adaptive and fixed matching limits at sample level",
        "matching limit at sample level (N = 5), and its appendix (N = 1, 3, 7)",
        plans.plan_limit_sample,
        lambda summary, _: claims_of_limit_sample(summary),
        figures.draw_by_limit,
        (_BY_EPSILON,),
    ),
    Experiment(
        "coefficient-h",
        "The error coefficient h at sample level",
        "error coefficient h (N = 5), and its appendix (N = 1, 3, 7)",
        plans.plan_coefficient_h,
        lambda summary, _: claims_of_coefficient_h(summary),
        figures.draw_by_coefficient,
        (_BY_EPSILON,),
    ),
    Experiment(
        "budget-allocation",
        "Shares of ε for the three phases at sample level",
        "privacy budget allocation (heat maps)",
        plans.plan_allocation,
        lambda summary, _: claims_of_allocation(summary),
        figures.draw_allocation,
        figure_note="The lighter a cell, the smaller its error, plot by plot.",
    ),
    Experiment(
        "time-memory",
        "Running time and memory",
        "running time and memory consumption (tables)",
        plans.plan_time_and_memory,
        lambda _, timings: claims_of_timings(timings),
        None,
        (
            PageTable(
                "Median seconds a release after a first one, in brackets those of the paper.",
                lambda _, timings: markdown.table_of_seconds(timings),
            ),
            PageTable(
                "Largest memory in megabytes of a process that did nothing else.",
                lambda _, timings: markdown.table_of_memory(timings),
            ),
        ),
        isolated=True,
    ),
    Experiment(
        "error-against-truth",
        "Errors against the true effect, where it is known",
        _OURS,
        plans.plan_error_against_truth,
        lambda summary, _: findings_of_truth(summary),
        figures.draw_against_truth,
        (
            PageTable(
                "Error relative to the true effect, mean ± standard deviation.",
                lambda summary, _: markdown.table_of_truth(summary),
            ),
        ),
    ),
    Experiment(
        "error-against-n",
        "Errors against the true effect of confounded data as n grows, ε = 1",
        _OURS,
        plans.plan_error_against_n,
        lambda summary, _: findings_of_size(summary),
        figures.draw_against_size,
        (
            PageTable(
                "Error relative to the true effect, mean ± standard deviation.",
                lambda summary, _: markdown.table_by_size(summary),
            ),
        ),
    ),
    Experiment(
        "several-arms",
        "Contrasts of three and four arms against the truth",
        "its paragraph on more than two treatments has no experiment; a comparison of our own",
        plans.plan_several_arms,
        lambda summary, _: findings_of_arms(summary),
        figures.draw_several_arms,
        (
            PageTable(
                "Mean error of all contrasts relative to their mean size, against the truth.",
                lambda summary, _: markdown.table_of_truth(summary),
            ),
            PageTable(
                "The same against matching on each arm's score without limits and noise.",
                lambda summary, _: markdown.table_by_epsilon(summary),
            ),
        ),
        figure_note="Bars are standard errors over all releases as if each had its own study, "
        "which several share; the two lines without noise are not private.",
    ),
    Experiment(
        "epsilon-for-ten-percent",
        "The ε that brings the relative error to 10 %",
        _OURS,
        plans.plan_epsilon_for_ten_percent,
        lambda summary, _: findings_of_ten_percent(summary),
        figures.draw_against_ten_percent,
        (
            PageTable(
                "The ε for a mean error of 10 % against matching, and up to which it stays below.",
                lambda summary, _: markdown.table_of_ten_percent(summary, against_matching),
            ),
            PageTable(
                "The ε for a mean error of 10 % against the true effect, where it is known.",
                lambda summary, _: markdown.table_of_ten_percent(summary, against_truth),
            ),
        ),
    ),
    Experiment(
        "referee",
        "All methods before a referee, on families that none was tuned on",
        _OURS,
        plan_referee,
        lambda _, __: [],
        None,
        own_run=run_referee,
    ),
)
EXPERIMENTS: Final = {experiment.name: experiment for experiment in _ALL}
