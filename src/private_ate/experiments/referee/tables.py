"""The referee's numbers as Markdown tables and as rows of comma-separated values."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from private_ate.experiments.arms import ALL_ARMS
from private_ate.experiments.claims import name_arm, number
from private_ate.experiments.markdown import markdown_table
from private_ate.experiments.referee.draws import Audited, Memory
from private_ate.experiments.referee.families import Setting, setting_named
from private_ate.experiments.referee.verdicts import (
    Cell,
    Standing,
    explain_loss,
    lost_to,
    verdict_of,
)

__all__ = [
    "results_csv",
    "setting_words",
    "summary_csv",
    "table_of_audits",
    "table_of_costs",
    "table_of_design",
    "table_of_errors",
    "table_of_intervals",
    "table_of_lost_cells",
    "table_of_winners",
]

_MARKS = {"best": "**ours**", "tie": "tie", "beaten": "not ours", "too few draws": "?"}


def setting_words(setting: Setting) -> str:
    """Name a setting by what differs from n = 10 000, d = 20, half treated, uniform outcome."""
    kinds = {
        "nonlinear": "non-linear", "none": "trial", "tree2": "tree of depth 2",
        "tree3": "tree of depth 3", "count": "four of eight conditions",
        "threefold": "product of three", "classes": "latent classes",
    }  # fmt: skip
    outcomes = {
        "rare": "rare binary", "heavy": "heavy tails", "zeros": "many zeros",
        "narrow": "narrow outcome",
    }  # fmt: skip
    overlap = {"poor": "poor overlap", "never": "a fifth never treated"}
    words = [
        kinds.get(setting.confounding, setting.confounding),
        f"n = {setting.size}" if setting.size != 10_000 else "",
        f"d = {setting.dimension}" if setting.dimension != 20 else "",
        f"{setting.share:.0%} treated" if setting.share != 0.5 else "",
        outcomes.get(setting.outcome, ""),
        "varying effects" if setting.varying else "",
        "opposite signs" if setting.opposite else "",
        overlap.get(setting.overlap, ""),
        f"bounds {setting.wider} times too wide" if setting.wider != 1 else "",
    ]
    return ", ".join(word for word in words if word)


def table_of_design(families: dict[str, tuple[Setting, ...]], cells: Sequence[Cell]) -> str:
    """List the settings with how many studies were drawn and what misses without privacy."""
    rows = []
    for family, settings in families.items():
        for setting in settings:
            members = [cell for cell in cells if cell.setting == setting.name]
            drawn = max((_draws(cell) for cell in members), default=0)
            errors = (members[0].plain, members[0].adjusted) if members else (math.nan, math.nan)
            rows.append(
                [family, setting_words(setting), f"`{setting.name}`", str(drawn)]
                + [number(error) for error in errors]
            )
    header = ["family", "setting", "name", "studies", "plain difference", "AIPW"]
    return markdown_table(header, rows)


def table_of_winners(cells: Sequence[Cell]) -> str:
    """Name the winner of each cell and how our default stands, a column per ε."""
    epsilons = sorted({cell.epsilon for cell in cells}, key=float)

    def entry(cell: Cell) -> str:
        winner, default = cell.winner, cell.default
        if winner is None or default is None:
            return "–"
        verdict = verdict_of(cell)
        shown = f"{name_arm(winner.arm)} {number(winner.mean)}"
        if winner is default:
            return f"**{shown}**"
        return f"{shown}; ours {number(default.mean)}, {_MARKS[verdict]}"

    return _by_setting(cells, epsilons, entry)


def table_of_lost_cells(cells: Sequence[Cell]) -> str:
    """List every cell in which the default is behind by more than two standard errors."""
    rows = []
    for cell in cells:
        ahead, default = lost_to(cell), cell.default
        if verdict_of(cell) == "beaten" and default is not None:
            rows.append(
                [
                    cell.level,
                    setting_words(setting_named(cell.setting)),
                    cell.epsilon,
                    _mean(default),
                    "–" if ahead is None else f"{name_arm(ahead.arm)} {_mean(ahead)}",
                    explain_loss(default, ahead),
                ]
            )
    if not rows:
        judged = [cell for cell in cells if verdict_of(cell) != "too few draws"]
        return "There is none." if judged else "No cell has a verdict yet."
    return markdown_table(["level", "setting", "ε", "ours", "ahead", "why"], rows)


def table_of_errors(cells: Sequence[Cell]) -> str:
    """Write mean ± standard error for each setting and arm, a column per ε."""
    return _by_arm(cells, _mean)


def table_of_intervals(cells: Sequence[Cell]) -> str:
    """Write coverage and mean width for each setting and arm that has intervals."""

    def entry(standing: Standing) -> str:
        if not standing.covered:
            return "–"
        held = f"{sum(standing.covered)}/{len(standing.covered)}"
        return f"{held}, {number(standing.width)}"

    return _by_arm(cells, entry, lambda standing: bool(standing.covered))


def table_of_costs(cells: Sequence[Cell], memories: Sequence[Memory]) -> str:
    """Write the median processor seconds of a release and its largest memory by n and d."""
    seconds: dict[tuple[str, int, int], list[float]] = {}
    for cell in cells:
        for standing in cell.standings:
            seconds.setdefault((standing.arm, *_shape(cell)), []).extend(standing.cpu)
    peaks = _peaks(memories)
    shapes = sorted({key[1:] for key in seconds})

    def entry(arm: str, shape: tuple[int, int]) -> str:
        key = (arm, *shape)
        if key not in seconds:
            return "–"
        peak = peaks.get(key)
        memory = "" if peak is None else f", {peak:.0f} MB"
        return f"{number(median(seconds[key]))} s{memory}"

    known = {key[0] for key in seconds}
    header = ["method", *(f"n = {size}, d = {dimension}" for size, dimension in shapes)]
    rows = [
        [arm.display, *(entry(arm.label, shape) for shape in shapes)]
        for arm in ALL_ARMS
        if arm.label in known
    ]
    return markdown_table(header, rows)


def table_of_audits(audits: Sequence[Audited]) -> str:
    """Write for each arm what the audit bounds from below, a column per ε that it claims."""
    epsilons = sorted({one.epsilon for one in audits}, key=float)
    found = {(one.arm, one.epsilon): one for one in audits}

    def entry(arm: str, epsilon: str) -> str:
        one = found.get((arm, epsilon))
        if one is None:
            return "–"
        contradicted = "" if one.passed else ", **above its claim**"
        return f"≥ {one.bound:.2f} ({one.runs}){contradicted}"

    rows = [
        [name_arm(arm), _promise(arm, audits), *(entry(arm, epsilon) for epsilon in epsilons)]
        for arm in dict.fromkeys(one.arm for one in audits)
    ]
    return markdown_table(["method", "claims", *(f"ε = {one}" for one in epsilons)], rows)


def _promise(arm: str, audits: Sequence[Audited]) -> str:
    """Return what an arm claims beside ε."""
    delta = next(one.claimed for one in audits if one.arm == arm).partition(", ")[2]
    return f"(ε, δ), {delta}" if delta else "ε"


def summary_csv(
    cells: Sequence[Cell], memories: Sequence[Memory], audits: Sequence[Audited]
) -> str:
    """Write one line for each cell and arm."""
    header = (
        "setting", "level", "epsilon", "method", "draws", "refused", "error", "standard_error",
        "bias", "spread", "coverage", "width", "cpu_seconds", "megabytes", "audited_epsilon",
        "verdict_of_default",
    )  # fmt: skip
    peaks = _peaks(memories)
    bounds = {(one.arm, one.epsilon): one.bound for one in audits}
    rows = [
        (
            cell.setting, cell.level, cell.epsilon, one.arm, len(one.errors), one.refused,
            one.mean, one.standard_error, one.bias, one.spread, one.coverage, one.width,
            median(one.cpu), peaks.get((one.arm, *_shape(cell))),
            bounds.get((one.arm, cell.epsilon)), verdict_of(cell) if one is cell.default else "",
        )
        for cell in cells
        for one in cell.standings
    ]  # fmt: skip
    return results_csv(header, rows)


def _shape(cell: Cell) -> tuple[int, int]:
    setting = setting_named(cell.setting)
    return setting.size, setting.dimension


def _peaks(memories: Sequence[Memory]) -> dict[tuple[str, int, int], float | None]:
    return {(one.arm, one.size, one.dimension): one.megabytes for one in memories}


def results_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write comma-separated values; numbers have six digits, unknown ones are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([_plain(value) for value in row])
    return text.getvalue()


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return "" if value is None else value


def _draws(cell: Cell) -> int:
    return max((len(one.errors) + one.refused for one in cell.standings), default=0)


def _mean(standing: Standing) -> str:
    if math.isnan(standing.mean):
        return "refused"
    error = standing.standard_error
    return number(standing.mean) + ("" if math.isnan(error) else f" ± {number(error)}")


def _by_setting(
    cells: Sequence[Cell], epsilons: Sequence[str], entry: Callable[[Cell], str]
) -> str:
    places = {(cell.setting, cell.epsilon): cell for cell in cells}
    rows = [
        [
            setting_words(setting_named(setting)),
            *(
                entry(places[setting, epsilon]) if (setting, epsilon) in places else "–"
                for epsilon in epsilons
            ),
        ]
        for setting in dict.fromkeys(cell.setting for cell in cells)
    ]
    return markdown_table(["setting", *(f"ε = {epsilon}" for epsilon in epsilons)], rows)


def _by_arm(
    cells: Sequence[Cell],
    entry: Callable[[Standing], str],
    wanted: Callable[[Standing], bool] = lambda _: True,
) -> str:
    epsilons = sorted({cell.epsilon for cell in cells}, key=float)
    found: dict[tuple[str, str], dict[str, str]] = {}
    for cell in cells:
        for standing in cell.standings:
            if wanted(standing):
                found.setdefault((cell.setting, standing.arm), {})[cell.epsilon] = entry(standing)
    rows = [
        [
            setting_words(setting_named(setting)), name_arm(arm),
            *(entries.get(epsilon, "–") for epsilon in epsilons),
        ]
        for (setting, arm), entries in found.items()
    ]  # fmt: skip
    header = ["setting", "method", *(f"ε = {epsilon}" for epsilon in epsilons)]
    return markdown_table(header, rows)
