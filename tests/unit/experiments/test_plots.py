"""Figures: what is written along their axes."""

import re

import pytest

from private_ate.experiments.arms import ARM_STYLES
from private_ate.experiments.figures import Axis, Curve, Panel, draw_curves

pytest.importorskip("matplotlib", reason="PLOTS WERE NOT DRAWN: install the extra plots")


def texts_of(tmp_path, places, *, log):
    errors = [0.1 + 0.01 * place for place in places]
    curve = Curve("blocks", ARM_STYLES["blocks"], places, errors, [0.01] * len(places))
    axes = Axis("ε", log=log), Axis("error", log=True)
    draw_curves(tmp_path / "figure", [[Panel("one", [curve])]], *axes)
    return re.findall(r">([^<>]+)</text>", (tmp_path / "figure.svg").read_text("utf-8"))


def test_a_logarithmic_axis_names_the_places_of_its_points(tmp_path):
    texts = texts_of(tmp_path, [0.5, 1.0, 2.0, 4.0], log=True)

    assert [text for text in texts if text in {"0.5", "1", "2", "4"}] == ["0.5", "1", "2", "4"]
    assert not any("10" in text or "×" in text for text in texts)


def test_many_places_have_ticks_of_their_own(tmp_path):
    texts = texts_of(tmp_path, [float(2**power) for power in range(10)], log=True)

    assert {"1", "10", "100"} <= set(texts)
    assert "128" not in texts
