"""Whole units of budget: ε in billionths and δ in 10⁻¹⁸, so that adding never rounds."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from private_ate.arguments import Exact
from private_ate.errors import ArgumentError
from private_ate.privacy.budget import parse_delta, parse_epsilon

Amount = Exact

_NANO = 10**9
_ATTO = 10**18


@dataclass(frozen=True, slots=True)
class BudgetUnits:
    """An amount of budget: ``epsilon`` in 10⁻⁹ and ``delta`` in 10⁻¹⁸."""

    epsilon: int
    delta: int = 0

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction = Fraction(0)) -> BudgetUnits:
        """Return what a request costs, rounded up so that a sum never says too little."""
        return cls(_ceiling(epsilon * _NANO), _ceiling(delta * _ATTO))

    @classmethod
    def limit(cls, epsilon: Amount, delta: Amount = 0) -> BudgetUnits:
        """Return a total budget, rounded down so that it never allows too much."""
        allowed = parse_epsilon(epsilon)
        if allowed * _NANO < 1:
            msg = "a budget is at least 1e-9"
            raise ArgumentError(msg)
        return cls(int(allowed * _NANO), int(parse_delta(delta) * _ATTO))

    def __add__(self, other: BudgetUnits) -> BudgetUnits:
        return BudgetUnits(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: BudgetUnits) -> BudgetUnits:
        return BudgetUnits(self.epsilon - other.epsilon, self.delta - other.delta)

    def fits(self, limit: BudgetUnits) -> bool:
        """Whether this much is within a limit."""
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta

    @property
    def epsilon_text(self) -> str:
        """ε as the shortest decimal number."""
        return _decimal(self.epsilon, 9)

    @property
    def delta_text(self) -> str:
        """δ as the shortest decimal number."""
        return _decimal(self.delta, 18)

    def __str__(self) -> str:
        if self.delta == 0:
            return f"ε = {self.epsilon_text}"
        return f"ε = {self.epsilon_text}, δ = {self.delta_text}"


NOTHING = BudgetUnits(0)


def _ceiling(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def _decimal(units: int, places: int) -> str:
    text = format(Decimal(units).scaleb(-places), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
