"""What a method hands over: the table of effects, and what it says beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from private_ate.effects.quantities import EffectRow, Quantity
from private_ate.facts import Facts
from private_ate.release.metadata import Arm, Pair, ReleasedEstimand
from private_ate.release.survival import SurvivalNote
from private_ate.settings import Settings


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a method hands over: the table of effects and public settings.

    ``rows`` are contrasts of all units, those with the reference first, then those of subgroups;
    ``headline`` is the place of the one that a release shows first.
    Methods that keep another promise than pure ε under replace-one say so: ``delta``, their own
    ``adjacency``, a noisy ``size`` where n itself is private, ``numerics`` where the proof speaks
    of ideal numbers, and ``void`` with the reason why nothing is promised. ``adjusted`` and
    ``estimand`` say what the number is where that is not what the settings and the request say;
    ``warnings`` head the release and rest on public facts alone. ``quantities`` are the released
    numbers with the distributions of their errors, where a method knows these: of two arms their
    contrast, of more a level of each in the order of the codes. ``arms`` are those whose means
    were estimated. ``population`` is what the units that are meant count together, where they do
    not count alike. ``further`` are outcomes after the first, by their columns. ``survival`` has
    the curves of a time to an event.
    """

    rows: tuple[EffectRow, ...]
    settings: Settings | Mapping[str, Any]
    headline: int = 0
    delta: Fraction = Fraction(0)
    adjacency: str = ""
    size: int | None = None
    numerics: str = ""
    void: str = ""
    adjusted: bool | None = None
    estimand: ReleasedEstimand | None = None
    warnings: tuple[str, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    arms: tuple[Arm, ...] = ()
    population: float | None = None
    further: tuple[tuple[str, Estimate], ...] = ()
    survival: SurvivalNote | None = None

    @classmethod
    def of(cls, effect: Quantity, settings: Settings | Mapping[str, Any]) -> Estimate:
        """Return an estimate of one contrast of two arms, with the quantity's own intervals.

        Whatever else a method says is added by ``dataclasses.replace``.
        """
        row = EffectRow(effect.value, effect.interval, effect.interval, effect.noise_interval)
        return cls((row,), settings, quantities=(effect,))

    @property
    def ate(self) -> float:
        """The headline's effect."""
        return self.rows[self.headline].effect

    @property
    def interval(self) -> Pair | None:
        """The headline's interval; None if none was paid for."""
        return self.rows[self.headline].interval

    @property
    def noise_interval(self) -> Pair | None:
        """The range of the headline without noise."""
        return self.rows[self.headline].noise_interval

    @property
    def is_adjusted(self) -> bool:
        """Whether covariates were adjusted for: a method that does not say adjusts."""
        said = self.adjusted
        if said is None:
            said = Facts.of(self.settings).adjusted
        return said is not False
