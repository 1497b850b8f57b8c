"""Combine releases of several sites: check them, read their variances, pool row by row.

Every row of the table of effects that all sites hold with an interval is pooled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast, get_args

import numpy as np

from private_ate._version import VERSION
from private_ate.arguments import one_of, real_number
from private_ate.errors import ArgumentError
from private_ate.release.metadata import Effect, OutcomeNote, Pair, longer_half
from private_ate.release.release import Release
from private_ate.release.spending import warn_of_epsilon
from private_ate.sites.compatibility import (
    Key,
    refuse_disagreement,
    refuse_unsound,
    row_key,
    warn_of_differences,
)
from private_ate.sites.guarantee import promise_together
from private_ate.sites.input import read_site
from private_ate.sites.pooling import pool_fixed, pool_random, quantile
from private_ate.sites.values import Combined, CombinedEffect, Model, Site

_FEW = 5  # sites below which their differences are hardly known
_SUSPECT = 0.1  # p-value of Q below which a single effect for all sites is rejected


def combine(
    releases: Mapping[str, Release] | Iterable[Release],
    model: Model = "random",
    *,
    confidence: float | str | None = None,
) -> Combined:
    """Combine releases of several sites into one effect; spends nothing.

    Sites are weighted by the inverse of their variance, the known variance of their noise added to
    their sampling variance. One site alone keeps its numbers.

    Parameters
    ----------
    releases : mapping or iterable of Release
        One release a site, by the site's name if a mapping. They answer one question, have nobody
        in common, and carry confidence intervals.
    model : {"random", "fixed"}
        "random": effects vary between sites (REML, Hartung–Knapp, prediction interval). "fixed":
        all sites have one effect.
    confidence : float, optional
        Coverage of the intervals; the releases' own if they agree, else 0.95.

    Returns
    -------
    Combined
        The pooled table of effects, what went in, and what is promised together.
    """
    named = _named(releases)
    one_of("model", model, cast("tuple[str, ...]", get_args(Model)))
    for name, release in named.items():
        refuse_unsound(name, release)
    refuse_disagreement(named)
    coverage = _coverage(named, confidence)
    effects, left_out = _pool_rows(named, model, coverage)
    promise = promise_together(list(named.values()))
    first = next(iter(named.values()))
    return Combined(
        model=model,
        confidence=coverage,
        warnings=(
            *_warn_of_model(model, effects[0]),
            *warn_of_differences(named),
            *left_out,
            *warn_of_epsilon(promise.epsilon),
            *(f"{name}: {text}" for name, one in named.items() for text in one.warnings),
        ),
        estimand=first.estimand,
        treatment=first.treatment,
        outcome=_outcome_of(named),
        effects=effects,
        sites=tuple(_site(name, release) for name, release in named.items()),
        epsilon=promise.epsilon,
        delta=promise.delta,
        level=promise.level,
        adjacency=promise.adjacency,
        guarantee=promise.guarantee,
        not_protected=promise.not_protected,
        version=VERSION,
    )


def _named(releases: Mapping[str, Release] | Iterable[Release]) -> dict[str, Release]:
    """Return the releases by names that can be printed."""
    if isinstance(releases, Release | str) or not isinstance(releases, Iterable):
        msg = "combine takes a list of releases, or releases by the names of their sites"
        raise ArgumentError(msg)
    if isinstance(releases, Mapping):
        held = dict(releases)
    else:
        listed = list(releases)
        held = dict(zip(_names_of(listed), listed, strict=True))
    if not held or not all(isinstance(one, Release) for one in held.values()):
        msg = "combine takes one release or more, such as Release.from_json reads; nothing else"
        raise ArgumentError(msg)
    for name in held:
        if not _is_name(name):
            msg = "a site is named by a printable text of 1 to 200 characters"
            raise ArgumentError(msg)
    return held


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable()


def _names_of(releases: Sequence[Release]) -> list[str]:
    """Name sites by their data sets if those differ, else by numbers."""
    named = [getattr(one, "dataset", None) for one in releases]  # what it is, is checked later
    if all(map(_is_name, named)) and len(set(named)) == len(releases):
        return [cast("str", name) for name in named]
    return [f"site {place}" for place in range(1, len(releases) + 1)]


def _coverage(named: Mapping[str, Release], confidence: float | str | None) -> float:
    if confidence is not None:
        return real_number("confidence", confidence, 0.5, 0.9999)
    own = {release.facts.confidence for release in named.values()}
    return own.pop() if len(own) == 1 else 0.95


def _site(name: str, release: Release) -> Site:
    own: dict[str, Any] = {"name": name, "population": release.facts.population}
    held = {item.name: getattr(release, item.name) for item in fields(Site) if item.name not in own}
    return Site(**own, **held)


def _outcome_of(named: Mapping[str, Release]) -> OutcomeNote | None:
    """Return the outcome with the unit that somebody declared, and bounds that all declared."""
    notes = [one.outcome for one in named.values() if one.outcome is not None]
    if not notes:
        return None
    unit = next((note.unit for note in notes if note.unit is not None), None)
    bounds = notes[0].bounds if len({note.bounds for note in notes}) == 1 else None
    return OutcomeNote(notes[0].column, bounds, unit)


def _warn_of_model(model: Model, effect: CombinedEffect) -> list[str]:
    """Say where a model says less than it seems to."""
    found = effect.heterogeneity
    sites = found.degrees + 1
    if model == "random" and 1 < sites < _FEW:
        said = (
            f"{sites} sites hardly tell how much sites differ: the intervals of the random-effects "
            'model are wide for it; model "fixed" speaks of these sites alone'
        )
        return [said]
    if model == "fixed" and found.p_value is not None and found.p_value < _SUSPECT:
        said = (
            f"sites differ by more than noise and sampling explain (Q = {found.q:.3g}, "
            f'p = {found.p_value:.2g}): there may be no one effect; model "random" allows for that'
        )
        return [said]
    return []


@dataclass(frozen=True, slots=True)
class _Coverage:
    """Coverage of a row's own interval, and that of the intervals which cover together."""

    single: float
    together: float


def _pool_rows(
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
    read = [read_site(name, named[name], row) for name, row in effects.items()]
    y = np.array([one.estimate for one in read])
    v = np.array([one.sampling_variance + one.noise_variance for one in read])
    pooled = pool_random(y, v) if model == "random" else pool_fixed(y, v)
    (name, head), *others = effects.items()
    estimate, prediction = pooled.estimate, pooled.prediction_half_width(coverages.single)
    noise = math.sqrt(
        sum(
            weight**2 * one.noise_variance for weight, one in zip(pooled.weights, read, strict=True)
        )
    )
    row = CombinedEffect(
        outcome=head.outcome,
        subgroup=head.subgroup,
        arm=head.arm,
        against=head.against,
        estimand=head.estimand,
        estimate=estimate,
        standard_error=pooled.standard_error,
        interval=_around(estimate, pooled.half_width(coverages.single)),
        simultaneous=_around(estimate, pooled.half_width(coverages.together)),
        noise_interval=_around(estimate, quantile(coverages.single, None) * noise),
        prediction_interval=None if prediction is None else _around(estimate, prediction),
        heterogeneity=pooled.heterogeneity,
        sites=tuple(
            replace(one, weight=float(weight))
            for one, weight in zip(read, pooled.weights, strict=True)
        ),
    )
    if others or coverages.single != named[name].facts.confidence:
        return row
    alone = read[0]  # one site keeps its own numbers
    return replace(
        row,
        estimate=alone.estimate,
        standard_error=longer_half(alone.estimate, alone.interval)
        / quantile(coverages.single, None),
        interval=alone.interval,
        simultaneous=head.simultaneous or alone.interval,
        noise_interval=alone.noise_interval,
        prediction_interval=None,
    )


def _require(name: str, row: Effect | None) -> Effect:
    if row is None:
        msg = f"{name} has no row for the headline of the first release; leave it out"
        raise ArgumentError(msg)
    return row


def _around(middle: float, half: float) -> Pair:
    return middle - half, middle + half
