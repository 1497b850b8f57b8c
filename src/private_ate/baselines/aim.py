"""AIM: adaptive, iterative marginals, then matching on synthetic records (McKenna et al. 2022).

Rounds of choosing the pair of columns that the model explains worst, measuring it with noise and
fitting again; the finished model draws synthetic records, on which matching is free. Costs are
composed in ρ-zCDP. Proofs: docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from private_ate.arguments import one_of, real_number, settle
from private_ate.arrays import Floats, Integers
from private_ate.baselines.graphical_model import (
    Clique,
    Measurement,
    Model,
    sample_rows,
    sweep,
)
from private_ate.baselines.steps import BaselineSettings, common_settings
from private_ate.baselines.synthetic_records import (
    Adjacency,
    Clock,
    NeighbourRule,
    RecordCoding,
    default_bins,
    matched_effect_of,
    report_progress,
    rows_for,
    settle_shared_options,
    synthetic_estimate,
)
from private_ate.effects.estimate import Estimate
from private_ate.methods.composition import options_of
from private_ate.privacy.accounting import DEFAULT_DELTA, concentrated_budget, noise_delta
from private_ate.privacy.entropy import GENERATOR_BYTES, generator_from
from private_ate.privacy.noise import Noise
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent, ColumnSizes
from private_ate.study import MatchingStudy

__all__ = ["AimOptions", "PairAnswers", "Workload", "block_of", "estimate_aim", "workload_weights"]

_ROUNDS_PER_COLUMN = 16
_MEASURE = Fraction(9, 10)  # share of a round that measures; the rest selects
_SCORE_BITS = 10  # model counts are put on this grid so that scores are exact integers
_LARGEST_TOTAL = 2.0**40  # of a model's counts, so that distances to them add up in 64 bits
_BIAS = math.sqrt(2 / math.pi)  # expected size of standard Gaussian noise
_FIT, _LAST_FIT = 200, 1000
Workload = Literal["pairs", "causal"]
_LARGEST_TABLE = 10_000


@dataclass(frozen=True, slots=True)
class AimOptions:
    """Parameters of AIM.

    Attributes
    ----------
    workload : "pairs" or "causal"
        All pairs of columns alike, or only pairs with treatment or outcome, the pair of both
        counting k times.
    adjacency : "replace" or "add_remove"
        Neighbours: replace-one like all methods here, or add/remove-one as published.
    bins, outcome_bins : int or None
        Bins of numbers and of the outcome; None is 4 and 8 up to ε = 1.5, 8 and 16 above.
    delta : str or float
        δ of the guarantee.
    model_megabytes : float
        Largest model at the end of the budget.
    time_limit : float or None
        Seconds after which the rest of the budget goes into one last round.
    """

    workload: Workload = "pairs"
    adjacency: Adjacency = "replace"
    bins: int | None = None
    outcome_bins: int | None = None
    delta: str | float = DEFAULT_DELTA
    model_megabytes: float = 80.0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        one_of("workload", self.workload, ("pairs", "causal"))
        settle_shared_options(self, "AIM")
        megabytes = real_number("model_megabytes", self.model_megabytes, 0.1, 10_000)
        settle(self, model_megabytes=megabytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class AimSettings(BaselineSettings):
    """Settings of AIM.

    Attributes
    ----------
    workload : str
        Which pairs of columns count.
    rounds : int
        How many rounds of choosing and measuring ρ paid for.
    measured_pairs : list of pairs of int
        The pairs of columns that were measured.
    """

    methods: ClassVar[tuple[str, ...]] = ("aim",)

    workload: Workload
    neighbors: int
    columns: ColumnSizes
    rounds: int
    measured_pairs: tuple[tuple[int, int], ...]
    synthetic_rows: int
    rho: float
    confidence: float
    population: str
    notes: tuple[str, ...] | Absent = ABSENT


def estimate_aim(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Release the effect in synthetic records drawn from AIM's model.

    Neighbours: as the options say. Cost: the ρ-zCDP of all rounds, which implies (ε, δ).
    Proof: docs/proofs/baselines.md.
    """
    options = options_of(request, AimOptions, "aim")
    delta = noise_delta(options.delta)
    columns = RecordCoding.of(
        study.domain, *default_bins(request.epsilon, options.bins, options.outcome_bins)
    )
    counts = study.unannounced().fold(columns.count_pairs)
    run = _Run(study, columns, counts, options, concentrated_budget(request.epsilon, delta), noise)
    rounds = run.spend_all()
    rows = rows_for(run.total)
    rng = generator_from(noise.secret_bytes(GENERATOR_BYTES))
    codes = np.empty((rows, columns.count), dtype=np.int64)
    for model in run.models:
        for column, drawn in sample_rows(model.fitted(_LAST_FIT), rows, rng).items():
            codes[:, column] = drawn
    ate = matched_effect_of(columns.decode(codes, rng), request.neighbors)
    settings = AimSettings(
        workload=options.workload,
        neighbors=request.neighbors,
        columns=ColumnSizes(columns.count, tuple(columns.sizes)),
        rounds=rounds,
        measured_pairs=tuple(
            sorted(
                (clique[0], clique[1])
                for model in run.models
                for clique in model.measured
                if len(clique) == 2
            )
        ),
        synthetic_rows=rows,
        rho=float(run.budget),
        **common_settings(request),
    )
    return synthetic_estimate(ate, settings, run.neighbours, run.total, delta)


@dataclass(slots=True)
class _Run:
    """The state of one run: what is left of ρ, and the models of the connected columns."""

    study: MatchingStudy
    columns: RecordCoding
    counts: Integers
    options: AimOptions
    budget: Fraction
    noise: Noise
    total: float = 1.0
    used: Fraction = Fraction(0)
    models: list[Model] = field(default_factory=list)
    answers: PairAnswers = field(init=False)

    @property
    def neighbours(self) -> NeighbourRule:
        """Which data sets are neighbours."""
        return NeighbourRule(self.options.adjacency)

    def spend_all(self) -> int:
        """Measure all single columns, then run rounds until ρ is spent; return their number."""
        clock = Clock.start(self.options.time_limit)
        share = self.budget / (_ROUNDS_PER_COLUMN * self.columns.count)
        self._measure_columns(share * _MEASURE)
        weights = workload_weights(self.columns, self.options.workload)
        rounds, last = 0, False
        while not last:
            rest = self.budget - self.used
            last = rest <= 2 * share or clock.is_over
            if last:
                share = rest
            self.used += share
            if not self._round(share, weights):
                share = min(4 * share, rest)
            rounds += 1
            spent = round(100 * self.used / self.budget)
            report_progress(self.study, "AIM budget (%)", spent, 100)
        return rounds

    def _measure_columns(self, rho: Fraction) -> None:
        measured = []
        for column, size in enumerate(self.columns.sizes):
            noisy = self._measure((column,), rho)
            measured.append(Measurement(noisy.astype(np.float64), float(1 / self._variance(rho))))
            self.used += rho
            self.total += float(measured[-1].values.sum()) / size
        inverse = sum(1 / size for size in self.columns.sizes)
        noisy_total = min(max(1.0, (self.total - 1.0) / inverse), _LARGEST_TOTAL)
        self.total = float(self.study.size) if self.neighbours.replaces else noisy_total
        self.models = [
            Model.single(column, self.columns.sizes, self.total, one).fitted(_FIT)
            for column, one in enumerate(measured)
        ]
        self.answers = PairAnswers.blank(self.columns, self.total)
        for model in self.models:
            self.answers.renew(model)

    def _round(self, share: Fraction, weights: dict[Clique, int]) -> bool:
        """Select, measure and fit; return whether the model learned more than noise."""
        rho = share * _MEASURE
        deviation = math.sqrt(self._variance(rho))
        chosen = self._select(weights, deviation, share - rho)
        shape = tuple(self.columns.sizes[column] for column in chosen)
        before = self.answers.of(chosen)
        noisy = self._measure(chosen, rho).reshape(shape).astype(np.float64)
        self._learn(chosen, Measurement(noisy, float(1 / self._variance(rho))))
        moved = float(np.abs(self.answers.of(chosen) - before).sum())
        return moved > _BIAS * deviation * noisy.size

    def _select(self, weights: dict[Clique, int], deviation: float, rho: Fraction) -> Clique:
        """Choose a marginal by the exponential mechanism over exact integer scores.

        The model is public, so only the counts move: one record changes ‖counts − model‖₁ by at
        most the L1 distance of neighbouring tables. The score may rise or fall, so the factor ½
        of the mechanism is needed.
        """
        limit = self.options.model_megabytes * 1e6 / 8 * float(self.used / self.budget)
        free = limit - sum(model.tree.cells(self.columns.sizes) for model in self.models)
        candidates = [
            marginal
            for marginal in weights
            if (cost := self.answers.link_costs[marginal[0], marginal[-1]]) <= 0 or cost <= free
        ]
        grid = 1 << _SCORE_BITS
        distances = np.abs(
            self.counts * grid - np.rint(self.answers.counts * grid).astype(np.int64)
        )
        starts = list(self.columns.starts[:-1])
        errors = np.add.reduceat(np.add.reduceat(distances, starts, axis=0), starts, axis=1)
        scores = [
            weights[marginal]
            * (
                int(errors[marginal[0], marginal[-1]])
                - round(grid * _BIAS * deviation * self._cells(marginal))
            )
            for marginal in candidates
        ]
        largest = max(weights[marginal] for marginal in candidates)
        distance = self.neighbours.distance
        place = self.noise.select(
            "choice of a marginal", scores, sensitivity=largest * distance * grid, rho=rho
        )
        return candidates[place]

    def _measure(self, marginal: Clique, rho: Fraction) -> npt.NDArray[np.generic]:
        """Release a marginal with discrete Gaussian noise."""
        block = block_of(self.counts, self.columns, marginal)
        return self.noise.gaussian_cells(
            "marginal",
            block.ravel(),
            squared_sensitivity=self.neighbours.distance,
            rho=rho,
        )

    def _learn(self, marginal: Clique, measurement: Measurement) -> None:
        """Grow the model of the chosen columns by a measurement and fit it again."""
        touched = [m for m in self.models if set(marginal) & set(m.tree.columns)]
        measured = {clique: one for m in touched for clique, one in m.measured.items()}
        known = measured.get(marginal)
        measured[marginal] = measurement if known is None else known + measurement
        first, last = marginal[0], marginal[-1]
        tree = touched[0].tree
        if len(touched) == 2:
            here, there = (first, last) if first in tree.columns else (last, first)
            tree = tree.merged(touched[1].tree, here, there)
        elif self.answers.link_costs[first, last] > 0:
            trees = (tree.linked(first, last), tree.linked(last, first))
            tree = min(trees, key=lambda grown: grown.cells(self.columns.sizes))
        model = touched[0].regrown(tree, measured, *touched[1:]).fitted(_FIT)
        self.models = [m for m in self.models if not any(m is old for old in touched)] + [model]
        self.answers.renew(model)

    def _cells(self, marginal: Clique) -> int:
        return math.prod(self.columns.sizes[column] for column in marginal)

    def _variance(self, rho: Fraction) -> Fraction:
        return Fraction(self.neighbours.distance) / (2 * rho)


@dataclass(frozen=True, slots=True)
class PairAnswers:
    """Expected counts of all pairs of codes, and what measuring each pair adds to the model.

    ``counts`` has shape (codes, codes), ``link_costs`` shape (columns, columns) with zero for pairs
    that lie in a clique already; both arrays are renewed in place, component by component.
    """

    columns: RecordCoding
    total: float
    counts: Floats
    link_costs: Floats

    @classmethod
    def blank(cls, columns: RecordCoding, total: float) -> PairAnswers:
        """Return answers that every component still has to fill in."""
        codes = columns.starts[-1]
        return cls(
            columns, total, np.zeros((codes, codes)), np.zeros((columns.count, columns.count))
        )

    def of(self, marginal: Clique) -> Floats:
        """Return the expected counts of one marginal."""
        block: Floats = block_of(self.counts, self.columns, marginal)
        return block

    def renew(self, model: Model) -> None:
        """Renew the answers to all pairs with a column of this component."""
        starts, sizes = self.columns.starts, self.columns.sizes
        inside = set(model.tree.columns)
        for column in inside:
            mine = slice(starts[column], starts[column + 1])
            alone = model.marginal((column,))
            self.counts[mine, mine] = np.diag(alone)
            walk = sweep(model, column)
            for other in range(self.columns.count):
                if other == column:
                    continue
                theirs = slice(starts[other], starts[other + 1])
                if other in inside:
                    self.counts[mine, theirs] = walk.pairs[other]
                    self.link_costs[column, other] = walk.costs[other]
                    continue
                independent = np.outer(alone, np.diag(self.counts[theirs, theirs])) / self.total
                self.counts[mine, theirs] = independent
                self.counts[theirs, mine] = independent.T
                cells = float(sizes[column] * sizes[other])
                self.link_costs[column, other] = self.link_costs[other, column] = cells
        np.minimum(self.link_costs, self.link_costs.T.copy(), out=self.link_costs)


def block_of(matrix: npt.NDArray[Any], columns: RecordCoding, marginal: Clique) -> npt.NDArray[Any]:
    """Return the part of a matrix of all pairs that belongs to one or two columns."""
    first, last = marginal[0], marginal[-1]
    starts = columns.starts
    block = matrix[starts[first] : starts[first + 1], starts[last] : starts[last + 1]]
    return np.diag(block).copy() if len(marginal) == 1 else block.copy()


def workload_weights(columns: RecordCoding, workload: Workload) -> dict[Clique, int]:
    """Return the candidate marginals and their weights ``w_r = Σ c_s |r ∩ s|``."""
    count, sizes = columns.count, columns.sizes
    pairs = {
        (i, j): 1
        for i in range(count)
        for j in range(i + 1, count)
        if sizes[i] * sizes[j] <= _LARGEST_TABLE
    }
    if workload == "causal":
        ends = {columns.treatment, columns.outcome}
        pairs = {pair: 1 for pair in pairs if ends & set(pair)}
        pairs[columns.treatment, columns.outcome] = count
    alone = [0] * count
    for (i, j), weight in pairs.items():
        alone[i] += weight
        alone[j] += weight
    weights: dict[Clique, int] = {(c,): alone[c] for c in range(count) if alone[c]}
    weights.update({(i, j): alone[i] + alone[j] for i, j in pairs})
    return weights
