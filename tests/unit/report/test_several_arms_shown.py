"""Several arms as text, pages, cards, plots and frames."""

import re
from dataclasses import replace

import pytest

from private_ate import ArgumentError, Treatment, monotone_means
from private_ate.release.public_facts import PublicFacts
from private_ate.report.effects_table import shown_contrasts
from private_ate.report.plots import draw_contrasts, draw_means, draw_overlap
from private_ate.report.text import release_table
from private_ate.report.to_polars import arms_frame, overlap_frame
from private_ate.settings import Facts
from smoking import (
    ARM_OVERLAP,
    LABELS,
    WEIGHT,
    arm_levels,
    sample_settings,
    smoking_release,
)

RELEASE = smoking_release()
PAGE = RELEASE.to_html(PublicFacts(overlap=ARM_OVERLAP))


def test_the_text_shows_arms_then_contrasts_with_the_reference_first():
    compared, *lines = str(RELEASE).splitlines()
    assert compared.startswith("effects of ")
    assert lines[0] == "Average treatment effects of 4 arms, released by private-ate"
    assert lines[1].split() == ["arm", "units", "mean", "95", "%", "interval"]
    assert lines[2].startswith("0 daily")
    assert lines[2].endswith("reference")
    assert "3,778" in lines[2]
    assert lines[6].split()[:3] == ["effect", "of", "against"]
    assert lines[6].endswith("all at once")
    named = [re.split(r"\s{2,}", line)[:2] for line in lines[7:13]]
    assert named == [[row.arm, row.against] for row in RELEASE.contrasts]
    assert "over all pairs of arms 0.620 before, 0.090 after" in " ".join(str(RELEASE).split())
    assert max(map(len, lines)) <= 88


def test_contrasts_with_the_reference_alone_are_covered_by_narrower_intervals():
    text = RELEASE.to_text("reference")
    assert "6-10 daily   1-5 daily" not in text
    assert RELEASE.to_text() == str(RELEASE)
    factors = Facts.of(RELEASE.settings).simultaneous_factor
    for row in shown_contrasts(RELEASE, "reference"):
        whole = RELEASE.contrast(row.arm, row.against)
        half = factors["against the reference"] * (whole.interval[1] - whole.effect)
        assert row.simultaneous == pytest.approx((row.estimate - half, row.estimate + half))
        assert whole.simultaneous[0] < row.simultaneous[0] < row.interval[0]
    with pytest.raises(ArgumentError, match="contrasts"):
        RELEASE.to_text("some")


def test_intervals_that_were_cut_at_the_range_stay_cut_when_they_are_widened():
    wide = tuple(replace(arm, noise=(replace(arm.noise[0], unit=9000.0),)) for arm in arm_levels())
    release = smoking_release(wide)
    for row in shown_contrasts(release, "reference"):
        assert row.simultaneous == (-6000, 6000)


def test_arms_compared_as_they_are_are_headed_as_differences():
    release = smoking_release(level="sample", settings=sample_settings())
    text = str(release)
    assert text.startswith("differences by cigarettes: ")
    assert "\nDifferences in means of 4 arms, not adjusted for covariates, released" in text
    assert "effect of" not in text
    assert "difference of" in text
    assert "about 3,760" in text  # of a released share
    assert "an effect only if treatment was random" in text
    page = release.to_html()
    assert "weight by cigarettes: differences in means of 4 arms" in page
    assert "Effects of" not in page
    score = str(smoking_release(level="sample", settings=sample_settings(adjusted=True)))
    assert "\nAverage treatment effects of 4 arms, released" in score


def test_effects_among_the_units_of_one_arm_are_headed_so():
    text = str(smoking_release(among="6-10 daily"))
    assert "\nAverage treatment effects of 4 arms among units of '6-10 daily'," in text
    assert 'among="6-10 daily"' in smoking_release(among="6-10 daily").to_html().replace(
        "&quot;", '"'
    )


def test_without_means_and_intervals_the_text_shows_what_there_is():
    text = smoking_release(arm_levels(variances=False), means=False).to_text()
    assert "mean   " not in text
    assert "all at once" not in text
    assert "95 % noise interval" in text


def test_long_labels_put_their_numbers_below():
    labels = tuple(f"{place} of a rather long description of the arm" for place in range(4))
    domain = replace(WEIGHT, treatment=Treatment("t", arms=labels))
    text = smoking_release(domain=domain, settings=sample_settings(), level="sample").to_text()
    assert max(map(len, text.splitlines()[1:])) <= 100  # the first line is never broken
    assert f"{labels[1]}  {labels[0]}\n    difference −167\n    95 % interval [" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_shows_the_same_tables(width):
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=width).print(release_table(RELEASE))
    shown = out.getvalue()
    assert "Average treatment effects of 4 arms, released by private-ate" in " ".join(shown.split())
    assert "3,778" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_the_page_draws_contrasts_means_balance_and_overlap():
    drawn = re.findall(r'<svg role="img" aria-label="([^"]*)"', PAGE)
    assert sum("Forest plot" in text for text in drawn) == 2
    assert sum(text.startswith("Means by rising dose") for text in drawn) == 1
    assert sum("Box plots of the probability of" in text for text in drawn) == 4
    assert PAGE.count("<summary>Balance between ") == 6
    assert "the greatest over all pairs" in PAGE
    assert "1.38 times as wide" in PAGE
    assert PAGE.count("effect lies") == 0
    less = RELEASE.to_html(contrasts="reference")
    assert sum("Forest plot" in text for text in re.findall(r'aria-label="([^"]*)"', less)) == 1
    assert "6-10 daily against 1-5 daily" not in less.split("What is promised")[0]


def test_a_curve_that_never_turns_is_drawn_when_asked_for():
    assert "stroke-dasharray" not in PAGE
    page = RELEASE.to_html(monotone=True)
    assert page.count("stroke-dasharray") == 3
    assert "never turns" in page
    named = replace(WEIGHT, treatment=Treatment("t", arms=LABELS))
    unordered = smoking_release(domain=named)
    assert "Means by rising dose" not in unordered.to_html()


def test_monotone_means_pool_neighbours_that_turn_by_their_variances():
    found = monotone_means(RELEASE)
    means = {arm.label: arm.mean for arm in RELEASE.arms}
    assert list(found) == list(LABELS)
    assert found[LABELS[0]] == means[LABELS[0]]
    assert found[LABELS[2]] == found[LABELS[3]]  # 3159.4 and 3168.6 turn
    assert means[LABELS[2]] < found[LABELS[2]] < means[LABELS[3]]
    assert found[LABELS[2]] - means[LABELS[2]] < means[LABELS[3]] - found[LABELS[2]]  # less noisy
    with pytest.raises(ArgumentError, match="bins of a dose"):
        monotone_means(
            smoking_release(domain=replace(WEIGHT, treatment=Treatment("t", arms=LABELS)))
        )
    with pytest.raises(ArgumentError, match="no arm means"):
        monotone_means(smoking_release(means=False))


def test_doses_are_shown_in_their_order_wherever_the_reference_is():
    turned = Treatment("t", bins=(0, 1, 6, 11, 100), labels=LABELS, reference=2)
    release = smoking_release(domain=replace(WEIGHT, treatment=turned))
    assert release.arms[0].label == "6-10 daily"
    told = re.search(r'aria-label="Means by rising dose: ([^"]*)"', release.to_html())[1]
    assert [part.split(":")[0] for part in told.split("; ")] == list(LABELS)


def test_a_card_holds_both_tables():
    card = RELEASE._repr_html_()
    assert card.count("<table>") == 3
    assert card.count("released by private-ate") == 1
    assert len(re.findall("<t[dh][^>]*>11[+] daily<", card)) == 4


def test_the_citation_names_every_arm_against_the_reference():
    assert "against 0 daily, −167 (95 % interval −300 to −35) for 1-5 daily; −245" in PAGE


def test_labels_are_escaped_on_pages():
    labels = ("<b>a</b>", "b&c", "d", "e")
    domain = replace(WEIGHT, treatment=Treatment("t", arms=labels))
    page = smoking_release(domain=domain).to_html()
    assert "<b>a</b>" not in page
    assert "&lt;b&gt;a&lt;/b&gt;" in page


def test_plots_and_frames_show_several_arms(tmp_path):
    for name, draw in (
        ("a", lambda path: draw_contrasts(RELEASE, path)),
        ("b", lambda path: draw_contrasts(RELEASE, path, "reference")),
        ("c", lambda path: draw_means(RELEASE, path, monotone=True)),
        ("o", lambda path: draw_overlap(ARM_OVERLAP, path)),
    ):
        draw(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
    with pytest.raises(ArgumentError, match="no means"):
        draw_means(smoking_release(means=False), tmp_path / "d.svg")
    overlap = overlap_frame(ARM_OVERLAP)
    assert overlap.columns == ["score of", "from", "to", *LABELS]
    assert overlap[LABELS[1]].sum() == sum(sum(counts[1]) for counts in ARM_OVERLAP.counts)
    frame = arms_frame(RELEASE)
    assert frame["arm"].to_list() == list(LABELS)
    assert frame["mean"].to_list() == [arm.mean for arm in RELEASE.arms]
