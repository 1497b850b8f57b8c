"""Exact privacy budgets and the guarantee that a release states."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Annotated

from private_ate.arguments import Exact, exact_number
from private_ate.codec import Rule
from private_ate.errors import ArgumentError
from private_ate.privacy.levels import Level

__all__ = [
    "Epsilon",
    "Guarantee",
    "parse_delta",
    "parse_epsilon",
    "part_of_epsilon",
    "split_epsilon",
]

_LONGEST_EPSILON = 15  # significant digits; every such decimal survives a JSON number unchanged


def parse_epsilon(epsilon: Exact) -> Fraction:
    """Return the budget as an exact fraction of what its decimal text says.

    ``0.1`` means one tenth, not the binary number nearest to it.

    Examples
    --------
    >>> parse_epsilon("0.1") * 10 == 1
    True
    """
    exact = exact_number("epsilon", epsilon, "1e-12", "1e6")
    if _rounded(exact, _LONGEST_EPSILON) != exact:
        msg = f"write epsilon with at most {_LONGEST_EPSILON} significant digits"
        raise ArgumentError(msg)
    return exact


def _is_epsilon(number: Fraction) -> bool:
    try:
        parse_epsilon(number)
    except ArgumentError:
        return False
    return True


# A budget as JSON holds it: the exact fraction of what its decimal text says.
Epsilon = Annotated[Fraction, Rule("a decimal number from 1e-12 to 1e6", _is_epsilon)]


def parse_delta(delta: Exact) -> Fraction:
    """Return δ as an exact fraction of what its decimal text says; from 0 to below 1."""
    exact = exact_number("delta", delta, "0", "1")
    if exact == 1:
        msg = "delta is below 1, such as 1e-6"
        raise ArgumentError(msg)
    return exact


def part_of_epsilon(epsilon: Fraction, share: Fraction) -> Fraction:
    """Return a share of a budget as a decimal number that a request can hold."""
    return _rounded(epsilon * share, _LONGEST_EPSILON - 1)


def _rounded(number: Fraction, digits: int) -> Fraction:
    """Return the nearest decimal number with so many significant digits."""
    context = Context(prec=digits)
    return Fraction(context.divide(Decimal(number.numerator), Decimal(number.denominator)))


def split_epsilon(epsilon: Fraction, shares: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Split a budget in proportion to shares that add up to one exactly."""
    if any(share <= 0 for share in shares) or sum(shares) != 1:
        texts = ", ".join(f"{float(share):g}" for share in shares)
        msg = f"shares of epsilon are positive and add up to 1 exactly; got {texts}"
        raise ArgumentError(msg)
    return tuple(epsilon * share for share in shares)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a release promises: neighbours, ε, δ, or why it promises nothing.

    ``void`` is empty for a private release; otherwise it says ``"none"`` or
    ``"none (seeded)"`` and that text is all the release may claim. ``numerics`` says where the
    proof speaks of ideal numbers and not of what the computer draws, or with which probability
    a computed number may lie outside of what is proved of it.
    """

    level: Level
    epsilon: Fraction
    adjacency: str
    delta: float = 0.0
    void: str = ""
    numerics: str = ""

    @property
    def is_private(self) -> bool:
        """Whether the release keeps a differential privacy promise."""
        return not self.void

    def __str__(self) -> str:
        if self.void:
            return self.void
        size = f"{float(self.epsilon):.15g}"
        kind = f"({size}, {self.delta:.15g})-DP" if self.delta else f"pure {size}-DP"
        caveat = f", {self.numerics}" if self.numerics else ""
        return f"{kind}, {self.level} level{caveat}"
