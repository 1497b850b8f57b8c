"""What several releases about different persons promise together.

Neighbours differ in one person, who is in one site; who is in which site is public. Only that
site's release has another distribution then, and the others are independent of it: the whole keeps
that site's ε, at worst the largest (parallel composition; docs/explanation/several-sites.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from private_ate.privacy.budget import Guarantee
from private_ate.privacy.levels import Level, has_public_covariates

if TYPE_CHECKING:
    from private_ate.release.release import Release


@dataclass(frozen=True, slots=True)
class Promise:
    """The promise of all releases together, to a person who is in one of them."""

    epsilon: Fraction
    delta: float
    level: Level
    adjacency: str
    guarantee: str
    not_protected: tuple[str, ...]


def promise_together(releases: Sequence[Release]) -> Promise:
    """Return the weakest level, the largest ε and δ, and what is not protected.

    A release that protects whole records protects outcomes too, so of mixed levels the label level
    is what all keep.
    """
    outcomes_only = [one.level for one in releases if has_public_covariates(one.level)]
    level = outcomes_only[0] if outcomes_only else releases[0].level
    epsilon = max(one.epsilon for one in releases)
    delta = max(one.delta for one in releases)
    kept = [one for one in releases if one.level == level]
    adjacency = "; or ".join(dict.fromkeys(one.adjacency for one in kept))
    claim = str(Guarantee(level, epsilon, adjacency, delta))
    if len(releases) == 1:
        (alone,) = releases
        return Promise(epsilon, delta, level, adjacency, alone.guarantee, alone.not_protected)
    guarantee = f"{claim}, for people who are in one site" + "".join(_caveats(releases))
    return Promise(
        epsilon, delta, level, adjacency, guarantee, (*_of_sites(releases), *_of_each(kept))
    )


def _caveats(releases: Sequence[Release]) -> list[str]:
    """Return what single guarantees say beyond their numbers, each once."""
    texts = [
        one.guarantee.removeprefix(str(Guarantee(one.level, one.epsilon, one.adjacency, one.delta)))
        for one in releases
    ]
    return list(dict.fromkeys(text for text in texts if text))


def _of_sites(releases: Sequence[Release]) -> list[str]:
    epsilons = sorted((one.epsilon for one in releases), reverse=True)
    two, every = float(sum(epsilons[:2])), float(sum(epsilons))
    reach = f"up to {two:g} for two sites"
    if len(releases) > 2:
        reach += f", {every:g} for all {len(releases)}"
    return [
        f"people who are in more than one site: the ε of their sites add up ({reach})",
        "who is in which site, and how many people a site has as far as its release tells",
    ]


def _of_each(releases: Sequence[Release]) -> list[str]:
    return list(dict.fromkeys(text for one in releases for text in one.not_protected))
