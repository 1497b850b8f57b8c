"""Parameters of the calibrated method, and what they and the declared bounds decide in public."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from private_ate.arguments import exact_number, one_of, real_number, settle, truth_value
from private_ate.domain import Interval
from private_ate.methods.calibrated.clipping import ClipPlan, wide_range

__all__ = ["CalibratedOptions", "TermsName", "outcome_share", "plan_clip"]

TermsName = Literal["growing", "plain"]

_CENTRE_SHARE: Final = Fraction(1, 10)  # of ε, for a range around a private centre


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


def plan_clip(bounds: Interval, options: CalibratedOptions) -> ClipPlan:
    """Decide from declared bounds and the guessed spread alone whether bounds are too wide."""
    if options.clip_share is not None or options.outcome_sd is None:
        return ClipPlan(options.clip_fraction, None)
    width = wide_range(outcome_share(bounds, options))
    return ClipPlan(Fraction(0) if width is None else _CENTRE_SHARE, width)


def outcome_share(bounds: Interval, options: CalibratedOptions) -> float:
    """Return the guessed standard deviation of the outcome as a share of its range."""
    if options.outcome_sd is not None:
        return options.outcome_sd / bounds.width
    return 0.4 if bounds.is_binary else 0.125
