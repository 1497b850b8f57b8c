"""Attacks on the numbers themselves: holes in the output, repeated streams, order of rows."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from private_ate import Domain, Interval
from private_ate.engines import local
from private_ate.engines.local import LocalPool, LocalStudy
from private_ate.privacy.entropy import SecureEntropy, SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS

ONE = Fraction(1)


@pytest.mark.parametrize("value", [0, 1, 1 << 20])
def test_neighbours_reach_the_same_outputs_and_every_output_is_on_the_grid(value):
    """Floating-point noise fails here: its reachable sets differ and tell neighbours apart."""
    noise = Noise(SecureEntropy())
    reached = []
    for start in (value, value + 1):
        rows = noise.laplace_rows("a", np.full(60_000, start), sensitivity=1, epsilon=ONE)
        assert np.all(rows % 2 == 1)
        values, counts = np.unique(rows, return_counts=True)
        reached.append(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    often = [{value for value, count in side.items() if count > 60} for side in reached]
    assert often[0] <= set(reached[1])
    assert often[1] <= set(reached[0])
    for value_of in often[0] & often[1]:
        ratio = reached[0][value_of] / reached[1][value_of]
        noise_of_counts = 6 * (1 / reached[0][value_of] + 1 / reached[1][value_of]) ** 0.5
        assert abs(np.log(ratio)) <= 1 + noise_of_counts


@pytest.mark.system_bytes
def test_threads_never_share_a_stream():
    def draw(_turn: int) -> bytes:
        rows = Noise(SecureEntropy()).laplace_rows(
            "a", np.zeros(64, dtype=np.int64), sensitivity=1 << 40, epsilon=ONE
        )
        return rows.tobytes()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(draw, range(200)))) == 200


@pytest.mark.system_bytes
def test_a_pickled_source_of_secure_bytes_does_not_repeat_itself():
    source = SecureEntropy()
    copy = pickle.loads(pickle.dumps(source))  # noqa: S301  # our own bytes
    assert source.draw(32) != copy.draw(32)


def test_a_seeded_source_repeats_itself_when_it_is_made_anew():
    assert SeededEntropy(3).draw(32) == SeededEntropy(3).draw(32)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_forked_workers_draw_different_noise():
    code = """
import os
from fractions import Fraction
from private_ate.privacy.entropy import SecureEntropy
from private_ate.privacy.noise import Noise
noise = Noise(SecureEntropy())
noise.laplace("before", [0], sensitivity=1 << 80, epsilon=Fraction(1))
for worker in range(8):
    if os.fork() == 0:
        drawn = noise.laplace("in", [0] * 4, sensitivity=1 << 80, epsilon=Fraction(1))
        os.write(1, f"{drawn}\\n".encode())  # one write: lines of workers do not mix
        os._exit(0)
for worker in range(8):
    os.wait()
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    lines = found.stdout.split("\n")[:-1]
    assert len(lines) == len(set(lines)) == 8


def draw_study(rows: int = 500) -> LocalStudy:
    rng = np.random.default_rng(1)
    outcome = rng.integers(0, OUTCOME_STEPS, rows, endpoint=True).astype(np.int32)
    domain = Domain("t", ("y", Interval(0, 1)))
    return LocalStudy(domain, rng.random((2, rows)), rng.random(rows) < 0.4, outcome)


def test_the_order_of_rows_and_the_size_of_blocks_change_nothing_in_the_integer_sums(monkeypatch):
    study = draw_study()
    pool = study.pool(np.array([0.1, 1.0, -2.0]))
    sums = study.arm_sums(pool.match_sharing_ties(5))
    turn = np.random.default_rng(2).permutation(study.size)
    shuffled = replace(
        study, covariates=study.covariates[:, turn], treatment=study.treatment[turn],
        outcome=study.outcome[turn],
    )  # fmt: skip
    monkeypatch.setattr(local, "_BLOCK_ROWS", 7)
    monkeypatch.setattr("private_ate.privacy.quantization._EXACT_ROWS", 3)

    again = shuffled.arm_sums(shuffled.pool(np.array([0.1, 1.0, -2.0])).match_sharing_ties(5))

    assert again == sums


def test_a_public_view_gives_the_weights_that_are_used():
    study = draw_study()
    coefficients = np.array([0.1, 1.0, -2.0])
    pools: list[LocalPool] = [study.pool(coefficients), study.public().pool(coefficients)]
    first, second = (pool.match_sharing_ties(3).steps for pool in pools)
    assert np.array_equal(first, second)
