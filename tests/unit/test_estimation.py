"""The front door: arguments, guarantees, settings and the method's options."""

import numpy as np
import polars as pl
import pytest

from private_ate import (
    ArgumentError,
    Domain,
    DomainError,
    Interval,
    PrivateAteError,
    PublishedOptions,
    SchemaError,
    Treatment,
    estimate_ate,
)
from private_ate.api import METHODS, Method, estimate_study, options_from_texts
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.engines.local import LocalStudy
from private_ate.models.propensity import schedule_of
from private_ate.request import Request

DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 1)})


def draw_frame(treated: int = 60, control: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    treatment = rng.permutation(np.repeat([1, 0], [treated, control]))
    x = np.clip(rng.random(treatment.size) * 0.7 + 0.3 * treatment, 0, 1)
    return pl.DataFrame({"x": x, "t": treatment, "y": 3 + 2 * treatment + 2 * x})


def estimate(**kwargs: object):
    usual = {"domain": DOMAIN, "level": "label", "epsilon": 1, "seed": 1, "method": "published"}
    return estimate_ate(kwargs.pop("data", draw_frame()), **usual | kwargs)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"treatment": "t", "outcome": "y", "covariates": ["x"]},
        {"domain": Domain("t", ("y", Interval(0, 10))), "covariates": "all"},
        {"domain": Domain(Treatment("t"), ("y", Interval(0, 10))), "covariates": ["x"],
         "treatment": Treatment("t", 1, 0)},
        {"domain": Domain("t", [("y", Interval(0, 10)), ("z", Interval(0, 10))]),
         "outcome": ["z", "y"], "covariates": ["x"], "method": "auto"},
    ],
)  # fmt: skip
def test_a_domain_is_built_at_most_twice_in_an_estimate(monkeypatch, asked):
    built = []
    check = Domain._check
    monkeypatch.setattr(Domain, "_check", lambda self: built.append(self) or check(self))

    estimate(data=draw_frame().with_columns(z=pl.col("y") / 2), **asked)

    assert len(built) <= 2


@pytest.mark.parametrize(
    "bad",
    [
        {"level": "labels"}, {"level": None}, {"epsilon": 0}, {"epsilon": "x"}, {"neighbors": 0},
        {"neighbors": 1.5}, {"neighbors": True}, {"neighbors": 1001}, {"estimand": "late"},
        {"target": "both"}, {"confidence": 0.4}, {"confidence": 1}, {"confidence": "high"},
        {"confidence": True}, {"rows_per_person": 0}, {"rows_per_person": 10**7},
        {"bounds": "observed"}, {"engine": "gpu"}, {"seed": -1}, {"seed": 1.5}, {"seed": True},
        {"method": "magic"}, {"options": 3}, {"domain": {"x": 1}}, {"treatment": "z"},
        {"outcome": "z"}, {"estimand": "att", "method": "published"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_arguments_are_refused_with_a_sentence(bad):
    with pytest.raises(ArgumentError) as caught:
        estimate(**bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PublishedOptions(ridge=0), lambda: PublishedOptions(ridge=float("nan")),
        lambda: PublishedOptions(c=0), lambda: PublishedOptions(h=float("inf")),
        lambda: PublishedOptions(k=0), lambda: PublishedOptions(k=True),
        lambda: PublishedOptions(k=1.5), lambda: PublishedOptions(k="tight"),
        lambda: PublishedOptions(shares=("0.5", "0.5")),
        lambda: PublishedOptions(shares=("0.1", "0.1", "0.1", "0.1")),
        lambda: PublishedOptions(shares=("1", "1", "-0.5", "-0.5")),
        lambda: PublishedOptions(shares=("a", "b", "c", "d")),
    ],
)  # fmt: skip
def test_bad_options_are_refused_with_a_sentence(make):
    with pytest.raises(ArgumentError):
        make()


def test_a_penalty_that_would_take_a_million_passes_is_refused_at_sample_level():
    tiny = PublishedOptions(ridge=1e-7)
    with pytest.raises(ArgumentError, match="ridge penalty is at least 1e-6"):
        estimate(level="sample", options=tiny)
    assert estimate(level="label", options=tiny).settings["ridge"] == 1e-7
    assert schedule_of(6, 1e-6, 2).gradient_steps < 50_000


def test_missing_bounds_name_the_parameter_that_gives_them():
    with pytest.raises(DomainError, match=r"'x' has no declared bounds; declare Int") as found:
        estimate(domain=Domain(Treatment("t", 1, 0), ("y", Interval(0, 10))), level="sample")
    assert (found.value.parameter, found.value.column) == ("bounds", "x")
    for level in ("label", "sample"):
        with pytest.raises(DomainError, match=r"declare Interval\(lo, hi\)") as found:
            estimate(domain=Domain(Treatment("t", 1, 0), "y", DOMAIN.covariates), level=level)
        assert (found.value.parameter, found.value.column) == ("outcome bounds", "y")
    with pytest.raises(ArgumentError, match="treatment=") as missing:
        estimate(domain=None)
    assert missing.value.parameter == "treatment"
    with pytest.raises(ArgumentError, match="bounds are equal"):
        estimate(domain=Domain(Treatment("t", 1, 0), ("y", Interval(3, 3))), covariates=[])


@pytest.mark.parametrize("level", ["label", "sample"])
def test_bounds_from_the_data_and_seeds_give_up_the_guarantee(level):
    looked_up = estimate(
        domain=Domain(Treatment("t", 1, 0), "y"), level=level, bounds="from-data", seed=None
    )
    seeded = estimate(level=level)
    private = estimate(level=level, seed=None)

    assert (looked_up.guarantee, looked_up.is_private) == ("none", False)
    assert (seeded.guarantee, seeded.is_private) == ("none (seeded)", False)
    assert (private.guarantee, private.is_private) == (f"pure 1-DP, {level} level", True)
    assert "do not publish" in str(looked_up)
    assert "do not publish" not in str(private)


def test_a_seed_repeats_a_release_and_without_one_no_two_are_equal():
    assert estimate(seed=5) == estimate(seed=5)
    assert estimate(seed=5).ate != estimate(seed=6).ate
    assert estimate(seed=None).ate != estimate(seed=None).ate


@pytest.mark.parametrize("neighbors", [1, 3, 5])
def test_a_tight_limit_with_equal_arms_is_flagged_as_difference_in_means(neighbors):
    tight = estimate(options=PublishedOptions(k=1), neighbors=neighbors)
    free = estimate(options=PublishedOptions(k=None), neighbors=neighbors)

    assert tight.settings["equals_difference_in_means"] is True
    assert tight.settings["matching_limit"] == {"treated": 1, "control": 1}
    assert any("difference in means" in note for note in tight.settings["notes"])
    assert free.settings["equals_difference_in_means"] is False
    assert not any("difference in means" in note for note in free.settings["notes"])


def test_the_label_level_states_its_public_facts():
    found = estimate(data=draw_frame(30, 90), neighbors=3, rows_per_person=2, confidence=0.9)

    assert found.settings["arms"] == {"treated": 30, "control": 90}
    assert found.settings["neighbors"] == 3
    assert found.settings["ridge"] == 1 / 120
    assert found.settings["confidence"] == 0.9
    assert found.settings["rows_per_person"] == 2
    assert found.settings["budget"] == {"outcome sums": 1.0}
    assert found.settings["matching_limit"]["treated"] >= 3
    assert "person (up to 2 rows)" in found.adjacency
    assert found.interval is None


def test_the_noise_interval_has_the_width_of_the_noise():
    data = draw_frame()
    narrow, wide = (estimate(data=data, epsilon=e, options=PublishedOptions(k=2)) for e in (10, 1))
    widths = [high - low for low, high in (narrow.noise_interval, wide.noise_interval)]
    assert widths[1] == pytest.approx(10 * widths[0], rel=1e-9)


def test_the_noise_interval_covers_the_estimate_without_noise_as_often_as_it_says():
    data, options = draw_frame(), PublishedOptions(k=2)
    truth = estimate(data=data, epsilon="1e6", options=options).ate
    study = LocalStudy(
        DOMAIN, data["x"].to_numpy()[None], data["t"].to_numpy() == 1,
        np.rint(data["y"].to_numpy() / 10 * 2**30).astype(np.int32),
    )  # fmt: skip
    covered = 0
    for seed in range(600):
        low, high = estimate(data=study, options=options, confidence=0.8, seed=seed).noise_interval
        covered += low <= truth <= high
    assert 430 <= covered <= 530  # 480 ± 5 standard deviations of a binomial


def test_a_study_can_be_given_instead_of_a_table():
    frame = draw_frame()
    study = LocalStudy(
        DOMAIN, frame["x"].to_numpy()[None], frame["t"].to_numpy() == 1,
        np.rint(frame["y"].to_numpy() / 10 * 2**30).astype(np.int32),
    )  # fmt: skip
    assert estimate(data=study).ate == estimate(data=frame).ate


def test_a_method_that_spends_another_budget_releases_nothing():
    def thrifty(_study, _request, _noise):
        return Estimate.of(Quantity(1.0), {})

    study = LocalStudy(DOMAIN, np.zeros((1, 2)), np.array([True, False]), np.zeros(2, np.int32))
    method = Method("thrifty", ("label",), object, thrifty)
    with pytest.raises(PrivateAteError, match="did not spend exactly"):
        estimate_study(study, Request("label", DOMAIN.bounds.width and 1), method)


def test_columns_named_twice_must_agree():
    assert estimate(treatment="t", outcome="y") == estimate()
    relabelled = estimate(treatment=Treatment("t", treated=0, control=1))
    assert relabelled.settings["arms"] == {"treated": 60, "control": 60}
    assert relabelled.ate < 0 < estimate(epsilon=50).ate
    with pytest.raises(SchemaError, match="no covariate column 'z'"):
        estimate(covariates=["z"])


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        ({"k": "3"}, PublishedOptions(k=3)),
        ({"k": "none"}, PublishedOptions(k=None)),
        ({"k": "adaptive", "c": "0.5"}, PublishedOptions(c=0.5)),
        ({"ridge": "0.1"}, PublishedOptions(ridge=0.1)),
        ({"shares": "0.1,0.1,0.4,0.4"}, PublishedOptions(shares=("0.1", "0.1", "0.4", "0.4"))),
    ],
)
def test_options_are_read_from_texts(texts, options):
    assert options_from_texts("published", "label", texts) == options
    assert options_from_texts("auto", "label", {}) == METHODS["calibrated"].options()


@pytest.mark.parametrize(
    "texts", [{"z": "1"}, {"k": "true"}, {"ridge": "abc"}, {"c": "none"}, {"shares": "0.1"}]
)
def test_options_of_the_wrong_kind_are_refused_with_a_sentence(texts):
    with pytest.raises(ArgumentError):
        options_from_texts("published", "label", texts)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_declared_domain_is_passed_on_and_not_built_again(level, monkeypatch):
    built = []
    make = Domain.__init__

    def count(self, *arguments, **named):
        built.append(self)
        make(self, *arguments, **named)

    monkeypatch.setattr(Domain, "__init__", count)
    estimate(level=level, method="auto")

    assert len(built) <= 2
