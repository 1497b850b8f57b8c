"""Effects on several outcomes of the same persons: a run of the method for each, drawn together.

A person's outcomes are all in the records, so that a neighbour may move the sums of all of them.
Runs go side by side and stop where they ask for noise; one draw answers all. Proof:
docs/proofs/outcomes.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from private_ate.arrays import Integers
from private_ate.domain import Domain
from private_ate.domain.domain import Cells
from private_ate.effects.estimate import Estimate, merge_outcomes
from private_ate.errors import SchemaError
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.registry import Method
from private_ate.methods.subgroups import estimate_subgroups
from private_ate.privacy.composed_noise import run_together
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.noise import Noise
from private_ate.request import Request
from private_ate.study import Block, MatchingStudy

__all__ = ["estimate_outcomes", "request_for"]


def estimate_outcomes(
    study: MatchingStudy,
    request: Request,
    method: Method,
    noise: Noise,
    *,
    bounds_are_declared: bool = True,
) -> Estimate:
    """Release the effects on all declared outcomes, for one ε.

    Neighbours: one person's outcomes replaced, all of them at once; at sample level the record.
    Cost: ε: what the runs ask for is drawn together, see `run_together`; at sample level the
    method releases all outcomes itself. Sensitivity: of every outcome what the method
    has for it alone. Proof: docs/proofs/outcomes.md.
    """
    domain = study.domain
    if not has_public_covariates(request.level):
        return method.run(study, request, noise)
    views = [study.with_outcome(place) for place in range(len(domain.outcomes))]
    _require_alike(views, request)

    def job(place: int) -> Callable[[Noise], Estimate]:
        asked = request_for(request, domain, place)
        view = views[place] if place == 0 else views[place].unannounced()

        def run(own: Noise) -> Estimate:
            if asked.by:
                return estimate_subgroups(view, asked, method, own)
            return method.run(view, asked, own)

        return run

    runs = run_together(noise, [job(place) for place in range(len(views))])
    return merge_outcomes(
        runs, domain.outcomes, is_joint=True, bounds_are_declared=bounds_are_declared
    )


def request_for(request: Request, domain: Domain, place: int) -> Request:
    """Return what one of several outcomes is asked for: its guessed spread, and no clipping."""
    options = request.options
    if options is None and has_public_covariates(request.level):
        options = CalibratedOptions()
    if isinstance(options, CalibratedOptions):
        # Never clipped: all of ε goes to steps that are drawn together.
        spread = dict(request.spreads).get(domain.outcomes[place].column)
        options = replace(options, outcome_sd=spread, clip_share="0")
    return replace(request, options=options, spreads=(), outcomes=len(domain.outcomes))


def _require_alike(views: list[MatchingStudy], request: Request) -> None:
    """Refuse subgroups that can be compared on one outcome and not on another; public facts."""
    missing = {view.domain.outcome.missing for view in views}
    if not request.by or missing == {None}:
        return
    cells = Cells.of(views[0].domain, request.by)
    arms = views[0].domain.treatment.size

    def kernel(block: Block) -> Integers:
        kept = block.shares > 0
        codes = cells.codes(block.covariates)[kept].astype(np.int64)
        both = codes * arms + block.arm[kept]
        counted = np.bincount(both, minlength=cells.count * arms)
        return counted.reshape(cells.count, arms)

    found = np.array([(view.public().fold(kernel) > 0).all(axis=1) for view in views])
    for cell in np.flatnonzero(found.any(axis=0) & ~found.all(axis=0)):
        column = views[int(np.flatnonzero(~found[:, cell])[0])].domain.outcome.column
        msg = (
            f"subgroup {cells.names[int(cell)]!r} has no unit with outcome {column!r} in some arm, "
            "and units with other outcomes in every arm; choose coarser subgroups, or ask for that "
            "outcome apart"
        )
        raise SchemaError(msg, parameter="by")
