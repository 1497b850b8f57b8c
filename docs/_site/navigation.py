"""Builds the site's navigation from the files that exist, in the order given here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_SECTIONS = {
    "Start here": [
        "how-to/install.md",
        "tutorial.md",
        "explanation/levels.md",
        "how-to/declare-bounds.md",
        "how-to/check-your-data.md",
        "how-to/choose-epsilon.md",
        "how-to/read-the-interval.md",
        "how-to/ledger.md",
        "explanation/pitfalls.md",
        "threat-model.md",
    ],
    "Questions": [
        "how-to/several-arms.md",
        "how-to/subgroups.md",
        "how-to/several-outcomes.md",
        "how-to/binary-outcomes.md",
        "how-to/survival.md",
        "how-to/trials.md",
        "how-to/before-and-after.md",
        "how-to/sampling-weights.md",
        "how-to/missing-outcomes.md",
        "how-to/repeated-rows.md",
        "how-to/several-sites.md",
        "how-to/reports.md",
        "tutorial-birth-weight.md",
        "tutorial-survival.md",
        "notebooks/index.md",
        "notebooks/",
    ],
    "Tools and files": [
        "how-to/file-formats.md",
        "how-to/r.md",
        "how-to/scikit-learn.md",
        "how-to/dowhy.md",
        "how-to/large-files.md",
        "how-to/spark.md",
    ],
    "Service": [
        "how-to/serve-a-hospital.md",
        "how-to/ask-a-service.md",
        "how-to/audit-a-service.md",
        "explanation/service.md",
    ],
    "How it works": ["methods.md", "explanation/", "the-paper.md"],
    "How well it works": [
        "results/index.md",
        "accuracy.md",
        "scale.md",
        "experiments.md",
        "results/",
        "baselines/",
    ],
    "Proofs": ["proofs/"],
    "Reference": [
        "reference/command-line.md",
        "api.md",
        "reference/domain-toml.md",
        "reference/release.md",
        "glossary.md",
        "reference/modules.md",
    ],
    "Decisions": ["adr/"],
}


def on_config(config: Any) -> Any:
    """Fill in the navigation; a page that no section names comes last, so none is lost."""
    root = Path(config["docs_dir"])
    pages = {path.relative_to(root).as_posix() for path in root.rglob("*.md")}
    navigation: list[Any] = [{"Home": "index.md"}]
    used = {"index.md"}
    for title, wanted in _SECTIONS.items():
        listed = [page for entry in wanted for page in _matching(entry, pages)]
        listed = [page for page in dict.fromkeys(listed) if page not in used]
        used.update(listed)
        if listed:
            navigation.append({title: listed})
    others = sorted(pages - used)
    if others:
        navigation.append({"More": others})
    config["nav"] = navigation
    return config


def _matching(entry: str, pages: set[str]) -> list[str]:
    if entry.endswith("/"):
        return sorted(page for page in pages if page.startswith(entry))
    return [entry] if entry in pages else []
