"""Neighbours of a drawn study, and whether a method's steps stay within what they declare."""

from dataclasses import replace

import numpy as np

from private_ate.api import METHODS, estimate_study
from private_ate.audit.replay import Recording, broken_promises


def replace_record(study, rng):
    """Return the study with one record changed: its arm, its outcome and its covariates."""
    row = int(rng.integers(study.size))
    treatment, outcome, covariates = (
        study.treatment.copy(), study.outcome.copy(), study.covariates.copy(),
    )  # fmt: skip
    treatment[row] = not treatment[row]
    outcome[row] = rng.choice([0, 1 << 30])
    covariates[:, row] = rng.integers(2, size=covariates.shape[0])
    return replace(study, treatment=treatment, outcome=outcome, covariates=covariates)


def assert_promises_hold(method, request, draw_study):
    """Replay a method on small studies and their neighbours; releases agree, given the outputs."""
    rng = np.random.default_rng(4)
    for seed in range(3):
        study = draw_study(seed)
        neighbour = replace_record(study, rng)
        first = Recording()
        one = estimate_study(study, request, METHODS[method], seed=1, recorder=first)
        second = Recording(source=first)
        other = estimate_study(neighbour, request, METHODS[method], seed=1, recorder=second)

        assert broken_promises(first, second) == []
        assert one == other
