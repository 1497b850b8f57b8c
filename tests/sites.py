"""Releases of made-up sites, whose two variances are known because they were put in."""

import math
from fractions import Fraction

from private_ate.privacy.budget import Guarantee
from private_ate.privacy.distributions import staircase_variance
from private_ate.privacy.levels import adjacency_of
from private_ate.privacy.quantiles import staircase_and_normal_quantile, staircase_quantile
from private_ate.release import Release
from private_ate.release.metadata import Effect, Step, TreatmentNote
from private_ate.settings import OutcomeNote


def noisy_step(epsilon, *, name="outcome sum", mechanism="staircase", sensitivity=(1 << 40,)):
    return Step(name, mechanism, "L1", float(epsilon), 0.0, 0.0, "", sensitivity, None)


def halves(sampling, noise, epsilon, confidence):
    """Return half the interval and half the noise interval of a calibrated release."""
    size = noise / math.sqrt(staircase_variance(epsilon))
    half = staircase_and_normal_quantile(confidence, epsilon, size, sampling)
    return half, size * staircase_quantile(confidence, epsilon)


def effect_row(estimate, half, noise_half, **changes):
    interval = (estimate - half, estimate + half)
    about = {"outcome": "pressure", "subgroup": None, "arm": "yes", "against": "no"}
    numbers = {
        "estimand": "ate", "estimate": estimate, "interval": interval, "simultaneous": interval,
        "noise_interval": (estimate - noise_half, estimate + noise_half),
    }  # fmt: skip
    return Effect(**about | numbers | changes)


def made_up_site(
    estimate, sampling=1.0, noise=0.5, *, epsilon="1", confidence=0.95, effects=None, **changes
):
    """Return a release at label level with a normal and a staircase error of known deviations."""
    exact = Fraction(epsilon)
    level = changes.get("level", "label")
    rows = effects
    if rows is None:
        rows = (effect_row(estimate, *halves(sampling, noise, 0.9 * float(exact), confidence)),)
    said = {
        "ate": rows[0].estimate, "interval": rows[0].interval, "effects": rows,
        "noise_interval": rows[0].noise_interval, "epsilon": exact, "delta": 0.0,
        "level": level, "adjacency": adjacency_of(level), "method": "calibrated", "n": 1000,
        "settings": {"confidence": confidence}, "version": "1", "schema": 2,
        "estimand": rows[0].estimand,
        "treatment": TreatmentNote("drug", ("no", "yes"), "no"),
        "outcome": OutcomeNote("pressure", (-40.0, 60.0), "mmHg"),
        "steps": (noisy_step(0.9 * float(exact)),), "not_protected": ("covariates",),
    } | changes  # fmt: skip
    promise = Guarantee(said["level"], said["epsilon"], said["adjacency"], said["delta"])
    return Release(**{"guarantee": str(promise), **said})
