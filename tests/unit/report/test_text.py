import os
import re
import subprocess
import sys
from dataclasses import replace
from io import StringIO

import polars as pl
import pytest
from rich.console import Console

from private_ate import DomainError, Release, estimate_ate
from private_ate.datasets.clinic import draw_clinic
from private_ate.domain import Domain, Interval, Outcome, Treatment
from private_ate.report.plots import draw_effects
from private_ate.report.text import release_table, summarize


@pytest.fixture(scope="module")
def release():
    study = draw_clinic(300)
    return estimate_ate(study.frame, domain=study.domain, level="label", epsilon=1)


def test_the_summary_has_the_lines_that_statisticians_look_for(release):
    text = summarize(release)

    for name in ("effect (ATE)", "standard error", "95 % interval", "arms", "guarantee"):
        assert re.search(rf"^{re.escape(name)} +\S", text, re.MULTILINE), name
    assert max(map(len, text.splitlines())) <= 88


def study_of(arms: int, outcomes: int) -> tuple[pl.DataFrame, Domain]:
    labels = [str(index) for index in range(arms)]
    names = ["tvhours", "steps", "sleep"][:outcomes]
    rows = range(240)
    frame = pl.DataFrame(
        {"age": [20 + i % 50 for i in rows], "working": [labels[i % arms] for i in rows]}
        | {name: [i % 7 for i in rows] for name in names}
    )
    first, *further = [Outcome(name, Interval(0, 24, missing=0)) for name in names]
    declared = Domain(
        Treatment("working", arms=labels), first, {"age": Interval(18, 90)}, further=tuple(further)
    )
    return frame, declared


@pytest.mark.parametrize(
    ("arms", "outcomes", "asked", "line"),
    [
        (2, 1, {}, "effect of working: 1 against 0, on tvhours"),
        (3, 1, {}, "effects of working: 1 and 2 against 0, on tvhours"),
        (2, 3, {}, "effect of working: 1 against 0, on tvhours, steps and sleep"),
        (
            2,
            1,
            {"by": ["age<45"]},
            "effect of working: 1 against 0, on tvhours, in subgroups by age<45",
        ),
        (
            2,
            1,
            {"level": "sample", "method": "difference_in_means"},
            "difference by working: 1 against 0, on tvhours",
        ),
        (2, 1, {"epsilon": 20}, "effect of working: 1 against 0, on tvhours"),
    ],
)
def test_a_text_begins_with_what_was_compared(arms, outcomes, asked, line):
    frame, declared = study_of(arms, outcomes)

    release = estimate_ate(frame, domain=declared, **{"level": "label", "epsilon": 1, **asked})

    assert str(release).splitlines()[0] == line
    console = Console(file=StringIO(), width=120, highlight=False)
    console.print(release_table(release))
    assert console.file.getvalue().splitlines()[0].rstrip() == line


def test_a_release_of_the_first_version_begins_with_its_title(release):
    old = replace(release, treatment=None, warnings=())

    assert str(old).startswith("Average treatment effect, released by private-ate")


@pytest.mark.parametrize("width", [40, 60, 120])
def test_a_table_keeps_to_the_width_of_the_terminal(release, width):
    console = Console(file=StringIO(), width=width, highlight=False)
    console.print(release_table(release))

    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    squeezed = re.sub(r"\s", "", console.file.getvalue())
    assert re.sub(r"\s", "", release.adjacency) in squeezed


def test_piped_output_has_no_colours(tmp_path):
    draw_clinic(200).frame.write_csv(tmp_path / "clinic.csv")
    flags = "--level label --epsilon 1 --treatment drug --treated yes --control no"
    flags += " --outcome pressure_drop --outcome-bounds -40 60 --covariates all"

    done = subprocess.run(
        [sys.executable, "-m", "private_ate.cli", "estimate", "clinic.csv", *flags.split()],
        cwd=tmp_path, capture_output=True, text=True, check=True,
        env={key: value for key, value in os.environ.items() if key != "FORCE_COLOR"},
    )  # fmt: skip

    assert "\x1b" not in done.stdout + done.stderr
    assert "standard error" in done.stdout


def test_labels_of_columns_are_titles_wherever_people_read_of_them(tmp_path):
    study = draw_clinic(400)
    text = study.domain.to_toml()
    for column, label in {
        "drug": "Blood pressure tablets",
        "pressure_drop": "Drop of systolic blood pressure",
        "smoker": "Smoking",
    }.items():
        line = f'column = "{column}"\n' if column != "smoker" else '[covariates."smoker"]\n'
        assert line in text
        text = text.replace(line, f'{line}label = "{label}"\n')
    domain = Domain.from_toml(text)
    assert Domain.from_toml(domain.to_toml()) == domain

    plain, release = (
        estimate_ate(study.frame, domain=one, level="label", epsilon=1, seed=1)
        for one in (study.domain, domain)
    )

    compared = (
        "effect of Blood pressure tablets: yes against no, on Drop of systolic blood pressure"
    )
    assert str(release).splitlines()[0] == compared
    page = Release.from_json(release.to_json()).to_html()
    assert "<h1>Effect of Blood pressure tablets on Drop of systolic blood pressure</h1>" in page
    assert "Smoking=<wbr>former" in page
    assert release.ate == plain.ate
    assert "column_labels" not in plain.settings
    draw_effects(release, tmp_path / "effect.svg")
    assert "effect on Drop of systolic" in (tmp_path / "effect.svg").read_text()


def test_a_label_that_does_not_fit_a_line_is_refused():
    with pytest.raises(DomainError, match="label of a column"):
        Domain("t", "y", column_labels={"t": "two\nlines"})
