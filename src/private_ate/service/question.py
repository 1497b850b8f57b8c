"""What an analyst asks: a plain JSON object, read with the checks of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, cast

from private_ate.arguments import settle
from private_ate.codec import DECIMAL, decode, encode
from private_ate.errors import ArgumentError
from private_ate.privacy.budget import parse_epsilon

LONGEST_PURPOSE: Final = 300
_MOST_COVARIATES: Final = 1000


@dataclass(frozen=True, slots=True)
class Question:
    """One request as its analyst words it; ``dummy`` asks simulated data instead.

    ``purpose`` says what the answer is for: curators read it, nothing is decided by it.
    ``by`` may come as one text and is kept as a list.
    Sampling weights are no part of it: those that a data set's domain declares are in force.
    """

    dataset: str
    epsilon: Annotated[str, DECIMAL]
    method: str = "auto"
    estimand: str = "ate"
    among: str | None = None
    target: str = "balance"
    design: str = "unknown"
    probability: float | str | None = None
    by: tuple[str, ...] | str = ()
    overall: bool = False
    confidence: float | None = 0.95
    neighbors: int = 5
    covariates: tuple[str, ...] | None = None
    outcome_sd: float | None = None
    leave_out_undeclared: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    dummy: bool = False
    purpose: str = ""

    def __post_init__(self) -> None:
        parse_epsilon(self.epsilon)
        settle(self, epsilon=str(self.epsilon).strip(), purpose=_purpose(self.purpose))
        settle(self, by=(self.by,) if isinstance(self.by, str) else tuple(self.by))
        names = self.covariates
        if names is not None and not 0 < len(set(names)) == len(names) <= _MOST_COVARIATES:
            msg = (
                "covariates are a list of different column names, or null for all that are declared"
            )
            raise ArgumentError(msg)

    @classmethod
    def read(cls, plain: object) -> Question:
        """Read a question from plain values; whatever is not known is refused."""
        return decode(cls, plain, "a request")

    @property
    def plain(self) -> dict[str, Any]:
        """The question as plain JSON values."""
        return cast("dict[str, Any]", encode(self))


def _purpose(value: str) -> str:
    """Read a line of text; what does not print could be shown as something else."""
    text = value.strip()
    if len(text) > LONGEST_PURPOSE or not text.isprintable():
        msg = f"purpose is one line of text of at most {LONGEST_PURPOSE} characters"
        raise ArgumentError(msg)
    return text
