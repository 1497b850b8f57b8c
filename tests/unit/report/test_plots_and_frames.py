from pathlib import Path

import pytest

from private_ate import plan_ate
from private_ate.datasets.clinic import draw_clinic
from private_ate.diagnostics.overlap import describe_overlap
from private_ate.errors import ArgumentError
from private_ate.release import Overlap
from private_ate.report.plots import draw_balance, draw_errors, draw_overlap, draw_plan
from private_ate.report.to_polars import (
    balance_frame,
    error_frame,
    overlap_frame,
    plan_frame,
)  # fmt: skip

BALANCE = {"age": (0.5, 0.01), "sex": (-0.2, -0.03)}
ERRORS = {"ours": {1.0: 0.5, 0.5: 0.9}, "published": {1.0: 1.0}}


@pytest.fixture(scope="module")
def study():
    return draw_clinic(300)


def test_overlap_counts_every_unit_once_and_reads_no_outcome(study):
    blank = study.frame.with_columns(pressure_drop=None)

    overlap = describe_overlap(study.frame, domain=study.domain)

    assert sum(overlap.treated) + sum(overlap.control) == 300
    assert overlap == describe_overlap(blank, domain=study.domain)


def test_units_alone_are_those_in_bins_without_the_other_arm():
    assert Overlap((3, 2, 0), (0, 5, 4)).alone == 7


def test_frames_hold_what_the_plots_show(study):
    overlap = describe_overlap(study.frame, domain=study.domain)
    plan = plan_ate(study.frame, domain=study.domain, level="label", epsilons=["1", "2"])

    assert balance_frame(BALANCE).rows() == [("age", 0.5, 0.01), ("sex", -0.2, -0.03)]
    assert overlap_frame(overlap)["treated"].sum() == sum(overlap.treated)
    assert plan_frame(plan)["epsilon"].to_list() == [1.0, 2.0]
    assert error_frame(ERRORS).rows() == [
        ("ours", 0.5, 0.9), ("ours", 1.0, 0.5), ("published", 1.0, 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_every_plot_is_drawn_into_a_file(study, tmp_path, ending):
    pytest.importorskip("matplotlib", reason="PLOTS WERE NOT DRAWN: install the extra plots")
    plan = plan_ate(study.frame, domain=study.domain, level="label", epsilons=["1", "2"])
    overlap = describe_overlap(study.frame, domain=study.domain)

    for name, draw in {
        "plan": lambda path: draw_plan(plan, path),
        "balance": lambda path: draw_balance(BALANCE, path),
        "overlap": lambda path: draw_overlap(overlap, path),
        "errors": lambda path: draw_errors(ERRORS, path),
    }.items():
        path = tmp_path / f"{name}.{ending}"
        draw(path)
        assert path.stat().st_size > 5000


@pytest.mark.parametrize("draw", [draw_balance, draw_errors])
def test_an_unknown_kind_of_file_is_refused(draw):
    with pytest.raises(ArgumentError, match=r"not 'x\.gif'"):
        draw({}, Path("x.gif"))
