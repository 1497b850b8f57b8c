"""What a curator alone may see of a study and of a release's own estimator. Not private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from private_ate.release.metadata import Pair
from private_ate.release.public_facts import ArmOverlap, Overlap, TableOne
from private_ate.release.release import Release
from private_ate.showing import show


@dataclass(frozen=True, slots=True)
class LostValues:
    """Entries of a column that were not used as they are. Not private.

    Attributes
    ----------
    missing : int
        Entries that are missing or could not be read.
    below, above : int
        Numbers beyond the declared bounds, which were clipped to them.
    undeclared : int
        Labels that nobody declared.
    """

    missing: int = field(default=0, repr=False)
    below: int = field(default=0, repr=False)
    above: int = field(default=0, repr=False)
    undeclared: int = field(default=0, repr=False)

    @property
    def any(self) -> bool:
        """Whether any entry was lost."""
        return bool(self.missing or self.below or self.above or self.undeclared)


@dataclass(frozen=True, slots=True)
class WithoutNoise:
    """The estimator of a release without noise, and its weights where they are known. Not private.

    Attributes
    ----------
    effect : float
        What the release would have been; of several arms the headline.
    means : mapping
        Of several arms: the mean of each without noise, by its label.
    by_weights : bool
        Whether it was computed with the very weights of the release; otherwise the method ran once
        more with all of its steps silent, and what these decide may be another.
    weights : mapping
        Smallest, median, 90 %, 99 % and largest weight of each arm; empty where not known.
    table : TableOne or None
        The covariates by arm under these weights.
    """

    effect: float = field(repr=False)
    means: Mapping[str, float] = field(default_factory=dict, repr=False)
    by_weights: bool = False
    weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict, repr=False)
    table: TableOne | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ForCurators:
    """What a curator alone may see, shown as such; its repr shows no value."""

    without_noise: WithoutNoise | None = field(default=None, repr=False)
    lost: Mapping[str, LostValues] = field(default_factory=dict, repr=False)
    note: str = "not private, do not share"

    def to_html(self, release: Release | None = None) -> str:
        """Return the curator's page, watermarked; it compares with a release if given one."""
        return show(self, "page", str, release)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what is held, and none of the values."""
        return show(self, "card", str)


@dataclass(frozen=True, slots=True)
class Diagnostics(_ForCurators):
    """The curator's view of a study. Not private: computed from the records themselves.

    Never part of a release; made only by ``diagnose_ate``, and its repr shows no value.

    Attributes
    ----------
    exact_effect, limited_effect, plain_difference : float
        Matching without limits, matching within the published method's limits, and the
        difference in means; none carries noise.
    treated, control : int
        Sizes of the arms.
    effective_treated, effective_control : float
        Kish's effective sizes under the limited weights.
    balance : mapping
        Standardised mean differences of each feature before and after weighting.
    weights : mapping
        Smallest, median, 90 %, 99 % and largest weight of each arm.
    overlap : Overlap
        Propensity scores by arm.
    without_noise : WithoutNoise or None
        The estimator of the release that was asked about, without its noise.
    lost : mapping
        For each column how many entries were missing, clipped or not declared.
    note : str
        What stands on everything that shows it: not private.
    """

    exact_effect: float = field(repr=False)
    limited_effect: float = field(repr=False)
    plain_difference: float = field(repr=False)
    treated: int = field(repr=False)
    control: int = field(repr=False)
    effective_treated: float = field(repr=False)
    effective_control: float = field(repr=False)
    balance: Mapping[str, Pair] = field(repr=False)
    weights: Mapping[str, tuple[float, ...]] = field(repr=False)
    overlap: Overlap = field(repr=False)


@dataclass(frozen=True, slots=True)
class ArmDiagnostics(_ForCurators):
    """The curator's view of a study of three arms or more. Not private.

    Never part of a release; made only by ``diagnose_ate``, and its repr shows no value. Numbers by
    arm are mappings from its label, the reference first.

    Attributes
    ----------
    exact_means, limited_means, plain_means : mapping
        Of each arm the mean by matching without limits, by matching within the published method's
        limits, and as it is; none carries noise. Contrasts are differences of them.
    sizes, effective : mapping
        Sizes of the arms, and Kish's effective sizes under the limited weights.
    balance : mapping
        As in :class:`Diagnostics`, the greatest over all pairs of arms.
    arm_balance : mapping
        The standardised mean of each feature in each arm, less that of all units.
    overlap : ArmOverlap
        Every arm's propensity scores, by arm.
    weights, without_noise, lost, note
        As in :class:`Diagnostics`.
    """

    exact_means: Mapping[str, float] = field(repr=False)
    limited_means: Mapping[str, float] = field(repr=False)
    plain_means: Mapping[str, float] = field(repr=False)
    sizes: Mapping[str, int] = field(repr=False)
    effective: Mapping[str, float] = field(repr=False)
    balance: Mapping[str, Pair] = field(repr=False)
    arm_balance: Mapping[str, Mapping[str, Pair]] = field(repr=False)
    weights: Mapping[str, tuple[float, ...]] = field(repr=False)
    overlap: ArmOverlap = field(repr=False)
