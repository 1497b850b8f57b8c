"""Record what enters the choke point on one data set, replay its outputs on a neighbour.

With the outputs of the earlier mechanisms replayed, every later input may differ by no more than
what its call declares; with frozen noise alone later inputs would differ legitimately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from private_ate.privacy.entropy import Entropy, SeededEntropy
from private_ate.privacy.noise import Noise, Spend
from private_ate.release import Release


@dataclass
class Transcript:
    """A recorder: plain at first, a replay of an earlier transcript if one is given."""

    source: Transcript | None = None
    entropy: Entropy = field(default_factory=lambda: SeededEntropy(1))
    spends: list[Spend] = field(default_factory=list)
    inputs: list[object] = field(default_factory=list)
    outputs: list[object] = field(default_factory=list)

    def hear(self, spend: Spend, values: object) -> object:
        """Keep a copy of the input; answer with a fresh draw or with the recorded one."""
        position = len(self.spends)
        self.spends.append(spend)
        self.inputs.append(np.array(values, dtype=object, copy=True))
        if self.source is not None:
            assert position < len(self.source.outputs), "the neighbour makes more calls"
            return self.source.outputs[position]
        self.outputs.append(self._draw(spend, values))
        return self.outputs[-1]

    def _draw(self, spend: Spend, values: object) -> object:
        """Ask the mechanism itself, through a choke point without a recorder."""
        mechanism = getattr(Noise(self.entropy), spend.mechanism)
        named = _ARGUMENT.get(spend.mechanism, "sensitivity")
        declared = spend.sensitivity if named == "sensitivities" else spend.sensitivity[0]
        return mechanism(spend.step, values, epsilon=spend.epsilon, **{named: declared})


_ARGUMENT = {"laplace_disjoint": "sensitivities", "randomized_response": "changes"}


def check_neighbours(
    run: Callable[[object, Transcript], Release], study: object, neighbour: object
) -> tuple[Transcript, Transcript]:
    """Demand that no mechanism can tell the neighbours apart by more than it declares."""
    first = Transcript()
    release = run(study, first)
    second = Transcript(source=first)
    replayed = run(neighbour, second)
    assert first.spends == second.spends, "calls, shapes, sensitivities or ε differ"
    assert sum((spend.epsilon for spend in first.spends), Fraction(0)) == release.epsilon
    for spend, one, other in zip(first.spends, first.inputs, second.inputs, strict=True):
        assert np.shape(one) == np.shape(other)
        assert declared_share(spend, one, other) <= 1, f"{spend.step} moves more than declared"
    assert release == replayed, "something beside the mechanisms' outputs is released"
    return first, second


def declared_share(spend: Spend, one: object, other: object) -> Fraction:
    """Return the distance of two inputs as a share of what the call declares."""
    moved = [
        abs(int(a) - int(b))
        for a, b in zip(np.ravel(one).tolist(), np.ravel(other).tolist(), strict=True)
    ]
    if spend.mechanism in {"laplace_disjoint", "staircase_disjoint"}:
        pairs = zip(moved, spend.sensitivity, strict=True)
        shares = [Fraction(size, limit) for size, limit in pairs]
        if spend.mechanism == "staircase_disjoint" and sum(share > 0 for share in shares) > 1:
            return Fraction(len(shares))  # a staircase may lose all of ε for any shift
        return sum(shares, Fraction(0))
    largest = spend.mechanism in {"cube", "choose", "select"}
    size = max(moved) if largest else sum(moved)
    return Fraction(size, spend.sensitivity[0])
