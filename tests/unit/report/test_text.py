import os
import re
import subprocess
import sys

import pytest

from private_ate import estimate_ate
from private_ate.datasets.clinic import draw_clinic
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


@pytest.mark.parametrize("width", [40, 60, 120])
def test_a_table_keeps_to_the_width_of_the_terminal(release, width):
    from io import StringIO

    from rich.console import Console

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
