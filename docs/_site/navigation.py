"""Builds the site's navigation from the files that exist, in the order given here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_SECTIONS = {
    "Tutorial": ["tutorial.md", "tutorial-birth-weight.md"],
    "How to": [
        "how-to/choose-epsilon.md",
        "how-to/declare-bounds.md",
        "how-to/messy-data.md",
        "how-to/check-your-data.md",
        "how-to/missing-outcomes.md",
        "how-to/read-the-interval.md",
        "how-to/binary-outcomes.md",
        "how-to/trials.md",
        "how-to/sampling-weights.md",
        "how-to/several-arms.md",
        "how-to/several-outcomes.md",
        "how-to/several-sites.md",
        "how-to/before-and-after.md",
        "how-to/repeated-rows.md",
        "how-to/file-formats.md",
        "how-to/r.md",
        "how-to/large-files.md",
        "how-to/spark.md",
        "how-to/ledger.md",
        "how-to/serve-a-hospital.md",
        "how-to/ask-a-service.md",
        "how-to/audit-a-service.md",
        "how-to/reports.md",
    ],
    "Explanation": [
        "explanation/levels.md",
        "explanation/matching.md",
        "explanation/several-arms.md",
        "explanation/several-arms-sample.md",
        "explanation/several-arms-intervals.md",
        "explanation/blocks.md",
        "explanation/published-sample-level.md",
        "explanation/intervals.md",
        "explanation/p-values.md",
        "explanation/several-sites.md",
        "explanation/pitfalls.md",
        "explanation/service.md",
        "explanation/unmeasured-confounding.md",
    ],
    "Experiments": ["experiments.md", "accuracy.md", "scale.md", "results/index.md", "results/"],
    "Proofs": ["proofs/"],
    "Baselines": ["baselines/"],
    "Decisions": ["adr/"],
}


def on_config(config: Any) -> Any:
    """Fill in the navigation; a page that no section names comes last, so none is lost."""
    root = Path(config["docs_dir"])
    pages = {path.relative_to(root).as_posix() for path in root.rglob("*.md")}
    navigation: list[Any] = [{"Home": "index.md"}]
    used = {"index.md"}
    for title, wanted in _SECTIONS.items():
        listed = list(dict.fromkeys(page for entry in wanted for page in _matching(entry, pages)))
        if title == "How to":
            rest = sorted(page for page in pages if page.startswith("how-to/"))
            listed += [page for page in rest if page not in listed]
        used.update(listed)
        if listed:
            navigation.append({title: listed})
    reference = [page for page in ("api.md", "the-paper.md", "glossary.md") if page in pages]
    others = sorted(pages - used - set(reference))
    navigation.append({"Reference": [*reference, *others]})
    config["nav"] = navigation
    return config


def _matching(entry: str, pages: set[str]) -> list[str]:
    if entry.endswith("/"):
        return sorted(page for page in pages if page.startswith(entry))
    return [entry] if entry in pages else []
