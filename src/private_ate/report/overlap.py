"""How the propensity scores of the arms overlap, as counts in equal bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from private_ate.release import ArmOverlap, Overlap
from private_ate.report.drawings import Box, draw_boxes, draw_histogram, short_name
from private_ate.report.markup import Markup, element

_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


def overlap_figure(overlap: Overlap | ArmOverlap) -> Markup:
    """Return both arms' histograms of scores, back to back; of several arms a panel for each."""
    if isinstance(overlap, ArmOverlap):
        return _panels(overlap)
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


def _panels(overlap: ArmOverlap) -> Markup:
    """Return for each arm how likely it was, by the arm that units are in, as box plots."""
    panels = [
        element(
            "figure",
            draw_boxes(
                [
                    Box(short_name(label, 40), _places(counts))
                    for label, counts in zip(overlap.labels, scores, strict=True)
                ],
                describe=f"Box plots of the probability of {arm} in every arm",
            ),
            element("figcaption", f"Probability of {arm}, in the units of each arm."),
        )
        for arm, scores in zip(overlap.labels, overlap.counts, strict=True)
    ]
    told = (
        "Overlap, a panel for each arm: how likely it was for units of every arm. Boxes hold half "
        "of the units and lines nine tenths; arms are alike where the boxes of a panel are."
    )
    return element("div", element("p", told), *panels)


def _places(counts: Sequence[int]) -> tuple[float, float, float, float, float] | None:
    """Return quantiles from counts in equal bins, evenly spread within a bin."""
    whole = sum(counts)
    if whole == 0:
        return None
    found = []
    for share in _QUANTILES:
        below, wanted = 0, share * whole
        for index, count in enumerate(counts):
            if count and below + count >= wanted:
                found.append((index + (wanted - below) / count) / len(counts))
                break
            below += count
    first, second, third, fourth, fifth = found
    return first, second, third, fourth, fifth
