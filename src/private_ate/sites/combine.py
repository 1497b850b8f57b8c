"""Combine releases of several sites: check them, read their variances, pool row by row.

Every row of the table of effects that all sites hold with an interval is pooled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, cast, get_args

import numpy as np

from private_ate._version import VERSION
from private_ate.arguments import one_of, real_number
from private_ate.effects.row_errors import row_variances
from private_ate.effects.to_release import warn_of_epsilon
from private_ate.errors import ArgumentError
from private_ate.release.metadata import Effect, OutcomeNote, Pair, longer_half
from private_ate.release.release import Release
from private_ate.sites.compatibility import (
    Key,
    promise_together,
    refuse_disagreement,
    refuse_unsound,
    row_key,
    warn_of_differences,
)
from private_ate.sites.pooling import pool_fixed, pool_random, quantile
from private_ate.sites.values import Combined, CombinedEffect, Model, Site, SiteEffect

_FEW: Final = 5  # sites below which their differences are hardly known
_SUSPECT: Final = 0.1  # p-value of Q below which a single effect for all sites is rejected
_LARGEST: Final = 1e100  # whose square and its sums are still numbers
_SLACK: Final = 1e-9  # by which rounding may make ends differ


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
    promise, guarantee, not_protected = promise_together(list(named.values()))
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
        guarantee=guarantee,
        not_protected=not_protected,
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


def _pool_rows(
    named: Mapping[str, Release], model: Model, coverage: float
) -> tuple[tuple[CombinedEffect, ...], list[str]]:
    """Return the pooled rows, the headline first, and a sentence about rows left out."""
    tables = {
        name: {row_key(row): row for row in release.effects} for name, release in named.items()
    }
    (first, table), *_ = tables.items()
    headline = row_key(named[first].effects[0])
    keys = [key for key in table if key == headline or _is_everywhere(key, tables)]
    rows = tuple(
        _pool_row(
            named, {name: held.get(key) for name, held in tables.items()}, model,
            coverage, together=1 - (1 - coverage) / len(keys),
        )
        for key in keys
    )  # fmt: skip
    known = {key for held in tables.values() for key in held}
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
    coverage: float,
    *,
    together: float,
) -> CombinedEffect:
    """Pool one row; ``together`` is the coverage of intervals that cover at once."""
    read = [read_site(name, named[name], row) for name, row in rows.items()]
    y = np.array([one.estimate for one in read])
    v = np.array([one.sampling_variance + one.noise_variance for one in read])
    pooled = pool_random(y, v) if model == "random" else pool_fixed(y, v)
    shares = pooled.weights.tolist()
    normal = quantile(coverage, None)
    estimate, error = pooled.estimate, pooled.standard_error
    noise = math.sqrt(
        sum(share**2 * one.noise_variance for share, one in zip(shares, read, strict=True))
    )
    interval = _around(estimate, pooled.half_width(coverage))
    simultaneous = _around(estimate, pooled.half_width(together))
    noise_interval = _around(estimate, normal * noise)
    reach = pooled.prediction_half_width(coverage)
    head = next(row for row in rows.values() if row is not None)
    if len(read) == 1 and coverage == next(iter(named.values())).facts.confidence:
        (alone,) = read  # one site keeps its own numbers
        estimate, interval, noise_interval = alone.estimate, alone.interval, alone.noise_interval
        simultaneous = head.simultaneous or interval
        error = longer_half(estimate, interval) / normal
    return CombinedEffect(
        outcome=head.outcome,
        subgroup=head.subgroup,
        arm=head.arm,
        against=head.against,
        estimand=head.estimand,
        estimate=estimate,
        standard_error=error,
        interval=interval,
        simultaneous=simultaneous,
        noise_interval=noise_interval,
        prediction_interval=None if reach is None else _around(estimate, reach),
        heterogeneity=pooled.heterogeneity,
        sites=tuple(replace(one, weight=share) for one, share in zip(read, shares, strict=True)),
    )


def _around(middle: float, half: float) -> Pair:
    return middle - half, middle + half


def read_site(name: str, release: Release, effect: Effect | None) -> SiteEffect:
    """Return a site's effect and its two variances, without a weight yet; or refuse it.

    A release reports its interval and that of its noise, both at one confidence. The distribution
    of the noise is public, so its variance follows from the second. The first is as wide as the
    noise and a normal error together; that error's variance is the sampling variance.
    """
    if effect is None:
        msg = f"{name} has no row for the headline of the first release; leave it out"
        raise ArgumentError(msg)
    interval, noise_interval = effect.interval, effect.noise_interval
    if interval is None:
        msg = (
            f"{name} has no confidence interval, so its sampling variance is not known; leave it "
            "out, or ask that site for a release with a confidence (it spends new ε)"
        )
        raise ArgumentError(msg)
    if noise_interval is None:
        msg = f"{name} does not tell how large its noise is (no noise interval); leave it out"
        raise ArgumentError(msg)
    coverage = release.facts.confidence
    if not 0.5 <= coverage <= 0.9999:
        msg = f"{name} has a confidence of {coverage:g}, which no release has: it was edited"
        raise ArgumentError(msg)
    half = _half_width(name, effect.estimate, interval)
    noise = _half_width(name, effect.estimate, noise_interval, least=0.0)
    _refuse_cut(name, release, effect, interval)
    if noise > half * (1 + _SLACK):
        msg = f"{name} has an interval that is narrower than that of its noise: it was edited"
        raise ArgumentError(msg)
    found = row_variances(release, effect)
    return SiteEffect(
        name, effect.estimate, interval, noise_interval, found.sampling, found.noise, weight=0.0
    )


def _half_width(name: str, estimate: float, pair: Pair, *, least: float = 1 / _LARGEST) -> float:
    """Return the longer half of an interval that holds its estimate.

    The interval of the noise may be a point, at a very large ε.
    """
    if not all(math.isfinite(number) and abs(number) <= _LARGEST for number in (estimate, *pair)):
        msg = f"{name} holds numbers that are not finite or beyond {_LARGEST:g}"
        raise ArgumentError(msg)
    half = longer_half(estimate, pair)
    if not pair[0] <= estimate <= pair[1] or half < least:
        msg = f"{name} has an interval that does not hold its estimate, or of no width"
        raise ArgumentError(msg)
    return half


def _refuse_cut(name: str, release: Release, effect: Effect, interval: Pair) -> None:
    """Refuse numbers that were cut at the outcome's range: what was cut off is not known."""
    outcome = release.outcome
    if outcome is None or outcome.bounds is None or outcome.column != effect.outcome:
        return
    reach = outcome.bounds[1] - outcome.bounds[0]
    cut = [abs(abs(number) - reach) <= _SLACK * reach for number in (effect.estimate, *interval)]
    if cut[0] or (cut[1] and cut[2]):
        msg = (
            f"{name} was cut at the declared range of the outcome, so its variance is not known; "
            "it says next to nothing, leave it out"
        )
        raise ArgumentError(msg)
