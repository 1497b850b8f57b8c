"""Kinds of columns: numbers between declared bounds, declared labels, and sampling weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from private_ate.arguments import settle
from private_ate.errors import DomainError

__all__ = [
    "TRUTH",
    "WEIGHTED",
    "Binary",
    "Categories",
    "Interval",
    "Label",
    "SamplingWeights",
    "as_weights",
    "label_text",
    "parse_number",
    "require_name",
]

Label = str | int | float | bool
TRUTH: Final = {"true": 1.0, "false": 0.0}
WEIGHTED: Final = ", weighted to the target population"
"""What is added to the name of a population where sampling weights are in force."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number between two declared bounds; values outside are clipped.

    ``missing`` is what a missing value counts as; the middle of the bounds if not given.

    Attributes
    ----------
    low, high : float
        The declared bounds.
    missing : float or None
        What a missing value counts as; None for the middle of the bounds.
    """

    low: float
    high: float
    missing: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high", "missing"):
            value = getattr(self, name)
            if value is None and name == "missing":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                msg = f"an interval's {name} is a number, not {type(value).__name__}"
                raise DomainError(msg)
            # Compared, not converted: a whole number may be too long for a float.
            if not abs(value) <= 1e150:
                msg = f"an interval's {name} is a finite number below 1e150 in size"
                raise DomainError(msg)
            object.__setattr__(self, name, float(value))
        if self.low > self.high:
            msg = f"an interval's low bound ({self.low:g}) is above its high bound ({self.high:g})"
            raise DomainError(msg)
        if self.missing is not None and not self.low <= self.missing <= self.high:
            msg = f"the value for missing entries ({self.missing:g}) lies outside the bounds"
            raise DomainError(msg)

    @property
    def width(self) -> float:
        """The range ``high − low`` (B for the outcome)."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """The midpoint of the bounds."""
        return self.low / 2 + self.high / 2

    @property
    def fill(self) -> float:
        """What a missing value counts as."""
        return self.middle if self.missing is None else self.missing

    @property
    def is_binary(self) -> bool:
        """Whether only the two ends are possible values, as declared."""
        return False


@dataclass(frozen=True, slots=True)
class Binary(Interval):
    """An outcome declared to be 0 or 1, so that risks and ratios make sense; or such a covariate.

    The square of a covariate that is 0 or 1 says nothing new; models with squares leave it out.

    Attributes
    ----------
    low, high : float
        Always 0 and 1.
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        # Named, because zero-argument super() does not survive slots=True.
        Interval.__post_init__(self)
        if (self.low, self.high) != (0.0, 1.0):
            msg = "a binary outcome is 0 or 1; declare an Interval for other bounds"
            raise DomainError(msg)

    @property
    def is_binary(self) -> bool:
        """Whether only the two ends are possible values, as declared."""
        return True


@dataclass(frozen=True, slots=True, init=False)
class Categories:
    """Declared labels; each becomes a column of zeros and ones.

    Missing and undeclared values count as ``other``, if one of the labels is declared to be it.
    Otherwise they are a category of their own: zero in every column.

    Attributes
    ----------
    labels : tuple of str
        The declared labels.
    other : str or None
        The label that missing and undeclared values count as.
    """

    labels: tuple[str, ...]
    other: str | None

    def __init__(self, *labels: Label, other: Label | None = None) -> None:
        texts = tuple(label_text(label) for label in labels)
        if len(texts) < 2 or len(set(texts)) != len(texts):
            msg = "categories are at least two different labels"
            raise DomainError(msg)
        catch_all = None if other is None else label_text(other)
        if catch_all is not None and catch_all not in texts:
            msg = f"the catch-all category {catch_all!r} is not among the declared labels"
            raise DomainError(msg)
        settle(self, labels=texts, other=catch_all)


@dataclass(frozen=True, slots=True)
class SamplingWeights:
    """The column of sampling weights and the largest weight (W) that the design allows.

    A unit of weight w stands for w units of the target population; weights lie in [0, W]. Where
    covariates are public, so are weights: one outside is an error that counts such rows. Where
    whole records are private they are clipped, and a missing weight counts as 0.

    Attributes
    ----------
    column : str
        The column of weights.
    high : float
        The largest weight that the design allows.
    """

    column: str
    high: float

    def __post_init__(self) -> None:
        require_name("column of sampling weights", self.column)
        bounds = Interval(0, self.high)
        if not bounds.high > 0:
            msg = "the largest sampling weight is above 0: SamplingWeights(column, high)"
            raise DomainError(msg, parameter="sampling weights", column=self.column)
        object.__setattr__(self, "high", bounds.high)


def as_weights(weights: object) -> SamplingWeights | None:
    """Read sampling weights as a caller declares them: a pair, or the value itself."""
    match weights:
        case None | SamplingWeights():
            return weights
        case (str() as column, Interval(low=0.0) as bounds):
            return SamplingWeights(column, bounds.high)
    msg = (
        'sampling weights are a pair such as ("weight", Interval(0, 50)): they lie between 0 and '
        "a declared bound"
    )
    raise DomainError(msg, parameter="sampling weights", column="WEIGHT")


def label_text(label: object) -> str:
    """Return the text under which a label is compared: 1, 1.0, True and "1" are one label."""
    if isinstance(label, bool):
        return "1" if label else "0"
    if isinstance(label, int) and abs(label) < 1 << 64:
        return str(label)
    if isinstance(label, float) and math.isfinite(label):
        return str(int(label)) if label.is_integer() else repr(float(label))
    if not isinstance(label, str) or not label.strip():
        msg = "a label is a non-empty text, a finite number or a truth value"
        raise DomainError(msg)
    return label.strip()


def parse_number(text: str) -> float | None:
    """Read a text as a number as the file reader does; truth values count as 1 and 0."""
    word = text.strip().lower()
    if word in TRUTH:
        return TRUTH[word]
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def require_name(what: str, text: object) -> None:
    """Refuse a text that would not fit on a line of a release."""
    if text is None:
        return
    if not isinstance(text, str) or not 0 < len(text) <= 200 or not text.isprintable():
        msg = f"the {what} is named by a printable text of 1 to 200 characters"
        raise DomainError(msg)
