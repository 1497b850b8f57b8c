"""Pictures of the audit: both neighbours' outputs, one histogram over the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from private_ate.audit.run import Finding
from private_ate.errors import ArgumentError


def plot_findings(findings: Sequence[Finding], folder: Path) -> list[Path]:
    """Write one SVG for each bound on ε; returns nothing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure  # the `plots` extra
    except ImportError:
        return []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        msg = f"the folder {str(folder)!r} cannot be made"
        raise ArgumentError(msg) from cause
    written = []
    for finding in findings:
        if finding.samples is None:
            continue
        figure = Figure(figsize=(6, 3.4), layout="constrained")
        axes = figure.subplots()
        pooled = np.concatenate(finding.samples)
        low, high = np.quantile(pooled, [0.005, 0.995])
        bins = np.linspace(low, high if high > low else low + 1, 61).tolist()
        for sample, label in zip(finding.samples, ("one study", "its neighbour"), strict=True):
            axes.hist(sample, bins, density=True, histtype="step", linewidth=1.4, label=label)
        axes.set_title(f"{finding.what}\nclaimed {finding.claimed}, measured {finding.measured}",
                       fontsize=8)  # fmt: skip
        axes.set_xlabel("output")
        axes.set_ylabel("density")
        axes.legend(frameon=False)
        path = folder / (re.sub(r"[^a-z0-9]+", "-", finding.what.lower()).strip("-") + ".svg")
        figure.savefig(path)
        written.append(path)
    return written
