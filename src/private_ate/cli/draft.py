"""The text of a drafted domain: a line for each column, and what only a code book knows as ???."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from private_ate.cli.suspicion import reason_against
from private_ate.privacy.levels import Level, has_public_covariates

if TYPE_CHECKING:
    from private_ate.domain import Treatment

__all__ = ["Draft"]

_HEADER: Final = """\
# Draft of a domain, from the schema alone: no value was read.
# Fill in every ??? from the code book, never from the data: bounds that follow the data leak it.
# More than two arms:       arms = ["none", "low", "high"], reference = "none"
#   (instead of treated and control; of a dose: bins = [0, 1, 6, 100] for [0, 1), [1, 6), [6, 100])
# A number between bounds:  { low = 16, high = 60 }   (optional: missing = 38)
# Zero or one:              { binary = true }
# Labels:                   { categories = ["a", "b", "other"], other = "other" }
#   (other: the label for missing and undeclared ones; without it they are a category of their own)
# An outcome of labels:     event_label = "yes" instead of low and high: it counts as 1, others as 0
# Rows without an outcome:  missing = "public" if anybody may know who lacks one, "private" if not
#                           (both leave them out), or the number that they count as
"""
_PUBLIC: Final = """\
# At label level covariates are public: name them when you estimate and their ranges are looked up,
#   --covariates {names}
# Declare those alone of which the code book knows better: remove the # before such a line. Then
# the declared ones are the covariates, unless --covariates names others."""
_LEFT_OUT: Final = (
    "# Left out for their names or types; remove the # before one that is a covariate."
)
_BINARY: Final = "{ binary = true }"
_NUMBER: Final = "{ low = ???, high = ??? }"
# Not valid TOML on purpose: a forgotten "???" would pass as a label.
_LABELS: Final = '{ categories = [???, "other"], other = "other" }'


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known of a file's columns: names, kinds where it has types, and what flags say.

    ``named`` are the covariates that were asked for; of others those that look like ids, dates,
    weights or later measurements are left as comments. ``arms`` are those that flags declared.
    """

    schema: Mapping[str, str | None]
    treatment: str | None
    outcome: str | None
    arms: Treatment | None = None
    named: Sequence[str] | Literal["all"] | None = None
    level: Level = "sample"
    left_out: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        left_out: dict[str, str] = {}
        if self.named is None:
            reasons = {
                name: reason_against(name, kind, self.outcome)
                for name, kind in self.schema.items()
                if name not in (self.treatment, self.outcome)
            }
            left_out = {name: reason for name, reason in reasons.items() if reason is not None}
        object.__setattr__(self, "left_out", left_out)

    @property
    def covariates(self) -> tuple[str, ...]:
        """The columns that the draft declares, or at label level names."""
        chosen = self.schema if self.named in (None, "all") else self.named
        return tuple(
            name
            for name in dict.fromkeys(chosen or ())
            if name not in (self.treatment, self.outcome) and name not in self.left_out
        )

    @property
    def nameable(self) -> tuple[str, ...]:
        """Covariates as a flag takes them; a name that could end the line or the list is none."""
        return tuple(
            name for name in self.covariates if name.isprintable() and not set(name) & set(",\"'")
        )

    def text(self) -> str:
        """Return the draft: TOML but for the ??? that a person replaces."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        from private_ate.domain import arm_lines  # keeps --help fast

        yield from (_HEADER, "[treatment]", f"column = {_text_or_gap(self.treatment)}")
        yield from ("treated = ???", "control = ???") if self.arms is None else arm_lines(self.arms)
        yield from ("", "[outcome]", f"column = {_text_or_gap(self.outcome)}")
        is_binary = self.outcome is not None and self.schema.get(self.outcome) == "binary"
        yield from ("binary = true",) if is_binary else ("low = ???", "high = ???")
        yield from ("missing = ???", "", "[covariates]")
        is_public = has_public_covariates(self.level)
        if is_public:
            quoted = ",".join(self.nameable)
            yield _PUBLIC.format(names=f'"{quoted}"')
        for name in self.covariates:
            yield ("# " if is_public else "") + _declaration(name, self.schema[name])
        if self.left_out:
            yield from ("", _LEFT_OUT)
        for name, reason in self.left_out.items():
            yield f"# {_declaration(name, self.schema[name])}  # {reason}"


def _declaration(name: str, kind: str | None) -> str:
    """Return the line of one covariate; a file without types leaves two ways."""
    if kind == "binary":
        return f"{_key(name)} = {_BINARY}"
    if kind == "number":
        return f"{_key(name)} = {_NUMBER}"
    if kind is not None:
        return f"{_key(name)} = {_LABELS}"
    return f"{_key(name)} = {_NUMBER}  # or {_LABELS}"


def _key(name: str) -> str:
    from private_ate.domain import toml_text  # keeps --help fast

    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def _text_or_gap(column: str | None) -> str:
    from private_ate.domain import toml_text  # keeps --help fast

    return "???" if column is None else toml_text(column)
