"""Data sets by family and draw, loaded and encoded once per process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from private_ate import datasets
from private_ate.data.tables import read_table
from private_ate.datasets import acic, synth
from private_ate.datasets.dataset import Dataset
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError, DatasetError
from private_ate.experiments.references import (
    adjusted_means,
    contrasts_of,
    matched_means,
    records_of,
)

__all__ = [
    "PAPER_SETS",
    "References",
    "Source",
    "display_name",
    "is_installed",
    "open_source",
    "reference_effects",
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
_SEVERAL = "several-arms-"


@dataclass(frozen=True, slots=True)
class Source:
    """A data set with its rows encoded."""

    dataset: Dataset
    study: LocalStudy


@dataclass(frozen=True, slots=True)
class References:
    """Effects that releases of one data set are held against, none of them private.

    Each is a list of contrasts: one for two arms, all pairs with the reference first for more.

    Attributes
    ----------
    matching : list of float
        Matching without limits and noise.
    truth : list of float or None
        The true effects, where the outcomes were simulated.
    aipw : list of float or None
        The doubly robust estimates, for several arms only.
    """

    matching: list[float]
    truth: list[float] | None
    aipw: list[float] | None = None


def display_name(family: str) -> str:
    """Return the name of a family of data sets in figures."""
    if family.startswith(_SEVERAL):
        study = _several_arms(family)
        return f"{study.arms} arms, n = {study.size}"
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
def reference_effects(family: str, draw: int, neighbors: int) -> References:
    """Return what is known or estimated without privacy of a member of a family."""
    dataset = open_source(family, draw).dataset
    if not family.startswith(_SEVERAL):
        truth = None if dataset.true_effect is None else [dataset.true_effect]
        return References([dataset.exact_effect(neighbors)], truth)
    records = records_of(dataset)
    means = np.array([dataset.true_means[label] for label in dataset.domain.treatment.coded])
    return References(
        contrasts_of(matched_means(records, neighbors)).tolist(),
        contrasts_of(means).tolist(),
        contrasts_of(adjusted_means(records)).tolist(),
    )


def _load(family: str, draw: int) -> Dataset:
    if family == "synth-draws":
        return synth.draw(draw)
    if family == "acic-settings":
        return acic.load(draw)
    if family.startswith(_CONFOUNDED):
        return datasets.generate(_confounded(family), seed=draw)
    if family.startswith(_SEVERAL):
        return datasets.generate(_several_arms(family), seed=draw)
    return datasets.load(family)


def _confounded(family: str) -> datasets.Confounded:
    size = family.removeprefix(_CONFOUNDED)
    if not size.isdigit():
        msg = f"a family of confounded studies is named confounded-SIZE, not {family!r}"
        raise ArgumentError(msg)
    return datasets.Confounded(size=int(size))


def _several_arms(family: str) -> datasets.SeveralArms:
    arms, _, size = family.removeprefix(_SEVERAL).partition("-")
    if not (arms.isdigit() and size.isdigit()):
        msg = f"a family of studies of several arms is named several-arms-ARMS-SIZE, not {family!r}"
        raise ArgumentError(msg)
    return datasets.SeveralArms(size=int(size), arms=int(arms))
