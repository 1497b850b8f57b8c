"""From released arms to an estimate with all contrasts, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from private_ate.effects.estimate import Estimate
from private_ate.estimators.orthogonal.plan import OrthogonalOptions
from private_ate.estimators.orthogonal.several_arms.method import ReleasedArms, release_arms
from private_ate.estimators.orthogonal.several_arms.plan import Path
from private_ate.estimators.orthogonal.several_arms.settings import OrthogonalArmsSettings
from private_ate.estimators.request import Request
from private_ate.estimators.several_arms import estimate_from_arms
from private_ate.privacy.noise import Noise
from private_ate.settings import ABSENT
from private_ate.study import Study

__all__ = ["estimate_several_arms"]

_NOISE_COVERED: Final = "the last step's noise only; not sampling, not confounding"
_COVERED: Final = {
    Path.PLAIN: "noise and sampling; not confounding, as nothing was adjusted for",
    Path.PROGNOSIS: "noise and sampling; not confounding that the prognosis failed to remove",
    Path.SCORE: (
        "noise, sampling and an allowance for rows that limited weights leave behind; not all "
        "confounding that the noisy scores may have failed to remove"
    ),
}
_POPULATION: Final = {
    Path.PLAIN: "all n units, arms compared as they are (the ATE if treatment was random)",
    Path.PROGNOSIS: (
        "all n units, arms compared after a prognosis was taken off their outcomes (the ATE if "
        "treatment was random given that prognosis)"
    ),
    Path.SCORE: "all n units (ATE), by weights that are limited where an arm is rare",
}


def estimate_several_arms(
    study: Study, request: Request, options: OrthogonalOptions, noise: Noise
) -> Estimate:
    """Estimate the contrasts of three arms or more with whole records private.

    Neighbours: one person's rows replaced, n public. Cost: the request's ε, pure. Proof:
    docs/proofs/several-arms-sample.md.
    """
    released = release_arms(study, request, options, noise)
    labels = study.domain.treatment.coded
    settings = _settings(labels, request, options, released, noise)
    return estimate_from_arms(
        released.arms,
        study.domain,
        request,
        settings,
        rule="in_squares",
        adjusted=settings.adjusted,
    )


def _settings(
    labels: tuple[str, ...],
    request: Request,
    options: OrthogonalOptions,
    released: ReleasedArms,
    noise: Noise,
) -> OrthogonalArmsSettings:
    """Return public facts and released numbers; models, scores and cells stay inside."""
    path, ask = released.plan.path, released.ask
    weighted = [label for label, arm in zip(labels, released.arms, strict=True) if arm.weighted]
    limits = _by_label(labels, released.weights.limits)
    return OrthogonalArmsSettings(
        adjusted=path is not Path.PLAIN,
        path=path.value,
        design=request.design,
        signal_to_noise=ask.signal,
        adjust_threshold=options.threshold(ask.arms),
        score_threshold=options.score_threshold,
        rule_values={
            "prognosis": released.plan.prognosis_value, "score": released.plan.score_value,
        },
        arm_shares=_by_label(labels, released.sizes.shares),
        largest_weight=_by_label(labels, released.weights.largest),
        weight_limit={label: limits[label] for label in weighted} or ABSENT,
        cells=ask.cells if path is Path.SCORE else ABSENT,
        squares=ABSENT if path is Path.PLAIN else ask.with_squares,
        population=_POPULATION[path],
        confidence=request.coverage,
        rows_per_person=request.rows_per_person,
        budget={spend.step: float(spend.epsilon) for spend in noise.spends},
        interval_covers=ABSENT if request.confidence is None else _COVERED[path],
        noise_interval_covers=_NOISE_COVERED,
        notes=(_note(options, released),),
    )  # fmt: skip


def _by_label(labels: tuple[str, ...], numbers: Iterable[float]) -> Mapping[str, float]:
    return {label: float(number) for label, number in zip(labels, numbers, strict=True)}


def _note(options: OrthogonalOptions, released: ReleasedArms) -> str:
    match released.plan.path:
        case Path.SCORE:
            return "adjusted for covariates through noisy scores; some confounding may remain"
        case Path.PROGNOSIS:
            return (
                "adjusted for covariates by a noisy prognosis alone, as n·ε is too small to weight "
                "units; some confounding may remain"
            )
        case Path.PLAIN if released.ask.dimension == 0 or options.adjust is False:
            return "not adjusted for covariates: these are differences in means"
        case Path.PLAIN:
            return (
                "n·ε is too small to adjust, so these are differences in means; lower "
                "adjust_threshold or set adjust if you fear confounding more than noise"
            )
