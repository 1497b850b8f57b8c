"""The bar on standard error: it waits, shows a rate, starts anew with each pass."""

import io

import rich.console

from private_ate.cli import output


def test_a_bar_shows_its_pass_the_rate_and_the_time_left(monkeypatch):
    out = io.StringIO()
    make = rich.console.Console
    monkeypatch.setattr(
        rich.console,
        "Console",
        lambda **_: make(file=out, force_terminal=True, width=120, color_system=None),
    )
    monkeypatch.setattr(output, "_PATIENCE", 0.0)

    with output.watch("estimating") as step:
        for _ in range(2):
            for done in range(1, 5):
                step("propensity model", done, 4)

    shown = out.getvalue()
    assert "propensity model" in shown
    assert "4/4" in shown
    assert "/s" in shown
    assert "0:00:0" in shown


def test_short_work_draws_nothing(capsys):
    with output.watch("estimating") as step:
        step("pass", 1, 2)

    assert capsys.readouterr().err == ""
