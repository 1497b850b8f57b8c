"""Boosted trees as conditions that rule leaves out."""

import numpy as np

from private_ate.models.boosting import boost_until_worse


def test_leaves_by_conditions_are_those_that_the_trees_were_grown_with():
    rng = np.random.default_rng(2)
    columns = rng.normal(size=(1203, 4))
    columns[:, 3] = rng.integers(0, 3, 1203)  # ties with edges
    chance = 1 / (1 + np.exp(-columns[:, 0] * columns[:, 1] - columns[:, 3]))
    target = (rng.random(1203) < chance).astype(float)
    start = np.zeros(1203)
    held = slice(900, None)
    trees, losses = boost_until_worse(
        columns[:900], target[:900], start[:900], (columns[held], target[held], start[held]), 60, 20
    )

    for rounds in (1, 7, losses.size - 1):
        score = trees.predict(np.ascontiguousarray(columns[held].T), rounds)
        loss = np.logaddexp(0, np.where(target[held] == 1, -score, score)).mean()
        np.testing.assert_allclose(loss, losses[rounds], rtol=1e-12)
