"""Data sets by family and draw, loaded and encoded once per process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from private_ate import datasets
from private_ate.data.tables import read_table
from private_ate.datasets import acic, synth
from private_ate.datasets.dataset import Dataset
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError, DatasetError

__all__ = [
    "PAPER_SETS",
    "Source",
    "display_name",
    "is_installed",
    "open_source",
    "reference_effect",
]

PAPER_SETS = ("ihdp", "lalonde", "acic", "synth")
_DISPLAY = {
    "ihdp": "IHDP",
    "lalonde": "Lalonde",
    "acic": "ACIC",
    "synth": "Synth",
    "acic-settings": "ACIC, ten settings",
    "synth-draws": "Synth, many draws",
}
_CONFOUNDED = "confounded-"


@dataclass(frozen=True, slots=True)
class Source:
    """A data set with its rows encoded."""

    dataset: Dataset
    study: LocalStudy


def display_name(family: str) -> str:
    """Return the name of a family of data sets in figures."""
    if family.startswith(_CONFOUNDED):
        return f"confounded, n = {family.removeprefix(_CONFOUNDED)}"
    return _DISPLAY.get(family, family)


def is_installed(family: str) -> bool:
    """Say whether the family's rows can be read here."""
    try:
        _load(family, 1)
    except DatasetError:
        return False
    return True


@lru_cache(maxsize=24)  # twenty draws and the benchmarks
def open_source(family: str, draw: int) -> Source:
    """Load and encode a member of a family; the last few are kept."""
    dataset = _load(family, draw)
    return Source(dataset, LocalStudy.encode(read_table(dataset.frame), dataset.domain))


@lru_cache(maxsize=1024)
def reference_effect(family: str, draw: int, neighbors: int) -> float:
    """Return the matching estimate without limits and noise."""
    return open_source(family, draw).dataset.exact_effect(neighbors)


def _load(family: str, draw: int) -> Dataset:
    if family == "synth-draws":
        return synth.draw(draw)
    if family == "acic-settings":
        return acic.load(draw)
    if family.startswith(_CONFOUNDED):
        return datasets.generate(_confounded(family), seed=draw)
    return datasets.load(family)


def _confounded(family: str) -> datasets.Confounded:
    size = family.removeprefix(_CONFOUNDED)
    if not size.isdigit():
        msg = f"a family of confounded studies is named confounded-SIZE, not {family!r}"
        raise ArgumentError(msg)
    return datasets.Confounded(size=int(size))
