"""Average treatment effects from observational data under differential privacy.

Names in the order data flows: declare a domain, ask for an estimate, read the release.
"""

from private_ate._version import VERSION as __version__
from private_ate.domain import Binary, Categories, Domain, Interval, Treatment
from private_ate.errors import (
    ArgumentError,
    BudgetError,
    DomainError,
    NumericRangeError,
    PrivateAteError,
    SchemaError,
)
from private_ate.estimation import estimate_ate
from private_ate.estimators.exact import diagnose_ate, exact_effect
from private_ate.estimators.orthogonal import OrthogonalOptions
from private_ate.estimators.published import PublishedOptions
from private_ate.estimators.request import Request
from private_ate.release import Diagnostics, Release

__all__ = [
    "ArgumentError",
    "Binary",
    "BudgetError",
    "Categories",
    "Diagnostics",
    "Domain",
    "DomainError",
    "Interval",
    "NumericRangeError",
    "OrthogonalOptions",
    "PrivateAteError",
    "PublishedOptions",
    "Release",
    "Request",
    "SchemaError",
    "Treatment",
    "__version__",
    "diagnose_ate",
    "estimate_ate",
    "exact_effect",
]
