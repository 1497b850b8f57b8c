"""The old name of `private_ate.report.phrasing`, until version 0.5."""

from __future__ import annotations

import warnings
from typing import Any

from private_ate.report import phrasing


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever the name stands for
    found = getattr(phrasing, name)
    text = "private_ate.report.words is called private_ate.report.phrasing"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return found
