"""What the web's own role may do in PostgreSQL: ask, and nothing that pays, allows or approves.

With a role of its own the web process reads everything that the service keeps, which holds no
records and no secrets, and writes what users do by pages. It can write no entry, account or
binding of the ledger, no population, data set or policy, and no approval; the worker charges a
request only if the policy allows it or approvals of its plan are there.
"""

from __future__ import annotations

import re
from typing import Final

from private_ate.errors import ArgumentError
from private_ate.ledger.store import Store, one

_READ: Final = (
    "entries", "accounts", "bindings", "service_users", "service_tokens", "service_sessions",
    "service_populations", "service_datasets", "service_requests", "service_events",
    "service_workers", "service_approvals",
)  # fmt: skip
_STEPS: Final = "state, code, reason, queued, start, ends, due, visible, approvers"
_WRITE: Final = (
    "INSERT ON service_users, service_tokens, service_sessions, service_requests, service_events",
    "UPDATE (revoked) ON service_users, service_tokens",
    "DELETE ON service_sessions",
    "UPDATE (closed) ON service_datasets",
    f"UPDATE ({_STEPS}) ON service_requests",
)
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def grant_web(store: Store, role: str) -> None:
    """Give a role that exists the rights of the web process, and take all others from it."""
    if not _NAME.fullmatch(role):
        msg = "a role is named by small letters, digits and underscores"
        raise ArgumentError(msg)
    with store.transaction() as execute:
        if one(execute, "SELECT 1 FROM pg_roles WHERE rolname = ?", role) is None:
            msg = f"there is no role {role!r} in the database; make it first: CREATE ROLE … LOGIN"
            raise ArgumentError(msg)
        for table in _READ:
            execute(f"REVOKE ALL ON {table} FROM {role}", ())
        execute(f"GRANT SELECT ON {', '.join(_READ)} TO {role}", ())
        for right in _WRITE:
            execute(f"GRANT {right} TO {role}", ())
