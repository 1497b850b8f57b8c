"""What the methods fold over rows can be sent to a cluster: no kernel holds a study."""

import gc
from types import FunctionType, ModuleType

import numpy as np
import polars as pl
import pytest

from private_ate import Domain, Interval, Treatment, estimate_ate
from private_ate.engines.local import LocalStudy

ROWS = 400
COVARIATES = {"x": Interval(0, 1), "z": Interval(0, 1)}
DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), COVARIATES)
ARMS = Domain(Treatment("t", arms=[0, 1, 2]), ("y", Interval(0, 10)), COVARIATES)


def table(arms=2):
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {"x": rng.random(ROWS), "z": rng.random(ROWS), "y": 10 * rng.random(ROWS)}
        | {"t": rng.integers(0, arms, ROWS)}
    )


def holds_a_study(kernel):
    """Whether a study is reached from what a function closes over, as pickling reaches it."""
    seen, waiting = set(), [kernel]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | ModuleType):
            continue
        seen.add(id(one))
        if isinstance(one, LocalStudy):
            return True
        if isinstance(one, FunctionType):
            waiting += (one.__closure__, one.__defaults__, one.__kwdefaults__)
        else:
            waiting += gc.get_referents(one)
    return False


@pytest.fixture
def kernels(monkeypatch):
    """All kernels of the passes over rows that a test makes, by title."""
    found, fold, by_groups = [], LocalStudy.fold, LocalStudy.by_groups

    def watched_fold(self, kernel, **more):
        found.append((more.get("title"), kernel))
        return fold(self, kernel, **more)

    def watched_groups(self, grouping, kernel, **more):
        found.append((more.get("title"), kernel))
        return by_groups(self, grouping, kernel, **more)

    monkeypatch.setattr(LocalStudy, "fold", watched_fold)
    monkeypatch.setattr(LocalStudy, "by_groups", watched_groups)
    return found


@pytest.mark.parametrize("level", ["label", "sample"])
@pytest.mark.parametrize(
    ("arms", "asked"),
    [
        (2, {"epsilon": 0.1}),
        (2, {"epsilon": 20}),
        (2, {"epsilon": 1, "probability": 0.5, "design": "randomized"}),
        (2, {"epsilon": 20, "estimand": "ato"}),
        (3, {"epsilon": 1}),
    ],
)
def test_no_kernel_holds_the_rows(kernels, level, arms, asked):
    estimate_ate(table(arms), domain={2: DOMAIN, 3: ARMS}[arms], level=level, seed=1, **asked)

    assert kernels
    assert [title for title, kernel in kernels if holds_a_study(kernel)] == []
