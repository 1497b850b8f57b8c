"""Whether a data set's file is what its curator declared: what the worker found, kept as events.

A look compares the header, the separator and the number of rows, which are public, with what was
declared. It says nothing of values.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from private_ate.privacy.ledger.store import Execute
from private_ate.service.store.catalogue import Dataset, list_datasets
from private_ate.service.store.events import write_event
from private_ate.service.store.tables import one

__all__ = ["last_look", "unavailable_since", "unseen_datasets", "write_look"]

_LOOK = "look"


def last_look(execute: Execute, name: str) -> str | None:
    """Return what is wrong with a data set's file, empty if nothing; None if not looked at yet."""
    found = one(
        execute,
        "SELECT body FROM service_events WHERE kind = ? AND subject = ? "
        "ORDER BY sequence DESC LIMIT 1",
        _LOOK, name,
    )  # fmt: skip
    return None if found is None else str(json.loads(str(found[0]))["problem"])


def write_look(execute: Execute, name: str, worker: str, problem: str, began: int) -> None:
    """Keep what a worker found, if it is news, with the time at which its look began.

    How long a look takes follows from the file's length, which records decide.
    """
    if last_look(execute, name) != problem:
        at = datetime.fromtimestamp(began / 1000, UTC).isoformat(timespec="milliseconds")
        write_event(execute, _LOOK, name, worker, {"problem": problem}, at=at)


def unavailable_since(execute: Execute, name: str, moment: int) -> str:
    """Say that the newest answer about a data set's records could not be given; empty if it could.

    Only what is visible at this moment counts, so that it shows no running time.
    """
    found = one(
        execute,
        "SELECT code FROM service_requests WHERE dataset = ? AND dummy = 0 AND visible > 0 "
        "AND visible <= ? AND state IN ('done', 'lost', 'refused') "
        "ORDER BY visible DESC, id LIMIT 1",
        name, moment,
    )  # fmt: skip
    codes = {"schema": "its columns", "ledger": "its file or its budget", "records": "its records"}
    about = codes.get("" if found is None else str(found[0]), "")
    return f"the last answer could not be given, because of {about}" if about else ""


def unseen_datasets(execute: Execute) -> list[Dataset]:
    """Return the open data sets that no worker has found to be as declared."""
    return [
        found
        for found in list_datasets(execute)
        if not found.closed and last_look(execute, found.name) != ""
    ]
