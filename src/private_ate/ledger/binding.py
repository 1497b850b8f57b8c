"""What a request is charged for, and the outside view of a data set that it is bound to.

The binding keeps one data set's budget from being spent on another table, and its columns in
their roles. It is made of public facts only: names of columns, declared bounds and labels, which
columns are public; never of a value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from private_ate.codec import decode, encode
from private_ate.errors import LedgerError
from private_ate.ledger.chain import Entry, canonical
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.roles import UNBOUND, Roles, Use, declared_gaps, recall_release
from private_ate.privacy.levels import has_public_covariates

Uncapped = Literal["refused", "allowed"]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Binding:
    """What a data set looks like from outside: its columns and what is declared about them.

    ``columns`` are names, None if not known yet; ledgers of earlier versions kept kinds too, which
    are ignored: they can follow a single value. ``declared`` are the bounds, categories and labels
    of the columns that requests use. ``roles`` are None in a ledger that version 0.1 wrote, whose
    history shows them. ``uncapped`` says whether analysts without a cap may spend where others have
    one; None counts as refused.
    """

    columns: Mapping[str, str] | None = None
    declared: Mapping[str, str] = field(default_factory=dict)
    roles: Roles | None = None
    uncapped: Uncapped | None = None

    @classmethod
    def read(cls, body: str) -> Binding:
        """Read back what :attr:`text` wrote."""
        held = {item.name for item in fields(cls)}  # a charge's body says more than its binding
        known = {name: value for name, value in read_body(body).items() if name in held}
        if not {"columns", "declared"} <= known.keys():
            raise _altered()
        return _decoded(cls, known)

    @property
    def plain(self) -> dict[str, Any]:
        """The binding as plain JSON values."""
        plain: dict[str, Any] = encode(self)
        if self.roles is None:
            del plain["roles"], plain["uncapped"]
        return plain

    @property
    def text(self) -> str:
        """The binding as canonical JSON."""
        return canonical(self.plain)

    def merge(self, other: Binding, dataset: str) -> Binding:
        """Return both together, or say where they disagree; roles stay as they are here."""
        both = (self.columns, other.columns)
        if None not in both and set(self.columns or ()) != set(other.columns or ()):
            msg = (
                f"data set {dataset!r} is bound to a table with other columns; "
                "is this the right file, or does it need a data set of its own?"
            )
            raise LedgerError(msg)
        for column, declaration in other.declared.items():
            kept = self.declared.get(column, declaration)
            if kept not in (declaration, _as_before(declaration)):
                msg = (
                    f"data set {dataset!r} declares column {column!r} as "
                    f"{self.declared[column]}, not as {declaration}; use the same domain"
                )
                raise LedgerError(msg)
        columns = other.columns if self.columns is None else self.columns
        return replace(self, columns=columns, declared={**other.declared, **self.declared})

    def as_before(self) -> Binding:
        """Return the binding as versions wrote it in which the last label was always the other."""
        before = {column: _as_before(text) for column, text in self.declared.items()}
        return replace(self, declared=before)

    @property
    def says_gaps(self) -> bool:
        """Whether it says of which columns gaps are public, as far as the data set is bound."""
        return self.roles is not None and (
            self.roles.level is None or self.roles.public_gaps is not None
        )

    def declare(self, said: Roles, dataset: str) -> Binding:
        """Return the binding after the holder of the data set said more about its columns."""
        roles = (self.roles or UNBOUND).declare(said, dataset)
        for column in sorted(said.public_gaps or ()):
            if column in self.declared and column not in declared_gaps(self.declared):
                msg = (
                    f"data set {dataset!r} declares column {column!r} as {self.declared[column]}: "
                    "its gaps are private and stay so"
                )
                raise LedgerError(msg)
        return replace(self, roles=roles)

    def admit(self, use: Use | None, dataset: str) -> Binding:
        """Return the binding after a request, or say what it cannot have."""
        roles = self.roles or UNBOUND
        if use is not None:
            return replace(self, roles=roles.admit(use, dataset))
        if roles.level is not None:
            msg = f"data set {dataset!r} is bound: a request says how it uses the columns"
            raise LedgerError(msg)
        return replace(self, roles=roles)


@dataclass(frozen=True, slots=True)
class Charge:
    """One request as the ledger sees it; ``plan`` is the hash of all its public parameters.

    ``older_plan`` is the hash that an earlier version would have written for the same words. ``at``
    stands for the clock in the entries of a request whose running time must not be visible.
    """

    dataset: str
    request: str
    plan: str
    cost: BudgetUnits
    analyst: str = ""
    binding: Binding = field(default_factory=Binding)
    use: Use | None = None
    older_plan: str = ""
    at: str = ""


def read_body(body: str) -> dict[str, Any]:
    """Read the JSON object of an entry that is no release."""
    try:
        plain = json.loads(body or "{}")
    except (ValueError, RecursionError) as cause:
        raise _altered() from cause
    if not isinstance(plain, dict):
        raise _altered()
    return plain


def replay_binding(entries: Sequence[Entry]) -> Binding:
    """Add up what the entries of one data set say about it; the ledger's copy must equal this.

    Roles are taken from releases only as long as no entry has said any: from then on every request
    says how it uses the columns.
    """
    binding, charged, silent = Binding(), dict[str, Binding](), True
    for entry in entries:
        if entry.kind == "release" and silent:
            request = charged.get(entry.request, Binding())
            roles = binding.roles or UNBOUND
            recalled = recall_release(roles, request.declared, binding.columns, entry.body)
            binding = replace(binding, roles=recalled)
        elif entry.kind == "create":
            binding = _recall_declared(Binding.read(entry.body))
            silent = binding.roles is None
        elif entry.kind == "bind":
            binding, silent = _declare(binding, entry), False
        elif entry.kind == "charge":
            asked = charged[entry.request] = Binding.read(entry.body)
            binding, plain = binding.merge(asked, entry.dataset), read_body(entry.body)
            if "use" in plain:
                binding, silent = _admit(binding, asked, plain["use"], entry), False
    return replace(binding, roles=binding.roles or UNBOUND)


def same_binding(kept: str, replayed: Binding) -> bool:
    """Say whether a ledger's copy of a binding is what its history adds up to.

    A copy without roles is version 0.1's, one without public gaps that of the versions after it:
    the history is asked for them at the next charge.
    """
    silent = replace(replayed.roles or UNBOUND, public_gaps=None)
    earlier = (replace(replayed, roles=roles).text for roles in (silent, None))
    return kept in (replayed.text, *earlier)


def _as_before(declaration: str) -> str:
    """Return labels without a catch-all as they were written when the last label was it."""
    read, place, last = json.JSONDecoder(), 0, None
    while True:
        try:
            last, place = read.raw_decode(declaration, place)
        except ValueError:
            return declaration  # bounds, or a treatment
        if not isinstance(last, str):
            return declaration
        if not declaration.startswith(" | ", place):
            break
        place += len(" | ")
    return f"{declaration}, else {last!r}" if place == len(declaration) else declaration


def _declare(binding: Binding, entry: Entry) -> Binding:
    plain = read_body(entry.body)
    if not {"roles", "uncapped"} <= plain.keys():
        raise _altered()
    bound = binding.declare(_decoded(Roles, plain["roles"]), entry.dataset)
    if "public_gaps" not in plain["roles"] and (binding.roles or UNBOUND).level is None:
        silent = replace(bound.roles or UNBOUND, public_gaps=None)
        bound = _recall_declared(replace(bound, roles=silent))
    return replace(bound, uncapped=binding.uncapped or plain["uncapped"])


def _recall_declared(binding: Binding) -> Binding:
    """Return a binding that its holder made with an earlier version: what it declares is bound."""
    if binding.says_gaps or binding.roles is None or binding.roles.level is None:
        return binding
    shows = has_public_covariates(binding.roles.level)
    gaps = declared_gaps(binding.declared) if shows else frozenset()
    return replace(binding, roles=binding.roles.recall_gaps(gaps))


def _admit(binding: Binding, charge: Binding, plain: Any, entry: Entry) -> Binding:  # noqa: ANN401  # plain JSON values
    """Return the binding after a charge; what an earlier version has shown is public."""
    if plain is None:
        return binding.admit(None, entry.dataset)
    if not isinstance(plain, dict):
        raise _altered()
    # A version that did not say public gaps left them out.
    use = _decoded(Use, {"public_gaps": None, **plain})
    if use.public_gaps is None:
        shown = declared_gaps(charge.declared) if has_public_covariates(use.level) else frozenset()
        use = replace(use, public_gaps=tuple(each for each in use.outcomes if each in shown))
        roles = (binding.roles or UNBOUND).recall_gaps(use.public_gaps or ())
        binding = replace(binding, roles=roles)
    return binding.admit(use, entry.dataset)


def _decoded(kind: type[Value], plain: object) -> Value:
    try:
        return decode(kind, plain, "an entry")
    except ValueError as cause:
        raise _altered() from cause


def _altered() -> LedgerError:
    return LedgerError("the ledger's description of a data set cannot be read: it was altered")
