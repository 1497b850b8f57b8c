"""How the propensity scores of both arms overlap, as counts in equal bins."""

from __future__ import annotations

from dataclasses import dataclass, field

from private_ate.report.drawings import draw_histogram
from private_ate.report.markup import Markup, element

__all__ = ["Overlap", "overlap_figure"]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Counts of units by propensity score, in equal bins from 0 to 1.

    Public at label level, where covariates and treatment are; the curator's otherwise. Its repr
    shows no count.
    """

    treated: tuple[int, ...] = field(repr=False)
    control: tuple[int, ...] = field(repr=False)

    @property
    def alone(self) -> int:
        """Units in bins that hold nobody of the other arm."""
        return sum(
            first + second
            for first, second in zip(self.treated, self.control, strict=True)
            if not (first and second)
        )


def overlap_figure(overlap: Overlap) -> Markup:
    """Return both arms' histograms of scores, as shares of their arm, back to back."""
    shares = [
        [count / (sum(counts) or 1) for count in counts]
        for counts in (overlap.treated, overlap.control)
    ]
    describe = (
        f"Histograms of propensity scores of {sum(overlap.treated)} treated and "
        f"{sum(overlap.control)} control units; {overlap.alone} units lie in bins without "
        "anybody of the other arm"
    )
    caption = element(
        "figcaption",
        f"Propensity scores by arm, as shares of the arm. {overlap.alone:,} units lie where the "
        "other arm has nobody.",
    )
    return element(
        "figure", draw_histogram(shares[0], shares[1], (0.0, 1.0), describe=describe), caption
    )
