"""Plans hold the grids that the paper names."""

from dataclasses import replace

import pytest

from private_ate.experiments.arms import ARMS
from private_ate.experiments.catalogue import EXPERIMENTS
from private_ate.experiments.execution import RunSettings
from private_ate.experiments.runner import Scale
from private_ate.methods.published.method import PublishedOptions

SETS = ("ihdp", "lalonde", "acic", "synth")
FULL = Scale(quick=False, datasets=SETS, arms=ARMS)
QUICK = Scale(quick=True, datasets=SETS, arms=ARMS)


def plan(name, scale):
    return EXPERIMENTS[name].plan(scale)


def values(cells, name):
    return {getattr(cell, name) for cell in cells}


def test_end_to_end_covers_the_papers_budgets_neighbours_sets_and_methods():
    cells = list(plan("end-to-end", FULL))

    assert values(cells, "epsilon") == {"0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4"}
    assert values(cells, "neighbors") == {1, 3, 5, 7}
    assert values(cells, "dataset") == set(SETS)
    assert values(cells, "arm") == {arm.label for arm in ARMS} - {"calibrated-balance"}
    assert all(cell.repetitions >= 3 for cell in cells)


@pytest.mark.parametrize("name", ["limit-label", "limit-sample"])
def test_limits_compare_the_adaptive_one_with_1_10_and_50(name):
    cells = list(plan(name, FULL))

    assert values(cells, "parameters_text") == {"", "k=1", "k=10", "k=50"}


@pytest.mark.parametrize(
    ("name", "default"),
    [("coefficient-c", ("c", 0.01)), ("coefficient-h", ("h", 0.001))],
)
@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_coefficients_are_varied_around_the_papers_choice(name, default, scale):
    choices = {cell.parameters[0] for cell in plan(name, scale)}
    below = [value for _, value in choices if value < default[1]]
    above = [value for _, value in choices if value > default[1]]

    assert default in choices
    assert len(below) >= 2
    assert len(above) >= 2


@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_allocations_are_valid_and_hold_the_papers(scale):
    shares = {dict(cell.parameters)["shares"] for cell in plan("budget-allocation", scale)}

    assert ("0.05", "0.05", "0.7", "0.2") in shares
    for choice in shares:
        PublishedOptions(shares=choice)  # raises unless they add up to one exactly


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_experiment_runs_a_cell_twice_and_quick_is_less(name):
    full, quick = (list(EXPERIMENTS[name].plan(scale)) for scale in (FULL, QUICK))

    assert len(set(full)) == len(full)
    assert sum(c.repetitions for c in quick) < sum(c.repetitions for c in full) / 4


def test_quick_keeps_synthesisers_away_from_the_large_sets():
    slow = {arm.label for arm in ARMS if arm.slow}
    cells = [cell for cell in plan("end-to-end", QUICK) if cell.arm in slow]

    assert values(cells, "dataset") == {"lalonde", "synth"}


def test_a_scale_without_data_packages_still_has_something_to_run():
    alone = Scale(quick=True, datasets=("synth",), arms=ARMS[:2])

    for experiment in EXPERIMENTS.values():
        assert list(experiment.plan(alone))


def test_a_run_without_its_appendix_has_the_papers_number_of_neighbours_only():
    whole = plan("end-to-end", FULL)
    short = list(plan("end-to-end", replace(FULL, is_appendix_wanted=False)))
    settings = RunSettings(appendix=False)

    assert {cell.neighbors for cell in short} == {5}
    assert short == [cell for cell in whole if cell.neighbors == 5]
    assert settings.command("end-to-end").endswith("end-to-end --no-appendix --seed 1")
    assert "without the appendix" in settings.sentence
