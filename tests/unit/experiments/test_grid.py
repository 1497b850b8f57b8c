"""Seeds and names of chunks follow from what is run and from nothing else."""

from dataclasses import replace

import pytest

from private_ate.experiments.arms import ALL_ARMS, ARM_STYLES, ARMS
from private_ate.experiments.runner import Cell, Chunk, chunks_of

CELL = Cell("synth", "published-label", "1", repetitions=25)


def only_chunk(cell=CELL, experiment="end-to-end", seed=1):
    return Chunk(experiment, ((cell, 0),), seed)


def seed_of(chunk, repetition=0):
    return chunk.seed_of(chunk.cell, repetition)


def test_chunks_cover_every_repetition_once():
    cells = [CELL, replace(CELL, epsilon="2"), replace(CELL, arm="blocks", repetitions=1)]
    chunks = list(chunks_of("end-to-end", cells, seed=1))

    releases = [release for chunk in chunks for release in chunk.releases]
    assert releases == [(cell, number) for cell in cells for number in range(cell.repetitions)]
    assert all(len({cell.curve for cell, _ in chunk.releases}) == 1 for chunk in chunks)
    assert max(len(chunk.releases) for chunk in chunks) == 10


def test_a_seed_does_not_depend_on_how_often_a_cell_is_repeated_or_cut():
    chunk = only_chunk()

    for other in (replace(CELL, repetitions=3), replace(CELL, isolated=True)):
        assert chunk.seed_of(other, 2) == chunk.seed_of(CELL, 2)


@pytest.mark.parametrize(
    "change",
    [{"dataset": "ihdp"}, {"arm": "published-sample"}, {"epsilon": "2"}, {"draw": 1},
     {"neighbors": 3}, {"parameters": (("k", 1),)}],
)  # fmt: skip
def test_a_seed_depends_on_everything_about_the_cell(change):
    one, other = only_chunk(), only_chunk(replace(CELL, **change))

    assert seed_of(one) != seed_of(other)
    assert one.name != other.name


def test_a_seed_depends_on_experiment_repetition_and_base_seed():
    one = only_chunk()

    seeds = {
        seed_of(one),
        seed_of(one, 1),
        seed_of(only_chunk(seed=2)),
        seed_of(only_chunk(experiment="limit-label")),
    }
    assert len(seeds) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_parameters_are_written_as_one_text():
    cell = replace(CELL, parameters=(("k", None), ("shares", ("0.1", "0.2"))))

    assert cell.parameters_text == "k=none;shares=0.1/0.2"


def test_every_arm_has_a_style_of_its_own():
    assert set(ARMS) <= set(ALL_ARMS)
    assert {arm.label for arm in ALL_ARMS} == set(ARM_STYLES)
    looks = [(style.marker, style.line) for style in ARM_STYLES.values()]
    assert len(set(looks)) == len(looks)
