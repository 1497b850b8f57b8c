"""A made-up release of four arms: birth weight in grams by cigarettes a day."""

from fractions import Fraction

from private_ate import Binary, Domain, Interval, Treatment
from private_ate.effects.estimate import Quantity
from private_ate.effects.table import AboutArms
from private_ate.effects.to_release import release_of
from private_ate.methods.blocks.settings import BlocksArmsSettings
from private_ate.methods.calibrated.settings import CalibratedArmsSettings
from private_ate.methods.effect_tables import estimate_of_quantities
from private_ate.methods.public_arms import greatest_over_pairs
from private_ate.privacy.budget import Guarantee
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.levels import adjacency_of
from private_ate.release import ArmOverlap
from private_ate.request import Request

LABELS = ("0 daily", "1-5 daily", "6-10 daily", "11+ daily")
SIZES = (3778, 200, 337, 327)
SMOKING = Treatment("cigarettes", bins=(0, 1, 6, 11, 100), labels=LABELS)
WEIGHT = Domain(
    SMOKING,
    ("weight", Interval(0, 6000)),
    {"age": Interval(13, 45), "married": Binary()},
)
LEVELS = (3404.0, 3236.6, 3159.4, 3168.6)
UNITS = (50.0, 140.0, 120.0, 150.0)
DEVIATIONS = (7.0, 42.0, 38.0, 44.0)
BALANCE = {
    "0 daily": {"age": (0.05, 0.0), "married": (0.12, 0.01)},
    "1-5 daily": {"age": (-0.3, 0.02), "married": (-0.4, -0.02)},
    "6-10 daily": {"age": (-0.2, -0.03), "married": (-0.5, 0.04)},
    "11+ daily": {"age": (0.1, 0.01), "married": (-0.45, -0.05)},
}

ARM_OVERLAP = ArmOverlap(
    LABELS,
    tuple(
        tuple(
            tuple(max(0, 9 - abs(cell - 5 - 2 * own - 3 * (own == arm))) for cell in range(20))
            for own in range(4)
        )
        for arm in range(4)
    ),
)


def arm_levels(name="staircase", *, variances=True):
    """Return the levels as a method hands them over."""
    return tuple(
        Quantity(
            level,
            (NoiseDistribution(name, unit, Fraction(18, 5)),),
            tuple(deviation**2 * share for share in (0.7, 1.0, 1.4)) if variances else (),
        )
        for level, unit, deviation in zip(LEVELS, UNITS, DEVIATIONS, strict=True)
    )


def label_settings():
    """Return what the calibrated method says of four arms."""
    return CalibratedArmsSettings(
        target="balance", neighbors=None, weight_cap=dict(zip(LABELS, UNITS, strict=True)),
        confidence=0.95, rows_per_person=1, population="all n units (ATE)",
        arms=dict(zip(LABELS, SIZES, strict=True)),
        effective_arms=dict(zip(LABELS, (3700.5, 150.2, 280.0, 260.1), strict=True)),
        balance=greatest_over_pairs(BALANCE), arm_balance=BALANCE,
        noise_interval_covers="the estimate without noise; not sampling, not confounding",
        interval_covers="noise, sampling and imbalance; not confounding", budget={"sums": 4.0},
    )  # fmt: skip


def sample_settings(*, adjusted=False):
    """Return what the blocks method says of four arms."""
    return BlocksArmsSettings(
        adjusted=adjusted, design="unknown", estimand="ate",
        arm_shares=dict(zip(LABELS, (0.81, 0.04, 0.08, 0.07), strict=True)),
        population="all n units, arms compared as they are",
        confidence=0.95, rows_per_person=1, budget={"sums": 4.0}, interval_covers="noise",
        noise_interval_covers="the last step's noise only", notes=("a note",),
    )  # fmt: skip


def smoking_release(
    levels=None, *, means=True, settings=None, domain=WEIGHT, level="label", **asked
):
    """Return the release that a method's levels lead to."""
    request = Request(level, "4", **asked)
    settings = settings or (label_settings() if level == "label" else sample_settings())
    estimate = estimate_of_quantities(
        levels or arm_levels(), domain, request, settings,
        AboutArms(means, SIZES if level == "label" else None),
        rule="convolved" if level == "label" else "in_squares",
    )  # fmt: skip
    guarantee = Guarantee(level, request.epsilon, adjacency_of(level, 1))
    method = "calibrated" if level == "label" else "blocks"
    return release_of(
        estimate, guarantee, domain, design="unknown", spends=(), method=method, n=sum(SIZES)
    )
