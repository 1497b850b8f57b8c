"""Neighbour replay: every step of every method moves by no more than it declares."""

import logging
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from studies import check_neighbours, every_case, make_study, neighbours

from private_ate import ArgumentError
from private_ate.privacy.quantization import OUTCOME_STEPS


@every_case
@pytest.mark.parametrize("rows", [12, 40])
def test_no_step_moves_more_than_it_declares(method, level, rows):
    for seed in range(3):
        for first, second in neighbours(level, seed, rows):
            check_neighbours(method, level, first, second)


@every_case
def test_a_person_with_three_rows_moves_no_more_than_declared(method, level):
    for seed in range(3):
        study = make_study(seed)
        low, high = study.outcome.copy(), study.outcome.copy()
        low[:3], high[:3] = 0, OUTCOME_STEPS
        with suppress(ArgumentError):  # a method may refuse people with several rows
            check_neighbours(
                method, level, replace(study, outcome=low), replace(study, outcome=high),
                rows_per_person=3,
            )  # fmt: skip


@every_case
def test_neighbours_make_the_same_noise_about_themselves(method, level, caplog, capfd):
    for first, second in neighbours(level, 5):
        said = []
        for study in (first, second):
            caplog.clear()
            with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
                warnings.simplefilter("always")
                check_neighbours(method, level, study, study)
            # Compiling a kernel for the first time is logged by the compiler, not by us.
            logged = [r.getMessage() for r in caplog.records if r.name.startswith("private_ate")]
            said.append((logged, [str(w.message) for w in caught], capfd.readouterr()))
        assert said[0] == said[1] == ([], [], ("", ""))


@pytest.mark.audit
@every_case
def test_no_step_moves_more_than_it_declares_in_many_studies(method, level):
    for seed in range(60):
        rows = int(np.random.default_rng(seed).integers(6, 150))
        for first, second in neighbours(level, seed, rows):
            check_neighbours(method, level, first, second)
