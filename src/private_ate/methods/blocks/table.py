"""From released quantities to an estimate: two arms, several, subgroups, several outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from private_ate.domain import Domain
from private_ate.domain.column_types import WEIGHTED
from private_ate.effects.estimate import Estimate, Quantity, merge_outcomes
from private_ate.effects.quantities import ReleasedSubgroups
from private_ate.effects.table import AboutArms
from private_ate.methods.blocks.notes import Words
from private_ate.methods.blocks.plan import BlocksPlan
from private_ate.methods.blocks.run import Counts, Run
from private_ate.methods.blocks.settings import (
    BlocksArmsSettings,
    BlocksSettings,
    ReleasedWeights,
)
from private_ate.methods.effect_tables import estimate_of_quantities, subgroup_estimate
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.joint import JointCentres
from private_ate.release.metadata import Pair
from private_ate.settings import ABSENT, SubgroupNote, SubgroupsNote

_HOW: Final = (
    "effects by {0}: which subgroup somebody is in is private, so numbers of units are noisy; all "
    "subgroups are adjusted alike, or none is"
)
_NOISE_COVERS: Final = "the last step's noise only; not sampling, not confounding"


@dataclass(frozen=True, slots=True)
class Released:
    """What a run has released: quantities by outcome, subgroup and arm, in units of the ranges.

    A subgroup holds one contrast of two arms; of more, a mean of each where they are compared as
    they are, and contrasts with the reference where blocks were cut. ``counted`` is None where
    nothing was counted; ``plan`` and what follows belong to blocks.
    """

    run: Run
    quantities: list[list[list[Quantity]]]
    counted: Counts | None
    words: Words
    plan: BlocksPlan | None = None
    drawn: JointCentres | None = None
    spread: float = 0.0

    @property
    def adjusted(self) -> bool:
        """Whether blocks were cut."""
        return self.plan is not None


def estimate_of(released: Released) -> Estimate:
    """Return what a release holds, in units of the outcomes; all of it is post-processing."""
    domains = [view.domain for view in released.run.views]
    runs = [_one_outcome(released, place, domain) for place, domain in enumerate(domains)]
    if len(runs) == 1:
        return runs[0]
    outcomes = [domain.outcome for domain in domains]
    return merge_outcomes(runs, outcomes, is_joint=True, bounds_are_declared=True)


def _one_outcome(released: Released, place: int, domain: Domain) -> Estimate:
    """Return the estimate of one outcome."""
    run = released.run
    request = replace(run.request, outcomes=len(run.views))
    levels = []
    for group in released.quantities[place]:
        scaled = [scaled_quantity(one, domain.bounds.width) for one in group]
        if 1 < len(scaled) < domain.treatment.size:  # contrasts: the level of the reference is zero
            none = NoiseDistribution("laplace", 0.0, 1.0)
            scaled = [Quantity(0.0, (none,), (0.0,) if scaled[0].variances else ()), *scaled]
        levels.append(scaled)
    settings = _settings(released, domain, place)
    if run.subgroups.cells is not None and released.counted is not None:
        found = _by_subgroups(released, released.counted, levels, domain, settings)
    else:
        about = AboutArms(are_means=False)
        found = estimate_of_quantities(
            levels[0], domain, request, settings, about, rule="in_squares"
        )
        found = replace(found, adjusted=released.adjusted)
    return replace(found, warnings=released.words.warnings)


def scaled_quantity(one: Quantity, width: float) -> Quantity:
    """Return a quantity in units of the outcome, its effect and intervals within the range."""

    def ends(pair: Pair | None) -> Pair | None:
        if pair is None:
            return None
        low, high = (min(max(end, -1.0), 1.0) * width for end in pair)
        return low, high

    return replace(
        one,
        value=width * min(max(one.value, -1.0), 1.0),
        noise=tuple(part.scaled(width) for part in one.noise),
        variances=tuple(width**2 * variance for variance in one.variances),
        interval=ends(one.interval),
        noise_interval=ends(one.noise_interval),
    )


def _by_subgroups(
    released: Released,
    counted: Counts,
    levels: list[list[Quantity]],
    domain: Domain,
    settings: BlocksSettings | BlocksArmsSettings,
) -> Estimate:
    """Return a table of all units, margins and subgroups, weighted by noisy numbers of units.

    A number of units that is off by δ moves the mean over all by δ over their number, times how far
    the subgroup is from the mean: as if the subgroup were off by δ over its own number.
    """
    subgroups, request = released.run.subgroups, released.run.request
    names, labels = subgroups.names, domain.treatment.coded
    finest = levels[: len(names)]
    arm = {"att": 1, "atc": 0}.get(request.estimand)
    rows = counted.rows[: len(names)]
    units = rows.sum(axis=1) if arm is None else rows[:, arm]
    shares = units / units.sum()
    noise = counted.deviation * (rows.shape[1] ** 0.5 if arm is None else 1.0)
    values = np.array([[one.value for one in group] for group in finest])
    added = (noise * (values - shares @ values) / units[:, None]) ** 2
    varied = [
        [replace(one, variances=tuple(v + more for v in one.variances))
         for one, more in zip(group, row, strict=True)]
        for group, row in zip(finest, added.tolist(), strict=True)
    ]  # fmt: skip
    direct = levels[-1] if subgroups.overall else None
    table = ReleasedSubgroups.reconcile(shares.tolist(), varied, direct)
    margins = () if subgroups.cells is None else subgroups.cells.margins
    groups = [*margins, *((name, (place,)) for place, name in enumerate(names))]
    notes = tuple(
        SubgroupNote(
            name, round(float(row.sum())),
            {label: round(float(size)) for label, size in zip(labels, row, strict=True)},
            True, adjusted=released.adjusted,
        )
        for name, row in zip(names, rows, strict=True)
    )  # fmt: skip
    noted = replace(settings, subgroups=SubgroupsNote(request.by, "rolled up", notes))
    return subgroup_estimate(table, groups, domain, request, noted, units=None)


def _settings(
    released: Released, domain: Domain, place: int
) -> BlocksSettings | BlocksArmsSettings:
    """Return public facts and released numbers; what single blocks said stays inside."""
    run, words, counted = released.run, released.words, released.counted
    request = run.request
    plan, labels, weights = released.plan, domain.treatment.coded, domain.weights
    has_subgroups = run.subgroups.cells is not None
    how = (_HOW.format(", ".join(request.by)),) if has_subgroups else ()
    shared: dict[str, Any] = {
        "adjusted": released.adjusted,
        "population": words.population + (WEIGHTED if weights is not None else ""),
        "interval_covers": ABSENT if request.confidence is None else words.interval_covers,
        "notes": (*how, *words.notes),
        "design": request.design,
        "estimand": request.estimand,
        "confidence": request.coverage,
        "rows_per_person": request.rows_per_person,
        "budget": {spend.step: float(spend.epsilon) for spend in run.noise.spends},
        "noise_interval_covers": _NOISE_COVERS,
    }
    if weights is not None and counted is not None:
        effective = float(counted.rows.sum()) * counted.effective_share
        mean = weights.high * counted.mean_share
        shared["private_weights"] = ReleasedWeights(weights.column, weights.high, mean, effective)
    if counted is not None and not has_subgroups:
        shared["arm_shares"] = dict(zip(labels, counted.shares[0].tolist(), strict=True))
    if plan is not None:
        parts = ["regression"]
        parts += ["terms that each block chooses"] * (plan.inside.terms > 0)
        parts += ["forests"] * (plan.inside.forest.trees > 0)
        shared |= {
            "model": ", ".join(parts), "blocks": plan.blocks, "block_rows": round(plan.rows),
            "partitions": plan.partitions,
        }  # fmt: skip
    if len(labels) > 2:
        return BlocksArmsSettings(**shared)
    if plan is not None and released.drawn is not None and not has_subgroups:
        width = domain.bounds.width
        low, high = released.quantities[place][0][0].noise_interval or (0.0, 0.0)
        shared |= {
            "spread": width * released.spread if place == 0 else ABSENT,
            "models_differ": released.drawn.flags[place] if plan.asks_flags else ABSENT,
            "arms_overlap": not released.drawn.vote if plan.inside.vote else ABSENT,
            "noise_quantile": width * (high - low) / 2,
        }
    return BlocksSettings(**shared)
