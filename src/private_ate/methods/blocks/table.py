"""From released quantities to an estimate: two arms, several, subgroups, several outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from private_ate.domain import Domain
from private_ate.effects.estimate import Estimate, Quantity, merge_outcomes
from private_ate.effects.quantities import ReleasedSubgroups
from private_ate.effects.table import AboutArms
from private_ate.methods.blocks.counts import Counts, Subgroups
from private_ate.methods.blocks.notes import Words
from private_ate.methods.blocks.plan import BlocksPlan
from private_ate.methods.blocks.settings import (
    BlocksArmsSettings,
    BlocksSettings,
    ReleasedWeights,
)
from private_ate.methods.effect_tables import estimate_of_quantities, subgroup_estimate
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.release.metadata import Pair
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent, SubgroupNote, SubgroupsNote

__all__ = ["Released", "estimate_of", "scaled_quantity"]

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

    quantities: list[list[list[Quantity]]]
    subgroups: Subgroups
    counted: Counts | None
    words: Words
    adjusted: bool
    plan: BlocksPlan | None = None
    flags: Sequence[bool] = ()
    apart: bool = False
    spread: float = 0.0


def estimate_of(released: Released, domain: Domain, request: Request, noise: Noise) -> Estimate:
    """Return what a release holds, in units of the outcomes; all of it is post-processing."""
    runs = []
    asked = replace(request, outcomes=len(domain.outcomes))
    for place in range(len(domain.outcomes)):
        own = domain.of_outcome(place)
        width = own.bounds.width
        levels = [
            _levels([scaled_quantity(one, width) for one in group], len(domain.treatment.coded))
            for group in released.quantities[place]
        ]
        settings = _settings(released, own, asked, noise, place)
        runs.append(_one_outcome(released, levels, own, asked, settings))
    if len(runs) == 1:
        return runs[0]
    return merge_outcomes(runs, domain.outcomes, is_joint=True, bounds_are_declared=True)


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


def _levels(quantities: list[Quantity], arms: int) -> list[Quantity]:
    """Return a level of each arm where there are several; the reference of contrasts is zero."""
    if arms == 2 or len(quantities) == arms:
        return quantities
    zero = Quantity(
        0.0, (NoiseDistribution("laplace", 0.0, 1.0),), (0.0,) if quantities[0].variances else ()
    )
    return [zero, *quantities]


def _one_outcome(
    released: Released,
    levels: list[list[Quantity]],
    domain: Domain,
    request: Request,
    settings: BlocksSettings | BlocksArmsSettings,
) -> Estimate:
    """Return the estimate of one outcome."""
    warnings = released.words.warnings
    if released.subgroups.cells is not None:
        return replace(_by_subgroups(released, levels, domain, request, settings),
                       warnings=warnings)  # fmt: skip
    estimate = estimate_of_quantities(
        levels[0], domain, request, settings, AboutArms(are_means=False), rule="in_squares"
    )
    return replace(estimate, adjusted=released.adjusted, warnings=warnings)


def _by_subgroups(
    released: Released,
    levels: list[list[Quantity]],
    domain: Domain,
    request: Request,
    settings: BlocksSettings | BlocksArmsSettings,
) -> Estimate:
    """Return a table of all units, margins and subgroups, weighted by noisy numbers of units."""
    subgroups, counted = released.subgroups, released.counted
    if subgroups.cells is None or counted is None:
        msg = "subgroups are counted"
        raise TypeError(msg)
    names = subgroups.names
    finest = levels[: len(names)]
    direct = levels[-1] if subgroups.overall else None
    arm = {"att": 1, "atc": 0}.get(request.estimand)
    rows = counted.rows[: len(names)]
    units = rows.sum(axis=1) if arm is None else rows[:, arm]
    shares = (units / units.sum()).tolist()
    noisy = counted.deviation * (rows.shape[1] ** 0.5 if arm is None else 1.0)
    table = ReleasedSubgroups.reconcile(
        shares, _with_noisy_units(finest, shares, units.tolist(), noisy), direct
    )
    cells = subgroups.cells
    groups = [*cells.margins, *((name, (place,)) for place, name in enumerate(names))]
    labels = domain.treatment.coded
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


def _with_noisy_units(
    finest: list[list[Quantity]], shares: list[float], units: list[float], noise: float
) -> list[list[Quantity]]:
    """Let subgroups vary by the noise of their numbers of units as well.

    A number of units that is off by δ moves the mean over all by δ over their number, times how
    far the subgroup is from the mean: as if the subgroup were off by δ over its own number.
    """
    values = np.array([[one.value for one in group] for group in finest])
    away = values - np.array(shares) @ values
    return [
        [
            replace(
                one,
                variances=tuple(v + (noise * a / size) ** 2 for v in one.variances),
            )
            for one, a in zip(group, distances, strict=True)
        ]
        for group, distances, size in zip(finest, away.tolist(), units, strict=True)
    ]


def _settings(
    released: Released, domain: Domain, request: Request, noise: Noise, place: int
) -> BlocksSettings | BlocksArmsSettings:
    """Return public facts and released numbers; what single blocks said stays inside."""
    words = released.words.weighted(domain.weights, adjusted=released.adjusted)
    labels = domain.treatment.coded
    notes = words.notes
    if released.subgroups.cells is not None:
        notes = (_HOW.format(", ".join(request.by)), *notes)
    shared: dict[str, Any] = {
        "adjusted": released.adjusted,
        "population": words.population,
        "interval_covers": ABSENT if request.confidence is None else words.interval_covers,
        "notes": notes,
        "design": request.design,
        "estimand": request.estimand,
        "confidence": request.coverage,
        "rows_per_person": request.rows_per_person,
        "budget": {spend.step: float(spend.epsilon) for spend in noise.spends},
        "noise_interval_covers": _NOISE_COVERS,
        "private_weights": _weights(domain, released.counted),
        **_cut(released, labels),
    }
    if len(labels) > 2:
        return BlocksArmsSettings(**shared)
    if released.plan is not None and released.subgroups.cells is None:
        first = released.quantities[place][0][0]
        shared |= {
            "spread": domain.bounds.width * released.spread if place == 0 else ABSENT,
            "models_differ": bool(released.flags[place]) if released.plan.asks_flags else ABSENT,
            "arms_overlap": not released.apart if released.plan.asks_vote else ABSENT,
            "noise_quantile": domain.bounds.width * _half(first.noise_interval),
        }
    return BlocksSettings(**shared)


def _cut(released: Released, labels: Sequence[str]) -> dict[str, Any]:
    """Return how rows were cut, and the arms' shares."""
    found: dict[str, Any] = {}
    if released.counted is not None and released.subgroups.cells is None:
        shares = released.counted.shares[0].tolist()
        found["arm_shares"] = dict(zip(labels, shares, strict=True))
    plan = released.plan
    if plan is None:
        return found
    parts = ["regression"]
    parts += ["terms that each block chooses"] * (plan.inside.terms > 0)
    parts += ["forests"] * (plan.inside.forest.trees > 0)
    return found | {
        "model": ", ".join(parts), "blocks": plan.blocks, "block_rows": round(plan.rows),
        "partitions": plan.partitions,
    }  # fmt: skip


def _half(pair: Pair | None) -> float:
    return 0.0 if pair is None else (pair[1] - pair[0]) / 2


def _weights(domain: Domain, counted: Counts | None) -> ReleasedWeights | Absent:
    """Return what the count released of the sampling weights, where there are any."""
    declared = domain.weights
    if declared is None or counted is None:
        return ABSENT
    total = float(counted.rows.sum())
    return ReleasedWeights(
        declared.column,
        declared.high,
        declared.high * counted.mean_share,
        total * counted.effective_share,
    )
