"""The rows of a table of subgroups: all units, margins, cells, each with its intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from private_ate.contents.arms import Arm, Comparison, Contrast, Pair, SubgroupRow
from private_ate.domain import Domain
from private_ate.estimators.calibrated.settings import CalibratedArmsSettings, CalibratedSettings
from private_ate.estimators.request import Request
from private_ate.estimators.subgroups.errors import ReleasedCells, RowWeights
from private_ate.release import Estimate
from private_ate.settings import ABSENT, EqualEffects, SubgroupsNote

__all__ = ["Row", "estimate_rows", "table_rows"]

Quantities = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row to be made: of which subgroup, which contrast, and which weighted sum it is."""

    subgroup: str | None
    arm: str
    against: str
    weights: RowWeights


def estimate_rows(
    released: ReleasedCells,
    groups: Sequence[tuple[str, tuple[int, ...]]],
    domain: Domain,
    request: Request,
    settings: CalibratedSettings | CalibratedArmsSettings,
    *,
    units: tuple[int, ...],
    warnings: tuple[str, ...],
) -> Estimate:
    """Return what a release of subgroups holds; all of it is post-processing.

    ``groups`` are the rows' names with the places of the cells in each; ``units`` those of arms.
    """
    treatment = domain.treatment
    to_reference = _contrasts(treatment.coded)[: treatment.size - 1]
    rows = table_rows(released.shares, groups, treatment.coded)
    pays = request.confidence is not None and released.has_variances
    made, factor = _made(released, rows, request, domain.bounds.width, pays=pays)
    headline = made[treatment.size - 2].contrast
    equal = _tests(released, to_reference) if pays else ()
    told = replace(
        settings,
        subgroups=SubgroupsNote(
            request.by,
            "paid for" if request.overall else "rolled up",
            settings.subgroups.cells if isinstance(settings.subgroups, SubgroupsNote) else (),
            ABSENT if factor is None else factor,
            equal or ABSENT,
        ),
    )
    estimate = Estimate(
        headline.effect, headline.noise_interval, headline.interval, told,
        warnings=warnings, subgroups=tuple(made),
    )  # fmt: skip
    if treatment.size == 2:
        return estimate
    among = request.among
    arms = tuple(
        _arm(released, place, label, units[place], domain, request, pays=pays)
        for place, label in enumerate(treatment.coded)
    )
    overall = tuple(row.contrast for row in made if row.subgroup is None)
    return replace(
        estimate,
        estimand=None if among is None else ("atc" if among == treatment.coded[0] else "att"),
        comparison=Comparison(arms, overall),
        subgroups=tuple(row for row in made if row.subgroup is not None),
    )


def table_rows(
    shares: tuple[float, ...],
    groups: Sequence[tuple[str, tuple[int, ...]]],
    labels: tuple[str, ...],
) -> list[Row]:
    """Return the rows of a table: all pairs of arms for all units, then groups by the reference."""
    contrasts = _contrasts(labels)
    rows = [Row(None, arm, against, RowWeights(shares, sums)) for arm, against, sums in contrasts]
    return rows + [
        Row(name, arm, against, RowWeights(cells, sums))
        for name, cells in _weights(shares, groups)
        for arm, against, sums in contrasts[: len(labels) - 1]
    ]


def _contrasts(labels: tuple[str, ...]) -> list[tuple[str, str, Quantities]]:
    """Return (arm, against, weights of quantities): against the reference, then other pairs."""
    if len(labels) == 2:
        return [(labels[1], labels[0], (1.0,))]
    others = [(later, earlier) for earlier, later in combinations(range(1, len(labels)), 2)]
    pairs = [(arm, 0) for arm in range(1, len(labels))] + others
    return [
        (labels[arm], labels[against],
         tuple(float(place == arm) - float(place == against) for place in range(len(labels))))
        for arm, against in pairs
    ]  # fmt: skip


def _weights(
    shares: tuple[float, ...], groups: Sequence[tuple[str, tuple[int, ...]]]
) -> list[tuple[str, tuple[float, ...]]]:
    """Return every subgroup with the weights of its cells; those without units are left out."""
    found = []
    for name, members in groups:
        whole = sum(shares[place] for place in members)
        if whole > 0:
            weights = [shares[place] / whole if place in members else 0.0
                       for place in range(len(shares))]  # fmt: skip
            found.append((name, tuple(weights)))
    return found


def _made(
    released: ReleasedCells, rows: Sequence[Row], request: Request, width: float, *, pays: bool
) -> tuple[list[SubgroupRow], float | None]:
    """Return the rows with their intervals, and the factor of the simultaneous ones."""
    coverage, at_once = request.coverage, request.coverage_at_once
    halves = [released.half(row.weights, coverage) for row in rows] if pays else []
    factor = None
    if pays:
        factor = released.simultaneous_factor([row.weights for row in rows], halves, at_once)
    made = []
    for place, row in enumerate(rows):
        effect = released.value(row.weights)
        half = halves[place] if pays else None
        contrast = Contrast(
            row.arm, row.against, effect,
            interval=_around(effect, half, width),
            simultaneous=_around(effect, half if half is None else half * (factor or 1.0), width),
            noise_interval=_around(effect, released.noise_half(row.weights, coverage), width),
        )  # fmt: skip
        made.append(SubgroupRow(row.subgroup, contrast))
    return made, factor


def _tests(
    released: ReleasedCells, contrasts: Sequence[tuple[str, str, Quantities]]
) -> tuple[EqualEffects, ...]:
    found = [(arm, against, released.test_equal(sums)) for arm, against, sums in contrasts]
    return tuple(
        EqualEffects(arm, against, test.statistic, test.degrees, test.p_value)
        for arm, against, test in found
        if test is not None
    )


def _arm(
    released: ReleasedCells,
    place: int,
    label: str,
    units: int,
    domain: Domain,
    request: Request,
    *,
    pays: bool,
) -> Arm:
    """Return an arm of all units; its noise is that of many draws and has no single law."""
    sums = tuple(float(place == other) for other in range(domain.treatment.size))
    weights = RowWeights(released.shares, sums)
    ends = (domain.bounds.low, domain.bounds.high)
    mean = min(max(released.value(weights), ends[0]), ends[1])
    half = released.half(weights, request.coverage) if pays else None
    noise = released.noise_half(weights, request.coverage)
    return Arm(
        label, units, mean,
        interval=None if half is None else _within(mean, half, ends),
        noise_interval=_within(mean, noise, ends),
        noise=None, mean_noise=None,
        variances=(released.variance(weights),) if pays else (),
        weighted=True,
    )  # fmt: skip


def _around(center: float, half: float | None, width: float) -> Pair | None:
    """Return an interval around an effect, within what effects can be."""
    return None if half is None else _within(center, half, (-width, width))


def _within(center: float, half: float, ends: Pair) -> Pair:
    low, high = (min(max(end, ends[0]), ends[1]) for end in (center - half, center + half))
    return low, high
