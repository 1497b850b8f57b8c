"""Public arguments at every door: typed errors before any charge, and numbers never expanded."""

import itertools
import subprocess
import sys
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st
from test_doors import Awkward, few, fuzz, refused_or_finite
from typer.testing import CliRunner

from private_ate import (
    AimOptions,
    ArgumentError,
    BalancingOptions,
    BlockingOptions,
    BlocksOptions,
    CalibratedOptions,
    DifferenceInMeansOptions,
    Domain,
    DoublyRobustOptions,
    FoldSplitOptions,
    GroupedOptions,
    Interval,
    IpwOptions,
    Ledger,
    PrivateAteError,
    PrivSynOptions,
    PublishedOptions,
    SmoothMatchingOptions,
    StudySizes,
    Treatment,
    estimate_ate,
    plan_ate,
)
from private_ate.api import METHODS
from private_ate.arguments import exact_number, real_number, whole_number
from private_ate.charging import bill_for
from private_ate.cli.app import app
from private_ate.privacy.budget import parse_delta, parse_epsilon
from private_ate.request import Request

DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"a": Interval(0, 1)})
FRAME = pl.DataFrame({"t": [0, 1] * 4, "y": [0.25, 0.5] * 4, "a": [0.25, 0.75] * 4})
SIZES = StudySizes(1000, 3, 1.0)
OPTIONS = [method.options for method in METHODS.values()]
HUGE = (
    "1e99999999", "1e-99999999", "0e99999999", "1" * 10**6, "1/" + "3" * 10**6,
    Decimal("1e99999999"), Decimal("1e-99999999"), 10**5000, Fraction(10**5000, 3), 1e308, 5e-324,
)  # fmt: skip
ODD = (
    True, None, "", "one", "nan", "inf", "sNaN", "1/0", "0x1p3", "1,5", "\ud800", "٣", b"1", [1],
    {}, 1j,
    float("nan"), float("inf"), -1, 0, 2.5, Decimal("nan"), Decimal("sNaN"), Decimal("inf"),
    Awkward(), np.array([1, 2]), np.float32(0.5), np.int64(3), pl.Series([1.0]), object,
)  # fmt: skip
odd_values = st.one_of(
    st.sampled_from([*HUGE, *ODD]), st.floats(), st.integers(), st.text(max_size=6),
    st.fractions(), st.decimals(), st.lists(st.sampled_from(HUGE + ODD), max_size=6).map(tuple),
    st.sampled_from([("0.1",) * 6, ["0.25"] * 4, ("1/0", "0.1", "0.2", "0.7"), "a,b", ("a", 1)]),
)  # fmt: skip


def changed(names):
    return st.dictionaries(st.sampled_from(sorted(names)), odd_values, min_size=1, max_size=2)


HANGING = """
from private_ate import CalibratedOptions, IpwOptions, PublishedOptions
from private_ate import ArgumentError, StudySizes, plan_ate
from private_ate.privacy.accounting import *
huge = "1e99999999"
makers = (
    lambda: PublishedOptions(shares=(huge, "0.1", "0.1", "0.1")),
    lambda: IpwOptions(delta=huge),
    lambda: CalibratedOptions(clip_share=huge),
    lambda: plan_ate(StudySizes(1000, 3, 1.0), level="sample", confidence=5),
)
for make in makers:
    try:
        make()
    except ArgumentError:
        print("refused")
"""


def test_numbers_that_would_fill_the_memory_are_refused_at_once():
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.split() == ["refused"] * 4


@pytest.mark.parametrize("value", HUGE, ids=range(len(HUGE)))
@pytest.mark.parametrize("read", [parse_epsilon, parse_delta, str])
def test_the_one_reader_refuses_by_size(read, value):
    if read is str:
        read = lambda number: exact_number("a share", number, "0.1", "1")  # noqa: E731
    if read is parse_delta and value in (HUGE[2], 5e-324):
        return  # zero, and a float that is a small δ
    with pytest.raises(ArgumentError):
        read(value)


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_what_is_no_number_is_refused_in_one_sentence(value):
    readers = (
        lambda: exact_number("it", value, "1", "2"),
        lambda: real_number("it", value, 1, 2),
        lambda: whole_number("it", value, 10, 12),
    )
    for read in readers:
        with pytest.raises(ArgumentError, match=r"^it is a [a-z ]*number from 1"):
            read()


@few
@pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: kind.__name__)
def test_option_classes_refuse_or_are_sound(count, kind):
    name = next(name for name, method in METHODS.items() if method.options is kind)
    level = METHODS[name].levels[0]

    def attack(values):
        try:
            options = kind(**values)
        except ArgumentError:
            return
        request = Request(level, "1", options=options)
        bill_for(request, name, kind, DOMAIN, None)  # every field can be charged and hashed
        assert sum(getattr(options, "fractions", ())) <= 1
        assert 0 <= getattr(options, "clip_fraction", 0) <= Fraction(1, 2)
        assert all(type(value).__module__ != "numpy" for value in values_of(options, "delta"))

    fuzz(count, changed({item.name for item in fields(kind)}), attack)


def values_of(options, *apart):
    names = {item.name for item in fields(options)} - {*apart, "clip_share", "shares"}
    return [getattr(options, name) for name in names]


@few
def test_requests_are_checked_by_the_value_itself(count):
    names = {item.name for item in fields(Request)} - {"options"}

    def attack(values):
        try:
            request = Request(**{"level": "label", "epsilon": "1"} | values)
        except ArgumentError:
            return
        assert isinstance(request.epsilon, Fraction)
        assert 0.5 <= request.coverage <= 0.9999
        assert type(request.rows_per_person) is int
        assert 1 <= request.rows_per_person <= 10**6
        assert request.estimand in ("ate", "att", "atc")

    fuzz(count, changed(names), attack)


@few
@pytest.mark.parametrize("level", ["label", "sample"])
def test_plans(count, level):
    source = FRAME if level == "label" else SIZES
    domain = DOMAIN if level == "label" else None
    names = {
        "level", "epsilons", "half_width", "target", "neighbors", "estimand", "confidence",
        "rows_per_person", "treated_share", "options",
    }  # fmt: skip
    words = st.sampled_from([
        {"estimand": "att"}, {"target": "track"}, {"epsilons": ["1e-12", "1e6"]},
        {"rows_per_person": 10**6}, {"confidence": "0.9999"}, {"half_width": 1e-12},
        {"options": IpwOptions()}, {"options": CalibratedOptions(outcome_sd=1e-150)},
    ])  # fmt: skip

    def attack(values):
        asked = {"level": level, "domain": domain, "epsilons": ["1"]} | values
        try:
            plan = plan_ate(source, **asked)
        except PrivateAteError:
            return
        for row in plan.rows:
            assert 0 < row.half_width < float("inf")
            assert 0 <= row.noise_error < float("inf")

    fuzz(count, st.one_of(changed(names), words), attack)


@few
def test_sizes_of_studies(count):
    def attack(values):
        try:
            sizes = StudySizes(**{"rows": 100, "covariates": 2, "outcome_width": 1.0} | values)
        except ArgumentError:
            return
        plan = plan_ate(sizes, level="sample", epsilons=["0.5"])
        assert 0 < plan.rows[0].half_width < float("inf")

    fuzz(count, changed({"rows", "covariates", "outcome_width", "is_binary"}), attack)


@few
@pytest.mark.parametrize("level", ["label", "sample"])
def test_estimates(count, level):
    names = {
        "level", "epsilon", "method", "target", "neighbors", "estimand", "confidence",
        "rows_per_person", "bounds", "options", "engine", "seed", "dataset", "request_id",
        "analyst", "memory_limit", "domain",
    }  # fmt: skip

    def attack(values):
        asked = {"level": level, "epsilon": "1", "method": "published", "domain": DOMAIN} | values
        refused_or_finite(lambda: estimate_ate(FRAME, **asked))

    fuzz(count, changed(names), attack)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"confidence": 5}, "confidence"),
        ({"estimand": "foo"}, "estimand is 'ate' or 'att' or 'atc' or 'ato', not 'foo'"),
        ({"rows_per_person": 0}, "rows_per_person is a whole number from 1"),
        ({"neighbors": 0}, "neighbors"),
        ({"target": "foo"}, "target"),
        ({"options": FoldSplitOptions()}, "takes BlocksOptions"),
    ],
)
def test_a_plan_refuses_what_an_estimate_refuses(asked, message):
    with pytest.raises(ArgumentError, match=message):
        plan_ate(SIZES, level="sample", **asked)
    with pytest.raises(ArgumentError, match=message):
        estimate_ate(FRAME, level="sample", epsilon="1", domain=DOMAIN, **asked)


FLAGS = ["--level", "sample", "--treatment", "t", "--outcome", "y", "--outcome-bounds", "0", "1"]
BAD_SETTINGS = [
    ("fold_split", "folds=2.5"), ("fold_split", "folds=x"), ("fold_split", "ridge=none"),
    ("published", "shares=1/0,0.1,0.2,0.7"), ("published", "shares=1e99999999,0.1,0.2,0.7"),
    ("published", "k=2.5"), ("published", "c=x"), ("blocks", "partitions=1/0"),
    ("blocks", "adjust=maybe"), ("ipw", "delta=1/0"), ("ipw", "split=both"),
    ("aim", "bins=2.5"), ("aim", "workload=3"), ("privsyn", "iterations=2.5"),
    ("smooth_matching", "cells=3"), ("doubly_robust", "nuisance=1"),
    ("balancing", "truncation=0.5"), ("balancing", "model_share=1"),
    ("grouped", "groups=2.5"), ("grouped", "limits=1"), ("grouped", "limits=1,0"),
    ("grouped", "centre=median"), ("grouped", "ridge=0"),
    ("blocking", "blocks=2.5"), ("blocking", "shares=1"), ("blocks", "bends=splines"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "setting"), BAD_SETTINGS)
def test_an_option_of_the_wrong_kind_is_refused_before_any_charge(tmp_path, method, setting):
    data, place = tmp_path / "data.csv", tmp_path / "budget.db"
    FRAME.write_csv(data)
    Ledger.create(place, "trial", epsilon="5", delta="1e-3").close()
    words = [
        "estimate", str(data), *FLAGS, "--bounds", "a=0:1", "--epsilon", "1", "--method", method,
        "--set", setting, "--ledger", str(place),
    ]  # fmt: skip

    done = CliRunner().invoke(app, words)

    opened = Ledger.open(place)
    spent = [account.spent.epsilon for account in opened.accounts()]
    opened.close()
    assert isinstance(done.exception, ArgumentError)
    assert spent == [0]


def test_no_option_class_is_left_out():
    named = {
        AimOptions, BalancingOptions, BlockingOptions, BlocksOptions, CalibratedOptions,
        DifferenceInMeansOptions, DoublyRobustOptions, FoldSplitOptions, GroupedOptions,
        IpwOptions, PrivSynOptions, PublishedOptions, SmoothMatchingOptions,
    }  # fmt: skip

    assert set(OPTIONS) == named


def test_one_number_means_the_same_at_every_door():
    written = ("0.25", "1/4", "25e-2", 0.25, Decimal("0.25"), Fraction(1, 4), np.float32(0.25))
    for left, right in itertools.pairwise(written):
        assert parse_epsilon(left) == parse_epsilon(right) == Fraction(1, 4)
        assert parse_delta(left) == parse_delta(right) == Fraction(1, 4)
        assert (
            CalibratedOptions(clip_share=left).clip_fraction
            == CalibratedOptions(clip_share=right).clip_fraction
        )
        assert PublishedOptions(shares=(left,) * 4).fractions == (Fraction(1, 4),) * 4


def test_truth_values_are_true_or_false_and_nothing_like_it():
    assert CalibratedOptions(means=np.bool_(1)).means is True
    for odd in (1, "yes", None, np.array([True, False])):
        with pytest.raises(ArgumentError, match="means is true or false"):
            CalibratedOptions(means=odd)
