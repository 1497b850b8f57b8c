"""The service: analysts ask by plan, records stay with the worker, a ledger counts."""

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
