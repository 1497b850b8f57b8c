"""Releases that a ledger has stored: found by their request, and compared with a file.

A release says itself which request made it. That is a claim: what counts is whether the ledger
stored the same release for this request, field by field.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from private_ate.errors import ArgumentError, LedgerError
from private_ate.privacy.ledger.chain import Entry, canonical
from private_ate.settings import LedgerNote

__all__ = ["find_stored", "require_stored"]


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
    note = LedgerNote.of(shown.get("settings"))
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
