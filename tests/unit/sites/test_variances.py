"""A site's two variances, read off its two intervals and the law of its noise."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.special import ndtri

from private_ate import ArgumentError, Release
from private_ate.privacy.quantiles import two_laplace_quantile, two_staircase_quantile
from private_ate.release.metadata import TreatmentNote
from private_ate.release.release import FIELDS
from private_ate.sites.combine import read_site
from sites import effect_row, made_up_site, noisy_step

GOLDEN = Path(__file__).parents[2] / "golden" / "releases"


def golden(name):
    plain = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    return Release.from_json(json.dumps({field: plain[field] for field in FIELDS}))


def read(release):
    return read_site("here", release, release.effects[0])


def variance_of(site):
    return site.sampling_variance + site.noise_variance


def stair_variance(epsilon):
    """Return the variance of unit staircase noise by adding up its stairs."""
    drop, inner = math.exp(-epsilon), 1 / (1 + math.exp(epsilon / 2))
    height = (1 - drop) / (2 * (inner + drop * (1 - inner)))
    return 2 * sum(
        height * drop**step * ((step + inner) ** 3 - step**3) / 3
        + height * drop ** (step + 1) * ((step + 1) ** 3 - (step + inner) ** 3) / 3
        for step in range(200)
    )


@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
@pytest.mark.parametrize(("sampling", "noise"), [(1.0, 0.1), (1.0, 1.0), (0.2, 1.0)])
def test_both_variances_of_a_staircase_come_back(epsilon, confidence, sampling, noise):
    found = read(made_up_site(3.0, sampling, noise, epsilon=epsilon, confidence=confidence))

    assert math.sqrt(found.noise_variance) == pytest.approx(noise, rel=1e-9)
    assert math.sqrt(found.sampling_variance) == pytest.approx(sampling, rel=0.03)


def test_the_noise_of_a_real_release_is_that_of_its_step():
    release = golden("calibrated")
    unit = 100.0 / release.n / 2**54  # of the grid of outcome sums

    assert math.sqrt(read(release).noise_variance) == pytest.approx(
        unit * release.steps[-1].scale[0]
    )


@pytest.mark.parametrize("sizes", [(1.0, 1.0), (3.0, 1.0), (1.0, 0.01)])
@pytest.mark.parametrize("law", ["laplace_disjoint", "staircase_disjoint"])
def test_a_difference_of_two_draws_has_both_their_variances(sizes, law):
    if law == "laplace_disjoint":
        half = two_laplace_quantile(0.95, *(size / 2 for size in sizes))
        deviation = math.sqrt(2) / 2 * math.hypot(*sizes)
    else:
        half = two_staircase_quantile(0.95, 2.0, *sizes)
        deviation = math.sqrt(stair_variance(2.0)) * math.hypot(*sizes)
    steps = (
        noisy_step(
            2, name="outcome sums", mechanism=law,
            sensitivity=tuple(round(2**40 * size) for size in sizes),
        ),
    )  # fmt: skip
    wide = math.hypot(half, 15 * float(ndtri(0.975)))

    found = read(made_up_site(3.0, effects=(effect_row(3.0, wide, half),), steps=steps))

    assert math.sqrt(found.noise_variance) == pytest.approx(deviation, rel=1e-4)
    assert math.sqrt(found.sampling_variance) == pytest.approx(15, rel=0.01)


def test_the_two_arms_of_a_row_are_picked_out_of_several():
    arms = TreatmentNote("drug", ("no", "low", "high"), "no")
    steps = (
        noisy_step(2, name="outcome sums", mechanism="laplace_disjoint", sensitivity=(4, 8, 64)),
    )
    half = two_laplace_quantile(0.95, 32.0, 4.0)
    row = effect_row(3.0, 300.0, half, arm="high", against="low", outcome="another")

    found = read(made_up_site(3.0, effects=(row,), steps=steps, treatment=arms))

    assert found.noise_variance == pytest.approx(2 * (32.0**2 + 4.0**2))


@pytest.mark.parametrize("name", ["orthogonal", "orthogonal-adjusting", "blocks-trial"])
def test_the_sampling_variance_is_not_below_what_the_method_put_in(name):
    release = golden(name)
    half, noise = (pair[1] - release.ate for pair in (release.interval, release.noise_interval))
    method = math.sqrt(half**2 - noise**2) / float(ndtri(0.975))  # as these methods combine them

    assert method <= math.sqrt(read(release).sampling_variance) <= 1.05 * method


@pytest.mark.parametrize("name", ["grouped", "grouped-winsorized"])
def test_the_mean_over_groups_has_the_noise_that_its_release_tells(name):
    told = golden(name).to_dict()["settings"]["noise_standard_deviation"]

    assert math.sqrt(read(golden(name)).noise_variance) == pytest.approx(told, rel=1e-6)


@pytest.mark.parametrize("name", ["blocks-adjusting", "doubly-robust"])
def test_noise_without_a_law_counts_as_normal(name):
    release = golden(name)
    half, noise = (pair[1] - release.ate for pair in (release.interval, release.noise_interval))
    found = read(release)

    assert math.sqrt(found.noise_variance) == pytest.approx(noise / float(ndtri(0.975)))
    assert variance_of(found) == pytest.approx((half / float(ndtri(0.975))) ** 2)


def test_noise_without_a_law_counts_as_laplaces_where_that_has_the_larger_variance():
    release = made_up_site(
        3.0, effects=(effect_row(3.0, 5.0, 1.6),), settings={"confidence": 0.8},
        steps=(noisy_step(1, name="effect", mechanism="trimmed_centre", sensitivity=(10,)),),
    )  # fmt: skip

    assert math.sqrt(read(release).noise_variance) == pytest.approx(
        math.sqrt(2) * 1.6 / math.log(5)
    )


def test_noise_of_unknown_law_counts_with_the_largest_variance_of_the_known_ones():
    told = made_up_site(3.0, 1.0, 0.5, epsilon="8", confidence=0.8)
    silent = replace(told, steps=())

    assert read(silent).noise_variance > read(told).noise_variance


def test_a_staircase_of_several_moves_counts_as_one_at_the_epsilon_of_a_move():
    known = made_up_site(3.0, 1.0, 0.5, epsilon="4", confidence=0.8)
    spent = known.steps[0].epsilon
    scale = 7 * math.sqrt(stair_variance(spent))
    step = replace(
        known.steps[0], name="levels", mechanism="staircase_by_arm", epsilon=2 * spent,
        sensitivity=(7, 9), scale=(scale, scale),
    )  # fmt: skip

    found = read(replace(known, steps=(step,)))

    assert math.sqrt(found.noise_variance) == pytest.approx(0.5, rel=1e-6)


def test_a_cut_side_of_an_interval_is_not_looked_at():
    whole = made_up_site(55.0, 4.0, 2.0)
    row = whole.effects[0]
    cut = (row.interval[0], 56.0)
    shortened = replace(row, interval=cut)

    assert variance_of(read_site("here", whole, shortened)) == pytest.approx(
        variance_of(read(whole))
    )


def test_an_interval_beyond_the_range_was_not_cut():
    row = effect_row(3.0, 150.0, 120.0)

    assert variance_of(read(made_up_site(0, effects=(row,)))) > 60**2


@pytest.mark.parametrize("epsilon", ["30", "800", "5000", "1000000"])
@pytest.mark.parametrize("noise", [0.0, 1e-90])
def test_noise_too_small_to_measure_leaves_the_variance_of_the_interval(epsilon, noise):
    told = made_up_site(3.0, epsilon=epsilon, effects=(effect_row(3.0, 2.0, noise),))

    for release in (told, replace(told, steps=())):
        whole = variance_of(read(release))
        assert math.sqrt(whole) == pytest.approx(2.0 / float(ndtri(0.975)), rel=0.01)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": 1e300}, {"epsilon": 1e-300},
        {"sensitivity": (0,)}, {"sensitivity": (-5,)}, {"sensitivity": ()}, {"sensitivity": None},
        {"scale": (0.0,)}, {"scale": (1e300,)}, {"scale": ()}, {"mechanism": "staircase_by_arm"},
        {"mechanism": "staircase_by_arm", "scale": (1e300,), "sensitivity": (0,)},
        {"mechanism": "magic"}, {"name": "nothing"},
    ],
)  # fmt: skip
def test_steps_that_make_no_sense_leave_a_variance_that_is_a_number(change):
    release = made_up_site(3.0, 1.0, 0.5)
    odd = replace(release, steps=(replace(release.steps[0], **change),))

    assert 0 < read(odd).noise_variance < 100
    assert 0 <= read(odd).sampling_variance < 100


@pytest.mark.parametrize("confidence", [1e-300, 0.3, 0.99999])
def test_a_confidence_that_no_release_has_is_refused(confidence):
    release = replace(made_up_site(3.0), settings={"confidence": confidence})

    with pytest.raises(ArgumentError, match=r"a confidence of .* it was edited"):
        read(release)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"interval": None}, "ask that site for a release with a confidence"),
        ({"noise_interval": None}, "how large its noise is"),
        ({"estimate": 100.0, "interval": (99.0, 100.0)}, "cut at the declared range"),
        ({"interval": (-100.0, 100.0)}, "cut at the declared range"),
        ({"interval": (2.9, 3.1)}, "narrower than that of its noise"),
        ({"interval": (4.0, 5.0)}, "does not hold its estimate"),
        ({"interval": (3.0, 3.0)}, "of no width"),
        ({"interval": (-math.inf, math.inf)}, "not finite"),
        ({"estimate": math.nan}, "not finite"),
        ({"noise_interval": (-1e300, 1e300)}, "not finite or beyond"),
    ],
)
def test_what_has_no_variance_is_refused_with_the_reason(changes, reason):
    release = made_up_site(3.0, 1.0, 0.5)
    row = release.effects[0]
    if "estimate" in changes and math.isfinite(changes["estimate"]):
        changes = {"noise_interval": (99.5, 100.0), **changes}

    with pytest.raises(ArgumentError, match=f"^here .*{reason}"):
        read_site("here", release, replace(row, **changes))
