"""Which level a data set serves and which of its columns are public, decided once.

A release at label level treats treatment and covariates as public and prints exact facts about
them. So a column is either public or private in a data set, for ever: an outcome that came
back as a covariate would leave without noise. Under these rules every release of a data set bound
to label level protects all of a person's private columns, and every release of one bound to sample
level the whole record, so that costs add up to one promise. Who lacks a value of a private column
is private too, unless the holder of the data set said otherwise: a request that leaves rows without
an outcome out in public shows exact sizes of what is left.

Version 0.1 wrote neither level nor roles into a charge: `recall_release` follows them from stored
releases, and errs on the side of private.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from private_ate.codec import OMITTED, encode
from private_ate.errors import ArgumentError, LedgerError
from private_ate.privacy.levels import Level, has_public_covariates
from private_ate.settings import public_use

_NONE: frozenset[str] = frozenset()
_MOST_ROWS = 10**6


@dataclass(frozen=True, slots=True)
class Use:
    """How a request uses a data set: its level, the roles of columns, rows of one person.

    ``public_gaps`` are the outcomes that it takes to be missing in public; None in an entry of a
    version that did not say.
    """

    level: Level
    treatment: str
    outcome: str
    covariates: tuple[str, ...] = ()
    rows_per_person: int = 1
    further: tuple[str, ...] = field(default=(), metadata=OMITTED)  # outcomes after the first
    public_gaps: tuple[str, ...] | None = ()

    @property
    def outcomes(self) -> tuple[str, ...]:
        """All outcomes."""
        return (self.outcome, *self.further)

    @property
    def plain(self) -> dict[str, Any]:
        """The use as plain JSON values; one outcome as every ledger before said it."""
        return {name: held for name, held in encode(self).items() if held is not None}


@dataclass(frozen=True, slots=True)
class Roles:
    """What a data set is bound to.

    Until it is bound, ``level`` is None. From then on a column that is not public is private.
    ``private`` are columns known to be so for a reason of their own: they were outcomes, or a
    history without roles does not distinguish them from outcomes, as ``unclear`` says of some.
    ``rows_per_person`` is None until said or used. ``public_gaps`` are private columns of which it
    is public who lacks a value; None until the data set is bound, and in what earlier versions
    wrote, whose history shows them.
    """

    level: Level | None = None
    public: frozenset[str] = _NONE
    private: frozenset[str] = _NONE
    unclear: frozenset[str] = _NONE
    rows_per_person: int | None = None
    public_gaps: frozenset[str] | None = field(default=None, metadata=OMITTED)

    def admit(self, use: Use, dataset: str) -> Roles:
        """Return the roles after a request, or say which column or number it cannot have."""
        bound = self if self.level is not None else self._first(use)
        shows = has_public_covariates(use.level)
        if shows and bound.level is not None and not has_public_covariates(bound.level):
            msg = (
                f"data set {dataset!r} is bound to {bound.level} level, where no column is public, "
                f"so it never serves {use.level} level; ask at {bound.level} level"
            )
            raise LedgerError(msg)
        rows = bound.rows_per_person or use.rows_per_person
        if rows != use.rows_per_person:
            msg = (
                f"data set {dataset!r} is bound to rows_per_person={rows}, "
                f"not {use.rows_per_person}; ask with {rows}"
            )
            raise LedgerError(msg)
        if shows:
            _require_public(bound, use.treatment, "treatment", dataset)
            for column in use.covariates:
                _require_public(bound, column, "covariate", dataset)
        public = next((column for column in use.outcomes if column in bound.public), None)
        if public is not None:
            msg = (
                f"column {public!r} is public in data set {dataset!r}, so it cannot be an "
                "outcome: exact facts about it may have been released"
            )
            raise LedgerError(msg)
        allowed = bound.public_gaps or _NONE
        shown = next((column for column in use.public_gaps or () if column not in allowed), None)
        if shown is not None:
            named = ", ".join(map(repr, sorted(allowed))) or "none"
            msg = (
                f"who lacks a value of column {shown!r} is private in data set {dataset!r}: its "
                "gaps were not named public when the data set was bound (public gaps: "
                f"{named}); declare what a missing outcome counts as, or that missing ones are "
                "private"
            )
            raise LedgerError(msg, parameter="missing outcomes", column=shown)
        return replace(bound, private=bound.private | set(use.outcomes), rows_per_person=rows)

    def require_person(self, column: str, dataset: str) -> int:
        """Return how many rows a person may have; refuse ids that the holder did not make public.

        A data set that nobody bound is refused too: a first request would read ids off a column
        that could still become an outcome.
        """
        if self.level is None:
            msg = (
                f"data set {dataset!r} is not bound, so nobody named {column!r} public; bind it "
                "first, with the column of ids among its public columns"
            )
            raise LedgerError(msg, parameter="public")
        _require_public(self, column, "person", dataset)
        return self.rows_per_person or 1

    def recall_gaps(self, columns: Collection[str]) -> Roles:
        """Return the roles with gaps that an earlier version has shown already."""
        return replace(self, public_gaps=(self.public_gaps or _NONE) | set(columns))

    def declare(self, wanted: Roles, dataset: str) -> Roles:
        """Return the roles after its holder said more of them; nothing said is ever unsaid."""
        for name in ("level", "rows_per_person"):
            mine, other = getattr(self, name), getattr(wanted, name)
            if None not in (mine, other) and mine != other:
                msg = f"data set {dataset!r} is bound to {name.replace('_', ' ')} {mine} already"
                raise LedgerError(msg)
        open_columns = self.unclear if self.level is not None else wanted.public - self.private
        closed = sorted(wanted.public - self.public - open_columns)
        if closed:
            msg = f"column {closed[0]!r} is private in data set {dataset!r} and stays so"
            raise LedgerError(msg)
        level = self.level or wanted.level
        public = self.public | wanted.public
        if level is not None and has_public_covariates(level) and not public:
            msg = f"level {level!r} needs the names of the public columns: treatment and covariates"
            raise ArgumentError(msg)
        gaps = wanted.public_gaps or _NONE
        whole = sorted(gaps & public)
        if whole:
            msg = f"column {whole[0]!r} is public, its gaps with it; name gaps of private columns"
            raise ArgumentError(msg)
        if gaps and (level is None or not has_public_covariates(level)):
            msg = "public gaps belong to level 'label'; at sample level whole records are private"
            raise ArgumentError(msg)
        rows = self.rows_per_person or wanted.rows_per_person
        return Roles(
            level, public, (self.private | wanted.private) - wanted.public,
            self.unclear - wanted.public, rows or (None if level is None else 1),
            None if level is None else (self.public_gaps or _NONE) | gaps,
        )  # fmt: skip

    def _first(self, use: Use) -> Roles:
        """Bind at first use: at label level what it uses as public is public, and no more."""
        if not has_public_covariates(use.level):
            return replace(self, level=use.level, public_gaps=_NONE)
        used = frozenset((use.treatment, *use.covariates))
        gaps = frozenset(use.public_gaps or ())
        return replace(self, level=use.level, public=used - self.private, public_gaps=gaps)


UNBOUND = Roles()


def declared_gaps(declared: Mapping[str, str]) -> frozenset[str]:
    """Return the columns that are declared to be missing in public."""
    return frozenset(name for name, text in declared.items() if text.endswith(", missing public"))


def declared_roles(
    level: Level | None,
    public: Collection[str] | None,
    rows_per_person: int | None,
    public_gaps: Collection[str] | None = None,
) -> Roles:
    """Check what is said about a data set before its first use."""
    if level not in (None, *get_args(Level)):
        msg = f"level is 'label' or 'sample', not {str(level)[:40]!r}"
        raise ArgumentError(msg)
    for word, columns in (("public", public), ("public_gaps", public_gaps)):
        names: list[object] = [] if columns is None else list(columns)
        if isinstance(columns, str) or not all(isinstance(name, str) and name for name in names):
            msg = f"{word} is a list of column names"
            raise ArgumentError(msg)
    if public and (level is None or not has_public_covariates(level)):
        msg = "public columns belong to level 'label'; at sample level whole records are private"
        raise ArgumentError(msg)
    if rows_per_person is not None and (
        type(rows_per_person) is not int or not 1 <= rows_per_person <= _MOST_ROWS
    ):
        msg = f"rows_per_person is a whole number from 1 to {_MOST_ROWS}"
        raise ArgumentError(msg)
    gaps = None if public_gaps is None else frozenset(public_gaps)
    return Roles(level, frozenset(public or ()), rows_per_person=rows_per_person, public_gaps=gaps)


def _require_public(roles: Roles, column: str, role: str, dataset: str) -> None:
    if column in roles.public:
        return
    parameter = ""
    if column in roles.unclear:
        why = "its history does not tell whether it was an outcome (Ledger.bind does)"
        parameter = "public"
    elif column in roles.private:
        why = "it is an outcome there, or was used as private data"
    else:
        named = ", ".join(map(repr, sorted(roles.public))) or "none"
        why = f"it was not named public when the data set was bound (public: {named})"
    msg = (
        f"column {column!r} is private in data set {dataset!r}: {why}; it cannot be a {role} at "
        "label level, where that is public. Leave it out, or ask at sample level"
    )
    raise LedgerError(msg, parameter=parameter)


def recall_release(
    roles: Roles, declared: Mapping[str, str], columns: Iterable[str] | None, release: str
) -> Roles:
    """Return the roles after a release whose charge did not say how it used the columns.

    - The first release decides the level. After a first release at sample level nothing is public.
    - At label level the treatment and the covariates with a released balance are public, unless
      they were private before. The other declared columns hold the outcome: those that no earlier
      release showed as public are private, and all of them if every one was shown.
    - At sample level the declared columns are private unless they were released as public before.
    - The largest number of rows per person counts.
    - Gaps are public of columns that a release at label level left out in public.

    A request that was charged and left no release has shown nothing and decides nothing.
    """
    facts = _facts_of(release)
    if facts is None:
        return roles
    level, rows, balance = facts
    rows = max(rows, roles.rows_per_person or 1)
    named = frozenset(declared)
    treatment = {name for name, text in declared.items() if text.startswith("treatment ")}
    known = (level,) if roles.level is None else (roles.level, level)
    if not all(map(has_public_covariates, known)):
        private = roles.private | (named - roles.public)
        return replace(roles, level=roles.level or level, private=private, rows_per_person=rows)
    shown = frozenset(treatment) | _columns_of(balance, {*named, *(columns or ())})
    suspects = named - shown
    fresh = (suspects - roles.public) or suspects
    private = roles.private | fresh
    certain = (roles.private - roles.unclear) | (fresh if len(fresh) == 1 else frozenset())
    unclear = (roles.unclear | fresh) - certain
    public = (roles.public | shown) - private
    bound = Roles(level, public, private, unclear, rows, roles.public_gaps)
    return bound.recall_gaps(declared_gaps(declared))


def _facts_of(release: str) -> tuple[Level, int, tuple[str, ...]] | None:
    """Return level, rows per person and the names in the balance; None if it is no release."""
    try:
        plain: Any = json.loads(release)
        level, use = plain["level"], public_use(plain["settings"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if level not in get_args(Level) or use is None:
        return None
    return level, *use


def _columns_of(balance: Iterable[str], known: set[str]) -> frozenset[str]:
    """Return the columns behind names such as ``age`` and ``city=Rome``, where that is clear."""
    found = set()
    for name in balance:
        parts = name.split("=")
        prefixes = {"=".join(parts[:count]) for count in range(1, len(parts))}
        columns = {name} & known or prefixes & known
        if len(columns) == 1:
            found |= columns
    return frozenset(found)
