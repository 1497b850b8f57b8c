"""What follows from a release without spending more: ratios, standard errors, E-values.

Every function here reads a release and nothing else, so its answer is as private as the release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from private_ate.errors import ArgumentError
from private_ate.release.metadata import longer_half
from private_ate.release.ratios import NumberNeeded, invert_effect, odds_interval, risk_interval

if TYPE_CHECKING:
    from private_ate.domain.column_types import Label
    from private_ate.release.metadata import Arm, Contrast, Effect
    from private_ate.release.release import Release

# A standardised difference d of a continuous outcome acts like a risk ratio of exp(0.91 d)
# (VanderWeele and Ding 2017, after Chinn 2000).
_RISK_PER_DEVIATION = 0.91


@dataclass(frozen=True, slots=True)
class ArmMeans:
    """Released means of the outcome if all were treated and if none were.

    Of several arms: if all were given the arm, and if all were given the one it is compared with.

    Attributes
    ----------
    treated : float
        The mean if all were treated.
    control : float
        The mean if none were.
    """

    treated: float
    control: float


@dataclass(frozen=True, slots=True)
class EValue:
    """How strong an unmeasured confounder would have to be to explain an effect away.

    Attributes
    ----------
    estimate : float
        Least risk ratio that links the confounder to treatment and to outcome alike and could
        turn the released effect into none.
    limit : float or None
        The same for the interval's end nearer to no effect; 1 if the interval holds no effect,
        None if the release has no interval.
    risk_ratio : float
        The effect as a risk ratio, exact or approximate, from which both were computed.
    """

    estimate: float
    limit: float | None
    risk_ratio: float


def arm_means(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> ArmMeans:
    """Return both means; a release of two arms was made with ``CalibratedOptions(means=True)``.

    Parameters
    ----------
    release : Release
        A release that holds means.
    arm, against : label, optional
        The arms that are meant; those of the headline if not given.
    """
    row = _row(release, arm, against)
    if release.arms:
        means_of = {one.label: one.mean for one in release.arms}
        first, second = means_of[row.arm], means_of[row.against]
        if first is None or second is None:
            msg = "this release holds contrasts and no arm means; ask for the means"
            raise ArgumentError(msg)
        return ArmMeans(first, second)
    means = release.facts.means
    if means is None:
        msg = "this release holds no arm means; make one with CalibratedOptions(means=True)"
        raise ArgumentError(msg)
    both = ArmMeans(float(means.treated), float(means.control))
    is_turned = row.arm == release.contrasts[0].against
    return ArmMeans(both.control, both.treated) if is_turned else both


def _row(release: Release, arm: Label | None, against: Label | None) -> Contrast:
    """Return the contrast that is asked for; without any word the headline."""
    facts = release.facts
    head = release.contrasts[0]
    if facts.headline is not None and release.arms:
        head = release.contrast(facts.headline.arm, facts.headline.against)
    if arm is None and against is None:
        return head
    return release.contrast(
        head.arm if arm is None else arm, head.against if against is None else against
    )


def _effect(
    release: Release, arm: Label | None, against: Label | None
) -> tuple[float, tuple[float, float] | None]:
    if arm is None and against is None:
        return release.ate, release.interval
    row = _row(release, arm, against)
    return row.effect, row.interval


def risk_ratio(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> float:
    """Return the ratio of both risks of a binary outcome; infinite if the control risk is 0.

    ``arm`` and ``against`` name the arms that are meant; those of the headline if not given.
    """
    means = _risks(release, arm, against)
    if means.control == 0:
        return math.inf if means.treated > 0 else math.nan
    return means.treated / means.control


def odds_ratio(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> float:
    """Return the ratio of both odds of a binary outcome; infinite if the control odds are 0.

    ``arm`` and ``against`` name the arms that are meant; those of the headline if not given.
    """
    means = _risks(release, arm, against)
    above = means.treated * (1 - means.control)
    below = means.control * (1 - means.treated)
    if below == 0:
        return math.inf if above > 0 else math.nan
    return above / below


def risk_ratio_interval(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> tuple[float, float] | None:
    """Return an interval of the risk ratio with the coverage of the effect's; it costs nothing.

    It holds one exactly if the effect's interval holds zero, and is rather too wide than too
    narrow (``release.ratios``). None without an interval, or if the control risk is 0.
    ``arm`` and ``against`` name the arms that are meant; those of the headline if not given.
    """
    means = _risks(release, arm, against)
    half = _half(release, arm, against)
    return None if half is None else risk_interval(means.treated, means.control, half)


def odds_ratio_interval(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> tuple[float, float] | None:
    """Return an interval of the odds ratio by the delta method; it costs nothing.

    None without an interval, or where a risk is within its error of 0 or 1. ``arm`` and
    ``against`` name the arms that are meant; those of the headline if not given.
    """
    means = _risks(release, arm, against)
    half = _half(release, arm, against)
    return None if half is None else odds_interval(means.treated, means.control, half)


def number_needed_to_treat(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> NumberNeeded:
    """Return how many have to be treated for one event more or less, and its interval.

    Of a declared binary outcome: one over the effect, and the inverse of the effect's interval.
    ``arm`` and ``against`` name the arms that are meant; those of the headline if not given.
    """
    _require_binary(release)
    return invert_effect(*_effect(release, arm, against))


def _half(release: Release, arm: Label | None, against: Label | None) -> float | None:
    """Return the longer half of an effect's interval."""
    effect, interval = _effect(release, arm, against)
    return None if interval is None else longer_half(effect, interval)


def monotone_means(release: Release) -> dict[str, float]:
    """Return the means of doses as a curve that rises or falls throughout, by dose.

    Isotonic regression of the released means by their variances, noise and sampling together, in
    the direction that fits better. It assumes a shape that the release itself does not.
    """
    doses = list(release.facts.doses)
    arms = {arm.label: arm for arm in release.arms}
    if not doses or set(doses) != set(arms):
        msg = "a curve needs arms that are bins of a dose: declare them by Treatment(bins=…)"
        raise ArgumentError(msg)
    held = [arms[label] for label in doses]
    means = [arm.mean for arm in held if arm.mean is not None]
    if len(means) < len(held):
        msg = "this release holds contrasts and no arm means; ask for the means"
        raise ArgumentError(msg)
    precisions = [1 / max(_noise_variance(arm) + (arm.variance or 0.0), 1e-300) for arm in held]
    rising = _isotonic(means, precisions)
    falling = [-value for value in _isotonic([-mean for mean in means], precisions)]
    fits = [
        math.fsum(p * (mean - value) ** 2
                  for p, mean, value in zip(precisions, means, curve, strict=True))
        for curve in (rising, falling)
    ]  # fmt: skip
    return dict(zip(doses, rising if fits[0] <= fits[1] else falling, strict=True))


def _noise_variance(arm: Arm) -> float:
    if arm.noise is None:
        msg = (
            "means that are rolled up from subgroups, or drawn with other outcomes, have no single "
            "distribution of noise to weigh by"
        )
        raise ArgumentError(msg)
    return arm.noise.variance


def _isotonic(values: list[float], weights: list[float]) -> list[float]:
    """Return the rising numbers nearest to the values, pooling neighbours that fall."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in zip(values, weights, strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (first, left, few), (second, right, more) = pools[-2:]
            mean = (first * left + second * right) / (left + right)
            pools[-2:] = [(mean, left + right, few + more)]
    return [mean for mean, _, count in pools for _ in range(count)]


def standard_error(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> float | None:
    """Return the standard error of a normal estimate whose interval would be as wide.

    It holds whatever the interval covers (``settings["interval_covers"]``): noise and sampling,
    and at label level also the bias that residual imbalance may add. None if the release
    has no interval. ``arm`` and ``against`` name a contrast other than the headline.
    """
    effect, interval = _effect(release, arm, against)
    if interval is None:
        return None
    return interval_error(effect, interval, release.facts.confidence)


def interval_error(effect: float, interval: tuple[float, float], confidence: float) -> float:
    """Return the standard error of a normal estimate whose interval would be as wide."""
    return longer_half(effect, interval) / NormalDist().inv_cdf((1 + confidence) / 2)


def p_value(release: Release, *, arm: Label | None = None, against: Label | None = None) -> float:
    """Return the two-sided p-value of no effect, from the released number and its known errors.

    It is how likely privacy noise and sampling alone would move the number as far from zero as it
    is, and the smallest level at which the interval leaves zero out: below 0.05 exactly if the 95 %
    interval does. Post-processing, so it costs nothing. What the interval covers beyond noise and
    sampling counts as an error too, so p-values at label level are rather too large than too small.

    Parameters
    ----------
    release : Release
        A release with an interval: the noise alone says nothing about sampling.
    arm, against : label, optional
        The arms that are meant; those of the headline if not given.
    """
    row = _row(release, arm, against)
    pair = {row.arm, row.against}
    found = next(
        each
        for each in release.effects
        if each.subgroup is None and {each.arm, each.against} == pair
        and each.outcome == release.effects[0].outcome
    )  # fmt: skip
    return p_value_of(release, found)


def p_value_of(release: Release, effect: Effect) -> float:
    """Return the p-value of one row of the table of effects; see :func:`p_value`."""
    if effect.interval is None or effect.noise_interval is None:
        msg = "a p-value needs an interval: without one the sampling variance is not known"
        raise ArgumentError(msg, parameter="confidence")
    if _is_cut(release, effect):
        return 1.0
    facts = release.facts
    own = effect.outcome == release.effects[0].outcome  # arms are those of the headline alone
    held = {one.label: one for one in release.arms if own}
    both = [held[label] for label in (effect.arm, effect.against) if label in held]
    rule = facts.interval_rule
    noises = [one.noise for one in both if one.noise is not None]  # none where it is rolled up
    if effect.subgroup is None and rule is not None and len(noises) == 2:
        from private_ate.release.intervals import chance_beyond  # loads scipy

        variances = [one.variances for one in both]
        return chance_beyond(abs(effect.estimate), noises, variances, rule)
    from private_ate.effects.row_errors import chance_of_effect  # as above

    quantile = longer_half(effect.estimate, effect.noise_interval)
    half = longer_half(effect.estimate, effect.interval)
    if half <= 0:
        return 1.0 if effect.estimate == 0 else 0.0
    return chance_of_effect(release, effect, facts.confidence, quantile=quantile, half=half)


def _is_cut(release: Release, effect: Effect) -> bool:
    """Say whether both ends were cut at the outcome's range, so that nothing is known of them."""
    bounds = None if release.outcome is None else release.outcome.bounds
    others = release.facts.outcomes
    bounds = next((one.bounds for one in others if one.column == effect.outcome), bounds)
    if bounds is None or effect.interval is None:
        return False
    reach = (bounds[1] - bounds[0]) * (1 - 1e-9)
    return effect.interval[0] <= -reach and effect.interval[1] >= reach


def e_value(
    release: Release,
    *,
    outcome_sd: float | None = None,
    baseline_risk: float | None = None,
    arm: Label | None = None,
    against: Label | None = None,
) -> EValue:
    """Return the E-value of a released effect and of its interval.

    Parameters
    ----------
    release : Release
        Its interval covers privacy noise as well, so the limit's E-value allows for it.
    outcome_sd : float, optional
        For a continuous outcome: its standard deviation, from public knowledge.
    baseline_risk : float, optional
        For a binary outcome: the risk of the controls, from public knowledge. May be left out if
        the release holds arm means of a binary outcome. It is taken as known.
    arm, against : label, optional
        The arms that are meant; those of the headline if not given.

    Examples
    --------
    A risk ratio of 3.9 with an interval from 1.8 (VanderWeele and Ding 2017):

    >>> round(_e_value(3.9), 2), round(_e_value(1.8), 1)
    (7.26, 3.0)
    """
    effect, interval = _effect(release, arm, against)
    if baseline_risk is None and outcome_sd is None and _has_risks(release):
        baseline_risk = arm_means(release, arm=arm, against=against).control
    if (outcome_sd is None) == (baseline_risk is None):
        msg = (
            "an E-value needs outcome_sd (continuous outcomes) or baseline_risk (binary ones), "
            "from public knowledge"
        )
        raise ArgumentError(msg)
    ends = (effect, *(interval or ()))
    if outcome_sd is not None:
        ratios = [_standardised(end, outcome_sd) for end in ends]
    else:
        ratios = [_relative(end, float(baseline_risk or 0.0)) for end in ends]
    limit = None
    if len(ratios) == 3:
        low, high = ratios[1:]
        limit = 1.0 if low <= 1 <= high else _e_value(low if low > 1 else high)
    return EValue(_e_value(ratios[0]), limit, ratios[0])


def _has_risks(release: Release) -> bool:
    """Say whether the release holds means of a binary outcome."""
    facts = release.facts
    held = facts.means is not None or any(arm.mean is not None for arm in release.arms)
    return facts.is_binary and held


def _risks(release: Release, arm: Label | None, against: Label | None) -> ArmMeans:
    _require_binary(release)
    return arm_means(release, arm=arm, against=against)


def _require_binary(release: Release) -> None:
    if not release.facts.is_binary:
        msg = "ratios and numbers needed to treat belong to an outcome that is declared as binary"
        raise ArgumentError(msg)


def _standardised(effect: float, deviation: float) -> float:
    if not 0 < deviation < math.inf:
        msg = "outcome_sd is a positive number in units of the outcome"
        raise ArgumentError(msg)
    return math.exp(min(max(_RISK_PER_DEVIATION * effect / deviation, -700.0), 700.0))


def _relative(effect: float, baseline: float) -> float:
    if not 0 < baseline < 1:
        msg = "baseline_risk lies strictly between 0 and 1"
        raise ArgumentError(msg)
    return min(max(baseline + effect, 0.0), 1.0) / baseline


def _e_value(ratio: float) -> float:
    """Return ``r + sqrt(r(r − 1))`` for the ratio or its inverse, whichever is above one."""
    if ratio == 0:
        return math.inf
    above = max(ratio, 1 / ratio)
    return above + math.sqrt(above * (above - 1))
