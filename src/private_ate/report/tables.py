"""The table of effects for a paper, as Markdown, LaTeX or CSV, of two arms or of more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_ate.effects import p_value_of
from private_ate.report.effects_table import (
    Cells,
    Column,
    Scope,
    cells_of,
    effect_columns,
    shown_effects,
)
from private_ate.report.frames import effects_frame
from private_ate.report.numbers import pair_text
from private_ate.report.words import assumption

if TYPE_CHECKING:
    from private_ate.release import Release

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$",
    "<": "$<$", ">": "$>$", "ε": r"$\varepsilon$", "δ": r"$\delta$", "|": r"\textbar{}",
}  # fmt: skip


def effect_cells(release: Release, scope: Scope = "all", *, p_values: bool = False) -> Cells:
    """Return a row per effect: who is compared, the number, its error and intervals.

    Columns that would say the same in every row, or nothing, are left out. ``p_values`` adds the
    test of no effect, for journals that ask for it.
    """
    rows = shown_effects(release, scope)
    names: list[Column] = []
    if len({row.outcome for row in rows}) > 1:
        names.append(("outcome", False, [row.outcome for row in rows]))
    if any(row.subgroup is not None for row in rows):
        names.append(("subgroup", False, [row.subgroup or "all" for row in rows]))
    names += [
        ("arm", False, [row.arm for row in rows]),
        ("against", False, [row.against for row in rows]),
    ]
    numbers = effect_columns(
        release, rows, write=pair_text, standard_errors=True, p_values=p_values
    )
    return cells_of([*names, *numbers])


def _unit_text(release: Release) -> str:
    """Say in which units effects are, where somebody declared them."""
    told = release.facts.outcomes
    if len(told) > 1:
        named = [f"{one.column} in {one.unit}" for one in told if one.unit]
        return f"Effects on {', '.join(named)}" if named else ""
    unit = None if release.outcome is None else release.outcome.unit
    return f"Effects are in {unit}" if unit else ""


def table_note(release: Release) -> str:
    """Return the line below a table: units, promise, method, and what to know before use."""
    facts = release.facts
    covers = facts.interval_covers if release.interval is not None else facts.noise_interval_covers
    parts = [
        f"Units: n = {release.n:,}",
        _unit_text(release),
        f"Intervals cover {covers}" if covers else "",
        f"{promise_text(release)} by private-ate {release.version}, method {release.method}",
        assumption(release),
        *release.warnings,
    ]
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts if part)


def promise_text(release: Release) -> str:
    """Say in a few words what the numbers of a table or a figure promise."""
    if not release.is_private:
        return "Computed WITHOUT a privacy guarantee"
    cost = f"ε = {float(release.epsilon):g}" + (f", δ = {release.delta:g}" if release.delta else "")
    return f"Released with differential privacy ({cost}, {release.adjacency})"


def markdown_table(release: Release, scope: Scope = "all", *, p_values: bool = False) -> str:
    """Return a table of GitHub's Markdown and the note below it."""
    cells = effect_cells(release, scope, p_values=p_values)
    ruler = ["---:" if is_number else "---" for is_number in cells.numbers]
    lines = [list(map(_plain_markdown, row)) for row in (cells.head, *cells.rows)]
    drawn = [f"| {' | '.join(row)} |" for row in (lines[0], ruler, *lines[1:])]
    return "\n".join([*drawn, "", _plain_markdown(table_note(release)), ""])


def latex_table(release: Release, scope: Scope = "all", *, p_values: bool = False) -> str:
    r"""Return a ``tabular`` with the rules of booktabs (``\usepackage{booktabs}``) and the note."""
    cells = effect_cells(release, scope, p_values=p_values)
    kinds = "".join("r" if is_number else "l" for is_number in cells.numbers)
    head, *rows = (" & ".join(map(_plain_latex, row)) + r" \\" for row in (cells.head, *cells.rows))
    note = rf"\multicolumn{{{len(kinds)}}}{{p{{0.95\linewidth}}}}{{\footnotesize "
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", head, r"\midrule", *rows,
            r"\bottomrule", f"{note}{_plain_latex(table_note(release))}}}", r"\end{tabular}", "",
        ]
    )  # fmt: skip


def csv_table(release: Release, *, p_values: bool = False) -> str:
    """Return the whole table of effects with all digits, a header line first.

    A spreadsheet would take a text that begins with = + - @ for a formula, so an apostrophe goes
    before it, unless it is a number.
    """
    import polars as pl

    frame = effects_frame(release)
    if p_values:
        found = [p_value_of(release, row) for row in release.effects]
        frame = frame.with_columns(pl.Series("p_value", found, dtype=pl.Float64))
    texts = pl.col(pl.String)
    is_formula = texts.str.contains(r"^\s*[=+@-]") & ~texts.str.contains(r"^[+-]?[0-9.]+$")
    quoted = pl.when(is_formula).then("'" + texts).otherwise(texts)
    return frame.with_columns(quoted.name.keep()).write_csv()


def _plain_markdown(text: str) -> str:
    """Keep a label from being read as markup."""
    return "".join(f"\\{each}" if each in "\\|`*_<>[]#" else each for each in text)


def _plain_latex(text: str) -> str:
    return "".join(_LATEX.get(each, each) for each in text)
