"""The progress bar: silent when nobody looks, and never before a second has passed."""

import pytest
from rich.console import Console

from private_ate.cli import progress


def test_nothing_is_drawn_when_standard_error_is_no_terminal(capfd, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    with progress.watch("estimating") as step:
        for done in range(1, 4):
            step("pass", done, 3)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("patience", "quiet", "drawn"), [(-1.0, False, True), (-1.0, True, False),
                                                          (1e9, False, False)])  # fmt: skip
def test_a_bar_is_drawn_on_a_terminal_once_work_takes_a_while(
    patience, quiet, drawn, monkeypatch, capsys
):
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    monkeypatch.setattr(
        "rich.console.Console", lambda stderr: Console(stderr=stderr, force_terminal=True)
    )
    with progress.watch("estimating", quiet=quiet) as step:
        step("propensity model", 1, 2)
        step("propensity model", 2, 2)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert ("propensity model" in seen.err) is drawn
