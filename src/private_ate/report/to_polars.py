"""What tables and figures show, as polars frames, for figures and tables of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from private_ate.release.public_facts import ArmOverlap

if TYPE_CHECKING:
    import polars as pl

    from private_ate.planning import Plan
    from private_ate.release.public_facts import Overlap
    from private_ate.release.release import Release
    from private_ate.sites.values import Combined

_TEXTS: Final = ("outcome", "subgroup", "arm", "against", "estimand")
_INTERVALS: Final = ("interval", "simultaneous", "noise_interval")


def _frame(columns: Mapping[str, Sequence[object]], whole: Sequence[str] = ()) -> pl.DataFrame:
    """Return columns of texts, truths, ``whole`` numbers, and otherwise numbers."""
    import polars as pl  # slow to load

    kinds = {
        **dict.fromkeys((*_TEXTS, "covariate", "method", "step"), pl.String),
        **dict.fromkeys(("adjusted", "weighted"), pl.Boolean),
        **dict.fromkeys(whole, pl.Int64),
    }
    return pl.DataFrame(
        columns, schema={name: kinds.get(name, pl.Float64) for name in columns}, strict=False
    )


def _fields(rows: Sequence[object], names: Sequence[str]) -> dict[str, list[object]]:
    """Return fields of rows as columns; a pair is two of them."""
    columns: dict[str, list[object]] = {}
    for name in names:
        values = [getattr(row, name) for row in rows]
        if name.endswith("interval") or name == "simultaneous":
            for place, side in enumerate(("low", "high")):
                columns[f"{name}_{side}"] = [pair and pair[place] for pair in values]
        else:
            columns[name] = values
    return columns


def balance_frame(balance: Mapping[str, Sequence[float]]) -> pl.DataFrame:
    """Return a row per covariate: standardised differences before and after weighting."""
    before, after = ([pair[side] for pair in balance.values()] for side in (0, 1))
    return _frame({"covariate": list(balance), "before": before, "after": after})


def overlap_frame(overlap: Overlap | ArmOverlap) -> pl.DataFrame:
    """Return a row per bin of the propensity score, with the units of either arm in it.

    Of three arms or more: a row per arm whose score it is and bin, with the units of every arm.
    """
    import polars as pl  # as above

    labels: tuple[str, ...] = ("treated", "control")
    panels: list[tuple[dict[str, str], tuple[tuple[int, ...], ...]]]
    if isinstance(overlap, ArmOverlap):
        labels, abouts = overlap.labels, [{"score of": label} for label in overlap.labels]
        panels = list(zip(abouts, overlap.counts, strict=True))
    else:
        panels = [({}, (overlap.treated, overlap.control))]
    return pl.DataFrame(
        [
            {
                **about,
                "from": index / len(counts[0]),
                "to": (index + 1) / len(counts[0]),
                **dict(zip(labels, held, strict=True)),
            }
            for about, counts in panels
            for index, held in enumerate(zip(*counts, strict=True))
        ]
    )


def plan_frame(plan: Plan) -> pl.DataFrame:
    """Return a row per ε of a plan."""
    import polars as pl  # as above

    return pl.DataFrame(plan.to_dict()["rows"])


def effects_frame(release: Release) -> pl.DataFrame:
    """Return a row per effect, with what was estimated and whether it was adjusted for."""
    rows = release.effects
    adjusted = [release.adjusted] * len(rows)
    numbers = _fields(rows, ("estimate", *_INTERVALS))
    return _frame({**_fields(rows, _TEXTS), "adjusted": adjusted, **numbers})


def arms_frame(release: Release) -> pl.DataFrame:
    """Return a row per arm of a release of several: its size, mean and intervals."""
    names = ("units", "weighted", "mean", "interval", "noise_interval")
    labels = [arm.label for arm in release.arms]
    return _frame({"arm": labels, **_fields(release.arms, names)}, ("units",))


def combined_frame(combined: Combined) -> pl.DataFrame:
    """Return a row per pooled effect, with how much its sites differ."""
    rows = combined.effects
    spread = [row.heterogeneity for row in rows]
    names = ("estimate", "standard_error", *_INTERVALS, "prediction_interval")
    return _frame(
        {
            **_fields(rows, _TEXTS),
            "sites": [len(row.sites) for row in rows],
            **_fields(rows, names),
            **_fields(spread, list(asdict(spread[0]))),
        },
        ("sites", "degrees"),
    )


def budget_frame(release: Release) -> pl.DataFrame:
    """Return a row per step that spent, with its ε and its share."""
    steps, total = release.facts.budget, float(release.epsilon)
    spent = list(steps.values())
    return _frame({"step": list(steps), "epsilon": spent, "share": [one / total for one in spent]})


def error_frame(errors: Mapping[str, Mapping[float, float]]) -> pl.DataFrame:
    """Return a row per method and ε of measured errors."""
    rows = [
        (method, epsilon, error)
        for method, by_epsilon in errors.items()
        for epsilon, error in sorted(by_epsilon.items())
    ]
    names = ("method", "epsilon", "error")
    return _frame({name: [row[place] for row in rows] for place, name in enumerate(names)})
