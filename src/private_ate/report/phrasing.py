"""Numbers and sentences that a release says about itself, the same in every format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from private_ate.effects.of_releases import interval_error, standard_error
from private_ate.methods.registry import is_default
from private_ate.privacy.levels import Level, private_part
from private_ate.settings import Facts, SamplingFacts

if TYPE_CHECKING:
    from private_ate.release.metadata import Pair, ReleasedEstimand
    from private_ate.release.release import Release
PAPER = (
    "Quan Yuan, Xiaochen Li, Linkang Du, Min Chen, Mingyang Sun, Yunjun Gao, Shibo He, Jiming Chen "
    "and Zhikun Zhang, PrivATE: Differentially Private Average Treatment Effect Estimation for "
    "Observational Data"
)
_NAMES = {
    "ate": "average treatment effect (ATE)",
    "att": "average treatment effect on the treated (ATT)",
    "atc": "average treatment effect on the controls (ATC)",
    "ato": "average treatment effect in the overlap population (ATO)",
}
_MERE = "difference in means, not adjusted for covariates"
_PRIVATE = {"label": "outcome", "sample": "whole record"}
_PUBLIC = {
    "label": "Covariates and treatment are treated as public and are not protected.",
    "sample": "Only the number of rows and the declared domain are public.",
}


def number_text(value: float, error: float) -> str:
    """Write a number with the digits that its standard error supports: two of the error's own.

    Without an error four digits are written.

    Examples
    --------
    >>> number_text(8.18735, 0.33), number_text(1794.34, 633.0)
    ('8.19', '1,790')
    """
    if error <= 0 or not math.isfinite(error) or abs(value) >= 1e12:
        return f"{value:.4g}".replace("-", "−")
    decimals = 1 - math.floor(math.log10(error))
    if decimals > 9:
        return f"{value:.4g}".replace("-", "−")
    rounded = round(value, decimals) + 0.0  # adding zero turns −0 into 0
    return f"{rounded:,.{max(decimals, 0)}f}".replace("-", "−")


def pair_text(pair: tuple[float, float], error: float) -> str:
    """Write an interval."""
    return f"{number_text(pair[0], error)} to {number_text(pair[1], error)}"


def span_text(low: float, high: float) -> str:
    """Write an interval of ratios, which may be open above."""
    return f"from {low:.3g} {'upwards' if math.isinf(high) else f'to {high:.3g}'}"


def estimand_name(release: Release) -> str:
    """Return the estimand in full; a comparison that may be confounded is not called an effect."""
    facts = release.facts
    if release.arms:
        return _name_of_several(release, facts)
    if release.schema == 1 and facts.estimand not in _NAMES:  # of a method that nobody knows here
        return f"treatment effect ({facts.estimand.upper()})"
    if release.estimand == "difference":
        return _MERE
    name = estimand_text(release.estimand)
    is_limited = release.estimand == "ate" and release.adjusted and facts.limit is not None
    return f"{name}, overlap-limited (K = {facts.limit:g})" if is_limited else name


def _name_of_several(release: Release, facts: Facts) -> str:
    among = "" if facts.among is None else f" among units of {facts.among!r}"
    arms = f"{len(release.arms)} arms{among}"
    if release.estimand == "difference":
        return f"differences in means of {arms}, not adjusted for covariates"
    return f"average treatment effects of {arms}"


def capital(text: str) -> str:
    """Begin with a capital letter; ε stays ε."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def factor_text(level: Level, epsilon: float, delta: float) -> str:
    """Say by how much one person's private part can change the chance of a result."""
    factor = math.exp(min(epsilon, 700.0))
    return (
        f"no one's {private_part(level)} changes the chance of any published result by more than "
        f"{factor:.3g}×" + (f", except with probability {delta:g}" if delta else "")
    )


def estimand_text(estimand: ReleasedEstimand) -> str:
    """Return an estimand in full by its letters."""
    return _MERE if estimand == "difference" else _NAMES[estimand]


def headline(release: Release) -> str:
    """Return the estimand as the head of a page."""
    return capital(estimand_name(release))


def outcome_names(release: Release) -> list[str]:
    """Return the outcomes of a release, the headline first."""
    return list(dict.fromkeys(row.outcome for row in release.effects))


def compared_line(release: Release) -> str:
    """Say which arms were compared on which outcomes; empty where an old release does not know.

    Examples: "effect of working: 1 against 0, on tvhours"; ", in subgroups by sex" may follow.
    """
    if release.treatment is None:
        return ""
    reference, *others = release.treatment.arms
    head = f"{noun(release)}s" if len(others) > 1 else noun(release)
    link = "by" if release.estimand == "difference" else "of"
    note = release.facts.subgroups
    names = [column_title(release, name) for name in outcome_names(release)]
    subgroups = "" if note is None else f", in subgroups by {listed(note.by)}"
    return (
        f"{head} {link} {column_title(release, release.treatment.column)}: {listed(others)} "
        f"against {reference}, on {listed(names)}{subgroups}"
    )


def column_title(release: Release, name: str) -> str:
    """Return the declared label of a column, or of a feature that was made of one, or its name."""
    labels = release.facts.column_labels
    for column, label in labels.items():
        if name == column or name.startswith((f"{column}=", f"{column} (missing)")):
            return f"{label}{name.removeprefix(column)}"
    return name


def titled_balance(release: Release) -> Mapping[str, tuple[float, float]]:
    """Return the balance of covariates by their titles; by their names if two share a title."""
    balance = release.facts.balance
    titled = {column_title(release, name): pair for name, pair in balance.items()}
    return titled if len(titled) == len(balance) else balance


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them: "a", "a and b", "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def outcome_unit(release: Release, outcome: str) -> str:
    """Return the unit of an outcome, or nothing where nobody declared one."""
    units = {one.column: one.unit for one in release.facts.outcomes}
    if release.outcome is not None:
        units.setdefault(release.outcome.column, release.outcome.unit)
    return units.get(outcome) or ""


def unit_of(release: Release) -> str:
    """Return the unit of the headline's outcome, or nothing where nobody declared one."""
    return "" if release.outcome is None or release.outcome.unit is None else release.outcome.unit


def covered(release: Release) -> str:
    """Return what the intervals cover, or nothing where that is not known."""
    facts = release.facts
    paid = release.interval is not None
    return (facts.interval_covers if paid else facts.noise_interval_covers) or ""


def noun(release: Release) -> str:
    """Return what the number may be called in one word."""
    return "difference" if release.estimand == "difference" else "effect"


def assumption(release: Release) -> str:
    """Say what has to hold for arms that were compared as they are; empty where they were not."""
    if release.adjusted:
        return ""
    if release.estimand == "difference":
        return "nothing was adjusted for: an effect only if treatment was random"
    return "nothing was adjusted for: treatment was random, as declared"


def plain_promise(release: Release) -> str:
    """Say what is promised so that a neighbour of the study's participants understands it."""
    if not release.is_private:
        return (
            f"Nothing is promised: the guarantee of this release is “{release.guarantee}”. "
            "Do not publish this number as private."
        )
    whose, epsilon = _PRIVATE[release.level], min(float(release.epsilon), 700.0)
    sentence = (
        f"Had any one person's {whose} been different, every result that could have been "
        f"published here would have been at most {math.exp(epsilon):.3g} times as likely or as "
        f"unlikely. Someone who gives even odds to a guess about a person's {whose}, whatever else "
        f"they know, is at most {100 / (1 + math.exp(-epsilon)):.3g} % sure of it after reading "
        "this."
    )
    if release.delta > 0:
        sentence += f" This can fail with a probability of about {release.delta:g}."
    return f"{sentence} {_PUBLIC[release.level]}"


def formal_promise(release: Release) -> str:
    """Say what is promised in one formal sentence."""
    if not release.is_private:
        return "The mechanism that made this release satisfies no differential privacy guarantee."
    epsilon = f"{float(release.epsilon):g}"
    tail = "" if release.delta == 0 else f" + {release.delta:g}"
    kind = f"{epsilon}-differentially private (δ = 0)"
    if release.delta > 0:
        kind = f"({epsilon}, {release.delta:g})-differentially private"
    return (
        f"The mechanism M that made this release is {kind}: for all data sets D, D′ that are "
        f"neighbours ({release.adjacency}) and every measurable set S of releases, "
        f"Pr[M(D) ∈ S] ≤ exp({epsilon}) · Pr[M(D′) ∈ S]{tail}. "
        f"The release states: {release.guarantee}."
    )


def cost_text(release: Release) -> str:
    """Return ε, and δ where there is one."""
    tail = f", δ = {release.delta:g}" if release.delta > 0 else ""
    return f"ε = {float(release.epsilon):g}{tail}"


def promise_text(release: Release) -> str:
    """Say in a few words what the numbers of a table, a figure or a sentence promise."""
    if not release.is_private:
        return "computed WITHOUT a privacy guarantee"
    return f"released with differential privacy ({cost_text(release)}, {release.adjacency})"


def publishable_sentence(release: Release) -> str:
    """Return a sentence for a paper: effect, interval, promise and program, and its caveats."""
    comma = "," if "," in estimand_name(release) else ""
    names = outcome_names(release)
    on = f" on {names[0]}" if len(names) > 1 else ""
    if release.arms:
        reference = release.arms[0].label
        rows = [row for row in release.contrasts if row.against == reference]
        found = "; ".join(
            f"{_with_interval(release, row.effect, row.interval, row.noise_interval)} for {row.arm}"
            for row in rows
        )
        numbers = f"were, against {reference}, {found}"
    else:
        numbers = (
            f"was {_with_interval(release, release.ate, release.interval, release.noise_interval)}"
        )
    caveats = [assumption(release), *release.warnings]
    text = (
        f"The {estimand_name(release)}{comma}{on} {numbers}, {promise_text(release)}, "
        f"by private-ate {release.version}, method {release.method}."
    )
    return " ".join([text, *(f"Caveat: {each}." for each in caveats if each)])


def _with_interval(
    release: Release, value: float, interval: Pair | None, noise_interval: Pair | None
) -> str:
    text, share = number_text(value, uncertainty(release)), percent(release)
    if interval is not None:
        return f"{text} ({share} interval {pair_text(interval, uncertainty(release))})"
    if noise_interval is None:
        return text
    alone = pair_text(noise_interval, noise_error(release))
    return f"{text} ({share} interval for the privacy noise alone {alone})"


def python_call(release: Release) -> str:
    """Return a call that asks for the same release again, from what the release knows."""
    facts = release.facts
    method = "auto" if is_default(release.method, release.level) else release.method
    names = outcome_names(release)
    pairs = [
        *([("outcome", repr(names))] if len(names) > 1 else []),
        ("level", repr(release.level)),
        ("epsilon", f'"{_decimal(float(release.epsilon))}"'),
        ("method", repr(method)),
    ]
    asked: tuple[tuple[str, object, object], ...] = (
        ("estimand", facts.estimand, "ate"),
        ("among", facts.among, None),
        ("design", release.design, "unknown"),
        ("target", facts.target, "balance"),
        ("rows_per_person", facts.rows_per_person, 1),
        ("neighbors", facts.neighbors, None),
        ("by", [] if facts.subgroups is None else list(facts.subgroups.by), []),
        ("overall", facts.subgroups is not None and facts.subgroups.overall == "paid for", False),
    )
    pairs += [(name, repr(value)) for name, value, usual in asked if value != usual]
    pays = release.interval is not None or release.method == "published"
    pairs.append(("confidence", repr(facts.confidence) if pays else "None"))
    lines = "".join(f"    {name}={value},\n" for name, value in pairs).replace("'", '"')
    return (
        "from private_ate import Domain, estimate_ate\n\n"
        "release = estimate_ate(\n"
        '    "DATA.csv",  # the data\n'
        '    domain=Domain.read("DOMAIN.toml"),  # the declared bounds\n'
        f"{lines})"
    )


def uncertainty(release: Release) -> float:
    """Return the standard error by whose digits numbers are written, or zero if none is known.

    Where no interval was paid for it is that of the noise alone.
    """
    return standard_error(release) or noise_error(release)


def intervals_of(release: Release) -> list[tuple[bool, Pair, float, str | None]]:
    """Return the intervals of the headline: that of the effect and that of the noise alone.

    For each: whether it is the noise's, its ends, the error by whose digits they are written, and
    what it covers.
    """
    facts = release.facts
    known = (
        (False, release.interval, uncertainty(release), facts.interval_covers),
        (True, release.noise_interval, noise_error(release), facts.noise_interval_covers),
    )
    return [(of_noise, pair, error, covers) for of_noise, pair, error, covers in known if pair]


def noise_error(release: Release) -> float:
    """Return the standard error of the noise, by whose digits its interval is written, or zero."""
    if release.noise_interval is None:
        return 0.0
    return interval_error(release.ate, release.noise_interval, release.facts.confidence)


def percent(release: Release) -> str:
    """Return the coverage of the intervals, such as 95 %."""
    return f"{100 * release.facts.confidence:g} %"


def _decimal(value: float) -> str:
    text = f"{value:.15g}"
    return text if "." in text or "e" in text else f"{text}.0"


def sampling_words(weights: SamplingFacts) -> str:
    """Say which sampling weights are in force and what they leave of the units."""
    declared = f"column {weights.column!r}, declared as 0 to {weights.bound:g}"
    by_arm = weights.worth if isinstance(weights.worth, Mapping) else {"": weights.worth}
    parts = [f"{size:,.0f}{f' ({arm})' if arm else ''}" for arm, size in by_arm.items()]
    effective = f"worth {', '.join(parts)} of equal weight"
    if weights.mean is not None:
        mean = f"private, with a mean of about {weights.mean:.3g}"
        return f"{declared}; {mean}; the rows are {effective}"
    largest = ""
    if weights.largest is not None:
        largest = f"; the largest is {weights.largest:.3g} times the mean"
    return f"{declared}{largest}; by them alone the arms are {effective}"
