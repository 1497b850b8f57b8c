"""`combine`: what goes in, what comes out, what is refused and what is promised together."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from private_ate import ArgumentError, Combined, Release, combine, estimate_ate, standard_error
from private_ate.datasets.clinic import draw_clinic
from private_ate.privacy.levels import adjacency_of
from private_ate.release.metadata import TreatmentNote
from private_ate.release.release import OLD_FIELDS
from private_ate.settings import OutcomeNote
from sites import effect_row, halves, made_up_site

OLD = sorted((Path(__file__).parents[2] / "golden" / "old").glob("*.json"))
MODELS = ("fixed", "random")


def three_sites(**changes):
    return {
        "north": made_up_site(3.0, 1.0, 0.5, **changes),
        "south": made_up_site(5.0, 0.8, 1.2, **changes),
        "east": made_up_site(1.0, 0.6, 0.3, **changes),
    }


def keep_promise(release):
    """Give a release that was made for a test the promise of one that was not."""
    promise = f"pure {float(release.epsilon):g}-DP, {release.level} level"
    return replace(release, guarantee=promise)


def old_release(name):
    path = next(path for path in OLD if path.stem == name)
    plain = json.loads(path.read_text("utf-8"))
    return keep_promise(Release.from_json(json.dumps({key: plain[key] for key in OLD_FIELDS})))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("level", ["label", "sample"])
def test_one_site_in_gives_that_sites_numbers_out_exactly(model, level):
    study = draw_clinic(500, seed=2)
    release = estimate_ate(study.frame, domain=study.domain, level=level, epsilon="2")

    combined = combine([release], model)
    (row,), (told,) = combined.effects, release.effects

    assert (row.estimate, row.interval, row.noise_interval) == (
        release.ate, release.interval, release.noise_interval,
    )  # fmt: skip
    assert row.simultaneous == told.simultaneous
    assert row.standard_error == pytest.approx(standard_error(release), rel=1e-12)
    assert (combined.epsilon, combined.guarantee) == (release.epsilon, release.guarantee)
    assert combined.not_protected == release.not_protected
    assert (combined.treatment, combined.outcome) == (release.treatment, release.outcome)
    assert row.prediction_interval is None


@pytest.mark.parametrize("model", MODELS)
def test_one_site_keeps_the_intervals_of_all_its_rows(model):
    half = halves(1.0, 0.5, 0.9, 0.95)
    rows = tuple(
        replace(effect_row(mean, *half, subgroup=group), simultaneous=(mean - 9.0, mean + 8.0))
        for mean, group in ((3.0, None), (4.0, "women"), (2.0, "men"))
    )

    found = combine([made_up_site(0, effects=rows)], model).effects

    names = ("subgroup", "estimate", "interval", "simultaneous", "noise_interval")
    for row, told in zip(found, rows, strict=True):
        assert [getattr(row, name) for name in names] == [getattr(told, name) for name in names]


def test_one_site_of_another_confidence_is_normal_with_its_variance():
    combined = combine([made_up_site(3.0, 1.0, 1.0)], confidence=0.8)
    (row,) = combined.effects

    assert row.interval[1] - 3.0 == pytest.approx(1.2815515655 * math.sqrt(2), rel=0.01)


def test_sites_are_weighted_by_their_sampling_and_noise_variance_together():
    combined = combine(three_sites(), "fixed")
    (row,) = combined.effects
    variances = [1.0**2 + 0.5**2, 0.8**2 + 1.2**2, 0.6**2 + 0.3**2]
    total = sum(1 / variance for variance in variances)

    assert [site.site for site in row.sites] == ["north", "south", "east"]
    assert [site.weight for site in row.sites] == pytest.approx(
        [1 / variance / total for variance in variances], rel=0.01
    )
    assert row.standard_error == pytest.approx(1 / math.sqrt(total), rel=0.01)
    assert row.estimate == pytest.approx(
        sum(site.weight * site.estimate for site in row.sites), rel=1e-12
    )
    assert row.interval[1] - row.estimate == pytest.approx(1.959963985 * row.standard_error)
    noise = math.sqrt(sum((site.weight**2) * site.noise_variance for site in row.sites))
    assert row.noise_interval[1] - row.estimate == pytest.approx(1.959963985 * noise)


def test_random_effects_add_a_prediction_interval_and_doubt():
    fixed, random = (combine(three_sites(), model).effects[0] for model in MODELS)

    assert fixed.prediction_interval is None
    assert random.heterogeneity.tau_squared > 0
    assert random.interval[1] - random.interval[0] > fixed.interval[1] - fixed.interval[0]
    assert random.prediction_interval[0] < random.interval[0]


def test_rows_are_combined_by_what_they_speak_of_and_cover_together():
    def site(shift):
        half = halves(1.0, 0.5, 0.9, 0.95)
        return made_up_site(
            0, effects=(
                effect_row(3.0 + shift, *half),
                effect_row(4.0 - shift, *half, subgroup="women"),
                effect_row(2.0 + shift, *half, subgroup="men"),
            ),
        )  # fmt: skip

    first, second = site(0.5), site(-0.5)
    turned = replace(second, effects=(second.effects[0], *reversed(second.effects[1:])))
    combined = combine([first, turned], "fixed")

    assert [row.subgroup for row in combined.effects] == [None, "women", "men"]
    assert [row.estimate for row in combined.effects] == pytest.approx([3.0, 4.0, 2.0])
    assert combined.warnings == ()
    for row in combined.effects:
        half, wide = (ends[1] - row.estimate for ends in (row.interval, row.simultaneous))
        assert wide == pytest.approx(half * 2.393979800 / 1.959963985, rel=1e-8)


def test_rows_that_some_site_lacks_are_left_out_and_said():
    half = halves(1.0, 0.5, 0.9, 0.95)
    more = effect_row(2.0, *half, subgroup="men")
    bare = replace(effect_row(2.0, *half, subgroup="women"), interval=None)
    first = made_up_site(0, effects=(effect_row(3.0, *half), more, bare))
    second = made_up_site(0, effects=(effect_row(3.2, *half), replace(bare, estimate=2.5)))

    combined = combine([first, second], "fixed")

    assert len(combined.effects) == 1
    assert "2 of 3 effects are not in all releases" in combined.warnings[0]


def test_a_headline_that_another_site_lacks_is_refused():
    other = replace(made_up_site(3.0).effects[0], subgroup="men")

    with pytest.raises(ArgumentError, match="no row for the headline"):
        combine([made_up_site(2.0), made_up_site(0, effects=(other,))])


def test_sites_are_named_by_their_data_sets_or_by_numbers():
    named = [made_up_site(3.0, dataset="north"), made_up_site(4.0, dataset="south")]

    assert [site.name for site in combine(named).sites] == ["north", "south"]
    assert [site.name for site in combine(iter(three_sites().values())).sites] == [
        "site 1", "site 2", "site 3",
    ]  # fmt: skip


def test_a_data_set_whose_name_cannot_be_printed_is_no_name():
    odd = [made_up_site(3.0, dataset="\x1b[2J"), made_up_site(4.0, dataset="south")]

    assert [site.name for site in combine(odd).sites] == ["site 1", "site 2"]


def test_texts_of_other_peoples_files_cannot_move_a_cursor():
    odd = [
        made_up_site(
            mean, warnings=("\x1b[2Jgone",), not_protected=("all\r",),
            outcome=OutcomeNote("pressure", (-40.0, 60.0), "mm\x1b[1A"),
        )
        for mean in (3.0, 4.0)
    ]  # fmt: skip

    text = str(combine(odd))

    assert all(line.isprintable() for line in text.split("\n"))
    assert "·[2Jgone" in text


@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_sites_does_not_matter(model):
    sites = three_sites()
    turned = dict(reversed(sites.items()))

    first, second = (combine(one, model).effects[0] for one in (sites, turned))

    assert second.estimate == pytest.approx(first.estimate, rel=1e-12)
    assert second.interval == pytest.approx(first.interval, rel=1e-9)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_numbers_of_any_size_are_combined(model, size):
    def scaled(mean):
        release = made_up_site(mean, outcome=OutcomeNote("pressure", (-40 * size, 60 * size), None))
        row = release.effects[0]
        pairs = {
            name: tuple(size * end for end in getattr(row, name))
            for name in ("interval", "simultaneous", "noise_interval")
        }
        row = replace(row, estimate=size * row.estimate, **pairs)
        return replace(
            release, ate=row.estimate, effects=(row,), interval=row.interval,
            noise_interval=row.noise_interval,
        )  # fmt: skip

    usual = combine([made_up_site(mean) for mean in (3.0, 5.0, 1.0)], model)
    odd = combine([scaled(mean) for mean in (3.0, 5.0, 1.0)], model)

    assert odd.estimate / size == pytest.approx(usual.estimate)
    assert odd.interval[1] / size == pytest.approx(usual.interval[1])
    assert Combined.from_json(odd.to_json()) == odd
    assert str(odd)
    assert odd.to_html()


def test_the_confidence_is_the_sites_own_if_they_agree():
    wide, usual = made_up_site(3.0, confidence=0.8), made_up_site(4.0)

    assert combine([wide, made_up_site(5.0, confidence=0.8)]).confidence == 0.8
    assert combine([wide, usual]).confidence == 0.95
    assert combine([wide, usual], confidence="0.9").confidence == 0.9


def test_sites_of_another_confidence_weigh_the_same():
    usual = combine(three_sites(), "fixed").effects[0]
    wide = combine(three_sites(confidence=0.8), "fixed", confidence=0.95).effects[0]

    assert wide.estimate == pytest.approx(usual.estimate, rel=0.01)
    assert wide.standard_error == pytest.approx(usual.standard_error, rel=0.01)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"treatment": TreatmentNote("pill", ("no", "yes"), "no")}, "treatment"),
        ({"treatment": TreatmentNote("drug", ("no", "yes"), "yes")}, "treatment"),
        ({"treatment": TreatmentNote("drug", ("no", "maybe", "yes"), "no")}, "treatment"),
        ({"outcome": OutcomeNote("weight", (-40.0, 60.0), "mmHg")}, "outcome"),
        ({"outcome": OutcomeNote("pressure", (-40.0, 60.0), "kPa")}, "unit"),
        ({"outcome": OutcomeNote("pressure", (-4.0, 6.0), None)}, "bounds of the outcome"),
        ({"effects": (effect_row(4.0, 3.0, 1.0, estimand="att"),)}, "estimand"),
        ({"effects": (effect_row(4.0, 3.0, 1.0, estimand="difference"),)}, "not adjusted"),
        ({"adjacency": "add/remove: one record is in one of them"}, "neighbours"),
    ],
)
def test_releases_of_different_questions_are_refused(change, reason):
    with pytest.raises(ArgumentError, match=reason):
        combine({"here": made_up_site(3.0), "there": made_up_site(4.0, **change)})


def test_differences_in_means_are_combined_with_each_other_and_not_called_an_effect():
    rows = [effect_row(shift, 3.0, 1.0, estimand="difference") for shift in (3.0, 4.0)]
    combined = combine([made_up_site(0, effects=(row,), adjusted=False) for row in rows])

    assert combined.estimand == "difference"
    for shown in (str(combined), combined.to_html(), combined._repr_html_()):
        assert "ifference in means, not adjusted" in shown
        assert "ffect of drug" not in shown


def test_the_same_release_twice_is_refused_even_under_another_name():
    release = made_up_site(3.0)
    with pytest.raises(ArgumentError, match="north and south are the same release"):
        combine({"north": release, "south": replace(release, n=2000, version="9")})


def test_two_releases_of_one_data_set_are_refused():
    sites = [made_up_site(mean, dataset="registry", dataset_version="2") for mean in (3.0, 4.0)]

    with pytest.raises(ArgumentError, match="both of the data set 'registry'"):
        combine(sites)
    newer = replace(sites[1], dataset_version="3")
    assert "count twice" in " ".join(combine([sites[0], newer]).warnings)


@pytest.mark.parametrize("guarantee", ["none (seeded)", "none", "none (dummy)"])
def test_a_release_without_a_promise_is_refused(guarantee):
    with pytest.raises(ArgumentError, match="there keeps no promise"):
        combine({"here": made_up_site(3.0), "there": made_up_site(4.0, guarantee=guarantee)})


@pytest.mark.parametrize(
    "edit",
    [
        {"ate": 9.0},
        {"interval": (-50.0, 50.0)},
        {"noise_interval": (2.9, 3.1)},
        {"epsilon": Fraction(1, 10)},
        {"delta": 1e-6},
        {"level": "sample"},
        {"guarantee": "pure 10-DP, label level"},
        {"guarantee": "perfectly private"},
        {"estimand": "att"},
        {"effects": 2 * made_up_site(3.0).effects},
    ],
)
def test_a_release_that_was_edited_by_hand_is_refused(edit):
    with pytest.raises(ArgumentError, match="it was edited after it was released"):
        combine([replace(made_up_site(3.0), **edit)])


@pytest.mark.parametrize("model", MODELS)
def test_a_release_without_an_interval_is_refused_with_the_remedy(model):
    bare = replace(effect_row(4.0, 3.0, 1.0), interval=None, simultaneous=None)

    with pytest.raises(ArgumentError, match=r"there has no confidence interval.*leave it out"):
        combine({"here": made_up_site(3.0), "there": made_up_site(0, effects=(bare,))}, model)


def test_a_release_of_schema_1_goes_alone_or_says_what_it_is_about():
    old = old_release("calibrated")
    new = made_up_site(7.0)

    assert combine([old]).estimate == old.ate
    with pytest.raises(ArgumentError, match="schema 1, which does not say which treatment"):
        combine({"old": old, "new": new})
    told = replace(old, treatment=new.treatment, outcome=new.outcome, effects=())
    row = combine({"old": told, "new": new}, "fixed").effects[0]
    half = (told.interval[1] - told.ate) / 1.959963985
    assert row.sites[0].sampling_variance + row.sites[0].noise_variance == pytest.approx(
        half**2, rel=0.03
    )


def test_an_old_release_without_an_interval_is_refused_alone():
    with pytest.raises(ArgumentError, match="no confidence interval"):
        combine([old_release("published-label")])


@pytest.mark.parametrize(
    "releases",
    [[], {}, made_up_site(3.0), "release.json", 7, None, ["release.json"],
     {"": made_up_site(3.0)}, {"a\x1b[2J": made_up_site(3.0)}, {3: made_up_site(3.0)}],
)  # fmt: skip
def test_what_is_not_a_list_of_releases_is_refused(releases):
    with pytest.raises(ArgumentError, match=r"release|named"):
        combine(releases)


@pytest.mark.parametrize("asked", [{"model": "mixed"}, {"confidence": 1}, {"confidence": "none"}])
def test_other_models_and_impossible_confidences_are_refused(asked):
    with pytest.raises(ArgumentError, match=next(iter(asked))):
        combine(three_sites(), **asked)


def test_the_whole_keeps_the_largest_epsilon_and_people_in_two_sites_add_up():
    sites = {
        "north": made_up_site(3.0, epsilon="0.5"),
        "south": made_up_site(4.0, epsilon="2"),
        "east": made_up_site(5.0, epsilon="1.25"),
    }
    combined = combine(sites)

    assert combined.epsilon == 2
    assert combined.guarantee == "pure 2-DP, label level, for people who are in one site"
    assert "up to 3.25 for two sites, 3.75 for all 3" in combined.not_protected[0]
    for shown in (" ".join(str(combined).split()), combined.to_html()):
        assert "add up" in shown


def test_of_mixed_levels_the_whole_keeps_the_weakest():
    sites = {"south": made_up_site(4.0, level="sample"), "north": made_up_site(3.0)}
    combined = combine(sites)

    assert combined.level == "label"
    assert combined.adjacency == adjacency_of("label")
    assert "north protected outcomes only" in " ".join(combined.warnings)
    both = [made_up_site(mean, level="sample") for mean in (3.0, 4.0)]
    assert combine(both).level == "sample"


def test_the_largest_delta_and_every_caveat_are_kept():
    said = "(1, 1e-06)-DP, label level, ideal Gaussian noise"
    combined = combine([made_up_site(3.0), made_up_site(4.0, delta=1e-6, guarantee=said)])

    assert combined.delta == 1e-6
    assert combined.guarantee == (
        "(1, 1e-06)-DP, label level, for people who are in one site, ideal Gaussian noise"
    )


def test_differences_that_do_not_forbid_are_said():
    sites = {
        "north": made_up_site(3.0),
        "south": made_up_site(
            4.0, outcome=OutcomeNote("pressure", (-50.0, 60.0), "mmHg"), adjusted=False,
            design="randomized", settings={"confidence": 0.95, "matching_limit_K": 3.0},
        ),
        "east": made_up_site(
            5.0, epsilon="12", outcome=OutcomeNote("pressure", (-40.0, 60.0), None),
            warnings=("poor overlap",), settings={"confidence": 0.95, "matching_limit_K": 3.0},
        ),
    }  # fmt: skip
    warned = " | ".join(combine(sites).warnings)

    for text in (
        "3 sites hardly tell", "different bounds", "no unit was declared by east",
        "south adjusted for nothing", "limit differently", "ε = 12 is above 10",
        "east: poor overlap",
    ):  # fmt: skip
        assert text in warned, text


def test_one_effect_for_sites_that_differ_is_doubted():
    apart = {"north": made_up_site(3.0), "south": made_up_site(30.0)}

    assert "differ by more than noise and sampling" in " ".join(combine(apart, "fixed").warnings)
    assert combine({"n": made_up_site(3.0), "s": made_up_site(3.1)}, "fixed").warnings == ()


@pytest.mark.parametrize("model", MODELS)
def test_a_combination_survives_json(model):
    combined = combine(three_sites(), model)

    again = Combined.from_json(combined.to_json())

    assert again == combined
    assert again.to_json() == combined.to_json()
    assert json.loads(combined.to_json())["epsilon"] == 1.0


def test_what_is_not_a_combination_in_json_is_refused():
    plain = json.loads(combine(three_sites()).to_json())
    broken = [
        "", "[]", "{}", "[" * 100_000, json.dumps(plain | {"more": 1}),
        json.dumps(plain | {"model": "mixed"}), json.dumps(plain | {"schema": True}),
        json.dumps(plain | {"confidence": "0.95"}), json.dumps(plain | {"delta": True}),
        json.dumps(plain | {"epsilon": math.nan}), json.dumps(plain | {"epsilon": -1}),
        json.dumps(plain | {"epsilon": "1"}), json.dumps(plain | {"sites": {}}),
        json.dumps(plain | {"delta": math.inf}), json.dumps(plain | {"effects": [1]}),
        json.dumps(plain | {"warnings": [1]}),
        json.dumps(plain | {"effects": []}), json.dumps(plain | {"sites": []}),
        json.dumps(plain | {"sites": plain["sites"][:2]}),
        three_sites()["north"].to_json(),
    ]  # fmt: skip
    for text in broken:
        with pytest.raises(ArgumentError):
            Combined.from_json(text)


def test_a_combination_as_a_frame_has_a_row_per_effect():
    frame = combine(three_sites()).to_frame()

    assert frame.height == 1
    assert frame["sites"].to_list() == [3]
    assert frame["tau_squared"].to_list()[0] > 0
    assert combine(three_sites(), "fixed").to_frame()["tau_squared"].to_list() == [None]


def test_releases_of_real_sites_combine_to_an_interval_that_holds_the_truth():
    studies = [draw_clinic(size, seed=size) for size in (500, 700, 900)]
    releases = [
        keep_promise(
            estimate_ate(study.frame, domain=study.domain, level="label", epsilon="2", seed=5)
        )
        for study in studies
    ]
    combined = combine(releases, "fixed")
    row = combined.effects[0]

    assert row.interval[0] < studies[0].true_effect < row.interval[1]
    assert row.standard_error < min(standard_error(release) for release in releases)
