"""What leaves: a release holds paid-for numbers and public facts, and nothing else; its JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from private_ate.arguments import one_of
from private_ate.codec import (
    POSITIVE,
    Rule,
    at_least,
    decode,
    encode,
    entries,
    read_json,
    write_json,
)
from private_ate.domain.column_types import Label, label_text
from private_ate.errors import ArgumentError
from private_ate.privacy.budget import Epsilon
from private_ate.privacy.levels import Level
from private_ate.release.metadata import (
    ARMS,
    DESIGNS,
    Arm,
    Combination,
    Contrast,
    Curve,
    Design,
    Effect,
    OutcomeNote,
    Pair,
    ReleasedEstimand,
    Risks,
    Step,
    TreatmentNote,
    around,
    released_estimand,
)
from private_ate.release.public_facts import PublicFacts
from private_ate.settings import Facts
from private_ate.showing import show

if TYPE_CHECKING:
    import polars as pl

# Schema 1 is what version 0.1 wrote: twelve keys. Schema 2 also says what the release is about.
SCHEMA: Final = 2
OLD_FIELDS: Final = (
    "ate", "interval", "noise_interval", "epsilon", "delta", "level", "adjacency",
    "guarantee", "method", "n", "settings", "version",
)  # fmt: skip
FIELDS: Final = (
    "schema", "warnings", "ate", "interval", "noise_interval", "estimand", "adjusted", "design",
    "treatment", "outcome", "covariates", "effects", "epsilon", "delta", "level", "adjacency",
    "guarantee", "not_protected", "steps", "method", "n", "missing", "dataset", "dataset_version",
    "released_at", "settings", "version",
)  # fmt: skip
# A release of three arms or more has one field more; others do not know it.
ARM_FIELDS: Final = (*FIELDS[:12], "arms", *FIELDS[12:])
# A release of a time to an event has these too, after all others.
SURVIVAL_FIELDS: Final = ("quantity", "horizon", "bins", "curves", "risks")
# Methods of 0.1 that did not say so in their settings (docs/explanation/published-sample-level.md).
_NEVER_ADJUSTED: Final = (("difference_in_means", "sample"), ("published", "sample"))


@dataclass(frozen=True, slots=True)
class Release:
    """A treatment effect that may be shown to anybody, and what it promises.

    Attributes
    ----------
    ate : float
        The headline: the released effect, or difference in means, in units of the outcome.
    interval : pair of float or None
        Confidence interval for it, where the method pays for one.
    noise_interval : pair of float or None
        Range of the estimate without noise; says nothing about sampling or confounding.
    epsilon, delta : Fraction, float
        The privacy cost.
    level, adjacency, guarantee : str
        Who is protected, which data sets are neighbours, what is promised.
    method, n, settings, version : str, int, dict, str
        How the number came about; public facts only.
    schema : int
        2, or 1 for a release that version 0.1 wrote, which knows nothing of what follows.
    estimand : str
        What was estimated: "ate", "att", "atc", "ato", or "difference" where arms that nobody
        declared to be randomised were compared as they are.
    adjusted : bool
        Whether covariates were adjusted for.
    design : str
        How treatment came about, as declared.
    treatment, outcome, covariates : TreatmentNote, OutcomeNote, tuple of str
        Columns, arms, bounds and unit.
    effects : tuple of Effect
        The table of effects. Of two arms its first row is the headline; of more it has a row for
        every pair, those against the reference first, and the headline is the last of these.
        Subgroups follow, margins first, with a row for every arm against the reference. Further
        outcomes follow in the same order.
    warnings : tuple of str
        What to know before the number is used.
    missing : mapping
        The rules for missing values in force.
    dataset, dataset_version, released_at : str or None
        What the curator calls the data, and when the release was asked for.
    steps : tuple of Step
        Every step that saw private values, with its mechanism, cost and public noise.
    not_protected : tuple of str
        What the promise does not cover.
    arms : tuple of Arm
        Three arms or more, the reference first; empty for two.
    quantity, horizon, bins : str, float, int or None
        Of a time to an event: what the effect is a difference of ("rmst", restricted mean survival
        times, or "risk"), the time up to which survival is compared, and the bins of the curves;
        None for other outcomes.
    curves : mapping
        Of a time to an event: the survival curve of each arm by its label, the reference first.
    risks : Risks or None
        Of a time to an event: the risks by the horizon, compared.
    """

    ate: float
    interval: Pair | None
    noise_interval: Pair | None
    epsilon: Epsilon
    delta: Annotated[float, Rule("from 0 to below 1", lambda number: 0 <= number < 1)]
    level: Level
    adjacency: str
    guarantee: str
    method: str
    n: Annotated[int, POSITIVE]
    settings: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    schema: int = 1
    estimand: ReleasedEstimand = "ate"
    adjusted: bool = True
    design: Design = "unknown"
    treatment: TreatmentNote | None = None
    outcome: OutcomeNote | None = None
    covariates: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    warnings: tuple[str, ...] = ()
    missing: Mapping[str, Any] = field(default_factory=dict)
    dataset: str | None = None
    dataset_version: str | None = None
    released_at: str | None = None
    steps: tuple[Step, ...] = ()
    not_protected: tuple[str, ...] = ()
    arms: Annotated[tuple[Arm, ...], at_least(3)] = field(default=(), repr=False)
    quantity: Literal["rmst", "risk"] | None = field(default=None, repr=False)
    horizon: Annotated[float, POSITIVE] | None = field(default=None, repr=False)
    bins: Annotated[int, POSITIVE] | None = field(default=None, repr=False)
    curves: Mapping[str, Curve] = field(default_factory=dict, repr=False)
    risks: Risks | None = field(default=None, repr=False)
    _facts: Facts | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.effects:
            object.__setattr__(self, "effects", (self._headline(),))

    def __getstate__(self) -> list[Any]:
        """Return what a pickle holds; fields of several arms and of survival only where used."""
        state = [getattr(self, item.name) for item in fields(self) if item.init]
        unused = len(SURVIVAL_FIELDS) + (not self.arms)
        return state if self.curves else state[:-unused]

    def __setstate__(self, state: list[Any]) -> None:
        stored = [item for item in fields(self) if item.init]
        for item in stored[len(state) :]:
            empty = item.default_factory() if callable(item.default_factory) else item.default
            object.__setattr__(self, item.name, empty)
        for item, value in zip(stored, state, strict=False):
            object.__setattr__(self, item.name, value)
        object.__setattr__(self, "_facts", None)

    @property
    def facts(self) -> Facts:
        """What its settings say, typed; they are read once."""
        if self._facts is None:
            object.__setattr__(self, "_facts", Facts.of(self.settings))
        return cast("Facts", self._facts)

    def _headline(self) -> Effect:
        """Return the headline as a row of the table of effects."""
        column = "outcome" if self.outcome is None else self.outcome.column
        control, *_, treated = ARMS if self.treatment is None else self.treatment.arms
        return Effect(
            outcome=column, subgroup=None, arm=treated, against=control, estimand=self.estimand,
            estimate=self.ate, interval=self.interval, simultaneous=self.interval,
            noise_interval=self.noise_interval,
        )  # fmt: skip

    @property
    def is_private(self) -> bool:
        """Whether the release keeps a differential privacy promise."""
        return not self.guarantee.startswith("none")

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Every arm compared with every other: the table of effects without its subject."""
        return tuple(
            Contrast(
                row.arm, row.against, row.estimate,
                row.interval, row.simultaneous, row.noise_interval,
            )
            for row in self.effects
            if row.subgroup is None and row.outcome == self.effects[0].outcome
        )  # fmt: skip

    def contrast(self, arm: Label, against: Label) -> Contrast:
        """Return an arm compared with another, in either order."""
        asked = self._labels(arm, against)
        for row in self.contrasts:
            if (row.arm, row.against) == asked:
                return row
            if (row.against, row.arm) == asked:
                return row.flipped()
        msg = f"arm {asked[0]!r} is compared with another arm, not with itself"
        raise ArgumentError(msg, parameter="against")

    def combination(self, weights: Mapping[Any, float]) -> Combination:
        """Return a weighted sum of the arms' means, such as a trend; it costs nothing.

        Parameters
        ----------
        weights : mapping
            A weight for each label; arms that are left out have weight zero. Weights that add up
            to zero ask for a sum of contrasts, which needs no means.
        """
        by_label = dict(zip(self._labels(*weights), weights.values(), strict=True))
        return _combine(self, by_label)

    def _labels(self, *labels: Label) -> tuple[str, ...]:
        """Return labels as the release writes them; others than its own are refused."""
        known = ARMS if self.treatment is None else self.treatment.arms
        texts = tuple(map(label_text, labels))
        wrong = next((text for text in texts if text not in known), None)
        if wrong is not None:
            msg = f"{wrong!r} is none of the release's arms {', '.join(map(repr, known))}"
            raise ArgumentError(msg, parameter="arm")
        return texts

    def to_frame(self) -> pl.DataFrame:
        """Return the table of effects as a polars frame, a row per contrast."""
        return cast("pl.DataFrame", show(self, "frame", object))

    def to_markdown(
        self, contrasts: Literal["all", "reference"] = "all", *, p_values: bool = False
    ) -> str:
        """Return the table of effects in Markdown, with a note of what it promises.

        ``contrasts`` is as in :meth:`to_text`; ``p_values`` adds a test of no effect, which needs
        intervals (``private_ate.p_value``).
        """
        one_of("contrasts", contrasts, ("all", "reference"))
        return show(self, "markdown", str, contrasts, p_values=p_values)

    def to_latex(
        self, contrasts: Literal["all", "reference"] = "all", *, p_values: bool = False
    ) -> str:
        """Return the table of effects in LaTeX, for documents that use the package booktabs.

        ``contrasts`` and ``p_values`` are as in :meth:`to_markdown`.
        """
        one_of("contrasts", contrasts, ("all", "reference"))
        return show(self, "latex", str, contrasts, p_values=p_values)

    def to_csv(self, *, p_values: bool = False) -> str:
        """Return the table of effects, as :meth:`to_frame`, in comma-separated values."""
        return show(self, "csv", str, p_values=p_values)

    def to_docx(
        self, contrasts: Literal["all", "reference"] = "all", *, p_values: bool = False
    ) -> bytes:
        """Return the table of effects as a Word document, with a note of what it promises.

        ``contrasts`` and ``p_values`` are as in :meth:`to_markdown`.
        """
        one_of("contrasts", contrasts, ("all", "reference"))
        return show(self, "word", bytes, contrasts, p_values=p_values)

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain values; ε as the decimal number it was given as."""
        names: tuple[str, ...] = OLD_FIELDS
        if self.schema == SCHEMA:
            names = ARM_FIELDS if self.arms else FIELDS
            names = (*names, *SURVIVAL_FIELDS) if self.curves else names
        plain = encode(self)
        return {name: plain[name] for name in names}

    def to_json(self) -> str:
        """Return the release as one JSON object."""
        return write_json(self.to_dict())

    def to_text(self, contrasts: Literal["all", "reference"] = "all") -> str:
        """Return the release as aligned plain text.

        Of three arms or more "reference" shows the contrasts with the reference alone, whose
        simultaneous intervals then cover these and are narrower.
        """
        one_of("contrasts", contrasts, ("all", "reference"))
        return show(self, "text", str, contrasts)

    def to_html(
        self,
        facts: PublicFacts | None = None,
        *,
        contrasts: Literal["all", "reference"] = "all",
        monotone: bool = False,
    ) -> str:
        """Return the release as one self-contained page; ``facts`` adds public knowledge.

        ``contrasts`` is as in :meth:`to_text`. ``monotone`` adds to the means of several doses a
        curve that never turns; see ``private_ate.effects.monotone_means``.
        """
        one_of("contrasts", contrasts, ("all", "reference"))
        return show(self, "page", str, facts, contrasts=contrasts, monotone=monotone)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return show(self, "card", str)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read back a release that :meth:`to_json` wrote, of this version or of an older one."""
        read = decode(cls, read_plain(text), "a release")
        refuse_contradictions(read.effects, read.arms, read.facts.confidence)
        return read

    def __str__(self) -> str:
        return show(self, "text", str)


def _combine(release: Release, weights: Mapping[str, float]) -> Combination:
    """Return the weighted sum of arms' means with its intervals, from released numbers alone.

    Weights that add up to zero need no means: the sum is then one of contrasts, and noise that all
    means share drops out. Of two arms the contrast alone is known, which is scaled.
    """
    for label, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            msg = f"the weight of arm {label!r} is a number, not {type(weight).__name__}"
            raise ArgumentError(msg, parameter="weights")
        if not abs(weight) <= 1e9:
            msg = f"the weight of arm {label!r} is a number of at most 1e9 in size"
            raise ArgumentError(msg, parameter="weights")
    if not any(weights.values()):
        msg = "a combination needs an arm with a weight other than zero"
        raise ArgumentError(msg, parameter="weights")
    whole = math.fsum(weights.values())
    is_contrast = abs(whole) <= 1e-9 * math.fsum(map(abs, weights.values()))
    if release.arms:
        return _combine_arms(release, weights, 0.0 if is_contrast else whole)
    if not is_contrast:
        msg = "of two arms their difference is released: give weights that add up to zero"
        raise ArgumentError(msg, parameter="weights")
    only = release.contrasts[0]
    weight = weights.get(only.arm, 0.0)
    interval, noise_interval = (
        None if pair is None else (min(weight * pair[0], weight * pair[1]),
                                   max(weight * pair[0], weight * pair[1]))
        for pair in (only.interval, only.noise_interval)
    )  # fmt: skip
    return Combination(weight * only.effect, interval, noise_interval)


def _combine_arms(release: Release, weights: Mapping[str, float], whole: float) -> Combination:
    """Combine three arms or more; ``whole`` is what the weights add up to."""
    from private_ate.release.intervals import half_width, noise_half_width  # loads scipy

    reference = release.arms[0]
    held = [(arm, weights[arm.label]) for arm in release.arms if weights.get(arm.label)]
    noises = []
    for arm, weight in held:
        if arm.noise is None:
            msg = (
                "means that are rolled up from subgroups, or drawn with other outcomes, have no "
                "single distribution of noise to combine by"
            )
            raise ArgumentError(msg, parameter="weights")
        noises.append(arm.noise.scaled(weight))
    if whole and any(arm.mean is None for arm, _ in held):
        msg = (
            "this release holds contrasts and no means: give weights that add up to zero, or pay "
            "for the means"
        )
        raise ArgumentError(msg, parameter="weights")
    if whole:
        estimate = math.fsum(weight * (arm.mean or 0.0) for arm, weight in held)
    else:
        estimate = math.fsum(
            weights.get(row.arm, 0.0) * row.effect
            for row in release.contrasts
            if row.against == reference.label
        )
    if whole and reference.mean_noise is not None:
        noises.append(reference.mean_noise.scaled(whole))
    ends = -math.inf, math.inf
    if release.outcome is not None and release.outcome.bounds is not None:
        low, high = release.outcome.bounds
        products = [(weight * low, weight * high) for weight in weights.values()]
        ends = math.fsum(map(min, products)), math.fsum(map(max, products))
    facts = release.facts
    variances = [[weight**2 * value for value in arm.variances] for arm, weight in held]
    half = None
    if facts.interval_rule is not None and all(variances):
        half = half_width(facts.confidence, noises, variances, facts.interval_rule)
    noise = noise_half_width(facts.confidence, noises)
    return Combination(estimate, around(estimate, half, ends), around(estimate, noise, ends))


def read_plain(text: str) -> dict[str, Any]:
    """Return the plain values of a release of either schema, with all that schema 1 implies."""
    plain = dict(entries(read_json(text, "a release")) or {})
    others = set(plain) - set(SURVIVAL_FIELDS)
    is_partial = set(plain) != others and not all(map(plain.get, SURVIVAL_FIELDS))
    if is_partial or others not in map(set, (FIELDS, ARM_FIELDS, OLD_FIELDS)):
        msg = (
            f"a release in JSON has exactly the fields {', '.join(FIELDS)}, one of several arms "
            f"also arms, one of a time to an event also {', '.join(SURVIVAL_FIELDS)}; one of "
            f"schema 1 has {', '.join(OLD_FIELDS)}"
        )
        raise ArgumentError(msg)
    if "schema" not in plain:
        return plain | _implied(plain)
    unsaid = next((name for name in ("treatment", "outcome", "effects") if not plain[name]), None)
    if plain["schema"] != SCHEMA or unsaid is not None:
        msg = f"this is not a release in JSON: {unsaid or 'schema'} is not what schema 2 holds"
        raise ArgumentError(msg)
    return plain


def refuse_contradictions(
    effects: Sequence[Effect], arms: Sequence[Arm], confidence: float
) -> None:
    """Refuse a release whose parts do not fit each other, as those of an edited one may not."""
    overall = [row for row in effects if row.subgroup is None]
    outcomes = {row.outcome for row in effects}
    compared = {row.arm for row in effects} | {row.against for row in effects}
    labels = [arm.label for arm in arms]
    wrong = None
    if len(outcomes) > 1 and outcomes != {row.outcome for row in overall}:
        wrong = "an outcome has no effect for all units"
    elif len({bool(arm.variances) for arm in arms}) > 1:
        wrong = "some arms have variances and some have none"
    elif arms and not compared <= {*labels}:
        wrong = "an effect is of an arm that is not listed"
    elif arms and all(
        row.against != labels[0] for row in overall if row.outcome == effects[0].outcome
    ):
        wrong = "no effect is against the reference"
    elif not 1e-6 <= confidence <= 1 - 1e-9:  # no normal quantile that is neither 0 nor infinite
        wrong = "no interval has such a confidence"
    if wrong is not None:
        msg = f"this is not a release in JSON: {wrong}"
        raise ArgumentError(msg)


def _implied(plain: dict[str, Any]) -> dict[str, Any]:
    """Say of a release of schema 1 what follows from it; it does not know columns or steps."""
    facts = Facts.of(entries(plain["settings"]) or {})
    adjusted = facts.adjusted
    if adjusted is None:
        adjusted = (plain["method"], plain["level"]) not in _NEVER_ADJUSTED
    design = facts.design if facts.design in DESIGNS else "unknown"
    estimand = released_estimand(facts.estimand, design, adjusted=adjusted)
    return {"schema": 1, "estimand": estimand, "adjusted": adjusted, "design": design}
