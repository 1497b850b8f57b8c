"""PrivSyn: many small marginals, then matching on synthetic records (Zhang et al. 2021).

Noisy dependence scores of all pairs decide which pairs are measured; overlapping pairs
are combined, measured and made consistent, and records are moved until they fit. Costs are
composed in ρ-zCDP. Proofs: docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from private_ate.arguments import settle, whole_number
from private_ate.arrays import Floats, Integers
from private_ate.baselines.marginals import (
    NoisyMarginal,
    agree,
    common_total,
    independent_rows,
    synthesise,
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
from private_ate.privacy.entropy import GENERATOR_BYTES, Generator, generator_from
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import MOST_SORTED_ROWS, require_rows
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent, ColumnSizes
from private_ate.study import MatchingStudy

__all__ = [
    "PrivSynOptions",
    "choose_pairs",
    "combine_pairs",
    "dependence",
    "dependence_sensitivity",
    "estimate_privsyn",
]

Pair = tuple[int, int]

_SHARES = (Fraction(1, 10), Fraction(1, 10), Fraction(8, 10))  # columns, dependence, marginals
_SCORE_BITS = 10  # dependence scores live on this grid
_LARGEST_CLIQUE = 5000  # cells of a combined marginal (γ)


@dataclass(frozen=True, slots=True)
class PrivSynOptions:
    """Parameters of PrivSyn.

    Attributes
    ----------
    adjacency : "replace" or "add_remove"
        Neighbours: replace-one like all methods here, or add/remove-one as published.
    bins, outcome_bins : int or None
        Bins of numbers and of the outcome; None is 4 and 8 up to ε = 1.5, 8 and 16 above.
    delta : str or float
        δ of the guarantee.
    iterations : int
        Rounds of moving records.
    time_limit : float or None
        Seconds after which records are no longer moved.
    """

    adjacency: Adjacency = "replace"
    bins: int | None = None
    outcome_bins: int | None = None
    delta: str | float = DEFAULT_DELTA
    iterations: int = 50
    time_limit: float | None = None

    def __post_init__(self) -> None:
        settle_shared_options(self, "PrivSyn")
        iterations = whole_number("the number of iterations", self.iterations, 1, 10_000)
        settle(self, iterations=iterations)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivSynSettings(BaselineSettings):
    """Settings of PrivSyn.

    Attributes
    ----------
    selected_pairs : list of pairs of int
        The pairs of columns that were selected.
    marginals : list of lists of int
        The sets of columns that were measured.
    """

    methods: ClassVar[tuple[str, ...]] = ("privsyn",)

    neighbors: int
    columns: ColumnSizes
    selected_pairs: tuple[tuple[int, int], ...]
    marginals: tuple[tuple[int, ...], ...]
    synthetic_rows: int
    rho: float
    confidence: float
    population: str
    notes: tuple[str, ...] | Absent = ABSENT


def estimate_privsyn(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Release the effect in synthetic records made by PrivSyn.

    Neighbours: as the options say. Cost: ρ-zCDP in three shares, which implies (ε, δ).
    Proof: docs/proofs/baselines.md.
    """
    options = options_of(request, PrivSynOptions, "privsyn")
    require_rows(study.size, MOST_SORTED_ROWS)
    clock = Clock.start(options.time_limit)
    neighbours = NeighbourRule(options.adjacency)
    delta = noise_delta(options.delta)
    columns = RecordCoding.of(
        study.domain, *default_bins(request.epsilon, options.bins, options.outcome_bins)
    )
    budget = concentrated_budget(request.epsilon, delta)
    shares = [budget * share for share in _SHARES]
    counts = study.unannounced().fold(columns.count_pairs)
    singles = _measure_columns(columns, counts, neighbours, shares[0], noise)
    pairs = _choose(columns, counts, neighbours, shares[1:], noise)
    marginals = combine_pairs(pairs, columns.sizes)
    measured = _measure(study, columns, marginals, neighbours, shares[2], noise)
    tables = [*measured, *singles]
    rng = generator_from(noise.secret_bytes(GENERATOR_BYTES))
    total = float(study.size) if neighbours.replaces else max(1.0, common_total(tables))
    codes = _records(study, agree(tables, total), rows_for(total), columns, options, clock, rng)
    ate = matched_effect_of(columns.decode(codes, rng), request.neighbors)
    settings = PrivSynSettings(
        neighbors=request.neighbors,
        columns=ColumnSizes(columns.count, tuple(columns.sizes)),
        selected_pairs=tuple(pairs),
        marginals=tuple(marginals),
        synthetic_rows=len(codes),
        rho=float(budget),
        **common_settings(request),
    )
    return synthetic_estimate(ate, settings, neighbours, total, delta)


def dependence(counts: Integers, first: Integers, second: Integers) -> int:
    """Return ``Σ |count(u, v) − count(u)·count(v)/n|`` in grid steps, rounded down.

    Exact integer arithmetic: the sum is at most 2n², so n < 2³¹ keeps it below 2⁶³. Zero for an
    empty table.
    """
    total = int(first.sum())
    scaled = int(np.abs(counts * total - np.outer(first, second)).sum())
    return (scaled << _SCORE_BITS) // max(total, 1)


def dependence_sensitivity(neighbours: NeighbourRule) -> int:
    """Return how far one record moves a dependence score, in steps with one for rounding.

    Add/remove-one: 4, as published. Replace-one: 6. Proof: docs/proofs/baselines.md.
    """
    return ((6 if neighbours.replaces else 4) << _SCORE_BITS) + 1


def choose_pairs(scores: Floats, cells: Floats, rho: float, distance: int) -> list[int]:
    """Add pairs while the error of leaving one out exceeds the noise of adding it.

    With the best split of ρ the noise of a set of tables is ``(Σ c^⅔)^(3/2)·√(distance/(πρ))``.
    """
    powers = cells ** (2 / 3)
    left = np.maximum(scores, 0.0)
    scale = math.sqrt(distance / (math.pi * rho))
    chosen: list[int] = []
    used, error = 0.0, float(left.sum())
    while len(chosen) < scores.size:
        candidates = scale * (used + powers) ** 1.5 + left.sum() - left
        candidates[chosen] = np.inf
        best = int(candidates.argmin())
        if candidates[best] >= error:
            break
        chosen.append(best)
        used, error = used + float(powers[best]), float(candidates[best])
        left[best] = 0.0
    return chosen


def combine_pairs(pairs: Sequence[Pair], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Merge pairs that form small cliques into one marginal; other pairs stay.

    Cliques are grown greedily from each pair, so their number never explodes; the largest come
    first and must share at most two columns with those accepted before.
    """
    near: dict[int, set[int]] = {}
    for first, second in pairs:
        near.setdefault(first, set()).add(second)
        near.setdefault(second, set()).add(first)
    grown = {_grow(pair, near, sizes) for pair in pairs}
    used: set[int] = set()
    accepted: list[tuple[int, ...]] = []
    for clique in sorted(grown, key=lambda c: (-len(c), c)):
        if len(clique) >= 3 and len(used & set(clique)) <= 2:
            accepted.append(clique)
            used |= set(clique)
    rest = [p for p in pairs if not any(set(p) <= set(clique) for clique in accepted)]
    return [*accepted, *rest]


def _grow(pair: Pair, near: dict[int, set[int]], sizes: Sequence[int]) -> tuple[int, ...]:
    clique = set(pair)
    cells = float(sizes[pair[0]] * sizes[pair[1]])
    for column in sorted(near[pair[0]] & near[pair[1]]):
        if clique <= near[column] and cells * sizes[column] <= _LARGEST_CLIQUE:
            clique.add(column)
            cells *= sizes[column]
    return tuple(sorted(clique))


def _measure_columns(
    columns: RecordCoding, counts: Integers, neighbours: NeighbourRule, rho: Fraction, noise: Noise
) -> list[NoisyMarginal]:
    each = rho / columns.count
    starts = columns.starts
    tables = []
    for column in range(columns.count):
        mine = slice(starts[column], starts[column + 1])
        noisy = noise.gaussian_cells(
            "column", np.diag(counts[mine, mine]).copy(),
            squared_sensitivity=neighbours.distance, rho=each,
        )  # fmt: skip
        tables.append(NoisyMarginal((column,), noisy.astype(np.float64), float(each)))
    return tables


def _choose(
    columns: RecordCoding,
    counts: Integers,
    neighbours: NeighbourRule,
    shares: Sequence[Fraction],
    noise: Noise,
) -> list[Pair]:
    """Release all dependence scores as one vector and choose pairs by them."""
    starts, sizes = columns.starts, columns.sizes
    pairs = [(i, j) for i in range(columns.count) for j in range(i + 1, columns.count)]
    codes = [slice(starts[c], starts[c + 1]) for c in range(columns.count)]
    alone = [np.diag(counts[one, one]) for one in codes]
    exact = np.array(
        [dependence(counts[codes[i], codes[j]], alone[i], alone[j]) for i, j in pairs],
        dtype=np.int64,
    )
    step = dependence_sensitivity(neighbours)
    noisy = noise.gaussian_cells(
        "dependence", exact, squared_sensitivity=len(pairs) * step**2, rho=shares[0]
    )
    cells = np.array([float(sizes[i] * sizes[j]) for i, j in pairs])
    scores = noisy.astype(np.float64) / (1 << _SCORE_BITS)
    chosen = choose_pairs(scores, cells, float(shares[1]), neighbours.distance)
    return [pairs[place] for place in chosen]


def _measure(
    study: MatchingStudy,
    columns: RecordCoding,
    marginals: Sequence[tuple[int, ...]],
    neighbours: NeighbourRule,
    rho: Fraction,
    noise: Noise,
) -> list[NoisyMarginal]:
    """Release the chosen marginals, ρ in proportion to cells^⅔; columns if there are none."""
    wanted = list(marginals) or [(column,) for column in range(columns.count)]
    exact = columns.count_tables(study.unannounced(), wanted)
    # Whole weights keep the shares exact fractions that add up to ρ.
    weights = [round(1000 * table.size ** (2 / 3)) for table in exact]
    tables = []
    for places, table, weight in zip(wanted, exact, weights, strict=True):
        share = rho * Fraction(weight, sum(weights))
        noisy = noise.gaussian_cells(
            "marginal", table, squared_sensitivity=neighbours.distance, rho=share
        )
        shape = tuple(columns.sizes[place] for place in places)
        tables.append(NoisyMarginal(places, noisy.reshape(shape).astype(np.float64), float(share)))
    return tables


def _records(
    study: MatchingStudy,
    tables: Sequence[NoisyMarginal],
    rows: int,
    columns: RecordCoding,
    options: PrivSynOptions,
    clock: Clock,
    rng: Generator,
) -> Integers:
    """Make synthetic records from consistent tables, single columns where nothing else is known."""
    covered = {column for table in tables if len(table.columns) > 1 for column in table.columns}
    needed = [t for t in tables if len(t.columns) > 1 or t.columns[0] not in covered]

    def watch(done: int) -> bool:
        report_progress(study, "moving records", done, options.iterations)
        return not clock.is_over

    rows_apart = independent_rows(needed, columns.count, rows, rng)
    return synthesise(rows_apart, needed, iterations=options.iterations, rng=rng, watch=watch)
