"""A model's answers to all pairs of columns at once, and the workload that asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats
from private_ate.baselines.synthesis.columns import RecordCoding
from private_ate.baselines.synthesis.graphical_model import Model, sweep
from private_ate.baselines.synthesis.junction_tree import Clique

__all__ = ["PairAnswers", "Workload", "block_of", "workload_weights"]

Workload = Literal["pairs", "causal"]

_LARGEST_TABLE = 10_000


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
