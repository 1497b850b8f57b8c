"""The ledger's history: entries that hash the one before, and the check of a whole chain.

An entry's hash is SHA-256 over a canonical encoding of its fields and the previous hash, so a
changed, missing or moved entry breaks every hash after it. A history that was cut at its end is
still a valid chain: only a hash kept elsewhere shows it, which is why every release carries one.
What a release says of its request is a claim: what counts is whether the ledger stored the same
release for it, field by field.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast

from private_ate.errors import ArgumentError, LedgerError
from private_ate.ledger.cost import NOTHING, BudgetUnits
from private_ate.settings import Facts

GENESIS = "0" * 64

EntryKind = Literal["create", "cap", "bind", "charge", "release"]


class Link:
    """A line of a history, a dataclass whose hash seals its other fields."""

    __slots__ = ()
    sequence: int
    previous: str
    hash: str

    def seal(self) -> str:
        """Return the hash that the line must carry."""
        held = fields(cast("Any", self))
        return digest([getattr(self, field.name) for field in held if field.name != "hash"])


@dataclass(frozen=True, slots=True)
class Entry(Link):
    """One line of the history.

    ``create`` and ``cap`` grant a budget, ``bind`` says more about a data set, ``charge`` spends
    from a budget, ``release`` stores what the charge of the same request paid for. ``body`` is the
    release or, in all other entries, a JSON object: what the entry says about the data set, and the
    hash of all balances and bindings after it (``state``; version 0.1 did not write one).
    """

    sequence: int
    kind: EntryKind
    dataset: str
    request: str
    analyst: str
    plan: str
    epsilon: int
    delta: int
    body: str
    at: str
    previous: str
    hash: str = ""

    @property
    def cost(self) -> BudgetUnits:
        """The amount that the entry grants or spends."""
        return BudgetUnits(self.epsilon, self.delta)


@dataclass(frozen=True, slots=True)
class Account:
    """The balance of a data set, or of an analyst's cap in it, in whole units."""

    dataset: str
    analyst: str
    total: BudgetUnits
    spent: BudgetUnits = NOTHING

    @property
    def left(self) -> BudgetUnits:
        """What may still be spent."""
        return self.total - self.spent


def canonical(value: Any) -> str:  # noqa: ANN401  # plain JSON values
    """Return the one text that stands for a plain value; anything odd becomes its repr."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)


def digest(value: Any) -> str:  # noqa: ANN401  # plain JSON values
    """Return SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def verify_chain(
    links: Sequence[Link],
    head: str | None = None,
    whose: str = "ledger",
    what: str = "entry",
    *,
    is_whole: bool = True,
) -> str:
    """Check every link and return the last hash; ``head`` must be the hash of one.

    Links that are not the whole history may begin anywhere.

    The hash before the first one belongs to none: no release carries it, and a history of any
    length would contain it.
    """
    first, previous = (1, GENESIS) if is_whole else (links[0].sequence, links[0].previous)
    seen = set()
    for place, link in enumerate(links, first):
        if link.sequence != place or link.previous != previous or link.seal() != link.hash:
            msg = f"the {whose}'s history does not verify at {what} {place}: it was altered"
            raise LedgerError(msg)
        previous = link.hash
        seen.add(previous)
    if head is not None and head not in seen:
        msg = (
            f"no {what} has the hash {head[:64]!r}: the end of the history is missing, or the hash "
            f"is not one of this {whose}'s"
        )
        raise LedgerError(msg)
    return previous


def replay_accounts(entries: Sequence[Entry]) -> dict[tuple[str, str], Account]:
    """Add the history up again; the balances that a ledger keeps must equal this."""
    accounts: dict[tuple[str, str], Account] = {}
    charged: set[tuple[str, str]] = set()
    stored: set[tuple[str, str]] = set()
    for entry in entries:
        request = (entry.dataset, entry.request)
        if entry.kind in ("create", "cap"):
            key = (entry.dataset, entry.analyst)
            _require(key not in accounts, entry)
            accounts[key] = Account(entry.dataset, entry.analyst, entry.cost)
        elif entry.kind == "bind":
            _require((entry.dataset, "") in accounts and entry.cost == NOTHING, entry)
        elif entry.kind == "charge":
            _require(request not in charged, entry)
            charged.add(request)
            _spend(accounts, entry)
        else:
            _require(request in charged and request not in stored, entry)
            stored.add(request)
    return accounts


def _spend(accounts: dict[tuple[str, str], Account], entry: Entry) -> None:
    _require((entry.dataset, "") in accounts and entry.epsilon > 0 and entry.delta >= 0, entry)
    for analyst in {"", entry.analyst}:
        account = accounts.get((entry.dataset, analyst))
        if account is not None:
            spent = account.spent + entry.cost
            _require(spent.fits(account.total), entry)
            accounts[entry.dataset, analyst] = Account(entry.dataset, analyst, account.total, spent)


def _require(condition: bool, entry: Entry) -> None:  # noqa: FBT001  # a claim about an entry
    if not condition:
        msg = f"entry {entry.sequence} of the ledger could not have been written by this program"
        raise LedgerError(msg)


def find_stored(entries: Sequence[Entry], request: str, dataset: str | None = None) -> Entry:
    """Return the entry that holds the release of a request, sealed as it was written."""
    named = [
        entry
        for entry in entries
        if entry.request == request and dataset in (None, entry.dataset) and entry.plan
    ]
    held = [entry for entry in named if entry.kind == "release"]
    if len(held) > 1:
        sets = ", ".join(repr(entry.dataset) for entry in held)
        msg = f"request {request!r} was answered for {sets}; say which data set is meant"
        raise ArgumentError(msg, parameter="dataset")
    if not held:
        why = (
            "was charged but has no release: it is still running or was interrupted"
            if named
            else "is none of this ledger's"
        )
        msg = f"request {request!r} {why}"
        raise LedgerError(msg)
    if held[0].seal() != held[0].hash:
        msg = f"the ledger's history does not verify at entry {held[0].sequence}: it was altered"
        raise LedgerError(msg)
    return held[0]


def require_stored(entries: Sequence[Entry], release: str) -> Entry:
    """Return the entry that stored exactly this release, or say which of its fields differ.

    ``release`` is its JSON. The order of fields, spaces and line ends do not count; anything else
    does. Entries are those of a history that was verified.
    """
    shown = _read(release)
    note = Facts.of(shown.get("settings")).ledger
    if note is None:
        msg = "this release names no request of a ledger: none has stored it"
        raise LedgerError(msg)
    stored = find_stored(entries, note.request, note.dataset)
    kept = _read(stored.body)
    names = [*kept, *(name for name in shown if name not in kept)]
    odd = [name for name in names if _differs(kept, shown, name)]
    if odd:
        msg = (
            f"this is not the release that the ledger stored for request {note.request!r} of data "
            f"set {note.dataset!r}: {', '.join(odd)} {'differs' if len(odd) == 1 else 'differ'}"
        )
        raise LedgerError(msg)
    return stored


def _differs(kept: dict[str, Any], shown: dict[str, Any], name: str) -> bool:
    if (name in kept) != (name in shown):
        return True
    return canonical(kept[name]) != canonical(shown[name])


def _read(text: str) -> dict[str, Any]:
    """Read a JSON object; a name that is there twice would be read differently elsewhere."""
    try:
        plain = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as cause:
        msg = "this is not a release in JSON"
        raise ArgumentError(msg) from cause
    if not isinstance(plain, dict):
        msg = "this is not a release in JSON"
        raise ArgumentError(msg)
    return plain


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise ValueError
    return plain
