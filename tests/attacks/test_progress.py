"""Progress is an output: what a callback hears is the same for any two neighbours."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from private_ate.api import estimate_study, method_for
from private_ate.baselines.aim import AimOptions
from private_ate.baselines.privsyn import PrivSynOptions
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.methods.blocks.plan import BlocksOptions
from private_ate.models.private_score import Scaling, ScoreObjective
from private_ate.privacy.objective import ObjectiveCalibration
from private_ate.request import Request

ROWS = 60_000
DOMAIN = Domain("t", ("y", Interval(0, 1)), {f"x{j}": Interval(0, 1) for j in range(4)})


def deceiving_study(misled, progress=None):
    """Treatment follows the first covariate, but not in ``misled`` of the rows of the start."""
    ends = (np.random.default_rng(4).random((4, ROWS)) > 0.5).astype(float)
    treatment = ends[0] == 0
    first = np.flatnonzero(np.arange(ROWS) % 3 == 0)[:misled]
    treatment[first] = ~treatment[first]
    outcome = np.zeros(ROWS, dtype=np.int32)
    return LocalStudy(DOMAIN, ends, treatment, outcome, progress)


def passes_of(misled, monkeypatch):
    """Return what a callback hears while a model is fitted, and how many passes there were."""
    told, passes = [], []
    study = deceiving_study(misled, lambda *news: told.append(news))
    objective = ScoreObjective(study, Scaling(np.full(4, 2.0), np.full(4, -1.0)))
    tilt = ObjectiveCalibration.of(objective, 1, Fraction(2)).perturbation([Fraction(0)] * 5)
    honest = ScoreObjective._state

    def counted(*arguments):
        passes.append(1)
        return honest(*arguments)

    monkeypatch.setattr(ScoreObjective, "_state", counted)
    objective.minimize(tilt)
    monkeypatch.undo()
    return told, len(passes)


def test_passes_that_one_record_adds_are_not_announced(monkeypatch):
    """At 15 702 misled rows the solver needs three passes more than at 15 701, here at least."""
    told, passes = zip(
        *(passes_of(misled, monkeypatch) for misled in (0, 15_701, 15_702, 20_000)), strict=True
    )

    assert max(passes) > min(passes)  # the data still decide how long it takes
    assert told[0] == told[1] == told[2] == told[3]
    assert len(told[0]) == 16 * 2 + 8 * 4  # blocks of 2¹⁴ rows: two of the start, four in all


def test_a_whole_run_announces_the_same_steps_for_any_records():
    request = Request("sample", Fraction(2), options=BlocksOptions(adjust=True, partitions=1))
    told = []
    for misled in (0, ROWS):
        heard = []
        study = deceiving_study(misled, lambda *news, heard=heard: heard.append(news))
        estimate_study(study, request, method_for("blocks", request), seed=1)
        told.append(heard)

    assert told[0] == told[1] != []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("aim", AimOptions(adjacency="add_remove", bins=2, outcome_bins=2)),
        ("privsyn", PrivSynOptions("add_remove", bins=2, outcome_bins=2, iterations=1)),
    ],
)
def test_a_private_number_of_rows_is_not_announced_as_a_number_of_blocks(name, options):
    """One row more than 2¹⁴ was a second block; the blocks of two passes are not counted now."""
    told = []
    whole = deceiving_study(0)
    for rows in ((1 << 14), (1 << 14) + 1):
        heard = []
        study = replace(
            whole,
            domain=Domain("t", ("y", Interval(0, 1)), {"x0": Interval(0, 1)}),
            covariates=whole.covariates[:1, :rows],
            treatment=whole.treatment[:rows],
            outcome=whole.outcome[:rows],
            progress=lambda *news, heard=heard: heard.append(news[0]),
        )
        request = Request("sample", Fraction(1), options=options)
        estimate_study(study, request, method_for(name, request), seed=1)
        told.append(set(heard))

    assert told[0] == told[1]
