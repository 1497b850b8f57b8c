"""What follows from a release without spending more: ratios, standard errors, E-values.

Every function here reads a release and nothing else, so its answer is as private as the release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from private_ate.errors import ArgumentError
from private_ate.release.metadata import longer_half

if TYPE_CHECKING:
    from private_ate.domain.column_types import Label
    from private_ate.release.metadata import Contrast, Effect, Pair
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
class NumberNeeded:
    """How many units have to be treated for one event more, or one less, as the sign says.

    Attributes
    ----------
    estimate : float
        One over the effect; infinite if that is zero. Negative where treatment makes events rarer.
    interval : pair of float or None
        The inverses of the ends of the effect's interval, low end first; None without one.
    holds_none : bool
        Whether the effect's interval holds zero. The numbers that it allows are then two rays: all
        below the first end, and all above the second.
    """

    estimate: float
    interval: Pair | None
    holds_none: bool


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
        return replace(head, effect=release.ate, interval=release.interval)
    return release.contrast(
        head.arm if arm is None else arm, head.against if against is None else against
    )


def risk_ratio(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> float:
    """Return the ratio of both risks of a binary outcome; infinite if the control risk is 0.

    ``arm`` and ``against`` name the arms that are meant; those of the headline if not given.
    """
    means = _risks(release, arm, against)
    return _ratio(means.treated, means.control)


def odds_ratio(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> float:
    """Return the ratio of both odds of a binary outcome; infinite if the control odds are 0.

    ``arm`` and ``against`` are as in :func:`risk_ratio`.
    """
    means = _risks(release, arm, against)
    return _ratio(means.treated * (1 - means.control), means.control * (1 - means.treated))


def risk_ratio_interval(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> Pair | None:
    """Return an interval of the risk ratio with the coverage of the effect's; it costs nothing.

    It holds one exactly if the effect's interval holds zero, and is rather too wide than too
    narrow. None without an interval, or if the control risk is 0. ``arm`` and ``against`` are as
    in :func:`risk_ratio`.
    """
    means, half = _risks(release, arm, against), _half(release, arm, against)
    return None if half is None else risk_interval(means.treated, means.control, half)


def odds_ratio_interval(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> Pair | None:
    """Return an interval of the odds ratio by the delta method; it costs nothing.

    None without an interval, or where a risk is within its error of 0 or 1. ``arm`` and
    ``against`` are as in :func:`risk_ratio`.
    """
    means, half = _risks(release, arm, against), _half(release, arm, against)
    return None if half is None else odds_interval(means.treated, means.control, half)


def number_needed_to_treat(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> NumberNeeded:
    """Return how many have to be treated for one event more or less, and its interval.

    Of a declared binary outcome: one over the effect, and the inverse of the effect's interval.
    ``arm`` and ``against`` are as in :func:`risk_ratio`.
    """
    _require_binary(release)
    row = _row(release, arm, against)
    return invert_effect(row.effect, row.interval)


def _half(release: Release, arm: Label | None, against: Label | None) -> float | None:
    """Return the longer half of an effect's interval."""
    row = _row(release, arm, against)
    return None if row.interval is None else longer_half(row.effect, row.interval)


def _ratio(above: float, below: float) -> float:
    if below == 0:
        return math.inf if above > 0 else math.nan
    return above / below


def invert_effect(effect: float, interval: Pair | None) -> NumberNeeded:
    """Return the number needed to treat of a risk difference."""
    if interval is None:
        return NumberNeeded(_inverse(effect), None, holds_none=False)
    low, high = interval
    if low <= 0 <= high:
        ends = (_inverse(low) if low < 0 else -math.inf, _inverse(high))
        return NumberNeeded(_inverse(effect), ends, holds_none=True)
    return NumberNeeded(_inverse(effect), (_inverse(high), _inverse(low)), holds_none=False)


def _inverse(value: float) -> float:
    return math.inf if value == 0 else 1 / value


def risk_interval(first: float, second: float, half: float) -> Pair | None:
    """Return all ratios r of two risks for which ``first − r·second`` may be an error.

    The error ``e₁ − e₀`` of their difference is within ±h with the release's coverage. Both errors,
    of noise and of sampling, are independent, symmetric and peaked at zero, so ``e₁ − r·e₀`` is
    within ±max(1, r)·h at least as often: making one of them smaller only gathers their sum.
    ``(first − r·second)/max(1, r)`` falls with r, so these ratios are an interval (Fieller's), and
    it holds one exactly if the difference's holds zero. None if the second risk is not positive.
    """
    if second <= 0:
        return None
    apart = first - second
    low = (first - half) / second if apart <= half else first / (second + half)
    if apart <= -half:
        high = (first + half) / second
    else:
        high = first / (second - half) if second > half else math.inf
    return max(low, 0.0), high


def odds_interval(first: float, second: float, half: float) -> Pair | None:
    """Return the interval of an odds ratio by the delta method for its logarithm.

    None where a risk is within its error of 0 or 1, as the logarithm of odds has no slope there
    that could be relied on.
    """
    least = min(first, second, 1 - first, 1 - second)
    if least <= half:
        return None
    steepest = max(1 / (risk * (1 - risk)) for risk in (first, second))
    middle = math.log(first * (1 - second) / (second * (1 - first)))
    return math.exp(middle - steepest * half), math.exp(middle + steepest * half)


def monotone_means(release: Release) -> dict[str, float]:
    """Return the means of doses as a curve that rises or falls throughout, by dose.

    Isotonic regression of the released means by their variances, noise and sampling together, in
    the direction that fits better. It assumes a shape that the release itself does not.
    """
    from scipy.optimize import isotonic_regression  # loads long

    doses = list(release.facts.doses)
    arms = {arm.label: arm for arm in release.arms}
    if not doses or set(doses) != set(arms):
        msg = "a curve needs arms that are bins of a dose: declare them by Treatment(bins=…)"
        raise ArgumentError(msg)
    means, precisions = [], []
    for arm in (arms[label] for label in doses):
        if arm.mean is None:
            msg = "this release holds contrasts and no arm means; ask for the means"
            raise ArgumentError(msg)
        if arm.noise is None:
            msg = (
                "means that are rolled up from subgroups, or drawn with other outcomes, have no "
                "single distribution of noise to weigh by"
            )
            raise ArgumentError(msg)
        means.append(arm.mean)
        precisions.append(1 / max(arm.noise.variance + (arm.variance or 0.0), 1e-300))
    curves = [
        isotonic_regression(means, weights=precisions, increasing=rises).x.tolist()
        for rises in (True, False)
    ]
    fits = [
        math.fsum(p * (mean - value) ** 2
                  for p, mean, value in zip(precisions, means, curve, strict=True))
        for curve in curves
    ]  # fmt: skip
    return dict(zip(doses, curves[0] if fits[0] <= fits[1] else curves[1], strict=True))


def standard_error(
    release: Release, *, arm: Label | None = None, against: Label | None = None
) -> float | None:
    """Return the standard error of a normal estimate whose interval would be as wide.

    It holds whatever the interval covers (``settings["interval_covers"]``): noise and sampling,
    and at label level also the bias that residual imbalance may add. None if the release
    has no interval. ``arm`` and ``against`` name a contrast other than the headline.
    """
    row = _row(release, arm, against)
    if row.interval is None:
        return None
    return interval_error(row.effect, row.interval, release.facts.confidence)


def interval_error(effect: float, interval: Pair, confidence: float) -> float:
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

    return chance_of_effect(release, effect)


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
    row = _row(release, arm, against)
    if baseline_risk is None and outcome_sd is None and _has_risks(release):
        baseline_risk = arm_means(release, arm=arm, against=against).control
    if (outcome_sd is None) == (baseline_risk is None):
        msg = (
            "an E-value needs outcome_sd (continuous outcomes) or baseline_risk (binary ones), "
            "from public knowledge"
        )
        raise ArgumentError(msg)
    ends = (row.effect, *(row.interval or ()))
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
