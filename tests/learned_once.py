"""Features of label level are learned once from the same public rows, however many tests ask.

Growing trees is the greater part of an estimate of some hundred rows, and thousands of estimates in
the tests have rows in common: those of neighbours, and those of studies that are drawn again.
Features are a function of public rows alone, so rows that differ in any bit are learned from anew,
as they are once a name in the modules behind features stands for something else. A test of the
learning itself asks for ``learn_anew``.
"""

import sys
from collections import OrderedDict
from functools import wraps

import pytest

_MODULES = ("methods.calibrated.features", "models.boosting", "models.trees")
_MOST = 64
_learned = OrderedDict()


def _names():
    """Return what the names in the modules behind features stand for."""
    held = [sys.modules.get(f"private_ate.{name}") for name in _MODULES]
    return tuple(id(value) for module in held if module for value in vars(module).values())


def _remembering(learn):
    @wraps(learn)
    def remembered(covariates, member, **asked):
        rows = covariates.shape, covariates.strides, covariates.tobytes(), member.tobytes()
        wanted = tuple(asked.items())
        key = *rows, wanted, _names()
        if key not in _learned:
            found = learn(covariates, member, **asked)
            _learned[*rows, wanted, _names()] = found  # numba loads in the first call
            if len(_learned) > _MOST:
                _learned.popitem(last=False)
            return found
        _learned.move_to_end(key)
        return _learned[key]

    return remembered


def pytest_runtest_logstart():
    """Begin once the package is loaded: tests that have no use for it do not pay for that."""
    design = sys.modules.get("private_ate.methods.calibrated.design")
    if design is not None and not hasattr(design.learn_features, "__wrapped__"):
        design.learn_features = _remembering(design.learn_features)


@pytest.fixture
def learn_anew(monkeypatch):
    """Learn every time in this test."""
    from private_ate.methods.calibrated import design, features

    monkeypatch.setattr(design, "learn_features", features.learn_features)
