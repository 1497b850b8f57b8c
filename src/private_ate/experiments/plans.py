"""The grids: which cells each experiment runs, in full and in a few minutes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final

from private_ate.experiments.arms import Arm
from private_ate.experiments.chunks import Cell, Parameter

__all__ = [
    "ALLOCATION_EPSILONS",
    "COEFFICIENT_EPSILONS",
    "FIXED_LIMITS",
    "Scale",
    "allocation",
    "plan_allocation",
    "plan_coefficient_c",
    "plan_coefficient_h",
    "plan_end_to_end",
    "plan_epsilon_for_ten_percent",
    "plan_error_against_n",
    "plan_error_against_truth",
    "plan_limit_label",
    "plan_limit_sample",
    "plan_several_arms",
    "plan_time_and_memory",
]

EPSILONS: Final = ("0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4")
QUICK_EPSILONS: Final = ("0.5", "1", "3", "4")
COEFFICIENT_EPSILONS: Final = ("0.5", "1", "2", "4")
ALLOCATION_EPSILONS: Final = ("1.5", "2.5", "3.5")
FIXED_LIMITS: Final = (1, 10, 50)
SEVERAL_ARMS: Final = ("several-arms-3-10000", "several-arms-4-10000")
# Of the methods for several arms; the paper's and ours, at both levels.
SEVERAL_METHODS: Final = (
    "published-label", "calibrated-track", "calibrated-balance", "published-sample", "blocks",
)  # fmt: skip
FIRST_FRESH: Final = 101  # studies with smaller seeds were looked at while methods were designed
LARGE_SETS: Final = ("ihdp", "acic")  # where synthesisers take minutes


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run: quick or in full, on which data sets, with which arms."""

    quick: bool
    datasets: tuple[str, ...]
    arms: tuple[Arm, ...]
    is_appendix_wanted: bool = True

    @property
    def neighbors(self) -> tuple[int, ...]:
        """Numbers of neighbours (N): the paper's figure, then those of its appendix."""
        return (5, 1, 3, 7) if self.is_appendix_wanted and not self.quick else (5,)

    @property
    def epsilons(self) -> tuple[str, ...]:
        """The paper's budgets."""
        return QUICK_EPSILONS if self.quick else EPSILONS

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
            return 0 if dataset in LARGE_SETS else 1
        if dataset == "acic":  # half a minute a release
            return 3 if neighbors == 5 else 0
        return 10 if neighbors == 5 else 3


def plan_end_to_end(scale: Scale) -> Iterator[Cell]:
    """All methods on the paper's sets; balance is left out because it does not track matching."""
    arms = [arm for arm in scale.arms if arm.label != "calibrated-balance"]
    grid = product(scale.neighbors, scale.datasets, arms, scale.epsilons)
    for neighbors, dataset, arm, epsilon in grid:
        repetitions = scale.repetitions(arm, dataset, neighbors)
        if repetitions:
            yield Cell(dataset, arm.label, epsilon, neighbors=neighbors, repetitions=repetitions)


def plan_limit_label(scale: Scale) -> Iterator[Cell]:
    """Adaptive and fixed limits at label level."""
    yield from _limits(scale, "published-label")


def plan_limit_sample(scale: Scale) -> Iterator[Cell]:
    """Adaptive and fixed limits at sample level."""
    yield from _limits(scale, "published-sample")


def plan_coefficient_c(scale: Scale) -> Iterator[Cell]:
    """Vary c on a logarithmic grid around 0.01 at label level."""
    yield from _coefficients(scale, "published-label", "c", range(-4, 1))


def plan_coefficient_h(scale: Scale) -> Iterator[Cell]:
    """Vary h on a logarithmic grid around 0.001 at sample level."""
    yield from _coefficients(scale, "published-sample", "h", range(-5, 0))


def plan_allocation(scale: Scale) -> Iterator[Cell]:
    """Shares of ε₁ and ε₂ in steps of a tenth, the rest for ε₃; quick in steps of two tenths."""
    tenths = range(1, 9, scale.pick(1, 2))
    for dataset, epsilon in product(scale.datasets, ALLOCATION_EPSILONS):
        for model, treatment in product(tenths, tenths):
            if model + treatment < 10:
                shares = allocation(model, treatment)
                yield Cell(
                    dataset, "published-sample", epsilon,
                    parameters=(("shares", shares),), repetitions=scale.pick(30, 2),
                )  # fmt: skip


def allocation(model: int, treatment: int) -> tuple[str, ...]:
    """Return the four shares of ε for tenths of ε₁ (halved in two) and ε₂."""
    parts = (Fraction(model, 20), Fraction(model, 20), Fraction(treatment, 10))
    return tuple(str(float(part)) for part in (*parts, 1 - sum(parts)))


def plan_time_and_memory(scale: Scale) -> Iterator[Cell]:
    """Every arm once on every set, in a process of its own, at ε = 1."""
    for dataset, arm in product(scale.datasets, scale.arms):
        if scale.repetitions(arm, dataset):
            repetitions = 1 if arm.slow else scale.pick(10, 2)
            yield Cell(dataset, arm.label, "1", repetitions=repetitions)


def plan_error_against_truth(scale: Scale) -> Iterator[Cell]:
    """All arms where the true effect is known, many draws for sampling error."""
    families: list[tuple[str, range]] = [("synth-draws", range(scale.pick(20, 3)))]
    if "acic" in scale.datasets:
        families.insert(0, ("acic-settings", range(1, scale.pick(10, 2) + 1)))
    if "ihdp" in scale.datasets:
        families.insert(0, ("ihdp", range(1)))
    families.append(("confounded-10000", range(scale.pick(20, 2))))
    for (family, draws), arm, epsilon in product(families, _fast(scale), COEFFICIENT_EPSILONS):
        for draw in draws:
            repetitions = scale.pick(100, 5) if len(draws) == 1 else scale.pick(10, 2)
            yield Cell(family, arm.label, epsilon, draw, repetitions=repetitions)


def plan_error_against_n(scale: Scale) -> Iterator[Cell]:
    """Confounded data of growing size at ε = 1; every draw is another study."""
    sizes = (1000, 10_000) if scale.quick else (300, 1000, 3000, 10_000, 30_000, 100_000)
    for size, arm, draw in product(sizes, _fast(scale), range(scale.pick(20, 3))):
        yield Cell(f"confounded-{size}", arm.label, "1", draw, repetitions=scale.pick(5, 2))


def plan_epsilon_for_ten_percent(scale: Scale) -> Iterator[Cell]:
    """Double the budget until an error of 10 % is passed."""
    grid = ("0.125", "0.25", "0.5", "1", "2", "4", "8", "16", "32", "64")
    epsilons = grid[::3] if scale.quick else grid
    for dataset, arm, epsilon in product(scale.datasets, _fast(scale), epsilons):
        yield Cell(dataset, arm.label, epsilon, repetitions=scale.pick(100, 5))


def plan_several_arms(scale: Scale) -> Iterator[Cell]:
    """Confounded studies of three and four arms; every draw is another study."""
    arms = scale.arms_named(*SEVERAL_METHODS)
    draws = range(FIRST_FRESH, FIRST_FRESH + scale.pick(10, 2))
    for dataset, arm, epsilon, draw in product(SEVERAL_ARMS, arms, COEFFICIENT_EPSILONS, draws):
        yield Cell(dataset, arm.label, epsilon, draw, repetitions=scale.pick(5, 2))


def _fast(scale: Scale) -> Sequence[Arm]:
    return [arm for arm in scale.arms if not arm.slow]


def _limits(scale: Scale, label: str) -> Iterator[Cell]:
    choices: tuple[tuple[Parameter, ...], ...] = (
        (),
        *((("k", limit),) for limit in FIXED_LIMITS),
    )
    for arm in scale.arms_named(label):
        grid = product(scale.neighbors, scale.datasets, choices, scale.epsilons)
        for neighbors, dataset, choice, epsilon in grid:
            yield Cell(
                dataset, arm.label, epsilon, neighbors=neighbors, parameters=choice,
                repetitions=scale.pick(100 if neighbors == 5 else 30, 3),
            )  # fmt: skip


def _coefficients(scale: Scale, label: str, name: str, decades: range) -> Iterator[Cell]:
    steps = [f"{value}e{decade}" for decade in decades for value in (1, 3)][: 2 * len(decades) - 1]
    values = [float(step) for step in (steps[::2] if scale.quick else steps)]
    for arm in scale.arms_named(label):
        grid = product(scale.neighbors, scale.datasets, COEFFICIENT_EPSILONS, values)
        for neighbors, dataset, epsilon, value in grid:
            yield Cell(
                dataset, arm.label, epsilon, neighbors=neighbors, parameters=((name, value),),
                repetitions=scale.pick(50 if neighbors == 5 else 20, 2),
            )  # fmt: skip
