"""The treatment as declared: two labels, several arms, or bins of a dose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from private_ate.arguments import settle
from private_ate.domain.column_types import Label, label_text, parse_number
from private_ate.errors import DomainError

__all__ = ["MOST_ARMS", "Treatment"]

MOST_ARMS: Final = 20


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
