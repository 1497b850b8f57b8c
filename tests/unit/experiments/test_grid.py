"""Seeds and names of chunks follow from what is run and from nothing else."""

from dataclasses import replace

import pytest

from private_ate.experiments.arms import ALL_ARMS, ARM_STYLES, ARMS, missing_arms, runnable_arms
from private_ate.experiments.chunks import Cell, Chunk, chunks_of

CELL = Cell("synth", "published-label", "1", repetitions=25)


def test_chunks_cover_every_repetition_once():
    chunks = list(chunks_of("end-to-end", [CELL], seed=1))

    repetitions = [r for chunk in chunks for r in range(chunk.first, chunk.first + chunk.count)]
    assert repetitions == list(range(25))


def test_a_seed_does_not_depend_on_how_often_a_cell_is_repeated_or_cut():
    few = Chunk("end-to-end", replace(CELL, repetitions=3), first=0, count=3, seed=1)
    many = Chunk("end-to-end", CELL, first=0, count=10, seed=1)

    assert few.seed_of(2) == many.seed_of(2)


@pytest.mark.parametrize(
    "change",
    [{"dataset": "ihdp"}, {"arm": "published-sample"}, {"epsilon": "2"}, {"draw": 1},
     {"neighbors": 3}, {"parameters": (("k", 1),)}],
)  # fmt: skip
def test_a_seed_depends_on_everything_about_the_cell(change):
    one = Chunk("end-to-end", CELL, first=0, count=10, seed=1)
    other = replace(one, cell=replace(CELL, **change))

    assert one.seed_of(0) != other.seed_of(0)
    assert one.name != other.name


def test_a_seed_depends_on_experiment_repetition_and_base_seed():
    one = Chunk("end-to-end", CELL, first=0, count=10, seed=1)

    seeds = {
        one.seed_of(0),
        one.seed_of(1),
        replace(one, seed=2).seed_of(0),
        replace(one, experiment="limit-label").seed_of(0),
    }
    assert len(seeds) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_parameters_are_written_as_one_text():
    cell = replace(CELL, parameters=(("k", None), ("shares", ("0.1", "0.2"))))

    assert cell.parameters_text == "k=none;shares=0.1/0.2"


def test_every_arm_is_either_runnable_or_named_as_missing_and_has_a_style():
    assert set(runnable_arms()) | set(missing_arms()) == set(ARMS)
    assert not set(runnable_arms()) & set(missing_arms())
    assert {arm.label for arm in ALL_ARMS} == set(ARM_STYLES)
    looks = [(style.marker, style.line) for style in ARM_STYLES.values()]
    assert len(set(looks)) == len(looks)


def test_an_arm_whose_method_is_not_registered_is_missing(monkeypatch):
    from private_ate.experiments import arms

    monkeypatch.setattr(arms, "METHODS", {})

    assert arms.runnable_arms() == ()
    assert set(arms.missing_arms()) == set(ARMS)
