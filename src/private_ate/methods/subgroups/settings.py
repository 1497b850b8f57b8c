"""What a release of subgroups says of its public phase: settings of all of them as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, cast

from private_ate.methods.calibrated.settings import (
    CalibratedArmsSettings,
    CalibratedSettings,
    SamplingNote,
)
from private_ate.request import Request
from private_ate.settings import (
    ABSENT,
    Absent,
    ArmCounts,
    ArmNumbers,
    Settings,
    SubgroupNote,
    SubgroupsNote,
)

__all__ = ["merged_settings", "merged_warnings"]

Pair = tuple[float, float]
Merged = CalibratedSettings | CalibratedArmsSettings

_MANY: Final = 3  # subgroups above which rolled-up effects are much noisier than direct ones
_ROLLED: Final = (
    "the effect of all units is rolled up from {0} subgroups and carries the noise of all of them, "
    "about {1:.1f} times that of one that is estimated directly; overall=True pays for one"
)
_SINGLE: Final = 2  # subgroups whose warnings of a kind are listed one by one
_NAMED: Final = 4  # subgroups that a warning names
_ALIKE: Final = "{0} in {1} of {2} subgroups ({3})"
_MANY_LEFT_OUT: Final = (
    "no effect in {0} subgroups that lack units of some arm ({1}); their {2} units are in no row "
    "of the table"
)
_LEFT_OUT: Final = "no effect in {0}: {1}; its {2} units are in no row of the table"


def merged_settings(
    settings: Sequence[Settings | Mapping[str, Any]],
    shares: Sequence[float],
    subgroups: tuple[SubgroupNote, ...],
    request: Request,
) -> Merged:
    """Return the settings of all subgroups as one: sums of sizes, largest cap, worst balance."""
    held = cast("Sequence[Merged]", settings)
    first = held[0]
    balance: dict[str, Pair] = {}
    for one in held:
        for name, pair in one.balance.items():
            worst = balance.get(name, (0.0, 0.0))
            balance[name] = (_larger(worst[0], pair[0]), _larger(worst[1], pair[1]))
    shared: dict[str, Any] = {
        "population": _population(first.population, subgroups),
        "balance": balance,
        "subgroups": SubgroupsNote(request.by, "rolled up", subgroups),
        "notes": _notes(held, request) or ABSENT,
        "budget": _budget(first, request),
        **_counts(held),
        "sampling_weights": _sampling(held, subgroups),
    }
    arms = _summed([_by_arm(one.arms) for one in held])
    effective = _effective([_by_arm(one.effective_arms) for one in held], shares)
    if isinstance(first, CalibratedSettings):
        return replace(
            first,
            weight_cap=max(one.weight_cap for one in held if isinstance(one, CalibratedSettings)),
            arms=ArmCounts(**arms), effective_arms=ArmNumbers(**effective),
            means=ABSENT, risk_ratio=ABSENT, odds_ratio=ABSENT, **shared,
        )  # fmt: skip
    several = [one for one in held if isinstance(one, CalibratedArmsSettings)]
    caps = {name: max(one.weight_cap[name] for one in several) for name in arms}
    return replace(
        first, weight_cap=caps, arms=arms, effective_arms=effective, arm_balance=ABSENT,
        simultaneous_factor=ABSENT, interval_rule=ABSENT, **shared,
    )  # fmt: skip


def merged_warnings(
    names: Sequence[str],
    warnings: Sequence[tuple[str, ...]],
    subgroups: tuple[SubgroupNote, ...],
) -> tuple[str, ...]:
    """Return the warnings of all subgroups by their names, and which of them have no effect.

    More than two of a kind are merged into one, with the words of the first.
    """
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, texts in zip(names, warnings, strict=True):
        for text in texts:
            kinds.setdefault(text.partition(":")[0], []).append((name, text))
    found = []
    for kind, listed in kinds.items():
        if len(listed) <= _SINGLE:
            found += [f"{name}: {text}" for name, text in listed]
        else:
            alike = _ALIKE.format(
                kind, len(listed), len(names), _listed([name for name, _ in listed])
            )
            found.append(f"{alike}. {listed[0][0]}: {listed[0][1]}")
    lacking = [subgroup for subgroup in subgroups if not subgroup.estimated]
    if len(lacking) > _SINGLE:
        units = sum(subgroup.units for subgroup in lacking)
        where = _listed([subgroup.name for subgroup in lacking])
        found.append(_MANY_LEFT_OUT.format(len(lacking), where, f"{units:,}"))
        return tuple(found)
    for subgroup in lacking:
        empty = [repr(label) for label, size in subgroup.arms.items() if not size]
        reason = f"nobody is in arm {' or '.join(empty)}"
        found.append(_LEFT_OUT.format(subgroup.name, reason, f"{subgroup.units:,}"))
    return tuple(found)


def _listed(names: Sequence[str]) -> str:
    """Name some, and say how many more there are."""
    more = len(names) - _NAMED
    return "; ".join(names[:_NAMED]) + (f"; {more} more" if more > 0 else "")


def _population(usual: str, subgroups: tuple[SubgroupNote, ...]) -> str:
    """Say whom the overall effect speaks of: not of subgroups in which nothing can be compared."""
    if all(subgroup.estimated for subgroup in subgroups):
        return usual
    kept = sum(subgroup.units for subgroup in subgroups if subgroup.estimated)
    return f"{usual}, of the {kept:,} units in subgroups with units of every arm"


def _sampling(held: Sequence[Merged], subgroups: tuple[SubgroupNote, ...]) -> SamplingNote | Absent:
    """Return sampling weights of all subgroups as one, each by what its weights add up to."""
    notes = [one.sampling_weights for one in held]
    found = [one for one in notes if isinstance(one, SamplingNote)]
    used = [subgroup for subgroup in subgroups if subgroup.estimated]
    sums = [subgroup.weight for subgroup in used if isinstance(subgroup.weight, float)]
    if len(found) < len(notes) or len(sums) < len(used):
        return ABSENT
    mean = sum(sums) / sum(subgroup.units for subgroup in used)
    means = [weight / subgroup.units for weight, subgroup in zip(sums, used, strict=True)]
    largest = max(one.largest * of / mean for one, of in zip(found, means, strict=True))
    shares = [weight / sum(sums) for weight in sums]
    effective = _effective([_by_arm(one.worth) for one in found], shares)
    first = found[0]
    if isinstance(first.worth, ArmNumbers):
        return replace(first, largest=largest, worth=ArmNumbers(**effective))
    return replace(first, largest=largest, worth=effective)


def _larger(one: float, other: float) -> float:
    return other if abs(other) > abs(one) else one


def _summed(by_arm: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(one[name] for one in by_arm) for name in by_arm[0]}


def _effective(by_arm: Sequence[Mapping[str, float]], shares: Sequence[float]) -> dict[str, float]:
    """Return the effective sample sizes of arms: squared weights of subgroups add up."""
    return {
        name: 1 / sum(share**2 / one[name] for one, share in zip(by_arm, shares, strict=True))
        for name in by_arm[0]
    }


def _by_arm(value: ArmCounts | ArmNumbers | Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers by arm as a mapping: two arms have fields, several have labels."""
    return dict(value) if isinstance(value, Mapping) else asdict(value)


def _budget(first: Merged, request: Request) -> dict[str, float]:
    """Return ε of each step: all subgroups have the same steps, and none adds to another's."""
    budget = dict(first.budget)
    if request.overall:
        budget["all units"] = float(request.epsilon) - sum(budget.values())
    return budget


def _counts(held: Sequence[Merged]) -> dict[str, Any]:
    """Return the sums of left-out rows; what each subgroup chose for itself is absent."""
    rest: dict[str, Any] = {"outcomes_beyond": ABSENT, "clipped_to": ABSENT}
    counts = [one.left_out_outcome for one in held]
    known = [count for count in counts if isinstance(count, int)]
    if len(known) == len(counts):
        rest["left_out_outcome"] = sum(known)
    return rest


def _notes(held: Sequence[Merged], request: Request) -> tuple[str, ...]:
    """Return how subgroups came about and what they say of themselves, each text once."""
    texts = [text for one in held if isinstance(one.notes, tuple) for text in one.notes]
    how = (
        "with half of ε for a run on all units, to which the subgroups add up"
        if request.overall
        else "each subgroup with all of ε, and all units rolled up from them"
    )
    found = [f"effects by {', '.join(request.by)}, {how}"]
    if not request.overall and len(held) > _MANY:
        found.append(_ROLLED.format(len(held), len(held) ** 0.5))
    return (*found, *dict.fromkeys(texts))
