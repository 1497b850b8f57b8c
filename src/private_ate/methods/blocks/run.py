"""A request on a study, as all steps of the method see it: public numbers, views of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from private_ate.arrays import Bits, Codes, Floats
from private_ate.domain.domain import Cells
from private_ate.methods.blocks.plan import Ask, BlocksOptions
from private_ate.methods.composition import options_of
from private_ate.methods.probability import Probability, probability_of
from private_ate.privacy.noise import Noise
from private_ate.request import Request
from private_ate.study import MatchingStudy, Study


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

    def members(self, covariates: Floats) -> list[Bits]:
        """Return for each set which rows are in it, as arrays as long as all rows."""
        codes = self.codes(covariates)
        whole = np.ones(codes.size, dtype=np.bool_)
        return [codes == k if k < len(self.names) else whole for k in range(self.count)]


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
