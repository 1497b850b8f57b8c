"""What a combination of sites is made of: its table of effects, its sites, its promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from private_ate.codec import decode, encode, read_json, write_json
from private_ate.errors import ArgumentError
from private_ate.privacy.budget import Epsilon
from private_ate.privacy.levels import Level
from private_ate.release.metadata import Pair, ReleasedEstimand, TreatmentNote
from private_ate.settings import OutcomeNote
from private_ate.showing import show
from private_ate.sites.pooling import Heterogeneity

if TYPE_CHECKING:
    import polars as pl

Model = Literal["fixed", "random"]
SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class SiteEffect:
    """What one site says about one effect.

    Attributes
    ----------
    site : str
        The site's name.
    estimate : float
        The released number.
    interval, noise_interval : pair of float
        As released, with the site's own confidence.
    sampling_variance, noise_variance : float
        Of a normal error and of the known noise which make an interval that wide together.
    weight : float
        Share of this site in the pooled effect.
    """

    site: str
    estimate: float
    interval: Pair
    noise_interval: Pair
    sampling_variance: float
    noise_variance: float
    weight: float


@dataclass(frozen=True, slots=True)
class CombinedEffect:
    """One row of the table: an effect pooled over the sites.

    Attributes
    ----------
    outcome, subgroup, arm, against, estimand : str or None
        What was estimated, as in the releases.
    estimate, standard_error : float
        The pooled effect and its standard error, noise included.
    interval : pair of float
        Confidence interval for the mean effect.
    simultaneous : pair of float
        Interval that covers together with those of all other rows (Bonferroni).
    noise_interval : pair of float
        Range of the pooled effect without the noise of the sites.
    prediction_interval : pair of float or None
        Where the effect of another such site lies; null in the fixed-effect model.
    heterogeneity : Heterogeneity
        How much sites differ beyond noise and sampling.
    sites : tuple of SiteEffect
        What went in.
    """

    outcome: str
    subgroup: str | None
    arm: str
    against: str
    estimand: ReleasedEstimand
    estimate: float
    standard_error: float
    interval: Pair
    simultaneous: Pair
    noise_interval: Pair
    prediction_interval: Pair | None
    heterogeneity: Heterogeneity
    sites: tuple[SiteEffect, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """A release that went in, by what it promises and how it was made.

    Attributes
    ----------
    name : str
        What the site is called.
    n : int
        How many units it has.
    method : str
        The method of its release.
    level : str
        What its release protects.
    design : str
        How treatment came about, as declared.
    epsilon, delta : Fraction, float
        The privacy cost of its release.
    guarantee : str
        What its release promises.
    population : str or None
        Whom its effect speaks of.
    dataset, dataset_version : str or None
        What its curator calls the data.
    version : str
        The program that made its release.
    """

    name: str
    n: int
    method: str
    level: Level
    design: str
    epsilon: Epsilon
    delta: float
    guarantee: str
    population: str | None
    dataset: str | None
    dataset_version: str | None
    version: str


@dataclass(frozen=True, slots=True)
class Combined:
    """An effect pooled over several releases; as private as they are, nothing more is spent.

    Attributes
    ----------
    model : str
        "fixed": one effect for all sites. "random": effects that vary between sites.
    confidence : float
        Coverage of the intervals.
    warnings : tuple of str
        What to know before the number is used.
    estimand, treatment, outcome
        What was estimated; the same in all sites.
    effects : tuple of CombinedEffect
        The table of effects; its first row is the headline.
    sites : tuple of Site
        The releases that went in.
    epsilon, delta, level, adjacency, guarantee
        What is promised to a person who is in one of the sites.
    not_protected : tuple of str
        What the promise does not cover.
    version : str
        The program's version.
    schema : int
        1.
    """

    model: Model
    confidence: float
    warnings: tuple[str, ...]
    estimand: ReleasedEstimand
    treatment: TreatmentNote | None
    outcome: OutcomeNote | None
    effects: tuple[CombinedEffect, ...]
    sites: tuple[Site, ...]
    epsilon: Epsilon
    delta: float
    level: Level
    adjacency: str
    guarantee: str
    not_protected: tuple[str, ...]
    version: str
    schema: Literal[1] = SCHEMA

    def __post_init__(self) -> None:
        names = [site.name for site in self.sites]
        named = [[site.site for site in effect.sites] for effect in self.effects]
        if not names or not named or any(row != names for row in named):
            msg = "a combination has one effect or more, and each of its sites in every effect"
            raise ArgumentError(msg)

    @property
    def estimate(self) -> float:
        """The pooled effect of the first row."""
        return self.effects[0].estimate

    @property
    def interval(self) -> Pair:
        """Its confidence interval."""
        return self.effects[0].interval

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; ε as the decimal number it was given as."""
        plain = encode(self)
        return {"schema": plain.pop("schema"), **plain}

    def to_json(self) -> str:
        """Return one JSON object."""
        return write_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Combined:
        """Read back what :meth:`to_json` wrote."""
        what = "a combination of sites"
        return decode(cls, read_json(text, what), what)

    def to_frame(self) -> pl.DataFrame:
        """Return a polars frame with a row per effect."""
        return cast("pl.DataFrame", show(self, "frame", object))

    def to_html(self) -> str:
        """Return one self-contained page."""
        return show(self, "page", str)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return show(self, "card", str)

    def __str__(self) -> str:
        return show(self, "text", str)
