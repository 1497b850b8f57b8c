"""A service between analysts and a curator's records: ask by plan, pay from a ledger, read later.

Types stand at the bottom (`vocabulary`, `policy`); `store` keeps them; `operations` own every right
and transaction; `web` (HTTP, no records) calls operations; a `worker` takes rows up, and its `job`
alone opens records. Modules of one layer do not know each other. Alone: texts of pages, limits,
systemd units. Together: an endpoint, its page and `operations`; a column of a table, its dataclass,
and its rights in `store.tables`; a state in `vocabulary`, and the worker. Users import `Client` and
`ServiceError` from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from private_ate.service.client import Client, ServiceError

__all__ = ["Client", "ServiceError"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever the name stands for
    if name in __all__:
        return getattr(import_module("private_ate.service.client"), name)
    msg = f"module 'private_ate.service' has no attribute {name!r}"
    raise AttributeError(msg)
