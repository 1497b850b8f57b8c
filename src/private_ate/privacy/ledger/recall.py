"""Roles from a history that recorded none: what old releases tell about public columns.

Version 0.1 wrote neither level nor roles into a charge. A stored release says its level, rows per
person and, for the recommended method at label level, the covariates whose balance it shows; the
charge names the treatment and all declared columns, the outcome among them. What follows errs on
the side of private.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args

from private_ate.privacy.ledger.roles import Roles, declared_gaps
from private_ate.privacy.levels import Level
from private_ate.settings import PublicUse

__all__ = ["recall_release"]


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
    if roles.level == "sample" or level == "sample":
        private = roles.private | (named - roles.public)
        return replace(roles, level=roles.level or "sample", private=private, rows_per_person=rows)
    shown = frozenset(treatment) | _columns_of(balance, {*named, *(columns or ())})
    suspects = named - shown
    fresh = (suspects - roles.public) or suspects
    private = roles.private | fresh
    certain = (roles.private - roles.unclear) | (fresh if len(fresh) == 1 else frozenset())
    unclear = (roles.unclear | fresh) - certain
    public = (roles.public | shown) - private
    bound = Roles("label", public, private, unclear, rows, roles.public_gaps)
    return bound.recall_gaps(declared_gaps(declared))


def _facts_of(release: str) -> tuple[str, int, tuple[str, ...]] | None:
    """Return level, rows per person and the names in the balance; None if it is no release."""
    try:
        plain: Any = json.loads(release)
        level, use = plain["level"], PublicUse.of(plain["settings"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if level not in get_args(Level) or use is None:
        return None
    return level, use.rows_per_person, use.balanced


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
