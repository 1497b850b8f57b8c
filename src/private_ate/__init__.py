"""Average treatment effects from observational data under differential privacy.

Names in the order data flows: declare a domain, ask for an estimate, read the release. Each is
loaded when it is first used, so that importing the package and `private-ate --help` are quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from private_ate._version import VERSION as __version__
    from private_ate.domain import Binary, Categories, Domain, Interval, Treatment
    from private_ate.errors import (
        ArgumentError,
        BudgetError,
        DomainError,
        LedgerError,
        NumericRangeError,
        PrivateAteError,
        SchemaError,
    )
    from private_ate.estimation import estimate_ate
    from private_ate.estimators.calibrated import CalibratedOptions
    from private_ate.estimators.exact import diagnose_ate, exact_effect
    from private_ate.estimators.orthogonal_plan import OrthogonalOptions
    from private_ate.estimators.published import PublishedOptions
    from private_ate.planning import Plan, StudySizes, plan_ate
    from private_ate.privacy.ledger import Ledger
    from private_ate.release import Diagnostics, Release

_HOMES = {
    "domain": ("Binary", "Categories", "Domain", "Interval", "Treatment"),
    "estimation": ("estimate_ate",),
    "estimators.calibrated": ("CalibratedOptions",),
    "estimators.published": ("PublishedOptions",),
    "estimators.exact": ("diagnose_ate", "exact_effect"),
    "estimators.orthogonal_plan": ("OrthogonalOptions",),
    "planning": ("Plan", "StudySizes", "plan_ate"),
    "privacy.ledger": ("Ledger",),
    "release": ("Diagnostics", "Release"),
    "errors": (
        "ArgumentError",
        "BudgetError",
        "DomainError",
        "LedgerError",
        "NumericRangeError",
        "PrivateAteError",
        "SchemaError",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ArgumentError",
    "Binary",
    "BudgetError",
    "CalibratedOptions",
    "Categories",
    "Diagnostics",
    "Domain",
    "DomainError",
    "Interval",
    "Ledger",
    "LedgerError",
    "NumericRangeError",
    "OrthogonalOptions",
    "Plan",
    "PrivateAteError",
    "PublishedOptions",
    "Release",
    "SchemaError",
    "StudySizes",
    "Treatment",
    "__version__",
    "diagnose_ate",
    "estimate_ate",
    "exact_effect",
    "plan_ate",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever the name stands for
    if name == "__version__":
        return import_module("private_ate._version").VERSION
    if name not in _HOME_OF:
        msg = f"module 'private_ate' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"private_ate.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
