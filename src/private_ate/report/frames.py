"""The old name of `private_ate.report.to_polars`, until version 0.5."""

from __future__ import annotations

import warnings
from typing import Any

from private_ate.report import to_polars


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever the name stands for
    found = getattr(to_polars, name)
    text = "private_ate.report.frames is called private_ate.report.to_polars"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return found
