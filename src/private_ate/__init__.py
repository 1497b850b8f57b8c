"""Average treatment effects from observational data under differential privacy.

Names in the order data flows: declare a domain, ask for an estimate, read the release.
"""

from private_ate._version import VERSION as __version__
from private_ate.baselines.aim import AimOptions
from private_ate.baselines.difference_in_means import DifferenceInMeansOptions
from private_ate.baselines.doubly_robust import DoublyRobustOptions
from private_ate.baselines.fold_split import FoldSplitOptions
from private_ate.baselines.ipw import IpwOptions
from private_ate.baselines.privsyn import PrivSynOptions
from private_ate.baselines.smooth_matching import SmoothMatchingOptions
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
from private_ate.estimators.published import PublishedOptions
from private_ate.estimators.request import Request
from private_ate.release import Diagnostics, Release

__all__ = [
    "AimOptions",
    "ArgumentError",
    "Binary",
    "BudgetError",
    "Categories",
    "Diagnostics",
    "DifferenceInMeansOptions",
    "Domain",
    "DomainError",
    "DoublyRobustOptions",
    "FoldSplitOptions",
    "Interval",
    "IpwOptions",
    "NumericRangeError",
    "PrivSynOptions",
    "PrivateAteError",
    "PublishedOptions",
    "Release",
    "Request",
    "SchemaError",
    "SmoothMatchingOptions",
    "Treatment",
    "__version__",
    "diagnose_ate",
    "estimate_ate",
    "exact_effect",
]
