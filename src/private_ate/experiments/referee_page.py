"""The referee's page: who won, where our defaults did not, what intervals held, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, get_args

import numpy as np
import polars as pl

from private_ate.experiments.arms import ALL_ARMS
from private_ate.experiments.claims import Claim
from private_ate.experiments.families import GROUPS, SETTINGS
from private_ate.experiments.figures import BOOSTED, Axis, Layout, draw, draw_points
from private_ate.experiments.referee import (
    Audited,
    Judged,
    Standing,
    counts,
    default_arm,
    explain_loss,
    judge_cells,
    peaks_of,
    read_audits,
)
from private_ate.experiments.results import Summary
from private_ate.experiments.tables import (
    markdown_table,
    name_arm,
    name_set,
    number,
    pivot,
    with_spread,
)
from private_ate.privacy.levels import Level

__all__ = ["OPENING", "claims_of_referee", "draw_referee", "sections", "table_of_audits"]

_NINE_IN_TEN: Final = 0.9
_LARGEST: Final = 10.0  # errors beyond so many effects are in the tables alone
_EPSILON: Final = "1"  # of the overview
_MARKS: Final = {"best": "ours", "tie": "tie", "beaten": "not ours", "too few draws": "?"}
OPENING: Final = """\
**Nothing on this page is private.** Every study is generated and every release drawn from a seed.

All methods that are registered, at both levels, on families of studies whose directions,
thresholds and trees are drawn with each study (`experiments/families.py`). The families are those
of the benchmarks too, so methods may have been developed on their shapes; the studies here come
from seeds of their own, and no method has seen them. A *cell* is a setting at one ε. In every cell
all methods see the same studies. The error is |estimate − truth| / |truth|, of three arms the mean
over all contrasts relative to their mean size, where the truth is the mean over the study's units
of the difference of their outcomes. Competitors spend all of ε on the effect, and their intervals
come from a second release; our methods pay for their 95 % interval from the same ε, as they do for
a user. Of a randomised trial the methods that can use it know the probability of treatment.
PrivSyn and AIM take seconds to minutes a release: they see the first studies of settings with at
most 1000 rows only.

All numbers of this page are in [summary.csv](summary.csv). A default *ties* if nobody is ahead of
it by more than two standard errors of the paired difference over the studies that both saw, and it
is *beaten* if anybody is, our own other methods included. A cell with fewer than five studies has
no verdict."""
_OVERVIEW: Final = """\
Every line is a setting. An error of one is as large as the effect; errors above ten effects are
drawn at ten. As pixels: [figure-overview.png](figure-overview.png)."""
_DESIGN: Final = """\
A base cell (linear confounding, n = 10 000, d = 20, half of the units treated, a normal outcome),
one factor varied at a time, and some crossings. The last columns are mean errors without privacy:
of a plain difference, of a doubly robust estimate with squares, and of a cross-fitted one with
boosting."""
_INTERVALS: Final = """\
The share of 95 % intervals that held the truth, their mean width relative to the truth, and the
share of the plain difference's bias that the estimates keep. On the same studies stands a
cross-fitted AIPW estimate with boosted models (scikit-learn) and without privacy. Without
confounding the plain difference has no bias but chance, and the share says nothing."""
_COSTS: Final = """\
Median processor seconds of a release after reading and encoding, with one thread of BLAS, on a
machine shared with other work; the largest memory of a fresh process that read, encoded and
released."""
_AUDITS: Final = """\
A lower bound on ε from releases of two neighbouring studies with each budget, at 99.9 % confidence
([the audit](../threat-model.md)), and in brackets how many releases of either it rests on. It can
contradict a claim and cannot prove one; with few releases, or noise that hides one record among
others, it says little. These runs use the system's entropy, so a repetition gives other digits."""
_CORRECTIONS: Final = """\
## Is your method here, and is it at its best?

Methods of others are written from what could be read of them; each has
[a page](../baselines/README.md) that says what is known and what is reconstructed. If yours should
do better, send a change of one of three kinds, as an issue or a pull request:

1. *Options.* Name the options under which it should run, and why an analyst could know them without
   seeing the private data. They become the method's defaults or a further form of it, as `ipw` has
   two (`_FORMS` in `experiments/arms.py`).
2. *Steps.* Change `src/private_ate/baselines/NAME.py`, its page and its section of
   [the proofs](../proofs/baselines.md). The tests of neighbours and the audit must still pass.
3. *A new method.* A file and a record in `methods/registry.py`; it takes part here by itself.

Then run `private-ate experiment run referee` again: finished releases are kept, and only what is
new is computed. After a change of steps start anew with `--fresh`. Recipes of the families
(`experiments/families.py`) stay as they are; the numbers of this page are replaced whether they
please us or not."""


def claims_of_referee(cells: Sequence[Judged]) -> list[Claim]:
    """Say for each level in how many cells the default wins or ties, and whether nine in ten."""
    claims = []
    for level in get_args(Level):
        found = counts(cell for cell in cells if cell.level == level)
        few = found["too few draws"]
        judged, won = found.total() - few, found["best"] + found["tie"]
        words = f"At {level} level the default ({default_arm(level).display}) wins or ties nine "
        words += "cells in ten."
        if not judged:
            claims.append(Claim(words, f"{few} cells with too few draws", "not measured"))
            continue
        measured = (
            f"{'holds' if won >= _NINE_IN_TEN * judged else 'does not hold'}: {won} of {judged} "
            f"cells ({won / judged:.0%}), best in {found['best']}, tied in {found['tie']}, "
            f"beaten in {found['beaten']}"
        )
        measured += f"; {few} without a verdict" if few else ""
        claims.append(Claim(words, measured, "measured"))
    return claims


def draw_referee(summary: Summary, folder: Path) -> list[Path]:
    """Draw an overview of ε = 1, if that was run, and errors against ε for each group."""
    layout = Layout(
        rows="level", y="error_against_truth", references=(BOOSTED,), most=_LARGEST,
        x_axis=Axis("total privacy budget ε", log=True),
        y_axis=Axis("error / true effect", log=True, floor=0.001),
    )  # fmt: skip
    paths = _draw_overview(summary.where(epsilon=_EPSILON), folder)
    for group, settings in GROUPS.items():
        names = {setting.name for setting in settings}
        rows = summary.select(lambda row, names=names: row.dataset in names)  # type: ignore[misc]
        if rows.rows:
            paths += draw(layout, rows, folder, _figure_name(group))
    return paths


def _figure_name(group: str) -> str:
    return "figure-" + group.replace(" ", "-")


def _draw_overview(summary: Summary, folder: Path) -> list[Path]:
    """Draw all other arms as grey ticks, the best of them and our default as points."""
    panels, names = {}, summary.datasets
    for level in summary.values("level"):
        label, points = default_arm(level).label, {"ours": [], "best": [], "rest": []}  # type: ignore[var-annotated]
        for place, name in enumerate(names):
            rows = [row for row in summary.where(level=level, dataset=name).rows if row.n > 0]
            ranked = sorted(rows, key=lambda row: row.error_against_truth_mean)
            others = [row for row in ranked if row.method != label]
            for kind, members in (
                ("ours", [row for row in ranked if row.method == label]),
                ("best", others[:1]),
                ("rest", others[1:]),
            ):
                points[kind] += [
                    (min(row.error_against_truth_mean, _LARGEST), place) for row in members
                ]
        panels[f"{level} level, ε = {_EPSILON}"] = (
            ("other methods", "|", "#bbbbbb", points["rest"]),
            ("the best of the others", "o", "#08306b", points["best"]),
            ("our default, with its interval", "s", "#c0392b", points["ours"]),
        )
    if not panels:
        return []
    path = folder / "figure-overview"
    draw_points(path, panels, [name_set(name) for name in names], "mean error / true effect")
    return [path]


def sections(rows: pl.DataFrame, folder: Path) -> Iterator[str]:
    """Yield the parts of the page below the verdicts."""
    cells = judge_cells(rows)
    if (folder / "figure-overview.svg").exists():
        yield "![our defaults beside the best of the others](figure-overview.svg)"
        yield _OVERVIEW
    yield "### Every cell in which our default is behind by more than two standard errors"
    yield table_of_lost_cells(cells)
    for level in get_args(Level):
        yield f"### The winner of each cell at {level} level"
        yield "In bold where it is our default; a number is the mean error."
        yield _by_setting([cell for cell in cells if cell.level == level], _winner)
    yield "## The design"
    yield _DESIGN
    yield _table_of_design(cells)
    for group, settings in GROUPS.items():
        names = {setting.name for setting in settings}
        members = [cell for cell in cells if cell.setting in names]
        if members:
            figure = _figure_name(group)
            yield f"## {group.capitalize()}"
            yield f"![{group}]({figure}.svg)"
            yield (
                "Bars are standard errors; errors above ten effects are in the table only. As "
                f"pixels: [{figure}.png]({figure}.png)."
            )
            yield "Mean error ± standard error."
            yield _by_arm(members, _mean)
    yield "## Intervals, and the bias that is left"
    yield _INTERVALS
    yield table_of_intervals(cells)
    yield "## Time and memory"
    yield _COSTS
    yield _table_of_costs(rows)
    audits = read_audits(folder / ".audits")
    if audits:
        yield "## Audited ε"
        yield _AUDITS
        yield table_of_audits(audits)
    yield _CORRECTIONS


def _mean(one: Standing) -> str:
    return with_spread(one["error"], one["standard_error"]) if one["draws"] else "refused"


def _winner(cell: Judged) -> str:
    """Name the winner of a cell and how our default stands."""
    winner, default = cell.winner, cell.default
    if winner is None or default is None:
        return "–"
    shown = f"{name_arm(winner['method'])} {number(winner['error'])}"
    if winner is default:
        return f"**{shown}**"
    return f"{shown}; ours {number(default['error'])}, {_MARKS[cell.verdict]}"


def _by_setting(cells: Sequence[Judged], entry: Callable[[Judged], str]) -> str:
    return pivot(
        cells, {"setting": lambda one: name_set(one.setting)}, lambda one: f"ε = {one.epsilon}",
        entry,
    )  # fmt: skip


def _by_arm(cells: Sequence[Judged], entry: Callable[[Standing], str]) -> str:
    """Write a line for each setting and arm, a column per ε."""
    return pivot(
        [one for cell in cells for one in cell.standings],
        {
            "setting": lambda one: name_set(one["dataset"]),
            "method": lambda one: name_arm(one["method"]),
        },
        lambda one: f"ε = {one['epsilon']}",
        entry,
    )


def table_of_lost_cells(cells: Sequence[Judged]) -> str:
    """List every cell in which the default is behind by more than two standard errors."""
    rows = [
        [
            cell.level,
            name_set(cell.setting),
            cell.epsilon,
            _mean(cell.default),
            "–" if cell.ahead is None else f"{name_arm(cell.ahead['method'])} {_mean(cell.ahead)}",
            explain_loss(cell.default, cell.ahead),
        ]
        for cell in cells
        if cell.verdict == "beaten" and cell.default is not None
    ]
    if not rows:
        judged = any(cell.verdict != "too few draws" for cell in cells)
        return "There is none." if judged else "No cell has a verdict yet."
    return markdown_table(["level", "setting", "ε", "ours", "ahead", "why"], rows)


def _table_of_design(cells: Sequence[Judged]) -> str:
    """List the settings with how many studies were drawn and what misses without privacy."""
    names = ("plain_error", "aipw_error", "boosted_error")
    rows = []
    for name, setting in SETTINGS.items():
        members = [one for cell in cells if cell.setting == name for one in cell.standings]
        drawn = max((one["draws"] + one["refused"] for one in members), default=0)
        errors = [number(members[0][key]) if members else "–" for key in names]
        rows.append([setting.group, setting.words, f"`{name}`", str(drawn), *errors])
    header = ["family", "setting", "name", "studies", "plain difference", "AIPW", "boosted AIPW"]
    return markdown_table(header, rows)


def table_of_intervals(cells: Sequence[Judged]) -> str:
    """Write coverage, mean width and bias left of each setting and arm beside boosted AIPW."""

    def entry(one: Standing) -> str:
        left = "–" if one["bias_left"] is None else f"{one['bias_left']:.2f}"
        held = f"{one['coverage']:.0%} of {one['intervals']}, " if one["intervals"] else ""
        return f"{held}{number(one['width'])}; {left}"

    lines = []
    for cell in cells:
        first = cell.standings[0]
        boosted = f"{first['boosted_coverage']:.0%}, {number(first['boosted_width'])}"
        lines.append((cell, "boosted AIPW, no privacy", boosted))
        lines += [(cell, name_arm(one["method"]), entry(one)) for one in cell.standings]
    return pivot(
        lines,
        {"setting": lambda line: name_set(line[0].setting), "method": lambda line: line[1]},
        lambda line: f"ε = {line[0].epsilon}",
        lambda line: line[2],
    )


def _table_of_costs(rows: pl.DataFrame) -> str:
    """Write the median processor seconds of a release and its largest memory by n and d."""
    peaks = peaks_of(rows)
    seconds: dict[tuple[str, int, int], list[float]] = {}
    seen = rows.filter(~pl.col("isolated")).select("method", "dataset", "cpu")
    for method, name, cpu in seen.iter_rows():
        setting = SETTINGS[name]
        seconds.setdefault((method, setting.size, setting.dimension), []).append(cpu)
    order = {arm.label: place for place, arm in enumerate(ALL_ARMS)}
    shapes = sorted({key[1:] for key in seconds})
    arms = sorted({key[0] for key in seconds}, key=order.__getitem__)

    def entry(key: tuple[str, int, int]) -> str:
        if key not in seconds:
            return "–"
        memory = "" if peaks.get(key) is None else f", {peaks[key]:.0f} MB"
        return f"{number(float(np.median(seconds[key])))} s{memory}"

    return pivot(
        [(arm, *shape) for arm in arms for shape in shapes],
        {"method": lambda key: name_arm(key[0])},
        lambda key: f"n = {key[1]}, d = {key[2]}",
        entry,
    )


def table_of_audits(audits: Sequence[Audited]) -> str:
    """Write for each arm what the audit bounds from below, a column per ε that it claims."""
    promises: dict[str, str] = {}
    for one in audits:
        delta = one.claimed.partition(", ")[2]
        promises.setdefault(one.arm, f"(ε, δ), {delta}" if delta else "ε")

    def entry(one: Audited) -> str:
        contradicted = "" if one.passed else ", **above its claim**"
        return f"≥ {one.bound:.2f} ({one.runs}){contradicted}"

    return pivot(
        audits,
        {"method": lambda one: name_arm(one.arm), "claims": lambda one: promises[one.arm]},
        lambda one: f"ε = {one.epsilon}",
        entry,
    )
