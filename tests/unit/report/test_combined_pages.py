"""A combination of sites as text, as a card and as a page."""

import re

from private_ate import combine
from sites import effect_row, halves, made_up_site

HALVES = halves(1.0, 0.5, 0.9, 0.95)


def table_site(shift, **changes):
    rows = (
        effect_row(3.0 + shift, *HALVES),
        effect_row(4.0 - shift, *HALVES, subgroup="<b>women</b>"),
    )
    return made_up_site(0, effects=rows, **changes)


def sites(**changes):
    shifts = {"north": 0.1, "<i>south</i>": -0.4, "east": 0.3}
    return {name: table_site(shift, **changes) for name, shift in shifts.items()}


def test_a_page_is_one_file_that_loads_nothing_and_escapes_names():
    page = combine(sites()).to_html()

    assert page.count("<svg") == 2
    assert "&lt;i&gt;south&lt;/i&gt;" in page
    assert "<i>south" not in page
    assert "<b>women" not in page
    assert not re.search(r"https?://|<script|<img|<link", page)


def test_the_page_holds_the_forest_plot_the_sites_the_differences_and_the_promise():
    page = combine(sites()).to_html()

    for text in (
        "Forest plot. north", "How much sites differ", "I² =", "What went in", "All effects",
        "What is promised", "the whole keeps the largest ε of the sites",
        "Somebody who is in two sites has less", "Dashed: where the effect of another site",
        "How to repeat it", "mmHg",
    ):  # fmt: skip
        assert text in page, text


def test_a_row_of_another_outcome_is_not_in_the_unit_of_the_first():
    def site(shift):
        rows = (effect_row(3 + shift, *HALVES), effect_row(9 + shift, *HALVES, outcome="days"))
        return made_up_site(0, effects=rows)

    page = combine([site(0.1), site(-0.1)]).to_html()

    assert page.count("In mmHg. Squares") == 1
    assert page.count("In units of the outcome. Squares") == 1


def test_the_fixed_page_has_no_prediction():
    page = combine(sites(), "fixed").to_html()

    assert "Dashed" not in page
    assert "stroke-dasharray" not in page


def test_squares_grow_with_the_weight_of_their_site():
    near, far = made_up_site(3.0, 0.5, 0.5), made_up_site(4.0, 5.0, 0.5)
    page = combine({"near": near, "far": far}, "fixed").to_html()
    sides = [float(side) for side in re.findall(r'<rect [^>]*width="([\d.]+)"', page)]

    assert len(sides) == 2
    assert sides[0] > 1.5 * sides[1]


def test_the_text_names_every_row_and_says_what_does_not_average_out():
    text = " ".join(str(combine(sites())).split())

    assert "pressure: yes against no, <b>women</b>" in text
    assert "does not average out" in text
    assert "REML, Hartung–Knapp" in text


def test_a_card_shows_warnings_first():
    card = combine(sites(warnings=("poor overlap",)))._repr_html_()

    assert card.index("poor overlap") < card.index("<table")
    assert "<svg" in card


def test_one_site_alone_speaks_of_no_differences():
    page = combine([made_up_site(3.0, 1.0, 0.5)]).to_html()

    assert "one site alone" in page
    assert "How much sites differ" not in page
    assert "in two sites" not in page
