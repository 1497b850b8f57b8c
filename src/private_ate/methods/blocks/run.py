"""A request on a study as all steps see it, and noisy numbers of its rows by subgroup and arm.

By these numbers blocks are planned and arms compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Self

import numpy as np

from private_ate.arrays import Bits, Codes, Floats, Integers
from private_ate.domain.domain import Cells
from private_ate.methods.blocks.plan import Ask, BlocksOptions
from private_ate.methods.composition import options_of
from private_ate.methods.probability import Probability, probability_of
from private_ate.privacy.noise import Noise
from private_ate.request import Request
from private_ate.study import Block, MatchingStudy, Study

_BITS: Final = 20  # counts and weights are released on the grid 2⁻²⁰
_MOST_IN_CUBE: Final = 3  # numbers up to which noise on cubes is smaller than Laplace noise
_LEAST_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True)
class Subgroups:
    """Whose effects are asked for: all units, or those of each of the finest subgroups.

    ``cells`` is None for all units alone; with ``overall`` all units follow the subgroups.
    """

    cells: Cells | None = None
    overall: bool = False

    @property
    def count(self) -> int:
        """How many sets of rows have effects of their own."""
        return 1 if self.cells is None else len(self.names) + self.overall

    @property
    def names(self) -> tuple[str, ...]:
        """The finest subgroups; rows of which no subgroup is known are in none of them."""
        return () if self.cells is None else self.cells.names[:-1]

    def codes(self, covariates: Floats) -> Codes:
        """Return the subgroup of every row of encoded covariates, shape (b, d)."""
        if self.cells is None:
            return np.zeros(len(covariates), dtype=np.uint8)
        return self.cells.codes(covariates)

    def members(self, covariates: Floats) -> Bits:
        """Return for each set which rows are in it, shape (sets, b)."""
        found: Bits = self.codes(covariates) == np.arange(self.count)[:, None]
        if self.count > len(self.names):
            found[-1] = True
        return found


@dataclass(frozen=True, slots=True)
class Run:
    """A request on a study, with one view of the rows for each outcome."""

    views: tuple[Study, ...]
    request: Request
    options: BlocksOptions
    noise: Noise = field(repr=False)
    subgroups: Subgroups
    ask: Ask

    @classmethod
    def of(cls, study: MatchingStudy, request: Request, noise: Noise) -> Self:
        """Prepare a run; no row is read."""
        domain, labels = study.domain, study.domain.treatment.coded
        subgroups = Subgroups(Cells.of(domain, request.by) if request.by else None, request.overall)
        outcomes, chance = len(domain.outcomes), request.probability
        views: list[Study] = [study]
        if outcomes > 1:
            views = [study.with_outcome(place) for place in range(outcomes)]
        ask = Ask(
            study.size,
            study.dimension,
            float(request.epsilon / request.rows_per_person),
            arms=len(labels),
            subgroups=subgroups.count,
            outcomes=outcomes,
            estimand=request.estimand,
            among=-1 if request.among is None else labels.index(request.among),
            design=request.design,
            probability=None if chance is None else probability_of(domain, chance),
            binary=all(domain.of_outcome(place).bounds.is_binary for place in range(outcomes)),
        )
        shown = (views[0], *(view.unannounced() for view in views[1:]))
        options = options_of(request, BlocksOptions, "blocks")
        return cls(shown, request, options, noise, subgroups, ask)

    @property
    def study(self) -> Study:
        """The rows with the first outcome."""
        return self.views[0]

    @property
    def changes(self) -> int:
        """How many rows of a partition neighbours differ in."""
        return self.request.rows_per_person

    @property
    def trial(self) -> Probability | None:
        """The known probability of treatment."""
        return self.ask.probability


@dataclass(frozen=True, slots=True)
class Counts:
    """Released numbers of rows, shape (subgroups, arms); with weights, shares of their bound."""

    rows: Floats  # kept away from zero
    deviation: float  # the standard deviation of the noise of each
    effective_share: float = 1.0  # effective sample size over the rows that take part
    mean_share: float = 1.0  # what rows are counted as on average, of all n: of weights, a share

    @property
    def members(self) -> Floats:
        """The number of rows in each subgroup."""
        found: Floats = self.rows.sum(axis=1)
        return found

    @property
    def shares(self) -> Floats:
        """The share of each arm in each subgroup, kept away from zero."""
        return np.maximum(self.rows / self.members[:, None], _LEAST_SHARE)

    @classmethod
    def known(cls, size: int, shares: Sequence[float]) -> Counts:
        """Return expected numbers of rows, without noise."""
        return cls(np.array([shares]) * size, 0.0)


def release_counts(run: Run, epsilon: Fraction) -> Counts:
    """Release how many rows each arm of each subgroup holds; in a trial how many take part.

    Of two arms that all rows are in, one number: n is public. With sampling weights numbers are
    sums of weights as shares of the declared bound, and one is that of squared shares. Neighbours:
    ``changes`` rows replaced, which may move to other arms and subgroups. Sensitivity: ``changes``
    in every number (L∞), and ``2·changes`` in all counts together (L1), ``changes`` more with
    squares; of one number ``changes``. Cost: ε. Proof: docs/proofs/blocks.md.
    """
    study, subgroups, trial, changes = run.study, run.subgroups, run.trial, run.changes
    weighted = study.domain.weights is not None
    arms = study.domain.treatment.size if trial is None else 1
    cells = 1 if subgroups.cells is None else subgroups.cells.count

    def kernel(block: Block) -> Integers:
        steps, squares = (
            np.rint(block.shares**power * (1 << _BITS)).astype(np.int64) for power in (1, 2)
        )
        place = subgroups.codes(block.covariates).astype(np.int64) * arms + block.arm * (arms > 1)
        found = np.zeros(cells * arms + weighted, dtype=np.int64)
        np.add.at(found, place, steps)
        if weighted:
            found[-1] = squares.sum()
        return found

    is_full = study.everyone_takes_part and not weighted and cells == 1 and trial is None
    values = study.fold(kernel, title="arms")[int(is_full) :].tolist()
    step = "treated count" if trial is None else "rows that take part"
    moved, deviation = changes, math.sqrt(2)
    if len(values) > _MOST_IN_CUBE:
        moved = (3 if weighted else 2) * changes
    if 1 < len(values) <= _MOST_IN_CUBE:
        noisy = run.noise.cube(step, values, sensitivity=moved << _BITS, epsilon=epsilon)
        deviation = math.sqrt((len(values) + 1) * (len(values) + 2) / 3)
    else:
        noisy = run.noise.laplace(step, values, sensitivity=moved << _BITS, epsilon=epsilon)
    found = np.array([value / (1 << (_BITS + 1)) for value in noisy])
    squares = float(found[-1]) if weighted else 0.0
    if is_full:
        found = np.concatenate([[study.size - found.sum()], found])
    table = found[: cells * arms].reshape(cells, arms)
    if trial is not None:
        table = table * np.array(trial.shares)
    return _settled(table, subgroups, study.size, squares, deviation * moved / float(epsilon))


def _settled(
    table: Floats, subgroups: Subgroups, size: int, squares: float, deviation: float
) -> Counts:
    """Keep numbers within what they can be, and drop rows of which no subgroup is known."""
    table = np.clip(table, 0.0, float(size))
    if subgroups.cells is not None:
        whole = table.sum(axis=0, keepdims=True)
        table = np.concatenate([table[:-1], whole[: int(subgroups.overall)]])
    members = np.maximum(table.sum(axis=1, keepdims=True), 4.0)
    least = np.minimum(np.maximum(2.0, _LEAST_SHARE * members), members / table.shape[1])
    table = np.maximum(table, least)
    effective_share = 1.0
    if squares:
        # A share is at most one, so that squares never add up to more than shares do.
        total = max(float(table.sum()), 4.0)
        effective_share = total / min(max(squares, total**2 / size), total)
    return Counts(table, deviation, effective_share, float(table.sum()) / size)
