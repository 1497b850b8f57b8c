"""The estimate that released quantities make: intervals, means and ratios; all post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np

from private_ate.domain import Domain
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.effects.table import AboutArms
from private_ate.methods.calibrated.design import Design
from private_ate.methods.calibrated.settings import CalibratedArmsSettings, CalibratedSettings
from private_ate.methods.calibrated.weights import PublicWeights
from private_ate.methods.effect_tables import estimate_of_quantities
from private_ate.request import Request
from private_ate.settings import ArmNumbers

__all__ = ["estimate_contrast", "estimate_quantities", "means_and_ratios"]


def estimate_quantities(
    quantities: Sequence[Quantity],
    weights: PublicWeights,
    domain: Domain,
    request: Request,
    settings: CalibratedSettings | CalibratedArmsSettings,
    warnings: tuple[str, ...],
) -> Estimate:
    """Return the estimate of two arms from their contrast or both means, else from every mean."""
    if isinstance(settings, CalibratedArmsSettings):
        about = AboutArms(
            units=[arm.problem.members for arm in weights.arms],
            weighted=[not arm.is_constant for arm in weights.arms],
        )
        return replace(
            estimate_of_quantities(quantities, domain, request, settings, about),
            warnings=warnings,
        )
    effect = quantities[0]
    if len(quantities) == 2:
        control, treated = quantities
        settings = replace(settings, **means_and_ratios([control.value, treated.value], domain))
        effect = Quantity(
            treated.value - control.value, (*treated.noise, *control.noise),
            tuple(np.add(control.variances, treated.variances).tolist()),
            control.bias + treated.bias,
        )  # fmt: skip
    return estimate_contrast(effect, domain, weights.design, request, settings, warnings)


def estimate_contrast(
    effect: Quantity,
    domain: Domain,
    design: Design,
    request: Request,
    settings: CalibratedSettings,
    warnings: tuple[str, ...],
) -> Estimate:
    """Return the estimate of two arms from their contrast."""
    return replace(
        estimate_of_quantities((effect,), domain, request, settings),
        warnings=warnings,
        population=design.population if request.estimand == "ato" else None,
    )


class _Means(TypedDict, total=False):
    """Both means and their ratios, where they were asked for and make sense."""

    means: ArmNumbers
    risk_ratio: float | None
    odds_ratio: float | None


def means_and_ratios(levels: Sequence[float], domain: Domain) -> _Means:
    """Report both means and, for a declared binary outcome, the ratios that follow for free."""
    control, treated = levels
    shown = ArmNumbers(treated, control)
    if not domain.bounds.is_binary:
        return {"means": shown}
    odds = control * (1 - treated)
    return {
        "means": shown,
        "risk_ratio": treated / control if control > 0 else None,
        "odds_ratio": treated * (1 - control) / odds if odds > 0 else None,
    }
