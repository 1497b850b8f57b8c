"""The table of effects, pooled row by row: each row that all sites hold with an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_ate.errors import ArgumentError
from private_ate.release.metadata import Effect, Pair, longer_half
from private_ate.sites.compatibility import Key, row_key
from private_ate.sites.input import Reading, read_site
from private_ate.sites.pooling import Pooled, pool_fixed, pool_random, quantile
from private_ate.sites.values import CombinedEffect, Model, SiteEffect

if TYPE_CHECKING:
    from private_ate.release import Release


@dataclass(frozen=True, slots=True)
class _Coverage:
    """Coverage of a row's own interval, and that of the intervals which cover together."""

    single: float
    together: float


def pool_rows(
    named: Mapping[str, Release], model: Model, coverage: float
) -> tuple[tuple[CombinedEffect, ...], list[str]]:
    """Return the pooled rows, the headline first, and a sentence about rows left out."""
    tables = {
        name: {row_key(row): row for row in release.effects} for name, release in named.items()
    }
    first_name, first = next(iter(named.items()))
    headline = row_key(first.effects[0])
    keys = [key for key in tables[first_name] if key == headline or _is_everywhere(key, tables)]
    coverages = _Coverage(coverage, 1 - (1 - coverage) / len(keys))
    rows = tuple(
        _pool_row(named, {name: table.get(key) for name, table in tables.items()}, model, coverages)
        for key in keys
    )
    known = {key for table in tables.values() for key in table}
    left = len(known) - len(keys)
    said = f"{left} of {len(known)} effects are not in all releases with an interval: left out"
    return rows, [said] if left else []


def _is_everywhere(key: Key, tables: Mapping[str, Mapping[Key, Effect]]) -> bool:
    rows = [table.get(key) for table in tables.values()]
    return all(row is not None and row.interval is not None for row in rows)


def _pool_row(
    named: Mapping[str, Release],
    rows: Mapping[str, Effect | None],
    model: Model,
    coverages: _Coverage,
) -> CombinedEffect:
    effects = {name: _require(name, row) for name, row in rows.items()}
    readings = {name: read_site(name, named[name], row) for name, row in effects.items()}
    y = np.array([one.estimate for one in readings.values()])
    v = np.array([one.variance for one in readings.values()])
    pooled = pool_random(y, v) if model == "random" else pool_fixed(y, v)
    (name, head), *others = effects.items()
    numbers = _pooled_numbers(pooled, list(readings.values()), coverages)
    if not others and coverages.single == named[name].facts.confidence:
        numbers = _own_numbers(head, readings[name], coverages)
    return CombinedEffect(
        outcome=head.outcome,
        subgroup=head.subgroup,
        arm=head.arm,
        against=head.against,
        estimand=head.estimand,
        estimate=numbers.estimate,
        standard_error=numbers.standard_error,
        interval=numbers.interval,
        simultaneous=numbers.simultaneous,
        noise_interval=numbers.noise_interval,
        prediction_interval=numbers.prediction_interval,
        heterogeneity=pooled.heterogeneity,
        sites=tuple(
            _site_effect(name, reading, float(weight))
            for (name, reading), weight in zip(readings.items(), pooled.weights, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers of a row."""

    estimate: float
    standard_error: float
    interval: Pair
    simultaneous: Pair
    noise_interval: Pair
    prediction_interval: Pair | None


def _pooled_numbers(pooled: Pooled, readings: list[Reading], coverages: _Coverage) -> _Numbers:
    estimate, prediction = pooled.estimate, pooled.prediction_half_width(coverages.single)
    noise = math.sqrt(
        sum(weight**2 * one.noise for weight, one in zip(pooled.weights, readings, strict=True))
    )
    return _Numbers(
        estimate=estimate,
        standard_error=pooled.standard_error,
        interval=_around(estimate, pooled.half_width(coverages.single)),
        simultaneous=_around(estimate, pooled.half_width(coverages.together)),
        noise_interval=_around(estimate, quantile(coverages.single, None) * noise),
        prediction_interval=None if prediction is None else _around(estimate, prediction),
    )


def _own_numbers(effect: Effect, reading: Reading, coverages: _Coverage) -> _Numbers:
    """Return the numbers of one site alone: its own."""
    half = longer_half(reading.estimate, reading.interval)
    return _Numbers(
        estimate=reading.estimate,
        standard_error=half / quantile(coverages.single, None),
        interval=reading.interval,
        simultaneous=effect.simultaneous or reading.interval,
        noise_interval=reading.noise_interval,
        prediction_interval=None,
    )


def _require(name: str, row: Effect | None) -> Effect:
    if row is None:
        msg = f"{name} has no row for the headline of the first release; leave it out"
        raise ArgumentError(msg)
    return row


def _site_effect(name: str, reading: Reading, weight: float) -> SiteEffect:
    return SiteEffect(
        site=name,
        estimate=reading.estimate,
        interval=reading.interval,
        noise_interval=reading.noise_interval,
        sampling_variance=reading.sampling,
        noise_variance=reading.noise,
        weight=weight,
    )


def _around(middle: float, half: float) -> Pair:
    return middle - half, middle + half
