"""What tables and figures show, as polars frames, for figures and tables of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import polars as pl

    from private_ate.planning import Plan
    from private_ate.release.metadata import Effect
    from private_ate.release.public_facts import ArmOverlap, Overlap
    from private_ate.release.release import Release
    from private_ate.sites.values import Combined, CombinedEffect


_TEXTS: Final = ("outcome", "subgroup", "arm", "against", "estimand")


def balance_frame(balance: Mapping[str, Sequence[float]]) -> pl.DataFrame:
    """Return a row per covariate: standardised differences before and after weighting."""
    import polars as pl

    return pl.DataFrame(
        {
            "covariate": list(balance),
            "before": [float(pair[0]) for pair in balance.values()],
            "after": [float(pair[1]) for pair in balance.values()],
        }
    )


def overlap_frame(overlap: Overlap | ArmOverlap) -> pl.DataFrame:
    """Return a row per bin of the propensity score, with the units of either arm in it.

    Of three arms or more: a row per arm whose score it is and bin, with the units of every arm.
    """
    import polars as pl  # as above

    from private_ate.release.public_facts import ArmOverlap  # as above

    if isinstance(overlap, ArmOverlap):
        return pl.DataFrame(
            [
                {
                    "score of": label,
                    "from": index / len(counts[0]),
                    "to": (index + 1) / len(counts[0]),
                    **dict(zip(overlap.labels, held, strict=True)),
                }
                for label, counts in zip(overlap.labels, overlap.counts, strict=True)
                for index, held in enumerate(zip(*counts, strict=True))
            ]
        )
    bins = len(overlap.treated)
    return pl.DataFrame(
        {
            "from": [index / bins for index in range(bins)],
            "to": [(index + 1) / bins for index in range(bins)],
            "treated": list(overlap.treated),
            "control": list(overlap.control),
        }
    )


def plan_frame(plan: Plan) -> pl.DataFrame:
    """Return a row per ε of a plan."""
    import polars as pl  # as above

    return pl.DataFrame(plan.to_dict()["rows"])


def effects_frame(release: Release) -> pl.DataFrame:
    """Return a row per effect, with what was estimated and whether it was adjusted for."""
    import polars as pl  # as above

    rows = [
        {
            **_compared(effect),
            "adjusted": release.adjusted,
            "estimate": float(effect.estimate),
            **_ends("interval", effect.interval),
            **_ends("simultaneous", effect.simultaneous),
            **_ends("noise_interval", effect.noise_interval),
        }
        for effect in release.effects
    ]
    return pl.DataFrame(rows, schema=_kinds(rows[0], {"adjusted": pl.Boolean}))


def arms_frame(release: Release) -> pl.DataFrame:
    """Return a row per arm of a release of several: its size, mean and intervals."""
    import polars as pl  # as above

    rows = [
        {
            "arm": arm.label,
            "units": arm.units,
            "weighted": arm.weighted,
            "mean": arm.mean,
            **_ends("interval", arm.interval),
            **_ends("noise_interval", arm.noise_interval),
        }
        for arm in release.arms
    ]
    ends = [f"{name}_{side}" for name in ("interval", "noise_interval") for side in ("low", "high")]
    kinds = {"arm": pl.String, "units": pl.Int64, "weighted": pl.Boolean, "mean": pl.Float64}
    return pl.DataFrame(rows, schema=kinds | dict.fromkeys(ends, pl.Float64))


def combined_frame(combined: Combined) -> pl.DataFrame:
    """Return a row per pooled effect, with how much its sites differ."""
    import polars as pl  # as above

    rows = [
        {
            **_compared(effect),
            "sites": len(effect.sites),
            "estimate": effect.estimate,
            "standard_error": effect.standard_error,
            **_ends("interval", effect.interval),
            **_ends("simultaneous", effect.simultaneous),
            **_ends("noise_interval", effect.noise_interval),
            **_ends("prediction_interval", effect.prediction_interval),
            **asdict(effect.heterogeneity),
        }
        for effect in combined.effects
    ]
    return pl.DataFrame(rows, schema=_kinds(rows[0], {"sites": pl.Int64, "degrees": pl.Int64}))


def _compared(effect: Effect | CombinedEffect) -> dict[str, str | None]:
    """Return the columns of text that say what a row is about."""
    return {name: getattr(effect, name) for name in _TEXTS}


def _kinds(row: Mapping[str, object], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types of a row's columns: texts, those given, and numbers."""
    import polars as pl  # as above

    kinds: dict[str, Any] = {**dict.fromkeys(_TEXTS, pl.String), **others}
    return {name: kinds.get(name, pl.Float64) for name in row}


def _ends(name: str, pair: Sequence[float] | None) -> dict[str, float | None]:
    low, high = (None, None) if pair is None else (float(pair[0]), float(pair[1]))
    return {f"{name}_low": low, f"{name}_high": high}


def budget_frame(release: Release) -> pl.DataFrame:
    """Return a row per step that spent, with its ε and its share."""
    import polars as pl  # as above

    steps = release.facts.budget
    total = float(release.epsilon)
    return pl.DataFrame(
        {
            "step": list(steps),
            "epsilon": list(steps.values()),
            "share": [spent / total for spent in steps.values()],
        }
    )


def error_frame(errors: Mapping[str, Mapping[float, float]]) -> pl.DataFrame:
    """Return a row per method and ε of measured errors."""
    import polars as pl  # as above

    rows = [
        (method, epsilon, error)
        for method, by_epsilon in errors.items()
        for epsilon, error in sorted(by_epsilon.items())
    ]
    return pl.DataFrame(rows, schema=["method", "epsilon", "error"], orient="row")
