"""Choke points of runs on a part of the rows, or for a part of ε; the whole's draws and pays.

A unit is in one subgroup and it is public in which one, so that costs of different subgroups do
not add up. Proof: docs/proofs/subgroups.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from private_ate.errors import NumericRangeError
from private_ate.privacy.noise import Noise, Spend

__all__ = ["SubgroupNoise", "named_noise"]

Output = TypeVar("Output")


def named_noise(noise: Noise, name: str) -> Noise:
    """Return the choke point of a run that has a share of ε; its steps bear its name.

    Neighbours and cost are those of each mechanism; costs add up in ``noise``, which draws.
    """
    return _forwarded(noise, lambda spend: replace(spend, step=f"{name}: {spend.step}"))


@dataclass(slots=True)
class SubgroupNoise:
    """The choke points of disjoint subgroups of a study, one row per person.

    Attributes
    ----------
    noise : Noise
        The choke point of the whole study.
    """

    noise: Noise
    _names: set[str] = field(default_factory=set, repr=False)

    def within(self, subgroup: str) -> Noise:
        """Return the choke point of one subgroup, to be asked for once.

        Neighbours differ in one row, whose subgroup is public and the same in both, so that all
        subgroups together cost the largest cost of one (docs/proofs/subgroups.md).
        """
        if not subgroup or subgroup in self._names:
            msg = "every subgroup has a name of its own"
            raise NumericRangeError(msg)
        self._names.add(subgroup)

        def mark(spend: Spend) -> Spend:
            if spend.part:
                msg = f"step {spend.step!r} divides the rows of a subgroup again"
                raise NumericRangeError(msg)
            return replace(spend, part=subgroup)

        return _forwarded(self.noise, mark)


@dataclass(slots=True)
class _ForwardedNoise(Noise):
    """A choke point that hands every call over to another one, under another entry."""

    whole: Noise | None = field(default=None, repr=False)
    mark: Callable[[Spend], Spend] = field(default=lambda spend: spend, repr=False)

    def _release(self, spend: Spend, values: Any, draw: Callable[[], Output]) -> Output:  # noqa: ANN401  # whatever goes in
        if self.whole is None:
            msg = "a forwarded choke point belongs to another one"
            raise NumericRangeError(msg)
        marked = self.mark(spend)
        self.spends.append(spend)
        return self.whole._release(marked, values, draw)  # noqa: SLF001  # the same choke point


def _forwarded(noise: Noise, mark: Callable[[Spend], Spend]) -> Noise:
    return _ForwardedNoise(
        noise.entropy, noise.recorder, outcomes=noise.outcomes, whole=noise, mark=mark
    )
