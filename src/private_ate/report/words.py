"""The sentences that a release says about itself, the same on every page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from private_ate.release import Release

__all__ = [
    "PAPER",
    "estimand_name",
    "formal_promise",
    "number_text",
    "pair_text",
    "percent",
    "plain_promise",
    "publishable_sentence",
    "python_call",
]

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
_AUTO = {("calibrated", "label"), ("orthogonal", "sample")}


def estimand_name(release: Release) -> str:
    """Return the estimand in full."""
    return _NAMES[str(release.settings.get("estimand", "ate"))]


def plain_promise(release: Release) -> str:
    """Say what is promised so that a neighbour of the study's participants understands it."""
    if not release.is_private:
        return (
            f"Nothing is promised: the guarantee of this release is “{release.guarantee}”. "
            "Do not publish this number as private."
        )
    whose = "outcome" if release.level == "label" else "whole record"
    factor = math.exp(min(float(release.epsilon), 700.0))
    certainty = 1.0 / (1.0 + math.exp(-min(float(release.epsilon), 700.0)))
    sentence = (
        f"Had any one person's {whose} been different, every result that could have been "
        f"published here would have been at most {factor:.3g} times as likely or as unlikely. "
        f"Someone who gives even odds to a guess about a person's {whose}, whatever else they "
        f"know, is at most {100 * certainty:.3g} % sure of it after reading this."
    )
    if release.delta > 0:
        sentence += f" This can fail with a probability of about {release.delta:g}."
    if release.level == "label":
        return f"{sentence} Covariates and treatment are treated as public and are not protected."
    return f"{sentence} Only the number of rows and the declared domain are public."


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


def publishable_sentence(release: Release) -> str:
    """Return a sentence for a paper: effect, interval, promise and program."""
    scale = half_width(release)
    text = f"The {estimand_name(release)} was {number_text(release.ate, scale)}"
    if release.interval is not None:
        text += f" ({percent(release)} interval {pair_text(release.interval, scale)})"
    elif release.noise_interval is not None:
        text += (
            f" ({percent(release)} interval for the privacy noise alone "
            f"{pair_text(release.noise_interval, scale)})"
        )
    cost = f"ε = {float(release.epsilon):g}"
    if release.delta > 0:
        cost += f", δ = {release.delta:g}"
    promise = (
        f"released with differential privacy ({cost}, {release.adjacency})"
        if release.is_private
        else "computed WITHOUT a privacy guarantee"
    )
    return f"{text}, {promise}, by private-ate {release.version}, method {release.method}."


def python_call(release: Release) -> str:
    """Return a call that asks for the same release again, from what the release knows."""
    settings = release.settings
    method = "auto" if (release.method, release.level) in _AUTO else release.method
    pairs = [
        ("level", repr(release.level)),
        ("epsilon", f'"{_decimal(float(release.epsilon))}"'),
        ("method", repr(method)),
    ]
    for name, usual in (("estimand", "ate"), ("target", "balance"), ("rows_per_person", 1)):
        if settings.get(name, usual) != usual:
            pairs.append((name, repr(settings[name])))
    if settings.get("neighbors") is not None:
        pairs.append(("neighbors", repr(settings["neighbors"])))
    pays = release.interval is not None or release.method == "published"
    pairs.append(("confidence", repr(settings.get("confidence", 0.95)) if pays else "None"))
    lines = "".join(f"    {name}={value},\n" for name, value in pairs).replace("'", '"')
    return (
        "from private_ate import Domain, estimate_ate\n\n"
        "release = estimate_ate(\n"
        '    "DATA.csv",  # the data\n'
        '    domain=Domain.read("DOMAIN.toml"),  # the declared bounds\n'
        f"{lines})"
    )


def half_width(release: Release) -> float:
    """Return the half-width of the widest interval, or zero."""
    pairs = [pair for pair in (release.interval, release.noise_interval) if pair is not None]
    return max((pair[1] - pair[0] for pair in pairs), default=0.0) / 2


def number_text(value: float, scale: float) -> str:
    """Write a number with as many digits as three of its uncertainty's call for."""
    if scale <= 0 or not math.isfinite(scale):
        return f"{value:.6g}"
    decimals = max(0, 2 - math.floor(math.log10(scale)))
    if decimals > 9 or abs(value) >= 1e12:
        return f"{value:.4g}".replace("-", "−")
    return f"{value:,.{decimals}f}".replace("-", "−")


def pair_text(pair: tuple[float, float], scale: float) -> str:
    """Write an interval."""
    return f"{number_text(pair[0], scale)} to {number_text(pair[1], scale)}"


def percent(release: Release) -> str:
    """Return the coverage of the intervals, such as 95 %."""
    return f"{100 * float(release.settings.get('confidence', 0.95)):g} %"


def _decimal(value: float) -> str:
    text = f"{value:.15g}"
    return text if "." in text or "e" in text else f"{text}.0"
