"""A number is called what it is, wherever it is shown."""

import json
import re
from fractions import Fraction

import polars as pl
import pytest

from private_ate import (
    BlocksOptions,
    CalibratedOptions,
    Domain,
    Interval,
    PublishedOptions,
    Release,
    Treatment,
    diagnose_ate,
    estimate_ate,
)
from private_ate.datasets.clinic import draw_clinic
from private_ate.release.public_facts import PublicFacts
from private_ate.report.phrasing import PAPER, publishable_sentence, uncertainty
from private_ate.report.text import release_table
from private_ate.report.to_polars import effects_frame

STUDY = draw_clinic(400, seed=3)
FACTS = PublicFacts(treatment="drug", outcome="pressure_drop")
EVEN = pl.DataFrame(
    {"x": [i % 7 / 7 for i in range(120)], "t": [0, 1] * 60, "y": [i % 3 // 2 for i in range(120)]}
)
MERE = "difference in means, not adjusted for covariates"


def ask(level: str, **asked) -> Release:
    frame = asked.pop("frame", STUDY.frame)
    return estimate_ate(
        frame, **{"domain": STUDY.domain, "level": level, "epsilon": "1", "seed": 1, **asked}
    )


def table_text(release: Release) -> str:
    from io import StringIO

    from rich.console import Console

    console = Console(file=StringIO(), width=300, highlight=False)
    console.print(release_table(release))
    return console.file.getvalue()


def shown_everywhere(release: Release) -> dict[str, str]:
    """Return the release as every place shows it to people."""
    diagnostics = diagnose_ate(STUDY.frame, domain=STUDY.domain)
    return {
        "text": str(release),
        "terminal": table_text(release),
        "report": release.to_html(),
        "report with facts": release.to_html(FACTS),
        "notebook": release._repr_html_(),
        "curator": diagnostics.to_html(release),
        "citation": publishable_sentence(release),
    }


UNADJUSTED = {
    "blocks": {"level": "sample", "epsilon": "0.01"},
    "blocks as asked": {"level": "sample", "options": BlocksOptions(adjust=False)},
    "difference in means": {"level": "sample", "method": "difference_in_means"},
    "published": {"level": "sample", "method": "published"},
    "published, tight": {
        "level": "label", "method": "published", "options": PublishedOptions(k=1),
        "frame": EVEN, "domain": Domain("t", ("y", Interval(0, 1)), {"x": Interval(0, 1)}),
    },
    "no covariates": {"level": "label", "covariates": []},
}  # fmt: skip


@pytest.mark.parametrize("name", UNADJUSTED)
def test_an_unadjusted_difference_is_never_called_an_average_effect(name):
    release = ask(**UNADJUSTED[name])
    plain = json.loads(release.to_json())

    assert (plain["estimand"], plain["adjusted"]) == ("difference", False)
    assert plain["effects"][0]["estimand"] == "difference"
    for place, text in shown_everywhere(release).items():
        own = text.replace(PAPER, "").lower()
        assert MERE in own, place
        assert "average treatment effect" not in own, place
        assert not re.search(r"effect \(at.\)|effect of|interval for the effect", own), place
    assert "nothing was adjusted for" in publishable_sentence(release)
    row = effects_frame(release).row(0, named=True)
    assert (row["estimand"], row["adjusted"]) == ("difference", False)


@pytest.mark.parametrize("method", ["blocks", "difference_in_means"])
def test_in_a_trial_arms_compared_as_they_are_give_the_average_effect(method):
    release = ask("sample", method=method, design="randomized")

    assert (release.estimand, release.adjusted, release.design) == ("ate", False, "randomized")
    for place, text in shown_everywhere(release).items():
        assert "average treatment effect" in text.lower(), place
        assert MERE not in text, place
    assert "treatment was random, as declared" in publishable_sentence(release)


@pytest.mark.parametrize(
    ("estimand", "name"),
    [
        ("att", "on the treated (ATT)"),
        ("atc", "on the controls (ATC)"),
        ("ato", "in the overlap population (ATO)"),
    ],
)
def test_an_effect_on_some_units_is_named_after_them(estimand, name):
    release = ask("label", estimand=estimand)

    assert (release.estimand, release.adjusted) == (estimand, True)
    for place, text in shown_everywhere(release).items():
        assert name in text, place


def test_a_method_that_weights_by_overlap_says_so_by_name():
    blocks = ask("sample", epsilon="20", options=BlocksOptions(adjust=True), estimand="ato")

    assert blocks.estimand == "ato"
    assert "in the overlap population (ATO)" in str(blocks)


def test_an_adjusted_average_effect_keeps_its_name():
    release = ask("label", epsilon="4")

    assert (release.estimand, release.adjusted) == ("ate", True)
    for place, text in shown_everywhere(release).items():
        assert "average treatment effect" in text.lower(), place
        assert "not adjusted" not in text, place


def numbers_in(text: str) -> list[str]:
    return re.findall(r"[−-]?\d[\d,]*\.?\d*", text)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_printed_numbers_have_the_digits_that_the_standard_error_supports(level):
    release = ask(level, options=CalibratedOptions(means=True) if level == "label" else None)
    lines = str(release).splitlines()
    first = next(line for line in lines if line.startswith(("effect (", "difference in means")))
    error = next(line for line in lines if line.startswith("standard error"))

    (shown,) = numbers_in(first.partition("  ")[2])
    deviation = numbers_in(error)[0]

    assert len(deviation.replace(".", "").lstrip("0")) <= 2
    assert len(shown.partition(".")[2]) == len(deviation.partition(".")[2])
    assert float(shown.replace("−", "-")) == pytest.approx(
        release.ate, abs=uncertainty(release) / 10
    )
    assert f'class="effect">{shown}<' in release.to_html()
    assert shown in release._repr_html_()
    assert shown in publishable_sentence(release)
    assert json.loads(release.to_json())["ate"] == release.ate
    assert len(repr(release.ate)) > len(shown)


def test_noise_far_below_the_sampling_error_keeps_digits_of_its_own():
    release = ask("label", epsilon="12")
    low, high = release.noise_interval
    line = next(line for line in str(release).splitlines() if "noise interval" in line)

    assert high - low < uncertainty(release) / 20
    assert len(set(numbers_in(line.partition("interval")[2]))) == 2


@pytest.mark.parametrize("epsilon", ["10", "10.01", "250"])
def test_an_epsilon_above_ten_is_warned_about(epsilon):
    release = ask("sample", epsilon=epsilon)
    is_large = Fraction(epsilon) > 10

    assert any("is above 10" in text for text in release.warnings) is is_large
    assert str(release).splitlines()[1].startswith("WARNING: ε = ") is is_large
    assert ("Warning: ε = " in release.to_html()) is is_large
    assert ("is above 10" in release.to_json()) is is_large


def test_the_command_line_warns_of_a_large_epsilon_on_standard_error(tmp_path):
    from typer.testing import CliRunner

    from private_ate.cli.app import app

    STUDY.frame.write_csv(tmp_path / "clinic.csv")
    STUDY.domain.write(tmp_path / "clinic.toml")
    common = ["estimate", str(tmp_path / "clinic.csv"), "--domain", str(tmp_path / "clinic.toml"),
              "--level", "sample"]  # fmt: skip

    large = CliRunner().invoke(app, [*common, "--epsilon", "20", "--json"])
    small = CliRunner().invoke(app, [*common, "--epsilon", "2", "--json"])

    assert large.stderr.startswith("warning: ε = 20 is above 10")
    assert large.stderr.count("above 10") == 1
    assert json.loads(large.stdout)["warnings"]
    assert small.stderr == ""
    assert json.loads(small.stdout)["warnings"] == []


def test_the_page_of_a_release_is_named_after_its_columns_without_further_facts():
    frame = pl.DataFrame({"t": [0, 1] * 50, "x": [0.5] * 100, "y": [i % 3 for i in range(100)]})
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 2)), {"x": Interval(0, 1)})

    page = ask("label", frame=frame, domain=domain).to_html()

    assert "<h1>Effect of t on y</h1>" in page


def test_a_plan_prints_the_digits_that_its_expected_error_supports():
    from dataclasses import replace

    from private_ate import plan_ate

    plan = plan_ate(STUDY.frame, domain=STUDY.domain, level="label", epsilons=["1"])
    sizes = {"noise_error": 212.34, "sampling_error": 256.78, "expected_error": 633.12}
    wide = replace(plan.rows[0], half_width=1257.34, detectable_effect=1790.5, **sizes)
    shown = str(replace(plan, rows=(wide,))).splitlines()

    assert shown[3].split()[1:6] == ["200", "300", "600", "1,300", "1,800"]
    assert plan.to_dict()["rows"][0]["half_width"] == plan.rows[0].half_width
