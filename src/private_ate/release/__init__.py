"""What leaves: the release, what it is about, its intervals and its JSON.

`release` holds the value itself and its JSON, `metadata` the rows of its tables, `public_facts` and
`curator` what a page may add, `intervals` how far the sum of its errors may be off. Nothing here
sees a record. `metadata`, `release` and `docs/make_schema.py` are changed together: they are the
published schema.
"""

from private_ate.release.curator import ArmDiagnostics, Diagnostics
from private_ate.release.metadata import (
    Arm,
    Combination,
    Contrast,
    Effect,
    OutcomeNote,
    Pair,
    TreatmentNote,
)
from private_ate.release.public_facts import ArmOverlap, Overlap
from private_ate.release.release import Release

__all__ = [
    "Arm",
    "ArmDiagnostics",
    "ArmOverlap",
    "Combination",
    "Contrast",
    "Diagnostics",
    "Effect",
    "OutcomeNote",
    "Overlap",
    "Pair",
    "Release",
    "TreatmentNote",
]
