"""Attacks on whole estimates: order, blocks, missing doors to the data, seeds, the canary."""

import gc
import io
import logging
import pickle
import traceback
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from studies import every_case, make_study, release_of

from private_ate import (
    ArgumentError,
    Domain,
    DomainError,
    Interval,
    Ledger,
    PrivateAteError,
    Treatment,
    estimate_ate,
)
from private_ate.audit.replay import Recording
from private_ate.engines import local
from private_ate.engines.local import LocalPool, LocalStudy
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import weighted_sum
from private_ate.request import Request
from replay import record

CANARY = 86420.97531


@every_case
def test_the_size_of_blocks_changes_no_integer(method, level, monkeypatch):
    study = make_study(3, rows=90)
    recordings = []
    for rows in (1 << 14, 90, 16):
        monkeypatch.setattr(local, "_BLOCK_ROWS", rows)
        recording = Recording(source=recordings[0] if recordings else None)
        method.run(study, Request(level, Fraction(1)), Noise(SeededEntropy(1), recording))
        recordings.append(recording)
    for spends, inputs in ((recording.spends, recording.inputs) for recording in recordings[1:]):
        assert spends == recordings[0].spends
        for spend, one, other in zip(spends, recordings[0].inputs, inputs, strict=True):
            # Sums of outcomes are whole numbers; a fitted model may differ in its last digit.
            if "outcome" in spend.step or "sum" in spend.step:
                assert np.array_equal(one, other), spend.step


def test_the_order_of_rows_changes_no_sum():
    rng = np.random.default_rng(0)
    weights = rng.integers(-(1 << 30), 1 << 30, 50_000)
    values = rng.integers(0, 1 << 30, 50_000)
    exact = sum(w * v for w, v in zip(weights.tolist(), values.tolist(), strict=True))
    for _ in range(4):
        order = rng.permutation(weights.size)
        assert weighted_sum(weights[order], values[order]) == exact


def test_rows_with_their_weights_in_any_order_give_the_same_arm_sums():
    study = make_study(1, rows=60)
    pool = LocalPool.sort(np.arange(60, dtype=np.int64), study.treatment)
    weights = pool.match_sharing_ties(5)
    order = np.random.default_rng(0).permutation(60)
    turned = LocalStudy(
        study.domain, study.covariates[:, order], study.treatment[order], study.outcome[order]
    )
    mixed = replace(weights, steps=weights.steps[order], treatment=weights.treatment[order])
    assert study.arm_sums(weights) == turned.arm_sums(mixed)


@every_case
def test_the_released_steps_add_up_to_the_epsilon_that_is_stated(method, level):
    run = record(method.run, make_study(2), Request(level, Fraction(1)))
    release = release_of(make_study(2), method, level)
    if not run.noise.cost.rho:
        assert run.noise.spent == release.epsilon
    assert release.epsilon == 1


@pytest.mark.parametrize("level", ["label", "sample"])
def test_bounds_are_never_taken_from_the_data_without_the_opt_out(level):
    frame = pl.DataFrame({"t": [0, 1] * 10, "y": [0.5, 0.75] * 10, "a": [0.25] * 20})
    asked = {"treatment": "t", "outcome": "y", "level": level, "epsilon": "1"}
    with pytest.raises(DomainError, match="'y' has no declared bounds"):
        estimate_ate(frame, covariates=[], **asked)
    opted = estimate_ate(frame, bounds="from-data", method="published", **asked)
    assert opted.guarantee == "none"
    assert not opted.is_private
    if level == "sample":
        with pytest.raises(DomainError, match="'a' has no declared bounds"):
            estimate_ate(
                frame,
                domain=Domain(Treatment("t", 1, 0), ("y", Interval(0, 1))),
                level=level,
                epsilon="1",
            )


@every_case
def test_a_seed_is_stamped_and_a_ledger_refuses_it(method, level, tmp_path):
    study = make_study(4)
    seeded = estimate_ate(study, level=level, epsilon="1", method=method.name, seed=3)
    assert not seeded.is_private
    assert seeded.guarantee == "none (seeded)"
    ledger = Ledger.create(tmp_path / "budget.db", "trial", epsilon="1")
    with pytest.raises(ArgumentError, match="seed"):
        estimate_ate(study, level=level, epsilon="1", method=method.name, seed=3, ledger=ledger)
    assert ledger.accounts()[0].spent.epsilon == 0
    ledger.close()


@every_case
def test_a_method_charges_the_ledger_once_and_in_full(method, level, tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "trial", epsilon="1", delta="0.5")
    release = estimate_ate(
        make_study(4), level=level, epsilon="0.25", method=method.name, ledger=ledger
    )
    kinds = [entry.kind for entry in ledger.history()]
    assert kinds == ["create", "charge", "release"]
    assert ledger.accounts()[0].left.epsilon_text == "0.75"
    assert release.settings["ledger"]["left"] == 0.75
    ledger.verify(release.settings["ledger"]["head"])
    ledger.close()


def _malformed(number, rng):
    """Return arguments that are wrong in one of many ways, around a table with the canary."""
    rows = int(rng.integers(1, 9))
    plain = {
        "t": rng.integers(0, 2, rows).tolist(),
        "y": [CANARY] * rows,
        "a": rng.random(rows).tolist(),
    }
    asked = {
        "domain": Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"a": Interval(0, 1)}),
        "level": "sample", "epsilon": "1", "method": "published", "seed": number,
    }  # fmt: skip
    flaws = [
        {}, {"level": "label"}, {"epsilon": "x"}, {"epsilon": "-1"}, {"level": "other"},
        {"method": "none"}, {"covariates": ["y"]}, {"covariates": ["zz"]}, {"neighbors": 0},
        {"domain": Domain("t", "y")}, {"domain": Domain("q", ("y", Interval(0, 1)))},
        {"domain": Domain("t", ("y", Interval(3, 3)))}, {"outcome": "a"}, {"treatment": "y"},
        {"options": object()}, {"confidence": 7}, {"rows_per_person": -1}, {"engine": "none"},
        {"estimand": "att"}, {"bounds": "declare"}, {"domain": None}, {"seed": -1}, {"ledger": 3},
    ]  # fmt: skip
    frames = [
        pl.DataFrame, pd.DataFrame, lambda d: pl.DataFrame(d).lazy(), dict,
        lambda d: pd.DataFrame(d).astype(object), lambda d: pl.DataFrame(d).cast(pl.String),
        lambda d: pl.DataFrame(d).with_columns(y=pl.lit(f"{CANARY}x")),
        lambda d: pl.DataFrame(d).with_columns(y=pl.concat_list(pl.col("y"))),
    ]  # fmt: skip
    return frames[number % len(frames)](plain), asked | flaws[number % len(flaws)]


def _everything_said(error):
    """Return an error's text, repr, arguments, chain and pickle."""
    parts = [str(error), repr(error), repr(error.args)]
    parts += traceback.format_exception_only(error)
    chain = error
    while chain is not None:
        parts += [str(chain), repr(chain.args)]
        chain = chain.__cause__ or chain.__context__
    return "\n".join(parts) + repr(pickle.dumps(error.args))


def test_a_canary_never_leaves_in_five_hundred_malformed_runs(caplog, capfd):
    rng = np.random.default_rng(0)
    said, outcomes = io.StringIO(), set()
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        for number in range(500):
            data, asked = _malformed(number, rng)
            try:
                release = estimate_ate(data, **asked)
            except PrivateAteError as error:
                said.write(_everything_said(error))
                outcomes.add(type(error).__name__)
            else:
                outcomes.add("release")
                said.write(str(release) + repr(release) + release.to_json())
                said.write(repr(pickle.dumps(release)))
    printed = capfd.readouterr()
    said.write(caplog.text + printed.out + printed.err + repr([str(w.message) for w in caught]))
    assert {"release", "ArgumentError", "DomainError", "SchemaError"} <= outcomes
    text = said.getvalue()
    for form in (str(CANARY), str(int(CANARY)), repr(np.float64(CANARY).tobytes()), "86420"):
        assert form not in text


def test_a_study_shows_and_pickles_nothing():
    study = make_study(0)
    marked = replace(study, outcome=np.full_like(study.outcome, 864209))
    assert "864209" not in repr(marked)
    for value in (marked, marked.public()):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(value)
    gc.collect()
