"""Whether releases answer one question about different persons, and are sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from private_ate.errors import ArgumentError
from private_ate.privacy.budget import Guarantee
from private_ate.privacy.levels import has_public_covariates
from private_ate.release.metadata import Effect, TreatmentNote

if TYPE_CHECKING:
    from private_ate.release.release import Release

Key = tuple[str, str | None, str, str, str]


def row_key(effect: Effect) -> Key:
    """Return what a row speaks of; rows of equal keys are combined."""
    return effect.outcome, effect.subgroup, effect.arm, effect.against, effect.estimand


def refuse_unsound(name: str, release: Release) -> None:
    """Refuse a release that promises nothing, or whose parts contradict each other."""
    if not release.is_private:
        msg = (
            f"{name} keeps no promise (guarantee {release.guarantee!r}); combine releases that "
            "were drawn without a seed and from declared bounds"
        )
        raise ArgumentError(msg)
    claim = str(Guarantee(release.level, release.epsilon, release.adjacency, release.delta))
    head = release.effects[0]
    first = (head.estimate, head.interval, head.noise_interval)
    repeated = max(Counter(map(row_key, release.effects)).values()) > 1
    if (
        first != (release.ate, release.interval, release.noise_interval)
        or head.estimand != release.estimand
        or repeated
        or not f"{release.guarantee}, ".startswith(f"{claim}, ")
    ):
        msg = f"{name} contradicts itself: it was edited after it was released; get the original"
        raise ArgumentError(msg)


def refuse_disagreement(releases: Mapping[str, Release]) -> None:
    """Refuse releases of different questions, of the same persons, or of unlike promises."""
    if len(releases) == 1:
        return
    (first_name, first), *others = releases.items()
    for name, release in releases.items():
        _refuse_unknown_subject(name, release)
    for name, release in others:
        for what, mine, other in _compared(first, release):
            if mine != other:
                _refuse(what, first_name, name, mine, other)
        _refuse_bounds(first_name, name, first, release)
    _refuse_duplicates(releases)


def _refuse_unknown_subject(name: str, release: Release) -> None:
    if release.treatment is None or release.outcome is None:
        msg = (
            f"{name} is a release of schema {release.schema}, which does not say which treatment "
            "and outcome it is about; add both with dataclasses.replace(release, treatment=…, "
            "outcome=…, effects=()) if you know them, or leave it out"
        )
        raise ArgumentError(msg)


def _compared(first: Release, other: Release) -> list[tuple[str, str, str]]:
    """Return what has to be the same, as texts."""
    return [
        ("treatment", _treatment(first.treatment), _treatment(other.treatment)),
        ("outcome", _column(first), _column(other)),
        ("quantity of survival", first.quantity or "none", other.quantity or "none"),
        ("horizon", f"{first.horizon}", f"{other.horizon}"),
        ("estimand", _estimand(first), _estimand(other)),
        *([("unit", *units)] if (units := _units(first, other)) else []),
        ("neighbours", _neighbours(first), _neighbours(other)),
    ]


def _treatment(note: TreatmentNote | None) -> str:
    if note is None:
        return ""
    rest = sorted(set(note.arms) - {note.reference})
    return f"{note.column}: {', '.join(rest)} against {note.reference}"


def _column(release: Release) -> str:
    return "" if release.outcome is None else release.outcome.column


def _estimand(release: Release) -> str:
    return (
        "a difference in means that was not adjusted"
        if release.estimand == "difference"
        else f"an effect ({release.estimand.upper()})"
    )


def _units(first: Release, other: Release) -> tuple[str, str] | None:
    """Return both units where both are declared."""
    units = [None if one.outcome is None else one.outcome.unit for one in (first, other)]
    return None if units[0] is None or units[1] is None else (units[0], units[1])


def _neighbours(release: Release) -> str:
    return release.adjacency.partition(":")[0]


def _refuse(what: str, first: str, other: str, mine: str, theirs: str) -> None:
    msg = (
        f"{first} and {other} differ in their {what}: {mine[:120]!r} and {theirs[:120]!r}; only "
        "releases that answer one question can be combined"
    )
    raise ArgumentError(msg)


def _refuse_bounds(first: str, other: str, mine: Release, theirs: Release) -> None:
    """Refuse other bounds where no unit says that both outcomes are on one scale."""
    if mine.outcome is None or theirs.outcome is None:
        return
    if mine.outcome.bounds != theirs.outcome.bounds and _units(mine, theirs) is None:
        msg = (
            f"{first} and {other} declared different bounds of the outcome, "
            f"{_range(mine)} and {_range(theirs)}, and not both declared its unit: nothing says "
            "that they measure it alike; add the unit with dataclasses.replace if you know it"
        )
        raise ArgumentError(msg)


def _range(release: Release) -> str:
    bounds = None if release.outcome is None else release.outcome.bounds
    return "none" if bounds is None else f"{bounds[0]:g} to {bounds[1]:g}"


def _refuse_duplicates(releases: Mapping[str, Release]) -> None:
    """Refuse two releases with the same numbers, or of the same named data."""
    seen: dict[object, str] = {}
    for name, release in releases.items():
        rows = tuple((row.estimate, row.interval, row.noise_interval) for row in release.effects)
        marks: list[tuple[object, str]] = [(rows, "are the same release")]
        if release.dataset is not None:
            data = (release.dataset, release.dataset_version)
            marks.append((data, f"are both of the data set {release.dataset[:60]!r}"))
        for mark, same in marks:
            if mark in seen:
                msg = (
                    f"{seen[mark]} and {name} {same}: their people would count twice; combine "
                    "sites that have nobody in common"
                )
                raise ArgumentError(msg)
            seen[mark] = name


def warn_of_differences(releases: Mapping[str, Release]) -> list[str]:
    """Say what differs between sites without forbidding to combine them."""
    held = list(releases.values())
    found = []
    outcomes = [one.outcome for one in held if one.outcome is not None]
    if len({note.bounds for note in outcomes}) > 1:
        found.append(
            "sites declared different bounds of the outcome: each effect is that of outcomes "
            "clipped to its site's own"
        )
    if len({note.unit for note in outcomes}) > 1:
        silent = [name for name, one in releases.items() if one.outcome and not one.outcome.unit]
        found.append(f"no unit was declared by {_listed(silent)}; taken to be that of the others")
    if len({one.level for one in held}) > 1:
        outcomes_only = [name for name, one in releases.items() if has_public_covariates(one.level)]
        found.append(
            f"{_listed(outcomes_only)} protected outcomes only, other sites whole records: the "
            "whole keeps what all of them keep, the label level"
        )
    if len({one.adjusted for one in held}) > 1:
        bare = [name for name, one in releases.items() if not one.adjusted]
        found.append(f"{_listed(bare)} adjusted for nothing, relying on randomised treatment")
    limits = {one.facts.limit for one in held if one.adjusted}
    if len(limits) > 1 and held[0].estimand == "ate":
        found.append(
            "sites limit differently how much units without overlap count: their effects speak of "
            "somewhat different people (see the populations)"
        )
    names = Counter(one.dataset for one in held if one.dataset is not None)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        found.append(
            f"several releases are of versions of the data set {_listed(twice)}: people who are "
            "in more than one of them count twice, and their ε add up"
        )
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
