"""Kinds of columns: numbers between declared bounds, declared labels, sampling weights, arms.

A treatment is two labels, several arms, or bins of a dose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from private_ate.arguments import settle
from private_ate.errors import DomainError

__all__ = [
    "MOST_ARMS", "TRUTH", "WEIGHTED", "Binary", "Categories", "Interval", "Label",
    "SamplingWeights", "Treatment", "as_weights", "label_text", "parse_number", "require_name",
]  # fmt: skip

Label = str | int | float | bool
MOST_ARMS: Final = 20
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


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Treatment:
    """The treatment column and its arms.

    Two arms are ``treated`` and ``control``; a label that is not given is taken to be 1 or 0, which
    sample level refuses (``is_assumed``). More are the labels in ``arms``, compared with the
    ``reference``, the first if not given; or the intervals between the edges ``bins`` of a dose:
    ``bins=(0, 1, 6, 100)`` is [0, 1), [1, 6) and [6, 100], a dose beyond them in the nearest.
    ``labels`` names bins, and ``reference`` is then a name or a place among them.

    A row with a missing or undeclared label counts as the arm that ``other`` names.
    Without it such a row is refused or left out at label level and takes no part at sample level;
    methods that follow the paper count it as control there.

    Examples
    --------
    >>> Treatment("smokes", arms=("never", "sometimes", "daily")).reference_index
    0
    >>> Treatment("cigarettes", bins=(0, 1, 6, 100)).labels
    ('[0, 1)', '[1, 6)', '[6, 100]')

    Attributes
    ----------
    column : str
        The treatment's column.
    treated, control : label
        The arm of the headline and the one that it is compared with: of several arms the last
        that is not the reference, and the reference.
    other : label or None
        The arm of rows with any other entry.
    arms : tuple of str or None
        The labels of several arms as declared; None for two labels.
    bins : tuple of float or None
        The edges of a dose's bins.
    is_assumed : bool
        Whether a label of two was not given.
    """

    column: str
    treated: Label
    control: Label
    other: Label | None
    arms: tuple[str, ...] | None
    bins: tuple[float, ...] | None
    is_assumed: bool = field(compare=False)

    def __init__(  # noqa: PLR0913  # three ways to declare arms
        self,
        column: str,
        treated: Label | None = None,
        control: Label | None = None,
        other: Label | None = None,
        *,
        arms: Sequence[Label] | None = None,
        reference: Label | None = None,
        bins: Sequence[float] | None = None,
        labels: Sequence[Label] | None = None,
    ) -> None:
        if not column:
            msg = "the treatment column is named by a non-empty text"
            raise DomainError(msg)
        is_assumed = arms is None and bins is None and (treated is None or control is None)
        treated = 1 if treated is None else treated
        control = 0 if control is None else control
        _refuse_two_declarations(
            arms=arms is not None,
            bins=bins is not None,
            labels=labels is not None,
            treated=(treated, control) != (1, 0),
            reference=reference is not None,
        )
        edges = None if bins is None else _edges(bins)
        declared: tuple[str, ...] | None = None
        if edges is not None:
            declared = _names_of_bins(edges) if labels is None else _arm_labels(labels)
            if len(declared) != len(edges) - 1:
                msg = f"{len(edges) - 1} bins have {len(declared)} labels; give one for each"
                raise DomainError(msg)
        elif arms is not None:
            declared = _arm_labels(arms)
        if declared is not None:
            control = _reference(declared, reference, by_place=edges is not None)
            treated = [label for label in declared if label != control][-1]
            if edges is None and len(declared) == 2:
                declared = None  # two labels, however they were given
        settle(
            self, column=column, treated=treated, control=control, other=other, arms=declared,
            bins=edges, is_assumed=is_assumed,
        )  # fmt: skip
        self._check()

    def _check(self) -> None:
        if label_text(self.treated) == label_text(self.control):
            msg = f"treated and control have the same label {label_text(self.treated)!r}"
            raise DomainError(msg)
        if self.bins is None:
            _refuse_one_number(self.labels)
        if self.other is None or label_text(self.other) in self.labels:
            return
        named = f"the arm for other labels, {label_text(self.other)!r},"
        if len(self.labels) > 2:
            msg = f"{named} is none of the declared {', '.join(map(repr, self.labels))}"
        else:
            control, treated = self.labels
            msg = f"{named} is neither {treated!r} nor {control!r}"
        raise DomainError(msg)

    def __repr__(self) -> str:
        if self.arms is None:
            shown = f"treated={self.treated!r}, control={self.control!r}, other={self.other!r}"
        else:
            kind = f"arms={self.arms!r}"
            if self.bins is not None:
                kind = f"bins={self.bins!r}, labels={self.arms!r}"
            shown = f"{kind}, reference={self.control!r}, other={self.other!r}"
        return f"Treatment(column={self.column!r}, {shown})"

    @property
    def labels(self) -> tuple[str, ...]:
        """The arms' labels in declared order; of two, control and treated."""
        if self.arms is not None:
            return self.arms
        return label_text(self.control), label_text(self.treated)

    @property
    def size(self) -> int:
        """How many arms are declared (K)."""
        return len(self.labels)

    @property
    def reference_index(self) -> int:
        """The place of the reference among the labels."""
        return self.labels.index(label_text(self.control))

    @property
    def coded(self) -> tuple[str, ...]:
        """The labels in the order of their codes: the reference, then the others as declared."""
        first = self.reference_index
        return (self.labels[first], *self.labels[:first], *self.labels[first + 1 :])

    @property
    def codes(self) -> tuple[int, ...]:
        """The code of each label, in declared order."""
        return tuple(self.coded.index(label) for label in self.labels)

    @property
    def other_code(self) -> int | None:
        """The code of the arm for other labels."""
        return None if self.other is None else self.coded.index(label_text(self.other))


def _refuse_two_declarations(
    *, arms: bool, bins: bool, labels: bool, treated: bool, reference: bool
) -> None:
    """Refuse arms that are declared twice, and names without what they name."""
    if arms + bins + treated > 1:
        msg = "arms are declared by treated and control, by arms, or by bins; keep one of them"
        raise DomainError(msg, parameter="arms")
    if labels and not bins:
        msg = "labels name the bins of a dose; declare its bins, or the labels themselves as arms"
        raise DomainError(msg, parameter="arms")
    if reference and not (arms or bins):
        msg = "of two labels the control is the reference; declare arms to name another"
        raise DomainError(msg, parameter="arms")


def _arm_labels(labels: Sequence[Label]) -> tuple[str, ...]:
    """Return labels as texts, 2 to 20 different ones."""
    if not isinstance(labels, list | tuple):
        msg = 'arms are a list of labels, such as ("none", "low", "high")'
        raise DomainError(msg)
    texts = tuple(label_text(label) for label in labels)
    repeated = next((text for text in texts if texts.count(text) > 1), None)
    if repeated is not None:
        msg = f"the arm {repeated!r} is declared twice"
        raise DomainError(msg)
    _require_count(len(texts))
    return texts


def _refuse_one_number(labels: tuple[str, ...]) -> None:
    """Refuse labels that an entry would match alike: "1", "1.0" and "true" are one number."""
    seen: dict[float, str] = {}
    for label in labels:
        number = parse_number(label)
        if number is not None and seen.setdefault(number, label) != label:
            msg = f"the arms {seen[number]!r} and {label!r} are the same number; keep one of them"
            raise DomainError(msg, parameter="arms")


def _edges(bins: Sequence[float]) -> tuple[float, ...]:
    """Return the edges of 2 to 20 bins as floats that rise."""
    if not isinstance(bins, list | tuple):
        msg = "bins are a list of edges, such as (0, 1, 6, 100)"
        raise DomainError(msg)
    for edge in bins:
        if isinstance(edge, bool | str) or not abs(edge) <= 1e150:
            msg = "the edges of bins are finite numbers below 1e150 in size"
            raise DomainError(msg)
    edges = tuple(map(float, bins))
    if any(low >= high for low, high in pairwise(edges)):
        msg = "the edges of bins rise from one to the next"
        raise DomainError(msg)
    _require_count(len(edges) - 1)
    return edges


def _require_count(arms: int) -> None:
    if arms < 2:
        msg = "a treatment has at least two arms"
        raise DomainError(msg, parameter="arms")
    if arms > MOST_ARMS:
        msg = f"{arms} arms are declared and {MOST_ARMS} are the most; declare bins or merge arms"
        raise DomainError(msg, parameter="arms")


def _names_of_bins(edges: tuple[float, ...]) -> tuple[str, ...]:
    pairs = list(pairwise(edges))
    names = [f"[{low:g}, {high:g})" for low, high in pairs]
    names[-1] = f"{names[-1][:-1]}]"
    if len(set(names)) != len(names):  # edges that are alike in six digits
        names = [f"[{low!r}, {high!r})" for low, high in pairs]
        names[-1] = f"{names[-1][:-1]}]"
    return tuple(names)


def _reference(labels: tuple[str, ...], reference: Label | None, *, by_place: bool) -> str:
    """Return the label of the reference: the first, the one named, or a bin by its place."""
    if reference is None:
        return labels[0]
    text = label_text(reference)
    if text in labels:
        return text
    if by_place and isinstance(reference, int) and reference in range(len(labels)):
        return labels[reference]
    msg = f"the reference {text!r} is none of the declared arms {', '.join(map(repr, labels))}"
    raise DomainError(msg, parameter="reference")
