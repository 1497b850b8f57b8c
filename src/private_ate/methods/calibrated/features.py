"""What the weights of an arm balance: covariates, non-linear terms and leaves of boosted trees.

Features are scaled so that the variances of each kind add up to its share: a guess of how much of
the outcome's variance follows that kind. Covariates have a share of one and what nothing explains
`UNEXPLAINED`; non-linear terms have the share b, a small blind one plus what held-out evidence
adds. Trees are grown on the rows that are balanced, so that they find the imbalances of this very
sample. Evidence is the gain of a stack of models over a logistic line on rows that no fit has seen:
each fold fits the line, a spline of its index, a line with products of covariates, and boosted
trees on what these leave. Everything here is a function of public columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import expit

from private_ate.arrays import Bits, Floats, Indices, scatter

if TYPE_CHECKING:
    from private_ate.models.boosting import BoostedTrees

__all__ = [
    "LINES", "UNEXPLAINED", "FeatureMap", "PricedRows", "evidence_of", "learn_features",
    "weights_at",
]  # fmt: skip

LINES: Final = 1.0  # share of the covariates
UNEXPLAINED: Final = 0.3
BLIND: Final = 0.06  # share of non-linear terms without evidence
_CHANCE: Final = 0.03  # share of the line's probability of the arm: bounded, so no cap follows it
_LEAVES, _PRODUCTS, _SQUARES, _INDEX = 0.65, 0.15, 0.15, 0.05  # of b
_TREES: Final = 40
_DIRECTIONS: Final = 60  # of the leaf kernel that are balanced
_SCARCE: Final = 5.0  # a leaf in which an arm is so many times rarer than overall is left out
_NEARLY_NONE: Final = 10.0  # in such a leaf an arm is so many times rarer than overall
_MOST_PRODUCTS: Final = 100
_ROWS_PER_PRODUCT: Final = 50
PRODUCTS: Final = 20  # that trees may split on and that the line with products holds
KNOTS: Final = (0.2, 0.4, 0.6, 0.8)  # quantiles of the line's index at which its spline may turn
# Standard errors of held-out gain at which evidence begins to count, and counts fully: families
# with a straight line stay below 0.6, two-condition rules have 0 at n = 1,000 and 5 at 10,000.
_NO_EVIDENCE, _FULL_EVIDENCE = 1.0, 5.0
_FLOOR: Final = 0.1  # added to the gain's deviation: small where nothing predicts the arm
_FOLDS: Final = 5
_FEWEST: Final = 200  # rows below which held-out gains are too noisy to count
_ALL_FOLDS, _TWO_FOLDS = 4_000, 10_000  # rows up to which all folds, and two of them, are used
_ROUNDS, _PATIENCE = 400, 40
_LINE_RIDGE, _MORE_RIDGE, _STACK_RIDGE = 1.0, 5.0, 1e-3
_STEPS: Final = 25
_CLIP: Final = 30.0


class PricedRows(NamedTuple):
    """Prices ``f·λ + μ`` and weights of some rows and, if asked, ``Σ w f`` over them."""

    price: Floats
    weights: Floats
    sums: Floats


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """How a row of covariates becomes a row of features."""

    columns: Indices  # covariates that vary, k of them
    center: Floats  # by which they are standardised
    deviation: Floats
    line: Floats  # logistic line of the arm in standardised covariates, the constant first
    left: Indices  # which standardised covariates are multiplied
    right: Indices
    squares: Indices  # which are squared: those with more than two values
    knots: Floats  # at which the line's index may turn
    mean: Floats  # centre and scale of the q dense terms
    factor: Floats
    trees: BoostedTrees | None = field(repr=False)  # whose leaves are balanced
    table: Floats = field(repr=False)  # what a leaf adds, shape (trees, nodes, directions)
    middle: Floats = field(repr=False)  # the mean of the directions of the leaf kernel
    # Leaves with next to no row outside the arm, and with next to none of it, (2, trees, nodes).
    rare: Bits = field(repr=False)
    dimension: int  # the number of covariates (d), those included that do not vary
    share: float = 0.0  # of non-linear terms (b)
    evidence: float = 0.0  # for them, from 0 to 1
    scarce: float = 0.0  # the share of the rows' leaves in which one arm is rare

    @property
    def size(self) -> int:
        """The number of features (p)."""
        return int(self.mean.size + self.middle.size)

    @property
    def linear(self) -> int:
        """How many features are covariates or the line's probability; the rest is non-linear."""
        return int(self.columns.size) + 1

    @property
    def coefficients(self) -> Floats:
        """The line in terms of the covariates as they are, the constant first, shape (d + 1,)."""
        slopes = self.line[1:] / self.deviation
        found = np.zeros(self.dimension + 1)
        found[0] = self.line[0] - slopes @ self.center
        found[self.columns + 1] = slopes
        return found

    def standardise(self, covariates: Floats) -> Floats:
        """Return the covariates that vary in standard deviations from their means."""
        standard = covariates[:, self.columns] - self.center
        standard /= self.deviation
        return standard

    def index(self, standard: Floats) -> Floats:
        """Return the line's log odds of the arm from standardised covariates."""
        return np.asarray(self.line[0] + standard @ self.line[1:])

    def probability(self, covariates: Floats) -> Floats:
        """Return the line's probability of the arm."""
        return np.asarray(expit(self.index(self.standardise(covariates))))

    def split_columns(self, standard: Floats) -> Floats:
        """Return what trees split on: covariates and the products that differ most, (k, m)."""
        columns = np.ascontiguousarray(standard.T)
        left, right = self.left[:PRODUCTS], self.right[:PRODUCTS]
        return np.concatenate([columns, columns[left] * columns[right]])

    def dense(self, standard: Floats) -> Floats:
        """Return the terms of rows with these standardised covariates, shape (m, q)."""
        index = self.index(standard)
        return np.column_stack(
            [
                standard, expit(index), standard[:, self.left] * standard[:, self.right],
                standard[:, self.squares] ** 2, index_terms(index, self.knots),
            ]
        )  # fmt: skip

    def map(self, covariates: Floats) -> Floats:
        """Return the features of some rows, shape (m, p)."""
        standard = self.standardise(covariates)
        dense = (self.dense(standard) - self.mean) * self.factor
        if self.trees is None:
            return np.asarray(dense)
        from private_ate.models.boosting import gather_leaves  # numba loads here

        leaves = self.trees.leaves(self.split_columns(standard))
        return np.column_stack([dense, gather_leaves(leaves, self.table) - self.middle])

    def weigh(  # noqa: PLR0913  # a dual point, and what weights stay near to
        self,
        covariates: Floats,
        rows: Indices,
        dual: Floats,
        near: Floats,
        units: Floats,
        cap: float,
        *,
        least: float = 0.0,
        adding: bool = True,
    ) -> PricedRows:
        """Return prices, weights and, if asked, their sums of some rows of a block at (λ, μ).

        ``near`` and ``units`` are those of the rows.
        """
        count = self.mean.size
        slopes, directions = self.factor * dual[:count], dual[count:-1]
        constant = dual[-1] - self.mean @ slopes - self.middle @ directions
        if self.trees is None:
            dense = self.dense(self.standardise(covariates[rows]))
            price = dense @ slopes + constant
            weights = weights_at(price, near, units, cap, least)
            return PricedRows(price, weights, self._centred(weights, weights @ dense))
        from private_ate.methods.calibrated.passes import Terms, pass_over  # numba loads here

        trees = self.trees
        terms = Terms(
            self.columns, self.center, self.deviation, self.line, self.left, self.right,
            self.squares, self.knots, trees.column, trees.edge, trees.tree, trees.mask, trees.node,
        )  # fmt: skip
        price, weights = np.full(rows.size, constant), np.empty(rows.size)
        sums, held = pass_over(
            covariates, rows, terms, slopes, self.table @ directions, near, units / UNEXPLAINED,
            least, cap, price, weights, adding,
        )  # fmt: skip
        if not adding:
            return PricedRows(price, weights, sums)
        moved = held.ravel() @ self.table.reshape(held.size, -1) - weights.sum() * self.middle
        return PricedRows(price, weights, np.concatenate([self._centred(weights, sums), moved]))

    def add_up(self, covariates: Floats, rows: Indices, weights: Floats) -> Floats:
        """Return ``Σ w f`` over some rows of a block, shape (p,)."""
        nowhere, still = np.zeros(self.size + 1), np.zeros(rows.size)
        # The copy is contiguous and may be written to, as the other weights that are compiled for.
        own = weights.copy()
        return self.weigh(covariates, rows, nowhere, own, still, np.inf, least=-np.inf).sums

    def rare_shares(self, covariates: Floats, *, own: bool) -> Floats:
        """Return the share of each row's leaves in which the arm, or the others, are rare."""
        if self.trees is None:
            return np.zeros(len(covariates))
        from private_ate.models.boosting import leaf_values

        leaves = self.trees.leaves(self.split_columns(self.standardise(covariates)))
        found = leaf_values(leaves, self.rare[int(own)].astype(np.float64))
        return np.asarray(found / len(leaves))

    def _centred(self, weights: Floats, terms: Floats) -> Floats:
        """Return the weighted sums of dense features from those of their terms."""
        return np.asarray((terms - weights.sum() * self.mean) * self.factor)


def weights_at(
    price: Floats, near: Floats, units: Floats, cap: float, least: float = 0.0
) -> Floats:
    """Return the weights ``clip(u − s·price/r, least, A)`` for prices ``f·λ + μ``, shape (m,)."""
    weights: Floats = np.clip(near - units * price / UNEXPLAINED, least, cap)
    return weights


def learn_features(covariates: Floats, member: Floats, *, linear: bool) -> FeatureMap:
    """Learn from public rows what the weights of an arm balance.

    ``member`` is 1 for rows of the arm that have an outcome. ``linear`` leaves out everything
    but covariates and the line's probability: in a trial no shape of the covariates can bias.
    """
    deviation = covariates.std(axis=0)
    columns = np.flatnonzero(deviation > 1e-9)
    center, deviation = covariates[:, columns].mean(axis=0), deviation[columns]
    standard = (covariates[:, columns] - center) / deviation
    design = np.column_stack([np.ones(member.size), standard])
    line = fit_line(design, member, 1.0)
    none = np.zeros(0, dtype=np.intp)
    plain = FeatureMap(
        columns, center, deviation, line, none, none, none, np.zeros(0),
        np.zeros(0), np.zeros(0), None, np.zeros((0, 0, 0)), np.zeros(0),
        np.zeros((2, 0, 0), dtype=np.bool_), covariates.shape[1],
    )  # fmt: skip
    if linear:
        return _scaled(plain, plain.dense(standard))
    evidence = evidence_of(standard, member)
    share = BLIND + (1 - BLIND) * evidence
    keep = max(PRODUCTS, min(member.size // _ROWS_PER_PRODUCT, _MOST_PRODUCTS))
    left, right = telling_products(standard, member, keep)
    wide = [np.unique(column[:2000]).size > 2 for column in standard.T]
    knots = np.unique(np.quantile(design @ line, KNOTS))
    terms = replace(
        plain, left=left, right=right, squares=np.flatnonzero(wide), knots=knots,
        share=share, evidence=evidence,
    )  # fmt: skip
    scaled = _scaled(terms, terms.dense(standard))
    return _with_leaves(scaled, terms.split_columns(standard), member)


def _scaled(plain: FeatureMap, terms: Floats) -> FeatureMap:
    """Give every kind of dense term its share of variance."""
    mean, deviation = terms.mean(axis=0), terms.std(axis=0)
    varies = deviation > 1e-9
    kinds = (
        (plain.columns.size, LINES), (1, _CHANCE), (plain.left.size, _PRODUCTS * plain.share),
        (plain.squares.size, _SQUARES * plain.share), (plain.knots.size, _INDEX * plain.share),
    )  # fmt: skip
    shares = np.concatenate([np.full(count, share / max(count, 1)) for count, share in kinds])
    factor = np.where(varies, np.sqrt(shares) / np.where(varies, deviation, 1.0), 0.0)
    return replace(plain, mean=mean, factor=factor)


def _with_leaves(terms: FeatureMap, split: Floats, member: Floats) -> FeatureMap:
    """Grow trees in sample and balance the leading directions of their leaf kernel.

    The kernel of two rows is the share of trees in which they share a leaf; its eigenvalues are
    squared before directions get their share, so that a few shapes that all trees find count most.
    """
    from private_ate.models.boosting import boost, gather_leaves, leaf_pairs, leaf_weights

    trees = boost(split.T, member, _TREES)
    leaves = trees.leaves(split)
    number, nodes = trees.shape
    count = leaf_weights(leaves, np.ones(member.size), nodes).ravel()
    inside = (leaf_weights(leaves, member, nodes).ravel() + 0.5) / (count + 1)
    overall = member.mean()
    kept = (inside >= overall / _SCARCE) & (1 - inside >= (1 - overall) / _SCARCE)
    kept &= count > 0
    scarce = 1 - float(count[kept].sum() / max(count.sum(), 1.0))
    used = np.flatnonzero(kept)
    rare = [1 - inside < (1 - overall) / _NEARLY_NONE, inside < overall / _NEARLY_NONE]
    found = replace(terms, scarce=scarce, rare=np.reshape(rare, (2, number, nodes)))
    if used.size < 2:
        return found
    pairs = leaf_pairs(leaves, nodes)[np.ix_(used, used)]
    centred = pairs - np.outer(count[used], count[used]) / member.size
    first = max(used.size - _DIRECTIONS, 0)
    sizes, vectors = eigh(centred, subset_by_index=[first, used.size - 1])
    telling = sizes > 1e-9 * max(sizes[-1], 1.0)
    if not telling.any():
        return found
    table = np.zeros((number * nodes, int(telling.sum())))
    # A direction has the variance v = size/n; it gets the share v²/Σv², hence the factor √v/√Σv².
    variances = sizes[telling] / member.size
    table[used] = vectors[:, telling] * np.sqrt(
        terms.share * _LEAVES * variances / (variances**2).sum()
    )
    stacked = table.reshape(number, nodes, -1)
    middle = gather_leaves(leaves, stacked).mean(axis=0)
    return replace(found, trees=trees, table=stacked, middle=middle)


def evidence_of(columns: Floats, target: Floats) -> float:
    """Return the evidence that non-linear terms predict a 0/1 target better than a line, 0 to 1.

    ``columns`` are standardised covariates, shape (n, d).
    """
    rows = target.size
    if rows < _FEWEST or not 0 < target.sum() < rows:
        return 0.0
    folds = np.empty(rows, dtype=np.int64)
    folds[np.argsort(scatter(0, rows), kind="stable")] = np.arange(rows) % _FOLDS
    used = _FOLDS if rows <= _ALL_FOLDS else 2 if rows <= _TWO_FOLDS else 1
    found = [_hold_out(columns, target, folds == fold) for fold in range(used)]
    least = min(losses.size for _, losses, _ in found)
    rounds = int(np.mean([losses[:least] for _, losses, _ in found], axis=0).argmin())
    parts = [
        np.column_stack([scores, trees(rounds)]) if rounds else scores for scores, _, trees in found
    ]
    held = np.concatenate([target[folds == fold] for fold in range(used)])
    stacked = np.column_stack([np.ones(held.size), np.concatenate(parts)])
    line = _loss(held, stacked[:, :2] @ fit_line(stacked[:, :2], held, _STACK_RIDGE))
    gain = line - _loss(held, stacked @ fit_line(stacked, held, _STACK_RIDGE))
    # A fitted coefficient gains 1/(2n) on the rows that it is fitted on.
    free = (stacked.shape[1] - 2) / 2 / held.size
    errors = (gain.mean() - free) / ((gain.std() + _FLOOR) / np.sqrt(held.size))
    return float(np.clip((errors - _NO_EVIDENCE) / (_FULL_EVIDENCE - _NO_EVIDENCE), 0.0, 1.0))


def _hold_out(
    columns: Floats, target: Floats, held: Bits
) -> tuple[Floats, Floats, Callable[[int], Floats]]:
    """Fit on all rows but the held-out ones.

    Returns the held-out log odds of the line, of its spline less the line and of products less the
    line, shape (m, 3); the held-out loss after each tree; and what the first trees add.
    """
    from private_ate.models.boosting import boost_until_worse  # numba loads here

    left, right = telling_products(columns[~held], target[~held], PRODUCTS)
    terms = np.column_stack([columns, columns[:, left] * columns[:, right]])
    design = _with_constant(terms, ~held)
    width = columns.shape[1] + 1
    index = design[:, :width] @ fit_line(design[~held, :width], target[~held], _LINE_RIDGE)
    knots = np.quantile(index[~held], KNOTS)
    curve = _with_constant(np.column_stack([index, index_terms(index, knots)]), ~held)
    spline = curve[held] @ fit_line(curve[~held], target[~held], _LINE_RIDGE)
    more = design @ fit_line(design[~held], target[~held], _MORE_RIDGE)
    trees, losses = boost_until_worse(
        terms[~held], target[~held], more[~held], (terms[held], target[held], more[held]),
        _ROUNDS, _PATIENCE,
    )  # fmt: skip
    line = index[held]
    scores = np.column_stack([line, spline - line, more[held] - line])
    return scores, losses, lambda rounds: trees.predict(np.ascontiguousarray(terms[held].T), rounds)


def _with_constant(terms: Floats, fitted: Bits) -> Floats:
    """Return a constant and the terms, standardised over the rows that a fit may see."""
    deviation = np.maximum(terms[fitted].std(axis=0), 1e-9)
    scaled = (terms - terms[fitted].mean(axis=0)) / deviation
    return np.column_stack([np.ones(terms.shape[0]), scaled])


def fit_line(design: Floats, target: Floats, ridge: float) -> Floats:
    """Fit a logistic model by Newton steps; the first column is the constant and has no ridge."""
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 1e-6
    coefficients = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = expit(np.clip(design @ coefficients, -_CLIP, _CLIP))
        curvature = (design * np.maximum(chance * (1 - chance), 1e-5)[:, None]).T @ design
        slope = design.T @ (target - chance) - penalty * coefficients
        step = np.linalg.solve(curvature + np.diag(penalty), slope)
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-6:
            break
    return coefficients


def telling_products(columns: Floats, target: Floats, keep: int) -> tuple[Indices, Indices]:
    """Return pairs of columns whose product differs most between the arm and the rest.

    Differences are counted in the product's own standard deviations; ``columns`` are standardised.
    """
    rows, width = columns.shape
    left, right = np.triu_indices(width, 1)
    squares = columns**2
    variance = (squares.T @ squares / rows - (columns.T @ columns / rows) ** 2)[left, right]
    centred = target - target.mean()
    covariance = np.abs((columns * centred[:, None]).T @ columns / rows)[left, right]
    varies = variance > 1e-3
    size = np.where(varies, covariance / np.sqrt(np.maximum(variance, 1e-12)), -1.0)
    kept = np.argsort(-size, kind="stable")[:keep]
    kept = kept[varies[kept]]
    return left[kept], right[kept]


def index_terms(index: Floats, knots: Floats) -> Floats:
    """Return the hinges of a line's index, shape (m, knots)."""
    return np.asarray(np.maximum(index[:, None] - knots, 0.0))


def _loss(target: Floats, score: Floats) -> Floats:
    return np.asarray(np.logaddexp(0.0, np.where(target == 1, -score, score)))
