"""Groups of rows: whatever the stacks and batches, each group gets the rows of its places."""

import numpy as np
import pytest

from private_ate.domain import Domain, Interval
from private_ate.engines import grouping
from private_ate.engines.disk_columns import CompactColumns
from private_ate.engines.local import LocalStudy
from private_ate.methods.blocks.partition import Shuffle

ROWS, GROUPS = 1003, 97
DOMAIN = Domain("t", ("y", Interval(0, 1)), {"x": Interval(0, 1), "z": Interval(0, 1)})


def study_of_positions(*, compact: bool) -> LocalStudy:
    """Return a study whose outcomes are the rows' positions."""
    position = np.arange(ROWS)
    numbers, bits = position[None] / ROWS, (position % 5 == 0)[None]
    covariates = (
        CompactColumns(numbers, bits, np.array([True, False]))
        if compact
        else np.concatenate([numbers, bits.astype(float)])
    )
    outcome, part = position.astype(np.int32), position % 7 != 0
    return LocalStudy(DOMAIN, covariates, position % 3 == 0, outcome, takes_part=part)


@pytest.mark.parametrize("stack_rows", [1, 24, 1 << 14])
@pytest.mark.parametrize("compact", [False, True])
def test_every_group_gets_the_rows_of_its_places_from_any_batch(monkeypatch, stack_rows, compact):
    monkeypatch.setattr(grouping, "_STACK_ROWS", stack_rows)
    shuffle = Shuffle(ROWS, GROUPS, 5)

    def kernel(groups):
        for row in range(groups.outcome.shape[0]):
            inside = groups.takes_part[row]
            position = groups.outcome[row][inside]
            assert np.array_equal(groups.covariates[row, inside, 0], position / ROWS)
            assert np.array_equal(groups.covariates[row, inside, 1], position % 5 == 0)
            assert np.array_equal(groups.treatment[row][inside], position % 3 == 0)
        sums = (groups.outcome * groups.takes_part).sum(axis=1)
        return np.column_stack([sums, groups.takes_part.sum(axis=1)]).astype(np.int64)

    study = study_of_positions(compact=compact)
    values = study.by_groups(shuffle, kernel)

    group = grouping.groups_of(shuffle, shuffle.places(0, ROWS))
    wanted = []
    for number in range(GROUPS):
        rows = np.flatnonzero(group == number)
        wanted.append([rows[rows % 7 != 0].sum(), np.count_nonzero(rows % 7)])
    assert np.array_equal(values, wanted)
