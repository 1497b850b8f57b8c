"""Declared knowledge about the columns: bounds, categories and treatment labels.

Nothing here is ever looked up in private data. A domain comes from a code book, is read from and
written to TOML, and says how each value becomes a number between 0 and 1. `domain` joins what
`outcome` and `column_types` declare; `toml` is changed with any of them, and `charging.binding_of`,
whose texts ledgers keep, is not changed at all.
"""

from private_ate.domain.column_types import (
    Binary,
    Categories,
    Interval,
    SamplingWeights,
    Treatment,
    label_text,
)
from private_ate.domain.domain import Domain, require_one_outcome
from private_ate.domain.outcome import MissingOutcomes, Outcome, StudyLabel, Survival
from private_ate.domain.toml import arm_lines, toml_text

__all__ = [
    "Binary",
    "Categories",
    "Domain",
    "Interval",
    "MissingOutcomes",
    "Outcome",
    "SamplingWeights",
    "StudyLabel",
    "Survival",
    "Treatment",
    "arm_lines",
    "label_text",
    "require_one_outcome",
    "toml_text",
]
