"""Effects in subgroups at label level: a run of the method in every subgroup, each with all of ε.

Public columns make the subgroups and a person is in one of them, so that every subgroup has the
whole budget. What their weights balance is learnt from all rows, near whose weights theirs stay;
margins and all units are weighted sums of subgroups.
Where half of ε was set aside for all units, these are a run on all rows with weights of
their own, and the subgroups are made to add up to it. The method `blocks` releases private
subgroups by itself. Which rows are in which subgroup, and which share of ε each run has, changes
together with docs/proofs/subgroups.md and `planning.table`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np

from private_ate.arrays import Bits
from private_ate.domain.domain import Cells
from private_ate.effects.estimate import Estimate
from private_ate.effects.quantities import ReleasedSubgroups
from private_ate.errors import SchemaError
from private_ate.methods.calibrated.design import Learned, pose
from private_ate.methods.calibrated.method import (
    estimate_calibrated,
    estimate_rows,
    learn_from_all,
)
from private_ate.methods.calibrated.settings import (
    CalibratedArmsSettings,
    CalibratedSettings,
    SamplingNote,
)
from private_ate.methods.effect_tables import subgroup_estimate
from private_ate.methods.public_arms import FoundArms, found_arms
from private_ate.methods.registry import Method
from private_ate.privacy.budget import part_of_epsilon
from private_ate.privacy.composed_noise import SubgroupNoise, named_noise
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.noise import Noise
from private_ate.request import Request
from private_ate.settings import (
    ABSENT,
    Absent,
    Settings,
    SubgroupNote,
    SubgroupsNote,
)
from private_ate.study import ArmSizes, Block, MatchingStudy

__all__ = [
    "ComparedSubgroups", "SubgroupRows", "estimate_subgroups", "groups_of",
    "learned_for_subgroups", "merged_warnings", "overlap_of_subgroup",
]  # fmt: skip

_Merged = CalibratedSettings | CalibratedArmsSettings

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
# What each subgroup chose for itself.
_OWN: Final = ("outcomes_beyond", "clipped_to")
_OWN_PAIR: Final = (*_OWN, "means", "risk_ratio", "odds_ratio")
_OWN_ARMS: Final = (*_OWN, "arm_balance", "simultaneous_factor", "interval_rule")
_DIRECT: Final = "all units"


def estimate_subgroups(
    study: MatchingStudy, request: Request, method: Method, noise: Noise
) -> Estimate:
    """Release effects in all subgroups of a request, in their margins and for all units.

    Neighbours: one person's outcome replaced, which is in one subgroup. Cost: ε: every subgroup
    spends all of it, or half if the other half pays for a run on all rows. Sensitivity: as the
    method has it within a subgroup, and among all rows. Private subgroups are released by the
    method itself.
    Proof: docs/proofs/subgroups.md.
    """
    if not has_public_covariates(request.level):
        return method.run(study, request, noise)
    compared = ComparedSubgroups.of(study, request.by)
    used = compared.used
    of_subgroups = (
        part_of_epsilon(request.epsilon, Fraction(1, 2)) if request.overall else request.epsilon
    )
    each = replace(request, by=(), overall=False, epsilon=of_subgroups)
    learned = learned_for_subgroups(compared.rows.public(), each, len(used))
    divided = SubgroupNoise(noise)
    runs = [
        estimate_rows(subgroup.study, each, divided.within(subgroup.name), learned)
        for subgroup in used
    ]
    direct = None
    if request.overall:
        rest = replace(each, epsilon=request.epsilon - of_subgroups)
        direct = estimate_calibrated(compared.rows, rest, named_noise(noise, _DIRECT))
    shares = compared.shares(request, [run.population for run in runs])
    released = ReleasedSubgroups.reconcile(
        shares, [run.quantities for run in runs], None if direct is None else direct.quantities
    )
    notes = tuple(one.note for one in compared.found if one.arms.everyone.total)
    settings = _merged_settings([run.settings for run in runs], shares, notes, request)
    return subgroup_estimate(
        released, groups_of(compared.cells, used), study.domain, request, settings,
        units=tuple(map(sum, zip(*(one.arms.members.counts for one in used), strict=True))),
        warnings=merged_warnings(
            [subgroup.name for subgroup in used], [run.warnings for run in runs], notes
        ),
    )  # fmt: skip


def learned_for_subgroups(public: MatchingStudy, request: Request, count: int) -> Learned | None:
    """Learn from all rows what every subgroup balances, and weights near which a subgroup's stay.

    A subgroup alone has too few rows to learn shapes of the covariates, and what its weights then
    leave has the same sign in all subgroups and adds up in the effect of all units. Near the
    weights of all rows, rolled-up totals are about as balanced as those of one run on all rows.
    Weights that follow matching are each subgroup's own. Public columns only.
    """
    return None if request.target == "track" else learn_from_all(public, request, count)


def overlap_of_subgroup(
    public: MatchingStudy, request: Request, learned: Learned | None
) -> float | None:
    """Return what the units of a subgroup count for the ATO, by the score of all rows."""
    if request.estimand != "ato":
        return None
    return pose(public, request, learned).population


@dataclass(frozen=True, slots=True)
class SubgroupRows:
    """One of the finest subgroups: its name, its rows and their arms; its repr shows no row."""

    name: str
    study: MatchingStudy = field(repr=False)
    arms: FoundArms

    @property
    def is_comparable(self) -> bool:
        """Whether every arm has somebody who counts and has an outcome, as far as is public."""
        return 0 not in self.arms.members.counts

    @property
    def note(self) -> SubgroupNote:
        """What a release says of this subgroup."""
        domain, members = self.study.domain, self.arms.members
        sizes = dict(zip(domain.treatment.coded, members.counts, strict=True))
        weight: float | Absent = ABSENT
        if domain.weights is not None and self.study.size:
            weight = domain.weights.high * self.arms.weight
        return SubgroupNote(self.name, self.arms.everyone.total, sizes, self.is_comparable, weight)


@dataclass(frozen=True, slots=True)
class ComparedSubgroups:
    """All finest subgroups of a request, those with units of every arm, and the rows of the latter.

    Which these are follows from public columns.
    """

    cells: Cells
    found: tuple[SubgroupRows, ...]
    used: tuple[SubgroupRows, ...]
    rows: MatchingStudy = field(repr=False)

    @classmethod
    def of(cls, study: MatchingStudy, by: tuple[str, ...]) -> ComparedSubgroups:
        """Divide the rows of a study; refuse columns by which nothing can be compared."""
        cells = Cells.of(study.domain, by)
        divided = study.divided(lambda block: cells.codes(block.covariates), cells.count)
        nobody = ArmSizes((0,) * study.domain.treatment.size)
        nothing = FoundArms(nobody, nobody, nobody, 0.0)
        found = [
            SubgroupRows(name, rows, rows.public().fold(found_arms) if rows.size else nothing)
            for name, rows in zip(cells.names, divided, strict=True)
        ]
        used = [subgroup for subgroup in found if subgroup.is_comparable]
        if not used:
            msg = "no subgroup holds units of every arm; choose coarser ones"
            raise SchemaError(msg)
        return cls(cells, tuple(found), tuple(used), _rows_compared(study, cells, found))

    def shares(self, request: Request, overlaps: Sequence[float | None]) -> list[float]:
        """Return how much each subgroup counts among all; see :func:`count_population`."""
        populations = [
            _count_population(one.study.public(), request, overlap)
            for one, overlap in zip(self.used, overlaps, strict=True)
        ]
        return [population / sum(populations) for population in populations]


def _rows_compared(
    study: MatchingStudy, cells: Cells, found: Sequence[SubgroupRows]
) -> MatchingStudy:
    """Return the rows of all subgroups with units of every arm; which these are is public."""
    kept = np.array([subgroup.is_comparable for subgroup in found], dtype=np.uint8)
    if sum(subgroup.study.size for subgroup in found if subgroup.is_comparable) == study.size:
        return study
    return study.divided(lambda block: kept[cells.codes(block.covariates)], 2)[1]


def groups_of(cells: Cells, used: Sequence[SubgroupRows]) -> list[tuple[str, tuple[int, ...]]]:
    """Return margins, then the finest subgroups, with their places among those with effects."""
    places = {subgroup.name: place for place, subgroup in enumerate(used)}
    found = []
    for name, members in cells.margins:
        named = [cells.names[place] for place in members]
        held = tuple(places[one] for one in named if one in places)
        if held:
            found.append((name, held))
    return [*found, *((name, (place,)) for name, place in places.items())]


def _count_population(public: MatchingStudy, request: Request, overlap: float | None) -> float:
    """Return how many units the effect in a subgroup speaks of, counted by their sampling weights.

    ``overlap`` is what the overlap of its units adds up to, as the method has it for the ATO.
    """
    if request.estimand == "ato":
        if overlap is None:
            msg = "a subgroup of the ATO does not say what its overlap adds up to"
            raise TypeError(msg)
        return overlap
    labels = public.domain.treatment.coded

    def counted(block: Block) -> Bits:
        if request.among is not None:
            return np.asarray(block.arm == labels.index(request.among))
        match request.estimand:
            case "att":
                return np.asarray(block.arm == 1)
            case "atc":
                return np.asarray(block.arm == 0)
            case _:
                return np.ones(block.arm.size, dtype=np.bool_)

    def kernel(block: Block) -> float:
        return float(block.weights[counted(block)].sum())

    return public.fold(kernel, title="subgroups")


def _merged_settings(
    settings: Sequence[Settings | Mapping[str, Any]],
    shares: Sequence[float],
    subgroups: tuple[SubgroupNote, ...],
    request: Request,
) -> _Merged:
    """Return the settings of all subgroups as one: sums of sizes, largest cap, worst balance.

    What each subgroup chose for itself is absent.
    """
    held = cast("Sequence[_Merged]", settings)
    first = held[0]
    left_out = [one.left_out_outcome for one in held]
    known = [count for count in left_out if isinstance(count, int)]
    caps: Any = [one.weight_cap for one in held]
    is_pair = isinstance(first, CalibratedSettings)
    changed: dict[str, Any] = {
        **dict.fromkeys(_OWN_PAIR if is_pair else _OWN_ARMS, ABSENT),
        "weight_cap": max(caps) if is_pair else _by_arm(caps, max),
        "arms": _by_arm([one.arms for one in held], sum),
        "effective_arms": _by_arm([one.effective_arms for one in held], _effective(shares)),
        "population": _population(first.population, subgroups),
        "balance": {
            name: tuple(max((one.balance[name][side] for one in held), key=abs) for side in (0, 1))
            for name in first.balance
        },
        "subgroups": SubgroupsNote(request.by, "rolled up", subgroups),
        "notes": _notes(held, request) or ABSENT,
        "budget": _budget(first, request),
        "left_out_outcome": sum(known) if len(known) == len(held) else first.left_out_outcome,
        "sampling_weights": _sampling(held, subgroups),
    }
    return replace(first, **changed)


def _by_arm(values: Sequence[Any], merge: Callable[[list[Any]], Any]) -> Any:  # noqa: ANN401  # as given
    """Merge numbers by arm, in the shape that they have: two arms have fields, several labels."""
    first = values[0]
    plain = [dict(one) if isinstance(one, Mapping) else asdict(one) for one in values]
    found = {name: merge([one[name] for one in plain]) for name in plain[0]}
    return found if isinstance(first, Mapping) else type(first)(**found)


def _effective(shares: Sequence[float]) -> Callable[[list[float]], float]:
    """Return how effective sample sizes of subgroups add up: by the squares of their shares."""

    def merge(sizes: list[float]) -> float:
        return 1 / sum(share**2 / size for size, share in zip(sizes, shares, strict=True))

    return merge


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


def _sampling(
    held: Sequence[_Merged], subgroups: tuple[SubgroupNote, ...]
) -> SamplingNote | Absent:
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
    effective = _by_arm([one.worth for one in found], _effective(shares))
    return replace(found[0], largest=largest, worth=effective)


def _budget(first: _Merged, request: Request) -> dict[str, float]:
    """Return ε of each step: all subgroups have the same steps, and none adds to another's."""
    budget = dict(first.budget)
    if request.overall:
        budget["all units"] = float(request.epsilon) - sum(budget.values())
    return budget


def _notes(held: Sequence[_Merged], request: Request) -> tuple[str, ...]:
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
