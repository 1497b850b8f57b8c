"""How the propensity scores of both arms overlap, as counts in equal bins."""

from __future__ import annotations

from private_ate.release import Overlap
from private_ate.report.drawings import draw_histogram
from private_ate.report.markup import Markup, element

__all__ = ["overlap_figure"]


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
