"""Average treatment effects from observational data under differential privacy.

Names in the order data flows: declare a domain, ask for an estimate, read the release. Each is
loaded when it is first used, so that importing the package and `private-ate --help` are quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from private_ate._version import VERSION as __version__
    from private_ate.api import estimate_ate
    from private_ate.baselines.aim import AimOptions
    from private_ate.baselines.balancing import BalancingOptions
    from private_ate.baselines.blocking import BlockingOptions
    from private_ate.baselines.difference_in_means import DifferenceInMeansOptions
    from private_ate.baselines.doubly_robust import DoublyRobustOptions
    from private_ate.baselines.fold_split import FoldSplitOptions
    from private_ate.baselines.grouped import GroupedOptions
    from private_ate.baselines.ipw import IpwOptions
    from private_ate.baselines.privsyn import PrivSynOptions
    from private_ate.baselines.smooth_matching import SmoothMatchingOptions
    from private_ate.checking.check import check_data
    from private_ate.checking.findings import DataCheck, Finding
    from private_ate.data.csv_file import CsvFile
    from private_ate.data.workbooks import ExcelFile
    from private_ate.diagnostics.exact import diagnose_ate, exact_effect, exact_means
    from private_ate.diagnostics.overlap import describe_overlap
    from private_ate.diagnostics.table_one import describe_arms
    from private_ate.domain import (
        Binary,
        Categories,
        Domain,
        Interval,
        Outcome,
        SamplingWeights,
        StudyLabel,
        Survival,
        Treatment,
    )
    from private_ate.effects import (
        ArmMeans,
        EValue,
        arm_means,
        e_value,
        monotone_means,
        number_needed_to_treat,
        odds_ratio,
        odds_ratio_interval,
        p_value,
        risk_ratio,
        risk_ratio_interval,
        standard_error,
    )
    from private_ate.errors import (
        ArgumentError,
        BudgetError,
        DatasetError,
        DomainError,
        LedgerError,
        NumericRangeError,
        PrivateAteError,
        SchemaError,
        UndeclaredError,
    )
    from private_ate.ledger.ledger import Ledger
    from private_ate.methods.blocks.plan import BlocksOptions
    from private_ate.methods.calibrated.options import CalibratedOptions
    from private_ate.methods.published.method import PublishedOptions
    from private_ate.methods.registry import OrthogonalOptions
    from private_ate.planning import Plan, PlanRow, StudySizes, plan_ate
    from private_ate.release import (
        Arm,
        ArmDiagnostics,
        Combination,
        Contrast,
        Diagnostics,
        Effect,
        Release,
    )
    from private_ate.release.public_facts import PublicFacts
    from private_ate.sites.combine import combine
    from private_ate.sites.values import Combined, CombinedEffect

# Names by the module that holds them; options of methods are found by the registry.
_HOMES = {
    "domain": (
        "Binary Categories Domain Interval Outcome SamplingWeights StudyLabel Survival Treatment"
    ),
    "checking.check": "check_data",
    "checking.findings": "DataCheck Finding",
    "sites.combine": "combine",
    "sites.values": "Combined CombinedEffect",
    "data.csv_file": "CsvFile",
    "data.workbooks": "ExcelFile",
    "api": "estimate_ate",
    "diagnostics.exact": "diagnose_ate exact_effect exact_means",
    "diagnostics.overlap": "describe_overlap",
    "diagnostics.table_one": "describe_arms",
    "effects": (
        "ArmMeans EValue arm_means e_value monotone_means number_needed_to_treat odds_ratio "
        "odds_ratio_interval p_value risk_ratio risk_ratio_interval standard_error"
    ),
    "release.public_facts": "PublicFacts",
    "planning": "Plan PlanRow StudySizes plan_ate",
    "ledger.ledger": "Ledger",
    "release": "Arm ArmDiagnostics Combination Contrast Diagnostics Effect Release",
    "errors": (
        "ArgumentError BudgetError DatasetError DomainError LedgerError NumericRangeError "
        "PrivateAteError SchemaError UndeclaredError"
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "AimOptions",
    "ArgumentError",
    "Arm",
    "ArmDiagnostics",
    "ArmMeans",
    "BalancingOptions",
    "Binary",
    "BlockingOptions",
    "BlocksOptions",
    "BudgetError",
    "CalibratedOptions",
    "Categories",
    "Combination",
    "Combined",
    "CombinedEffect",
    "Contrast",
    "CsvFile",
    "DataCheck",
    "DatasetError",
    "Diagnostics",
    "DifferenceInMeansOptions",
    "Domain",
    "DomainError",
    "DoublyRobustOptions",
    "EValue",
    "Effect",
    "ExcelFile",
    "Finding",
    "FoldSplitOptions",
    "GroupedOptions",
    "Interval",
    "IpwOptions",
    "Ledger",
    "LedgerError",
    "NumericRangeError",
    "OrthogonalOptions",
    "Outcome",
    "Plan",
    "PlanRow",
    "PrivSynOptions",
    "PrivateAteError",
    "PublicFacts",
    "PublishedOptions",
    "Release",
    "SamplingWeights",
    "SchemaError",
    "SmoothMatchingOptions",
    "StudyLabel",
    "StudySizes",
    "Survival",
    "Treatment",
    "UndeclaredError",
    "__version__",
    "arm_means",
    "check_data",
    "combine",
    "describe_arms",
    "describe_overlap",
    "diagnose_ate",
    "e_value",
    "estimate_ate",
    "exact_effect",
    "exact_means",
    "monotone_means",
    "number_needed_to_treat",
    "odds_ratio",
    "odds_ratio_interval",
    "p_value",
    "plan_ate",
    "risk_ratio",
    "risk_ratio_interval",
    "standard_error",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever the name stands for
    if name == "__version__":
        return import_module("private_ate._version").VERSION
    home = _HOME_OF.get(name) or _home_of_options(name)
    if home is None:
        msg = f"module 'private_ate' has no attribute {name!r}"
        raise AttributeError(msg)
    globals()[name] = getattr(import_module(f"private_ate.{home}"), name)
    return globals()[name]


def _home_of_options(name: str) -> str | None:
    """Return where a method's options are; every registered method's are served."""
    if not name.endswith("Options"):
        return None
    home: str | None = import_module("private_ate.methods.registry").option_homes().get(name)
    return home


def __dir__() -> list[str]:
    return sorted(__all__)
