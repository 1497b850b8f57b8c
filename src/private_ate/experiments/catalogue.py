"""All experiments by name: the grid that is run, what is drawn, what is compared with the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import polars as pl

from private_ate.experiments import findings, referee, referee_page, tables
from private_ate.experiments.claims import (
    Claim,
    claims_of_allocation,
    claims_of_coefficient,
    claims_of_end_to_end,
    claims_of_limit_label,
    claims_of_limit_sample,
)
from private_ate.experiments.figures import AIPW, MATCHING, Axis, Layout, draw, draw_allocation
from private_ate.experiments.results import Summary, summarize
from private_ate.experiments.runner import Cell, Parameter, Scale

__all__ = ["EXPERIMENTS", "Experiment", "allocation"]

_FEW_EPSILONS: Final = ("0.5", "1", "2", "4")
_ALLOCATION_EPSILONS: Final = ("1.5", "2.5", "3.5")
_WIDE_EPSILONS: Final = ("0.125", "0.25", "0.5", "1", "2", "4", "8", "16", "32", "64")
_SEVERAL: Final = ("several-arms-3-10000", "several-arms-4-10000")
# Of the methods for several arms; the paper's and ours, at both levels.
_SEVERAL_METHODS: Final = (
    "published-label", "calibrated-track", "calibrated-balance", "published-sample", "blocks",
)  # fmt: skip
_FIRST_FRESH: Final = 101  # studies with smaller seeds were looked at while methods were designed


# The grids.


def _end_to_end(scale: Scale) -> Iterator[Cell]:
    """All methods on the paper's sets; balance is left out because it does not track matching."""
    arms = [arm for arm in scale.arms if arm.label != "calibrated-balance"]
    grid = product(scale.neighbors, scale.datasets, arms, scale.epsilons)
    for neighbors, dataset, arm, epsilon in grid:
        repetitions = scale.repetitions(arm, dataset, neighbors)
        if repetitions:
            yield Cell(dataset, arm.label, epsilon, neighbors=neighbors, repetitions=repetitions)


def _parameters(  # the axes of a grid
    scale: Scale,
    *,
    label: str,
    epsilons: Sequence[str],
    choices: Iterable[tuple[Parameter, ...]],
    counts: tuple[int, int, int],
) -> Iterator[Cell]:
    """Vary a parameter of a method; counts are for N = 5, for other N, and for a quick run."""
    arms = scale.arms_named(label)
    grid = product(scale.neighbors, scale.datasets, arms, epsilons, list(choices))
    for neighbors, dataset, arm, epsilon, choice in grid:
        yield Cell(
            dataset, arm.label, epsilon, neighbors=neighbors, parameters=choice,
            repetitions=scale.pick(counts[0] if neighbors == 5 else counts[1], counts[2]),
        )  # fmt: skip


def _limits(scale: Scale, label: str) -> Iterator[Cell]:
    """Adaptive and fixed limits."""
    choices: list[tuple[Parameter, ...]] = [(), *((("k", limit),) for limit in (1, 10, 50))]
    return _parameters(
        scale, label=label, epsilons=scale.epsilons, choices=choices, counts=(100, 30, 3)
    )


def _coefficients(scale: Scale, label: str, name: str, decades: range) -> Iterator[Cell]:
    """Vary a coefficient on a logarithmic grid around the paper's."""
    steps = [f"{value}e{decade}" for decade in decades for value in (1, 3)][: 2 * len(decades) - 1]
    values = [((name, float(step)),) for step in (steps[::2] if scale.quick else steps)]
    return _parameters(
        scale, label=label, epsilons=_FEW_EPSILONS, choices=values, counts=(50, 20, 2)
    )


def _allocations(scale: Scale) -> Iterator[Cell]:
    """Shares of ε₁ and ε₂ in steps of a tenth, the rest for ε₃; quick in steps of two tenths."""
    tenths = range(1, 9, scale.pick(1, 2))
    pairs = [pair for pair in product(tenths, tenths) if sum(pair) < 10]
    return _parameters(
        replace(scale, is_appendix_wanted=False), label="published-sample",
        epsilons=_ALLOCATION_EPSILONS, choices=[(("shares", allocation(*pair)),) for pair in pairs],
        counts=(30, 30, 2),
    )  # fmt: skip


def allocation(model: int, treatment: int) -> tuple[str, ...]:
    """Return the four shares of ε for tenths of ε₁ (halved in two) and ε₂."""
    parts = (Fraction(model, 20), Fraction(model, 20), Fraction(treatment, 10))
    return tuple(str(float(part)) for part in (*parts, 1 - sum(parts)))


def _time_and_memory(scale: Scale) -> Iterator[Cell]:
    """Every arm once on every set, in a process of its own, at ε = 1."""
    for dataset, arm in product(scale.datasets, scale.arms):
        if scale.repetitions(arm, dataset):
            repetitions = 1 if arm.slow else scale.pick(10, 2)
            yield Cell(dataset, arm.label, "1", repetitions=repetitions, isolated=True)


def _against_truth(scale: Scale) -> Iterator[Cell]:
    """All arms where the true effect is known, many draws for sampling error."""
    families: list[tuple[str, range]] = [("synth-draws", range(scale.pick(20, 3)))]
    if "acic" in scale.datasets:
        families.insert(0, ("acic-settings", range(1, scale.pick(10, 2) + 1)))
    if "ihdp" in scale.datasets:
        families.insert(0, ("ihdp", range(1)))
    families.append(("confounded-10000", range(scale.pick(20, 2))))
    for (family, draws), arm, epsilon in product(families, scale.fast_arms, _FEW_EPSILONS):
        for number in draws:
            repetitions = scale.pick(100, 5) if len(draws) == 1 else scale.pick(10, 2)
            yield Cell(family, arm.label, epsilon, number, repetitions=repetitions)


def _against_size(scale: Scale) -> Iterator[Cell]:
    """Confounded data of growing size at ε = 1; every draw is another study."""
    sizes = (1000, 10_000) if scale.quick else (300, 1000, 3000, 10_000, 30_000, 100_000)
    for size, arm, number in product(sizes, scale.fast_arms, range(scale.pick(20, 3))):
        yield Cell(f"confounded-{size}", arm.label, "1", number, repetitions=scale.pick(5, 2))


def _to_ten_percent(scale: Scale) -> Iterator[Cell]:
    """Double the budget until an error of 10 % is passed."""
    epsilons = _WIDE_EPSILONS[::3] if scale.quick else _WIDE_EPSILONS
    for dataset, arm, epsilon in product(scale.datasets, scale.fast_arms, epsilons):
        yield Cell(dataset, arm.label, epsilon, repetitions=scale.pick(100, 5))


def _several_arms(scale: Scale) -> Iterator[Cell]:
    """Confounded studies of three and four arms; every draw is another study."""
    arms = scale.arms_named(*_SEVERAL_METHODS)
    draws = range(_FIRST_FRESH, _FIRST_FRESH + scale.pick(10, 2))
    for dataset, arm, epsilon, number in product(_SEVERAL, arms, _FEW_EPSILONS, draws):
        yield Cell(dataset, arm.label, epsilon, number, repetitions=scale.pick(5, 2))


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
        From the summary and the rows of all releases to sentences and verdicts.
    draw : callable or None
        Draws figures into a folder and returns their paths without endings.
    tables : sequence of (caption, callable)
        What the page shows beside the figures, from the summary and the rows.
    figure_note : str
        How to read the figures.
    opening : str
        What the page says first, of an experiment that draws its own studies.
    stage : callable
        Cells of an earlier stage are run first.
    audit : callable or None
        Audits that belong to the experiment: of a folder for them, and how much is run.
    sections : callable or None
        Further parts of the page, from the rows and the folder.
    summarize : callable
        The summary that is kept as a file, from the rows and the folder.
    """

    name: str
    title: str
    origin: str
    plan: Callable[[Scale], Iterable[Cell]]
    claims: Callable[[Summary, pl.DataFrame], list[Claim]]
    draw: Callable[[Summary, Path], list[Path]] | None = None
    tables: Sequence[tuple[str, Callable[[Summary, pl.DataFrame], str]]] = ()
    figure_note: str = "Bars are standard errors of the mean."
    opening: str = ""
    stage: Callable[[Cell], tuple[object, ...]] = lambda _: ()
    audit: Callable[[Path, Scale], None] | None = None
    sections: Callable[[pl.DataFrame, Path], Iterable[str]] | None = None
    summarize: Callable[[pl.DataFrame, Path], pl.DataFrame] = lambda rows, _: summarize(rows)


_BY_EPSILON: Final = (
    "Relative error, mean ± standard deviation, N = 5.",
    lambda summary, _: tables.table_by_epsilon(summary),
)
_OF_TRUTH: Final = "Error relative to the true effect, mean ± standard deviation."
_OURS: Final = "nothing like it; a comparison of our own"
_BY_METHOD: Final = Layout(by_neighbors=True)
_BY_LIMIT: Final = Layout(lines="parameters", by_neighbors=True)
_TRUTH: Final = Layout(
    y="error_against_truth",
    y_axis=Axis("relative error against the truth", log=True),
    references=(MATCHING,),
)


def _by_coefficient(name: str) -> Layout:
    axis = Axis(f"error coefficient {name}", log=True)
    return Layout(x="setting", lines="epsilon", x_axis=axis, by_neighbors=True)


_ALL: Final = (
    Experiment(
        "end-to-end",
        "All methods on the paper's data sets",
        "end-to-end comparison (N = 5), and its appendix (N = 1, 3, 7)",
        _end_to_end,
        lambda summary, _: claims_of_end_to_end(summary),
        partial(draw, _BY_METHOD),
        (_BY_EPSILON,),
    ),
    Experiment(
        "limit-label",
        "Adaptive and fixed matching limits at label level",
        "matching limit at label level (N = 5), and its appendix (N = 1, 3, 7)",
        partial(_limits, label="published-label"),
        lambda summary, _: claims_of_limit_label(summary),
        partial(draw, _BY_LIMIT),
        (_BY_EPSILON,),
    ),
    Experiment(
        "coefficient-c",
        "The error coefficient c at label level",
        "error coefficient c (N = 5), and its appendix (N = 1, 3, 7)",
        partial(_coefficients, label="published-label", name="c", decades=range(-4, 1)),
        lambda summary, _: claims_of_coefficient(summary, "c", 0.01),
        partial(draw, _by_coefficient("c")),
        (_BY_EPSILON,),
    ),
    Experiment(
        "limit-sample",
        "Adaptive and fixed matching limits at sample level",
        "matching limit at sample level (N = 5), and its appendix (N = 1, 3, 7)",
        partial(_limits, label="published-sample"),
        lambda summary, _: claims_of_limit_sample(summary),
        partial(draw, _BY_LIMIT),
        (_BY_EPSILON,),
    ),
    Experiment(
        "coefficient-h",
        "The error coefficient h at sample level",
        "error coefficient h (N = 5), and its appendix (N = 1, 3, 7)",
        partial(_coefficients, label="published-sample", name="h", decades=range(-5, 0)),
        lambda summary, _: claims_of_coefficient(summary, "h", 0.001),
        partial(draw, _by_coefficient("h")),
        (_BY_EPSILON,),
    ),
    Experiment(
        "budget-allocation",
        "Shares of ε for the three phases at sample level",
        "privacy budget allocation (heat maps)",
        _allocations,
        lambda summary, _: claims_of_allocation(summary),
        draw_allocation,
        figure_note="The lighter a cell, the smaller its error, plot by plot.",
    ),
    Experiment(
        "time-memory",
        "Running time and memory",
        "running time and memory consumption (tables)",
        _time_and_memory,
        lambda _, rows: findings.claims_of_timings(rows),
        tables=(
            (
                "Median seconds a release after a first one, in brackets those of the paper.",
                lambda _, rows: findings.table_of_seconds(rows),
            ),
            (
                "Largest memory in megabytes of a process that did nothing else.",
                lambda _, rows: findings.table_of_memory(rows),
            ),
        ),
    ),
    Experiment(
        "error-against-truth",
        "Errors against the true effect, where it is known",
        _OURS,
        _against_truth,
        lambda summary, _: findings.findings_of_truth(summary),
        partial(draw, _TRUTH),
        ((_OF_TRUTH, lambda summary, _: tables.table_of_truth(summary)),),
    ),
    Experiment(
        "error-against-n",
        "Errors against the true effect of confounded data as n grows, ε = 1",
        _OURS,
        _against_size,
        lambda summary, _: findings.findings_of_size(summary),
        partial(
            draw,
            replace(_TRUTH, x="size", columns="level", x_axis=Axis("number of units n", log=True)),
        ),
        ((_OF_TRUTH, lambda summary, _: tables.table_of_truth(summary, by_size=True)),),
    ),
    Experiment(
        "several-arms",
        "Contrasts of three and four arms against the truth",
        "its paragraph on more than two treatments has no experiment; a comparison of our own",
        _several_arms,
        lambda summary, _: findings.findings_of_arms(summary),
        partial(draw, replace(_TRUTH, rows="level", references=(MATCHING, AIPW))),
        (
            (
                "Mean error of all contrasts relative to their mean size, against the truth.",
                lambda summary, _: tables.table_of_truth(summary),
            ),
            (
                "The same against matching on each arm's score without limits and noise.",
                lambda summary, _: tables.table_by_epsilon(summary),
            ),
        ),
        figure_note="Bars are standard errors over all releases as if each had its own study, "
        "which several share; the two lines without noise are not private.",
    ),
    Experiment(
        "epsilon-for-ten-percent",
        "The ε that brings the relative error to 10 %",
        _OURS,
        _to_ten_percent,
        lambda summary, _: findings.findings_of_ten_percent(summary),
        partial(
            draw,
            Layout(
                x_axis=Axis("privacy budget ε", log=True),
                # Far below ten per cent nothing is left to see.
                y_axis=Axis("relative error", log=True, floor=0.003),
                level=findings.TEN_PERCENT,
                level_name="10 %",
            ),
        ),
        (
            (
                "The ε for a mean error of 10 % against matching, and up to which it stays below.",
                lambda summary, _: findings.table_of_ten_percent(
                    summary, findings.against_matching
                ),
            ),
            (
                "The ε for a mean error of 10 % against the true effect, where it is known.",
                lambda summary, _: findings.table_of_ten_percent(summary, findings.against_truth),
            ),
        ),
    ),
    Experiment(
        "referee",
        "All methods before a referee, on studies that none has seen",
        _OURS,
        referee.plan,
        lambda _, rows: referee_page.claims_of_referee(referee.judge_cells(rows)),
        referee_page.draw_referee,
        opening=referee_page.OPENING,
        stage=referee.stage,
        audit=referee.audit_arms,
        sections=referee_page.sections,
        summarize=referee.summary_of,
    ),
)
EXPERIMENTS: Final = {experiment.name: experiment for experiment in _ALL}
