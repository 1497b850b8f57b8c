"""The referee's page: what was run, who won, where our defaults did not, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from private_ate.experiments.claims import Claim
from private_ate.experiments.markdown import markdown_table
from private_ate.experiments.referee import tables
from private_ate.experiments.referee.draws import Audited, Draw, Memory
from private_ate.experiments.referee.families import FAMILIES
from private_ate.experiments.referee.figures import figure_name
from private_ate.experiments.referee.verdicts import Cell, counts, default_arm
from private_ate.experiments.results import versions
from private_ate.privacy.levels import Level

__all__ = ["Outcome", "claims_of_referee", "referee_page"]

_NINE_IN_TEN: Final = 0.9
_TITLE: Final = "# All methods before a referee"
_OPENING: Final = """\
**Nothing on this page is private.** Every study is generated and every release drawn from a seed.

All methods that are registered, at both levels, on families of studies that were written for this
page alone: no method was tuned on them. A *cell* is a setting at one ε. In every cell all methods
see the same studies, and a study is drawn anew each time. The error is |estimate − truth| /
|truth|, where the truth is the average over the study's units of their expected difference.
Competitors spend all of ε on the effect, and their intervals come from a second release; our
methods pay for their 95 % interval from the same ε, as they do for a user. Of a randomised trial
the methods that can use it know the probability of treatment.

*What was known when.* A first run (base seed 1) showed that `blocks`, whose models were linear
then, lost most cells with non-linear confounding. Its blocks have chosen non-linear terms
since; that was tuned on other families (`benchmarks/families.py`). So the first non-linear family
of this page showed what to work on, not how, and studies of another seed are new. The rules of
eligibility were written after that work, before any method had seen them. Trees, counts, products
of three, latent classes, poor overlap, opposite signs, quiet studies and wide bounds were added
after both defaults of 0.2 had been rebuilt; the rebuilt ones were developed on other families with
some of these shapes."""
# What a family is called, where the key under which its draws are stored says less.
_TITLES: Final = {"law of the outcome": "distribution of the outcome"}
_HOW_JUDGED: Final = """\
A default *ties* if nobody is ahead of it by more than two standard errors of the paired difference
over the studies that both saw, and it is *beaten* if anybody is, our own other methods included. A
cell with fewer than five studies has no verdict."""
_OVERVIEW: Final = """\
Every line is a setting. An error of one is as large as the effect; errors above ten effects are
drawn at ten. As pixels: [figure-overview.png](figure-overview.png)."""
_DESIGN: Final = """\
A base cell (linear confounding, n = 10 000, d = 20, half of the units treated, an outcome with
uniform noise), one factor varied at a time, and some crossings. The last two columns are mean
errors without privacy: what confounding does to a plain difference, and what a doubly robust
estimate with squares leaves."""
_INTERVALS: Final = """\
How many intervals of how many held the truth, and their mean width relative to the truth; 95 % is
asked for."""
_COSTS: Final = """\
Median processor seconds of a release after reading and encoding, with one thread of BLAS, on a
machine shared with other work; the largest memory of a fresh process that read, encoded and
released once."""
_AUDITS: Final = """\
A lower bound on ε from releases of two neighbouring studies with each budget, at 99.9 % confidence
([the audit](../threat-model.md)), and in brackets how many releases of either it rests on. It can
contradict a claim and cannot prove one; with few releases, or noise that hides one record among
others, it says little. These runs use the system's entropy, so a repetition gives other digits."""
_SLOW: Final = """\
PrivSyn and AIM take seconds to minutes a release: they see the first studies of settings with
at most 1000 rows only."""
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

Then run `private-ate experiment run referee` again: finished draws are kept, and only what is new
is computed. After a change of steps start anew with `--fresh`. Seeds and recipes of the
families (`experiments/referee/families.py`, `outcomes.py`) stay as they are, so that nobody can be
tuned on them in the meantime; the numbers of this page are replaced whether they please us or
not."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that the page is written from."""

    draws: Sequence[Draw]
    cells: Sequence[Cell]
    memories: Sequence[Memory]
    audits: Sequence[Audited]
    figures: Sequence[Path]
    planned: int


def claims_of_referee(cells: Sequence[Cell]) -> list[Claim]:
    """Say for each level in how many cells the default wins or ties, and whether nine in ten."""
    claims = []
    for level in get_args(Level):
        found = counts(cell for cell in cells if cell.level == level)
        judged = sum(found.values()) - found["too few draws"]
        won = found["best"] + found["tie"]
        arm = default_arm(level).display
        summary = f"best in {found['best']}, tied in {found['tie']}, beaten in {found['beaten']}"
        words = f"At {level} level the default ({arm}) wins or ties nine cells in ten."
        if not judged:
            few = found["too few draws"]
            claims.append(Claim(words, f"{few} cells with too few draws", "not measured"))
            continue
        share = f"{won} of {judged} cells ({won / judged:.0%})"
        left = f"; {found['too few draws']} without a verdict" if found["too few draws"] else ""
        holds = "holds" if won >= _NINE_IN_TEN * judged else "does not hold"
        claims.append(Claim(words, f"{holds}: {share}, {summary}{left}", "measured"))
    return claims


def referee_page(outcome: Outcome, origin: str) -> str:
    """Write the page."""
    return "\n\n".join(part for part in _parts(outcome, origin) if part) + "\n"


def _parts(outcome: Outcome, origin: str) -> Iterator[str]:
    cells = outcome.cells
    yield from (_TITLE, _OPENING, _what_was_run(outcome, origin))
    yield from ("## The verdict", _HOW_JUDGED, _claims_table(claims_of_referee(cells)))
    if any(path.name == "figure-overview" for path in outcome.figures):
        yield "![our defaults beside the best of the others](figure-overview.svg)"
        yield _OVERVIEW
    yield "### Every cell in which our default is behind by more than two standard errors"
    yield tables.table_of_lost_cells(cells)
    for level in get_args(Level):
        yield f"### The winner of each cell at {level} level"
        yield "In bold where it is our default; a number is the mean error."
        yield tables.table_of_winners([cell for cell in cells if cell.level == level])
    yield "## The design"
    yield _DESIGN
    yield tables.table_of_design(FAMILIES, cells)
    yield from _families(outcome)
    yield "## Intervals"
    yield _INTERVALS
    yield tables.table_of_intervals(cells)
    yield "## Time and memory"
    yield _COSTS
    yield tables.table_of_costs(cells, outcome.memories)
    yield from _audits(outcome.audits)
    yield _CORRECTIONS


def _families(outcome: Outcome) -> Iterator[str]:
    drawn = {path.name for path in outcome.figures}
    for family, settings in FAMILIES.items():
        names = {setting.name for setting in settings}
        members = [cell for cell in outcome.cells if cell.setting in names]
        if not members:
            continue
        title = _TITLES.get(family, family)
        yield f"## {title.capitalize()}"
        if figure_name(family) in drawn:
            yield f"![{title}]({figure_name(family)}.svg)"
            yield (
                "Bars are standard errors; errors above ten effects are in the table only. As "
                f"pixels: [{figure_name(family)}.png]({figure_name(family)}.png)."
            )
        yield "Mean error ± standard error."
        yield tables.table_of_errors(members)


def _audits(audits: Sequence[Audited]) -> Iterator[str]:
    if not audits:
        return
    yield "## Audited ε"
    yield _AUDITS
    yield tables.table_of_audits(audits)


def _what_was_run(outcome: Outcome, origin: str) -> str:
    outings = [one for draw in outcome.draws for one in draw.outings]
    refused = Counter(f"{one.arm}: {one.note}" for one in outings if one.note)
    drawn = Counter(draw.setting for draw in outcome.draws)
    least, most = (min(drawn.values()), max(drawn.values())) if drawn else (0, 0)
    studies = f"{len(outcome.draws)} of {outcome.planned} planned studies"
    arms = len({one.arm for one in outings})
    lines = [
        f"{origin} {studies}, {least} to {most} a setting;",
        f"{len(outings)} releases by {arms} methods and forms; {versions()}.",
    ]
    if refused:
        shown = "; ".join(f"{reason} ({count})" for reason, count in sorted(refused.items()))
        lines.append(f"{sum(refused.values())} releases were refused: {shown}.")
    lines.append(_SLOW)
    lines.append("All numbers of this page are in [summary.csv](summary.csv).")
    return "\n".join(lines)


def _claims_table(claims: Sequence[Claim]) -> str:
    return markdown_table(
        ["must hold", "measured", "verdict"],
        [[claim.words, claim.measured, f"**{claim.verdict}**"] for claim in claims],
    )
