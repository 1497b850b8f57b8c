"""Whether releases answer one question about different persons, and what they promise together.

Neighbours differ in one person, who is in one site; who is in which site is public. Only that
site's release has another distribution then, and the others are independent of it: the whole keeps
that site's ε, at worst the largest (parallel composition; docs/explanation/several-sites.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from private_ate.errors import ArgumentError
from private_ate.privacy.budget import Guarantee
from private_ate.privacy.levels import has_public_covariates
from private_ate.release.metadata import Effect, OutcomeNote, Pair, TreatmentNote
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
    head = release.effects[0]
    first = (head.estimate, head.interval, head.noise_interval)
    repeated = max(Counter(map(row_key, release.effects)).values()) > 1
    if (
        first != (release.ate, release.interval, release.noise_interval)
        or head.estimand != release.estimand
        or repeated
        or not f"{release.guarantee}, ".startswith(f"{_claim(release)}, ")
    ):
        msg = f"{name} contradicts itself: it was edited after it was released; get the original"
        raise ArgumentError(msg)


@dataclass(frozen=True, slots=True)
class _Subject:
    """A site's release with what it is about, which is known of every one of several sites."""

    name: str
    release: Release
    treatment: TreatmentNote
    outcome: OutcomeNote

    @classmethod
    def of(cls, name: str, release: Release) -> _Subject:
        if release.treatment is None or release.outcome is None:
            msg = (
                f"{name} is a release of schema {release.schema}, which does not say which "
                "treatment and outcome it is about; add both with dataclasses.replace(release, "
                "treatment=…, outcome=…, effects=()) if you know them, or leave it out"
            )
            raise ArgumentError(msg)
        return cls(name, release, release.treatment, release.outcome)

    def question(self) -> dict[str, str]:
        """Return what has to be the same in all sites, as texts."""
        release, treatment = self.release, self.treatment
        others = ", ".join(sorted(set(treatment.arms) - {treatment.reference}))
        unadjusted = "a difference in means that was not adjusted"
        return {
            "treatment": f"{treatment.column}: {others} against {treatment.reference}",
            "outcome": self.outcome.column,
            "quantity of survival": release.quantity or "none",
            "horizon": f"{release.horizon}",
            "estimand": unadjusted
            if release.estimand == "difference"
            else f"an effect ({release.estimand.upper()})",
            "unit": self.outcome.unit or "",
            "neighbours": release.adjacency.partition(":")[0],
        }


def refuse_disagreement(releases: Mapping[str, Release]) -> None:
    """Refuse releases of different questions, of the same persons, or of unlike promises."""
    if len(releases) == 1:
        return
    first, *others = [_Subject.of(name, release) for name, release in releases.items()]
    for other in others:
        knows_units = None not in (first.outcome.unit, other.outcome.unit)
        theirs = other.question()
        for what, mine in first.question().items():
            if mine != theirs[what] and (what != "unit" or knows_units):
                msg = (
                    f"{first.name} and {other.name} differ in their {what}: {mine[:120]!r} and "
                    f"{theirs[what][:120]!r}; only releases that answer one question can be "
                    "combined"
                )
                raise ArgumentError(msg)
        ends = first.outcome.bounds, other.outcome.bounds
        if ends[0] != ends[1] and not knows_units:
            msg = (
                f"{first.name} and {other.name} declared different bounds of the outcome, "
                f"{_range(ends[0])} and {_range(ends[1])}, and not both declared its unit: nothing "
                "says that they measure it alike; add the unit with dataclasses.replace if you "
                "know it"
            )
            raise ArgumentError(msg)
    _refuse_duplicates(releases)


def _range(bounds: Pair | None) -> str:
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


def warn_of_differences(releases: Mapping[str, Release]) -> Iterator[str]:
    """Say what differs between sites without forbidding to combine them."""
    held = list(releases.values())
    outcomes = [one.outcome for one in held if one.outcome is not None]
    if len({note.bounds for note in outcomes}) > 1:
        yield (
            "sites declared different bounds of the outcome: each effect is that of outcomes "
            "clipped to its site's own"
        )
    if len({note.unit for note in outcomes}) > 1:
        silent = [name for name, one in releases.items() if one.outcome and not one.outcome.unit]
        yield f"no unit was declared by {_listed(silent)}; taken to be that of the others"
    if len({one.level for one in held}) > 1:
        outcomes_only = [name for name, one in releases.items() if has_public_covariates(one.level)]
        yield (
            f"{_listed(outcomes_only)} protected outcomes only, other sites whole records: the "
            "whole keeps what all of them keep, the label level"
        )
    if len({one.adjusted for one in held}) > 1:
        bare = [name for name, one in releases.items() if not one.adjusted]
        yield f"{_listed(bare)} adjusted for nothing, relying on randomised treatment"
    limits = {one.facts.limit for one in held if one.adjusted}
    if len(limits) > 1 and held[0].estimand == "ate":
        yield (
            "sites limit differently how much units without overlap count: their effects speak of "
            "somewhat different people (see the populations)"
        )
    names = Counter(one.dataset for one in held if one.dataset is not None)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        yield (
            f"several releases are of versions of the data set {_listed(twice)}: people who are "
            "in more than one of them count twice, and their ε add up"
        )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def promise_together(releases: Sequence[Release]) -> tuple[Guarantee, str, tuple[str, ...]]:
    """Return the promise to a person who is in one site: in numbers, in words, and its limits.

    It has the weakest level and the largest ε and δ. A release that protects whole records protects
    outcomes too, so of mixed levels the label level is what all keep.
    """
    outcomes_only = [one.level for one in releases if has_public_covariates(one.level)]
    level = outcomes_only[0] if outcomes_only else releases[0].level
    epsilon = max(one.epsilon for one in releases)
    delta = max(one.delta for one in releases)
    kept = [one for one in releases if one.level == level]
    promise = Guarantee(level, epsilon, "; or ".join(_each(one.adjacency for one in kept)), delta)
    if len(releases) == 1:
        return promise, releases[0].guarantee, releases[0].not_protected
    caveats = _each(one.guarantee.removeprefix(_claim(one)) for one in releases)
    epsilons = sorted((one.epsilon for one in releases), reverse=True)
    reach = f"up to {float(sum(epsilons[:2])):g} for two sites"
    if len(releases) > 2:
        reach += f", {float(sum(epsilons)):g} for all {len(releases)}"
    not_protected = (
        f"people who are in more than one site: the ε of their sites add up ({reach})",
        "who is in which site, and how many people a site has as far as its release tells",
        *_each(text for one in kept for text in one.not_protected),
    )
    return promise, f"{promise}, for people who are in one site{''.join(caveats)}", not_protected


def _claim(release: Release) -> str:
    """Return what a guarantee says by its numbers alone."""
    return str(Guarantee(release.level, release.epsilon, release.adjacency, release.delta))


def _each(texts: Iterator[str]) -> list[str]:
    """Return texts that are not empty, each once."""
    return list(dict.fromkeys(text for text in texts if text))
