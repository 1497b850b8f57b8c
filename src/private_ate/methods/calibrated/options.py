"""Parameters of the calibrated method, and what they and the declared bounds decide in public."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from private_ate.arguments import exact_number, one_of, real_number, settle, truth_value
from private_ate.domain import Interval
from private_ate.privacy.quantization import OUTCOME_STEPS

__all__ = [
    "WIDE_DEVIATIONS", "CalibratedOptions", "ClipPlan", "TermsName", "outcome_share", "plan_clip",
]  # fmt: skip

TermsName = Literal["growing", "plain"]

_CENTRE_SHARE: Final = Fraction(1, 10)  # of ε, for a range around a private centre
_DEVIATIONS: Final = 8  # guessed standard deviations that a range around the centre holds
# Standard deviations of an outcome from which a declared range counts as wide.
WIDE_DEVIATIONS: Final = 16


@dataclass(frozen=True, slots=True)
class CalibratedOptions:
    """Parameters of the calibrated estimator.

    Attributes
    ----------
    outcome_sd : float or None
        A public guess of the outcome's standard deviation, in its own units; None is an eighth of
        the range, or 0.4 of it for a declared binary outcome. Affects accuracy, never privacy.
    clip_share : text, fraction or None
        A share of ε, 0.1 is usual, that buys tighter outcome bounds before the estimate, whatever
        ``outcome_sd`` says. None: a tenth of ε, for a range of eight ``outcome_sd`` around a
        private median, if that guess is given and the declared range holds sixteen or more of it;
        otherwise nothing. 0: never.
    means : bool
        Also release both potential-outcome means, each arm with noise of its own.
    terms : "growing" or "plain"
        What weights balance: covariates and, as far as held-out rows show that treatment follows
        them, products, squares and leaves of boosted trees; or the covariates alone.
    """

    outcome_sd: float | None = None
    clip_share: str | float | Fraction | None = None
    means: bool = False
    terms: TermsName = "growing"

    def __post_init__(self) -> None:
        settle(self, means=truth_value("means", self.means))
        if self.outcome_sd is not None:
            settle(self, outcome_sd=real_number("outcome_sd", self.outcome_sd, 1e-150, 1e150))
        one_of("terms", self.terms, get_args(TermsName))
        _ = self.clip_fraction

    @property
    def clip_fraction(self) -> Fraction:
        """The share of ε asked for tighter bounds, zero if none was."""
        if self.clip_share is None:
            return Fraction(0)
        return exact_number("clip_share", self.clip_share, "0", "0.5")


@dataclass(frozen=True, slots=True)
class ClipPlan:
    """What the public plan says about tighter bounds: their share of ε and, if fixed, width."""

    share: Fraction
    width: int | None  # in grid steps, around a private centre

    @property
    def kept_share(self) -> float:
        """The width to expect as a share of the declared one."""
        return 1.0 if self.width is None else self.width / OUTCOME_STEPS


def plan_clip(bounds: Interval, options: CalibratedOptions) -> ClipPlan:
    """Decide from declared bounds and the guessed spread alone whether bounds are too wide."""
    if options.clip_share is not None or options.outcome_sd is None:
        return ClipPlan(options.clip_fraction, None)
    share = outcome_share(bounds, options)
    if share * WIDE_DEVIATIONS > 1:
        return ClipPlan(Fraction(0), None)
    return ClipPlan(_CENTRE_SHARE, max(2, round(_DEVIATIONS * share * OUTCOME_STEPS)))


def outcome_share(bounds: Interval, options: CalibratedOptions) -> float:
    """Return the guessed standard deviation of the outcome as a share of its range."""
    if options.outcome_sd is not None:
        return options.outcome_sd / bounds.width
    return 0.4 if bounds.is_binary else 0.125
