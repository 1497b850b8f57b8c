"""The referee: every method on studies that none has seen, and who wins a cell.

A cell is a setting at one ε. Families and rules are never changed after a look at their results;
nothing here is private.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, get_args

import polars as pl

from private_ate.api import METHODS
from private_ate.audit.run import audit_release
from private_ate.data.files import write_whole
from private_ate.experiments.arms import ALL_ARMS, Arm
from private_ate.experiments.families import SETTINGS, Setting
from private_ate.experiments.runner import Cell, Scale
from private_ate.experiments.tables import number
from private_ate.methods.composition import takes
from private_ate.methods.registry import AUTO
from private_ate.privacy.levels import Level
from private_ate.request import Request

__all__ = [
    "LEAST_DRAWS",
    "Audited",
    "Judged",
    "audit_arms",
    "counts",
    "default_arm",
    "explain_loss",
    "judge_cells",
    "peaks_of",
    "plan",
    "read_audits",
    "stage",
    "summary_of",
]

LEAST_DRAWS: Final = 5
"""Common draws that a comparison of two arms needs."""
_EPSILONS: Final = ("0.5", "1", "2", "4")
# Studies of a setting by its size, in full (some hours on two cores) and quick (some minutes).
_DRAWS: Final = {
    300: (100, 4), 700: (100, 4), 1000: (100, 4), 1500: (100, 4), 10_000: (30, 2), 100_000: (8, 1),
}  # fmt: skip
_SLOW_SIZE, _SLOW_DRAWS = 1000, 5  # slow arms see the first studies of small settings
_SMALL: Final = 10_000  # units up to which a study is small
_STUDIES: Final = 100_000  # numbers of studies that a base seed has for itself
_PATIENCE: Final = 10.0  # seconds for an audit
_QUICK_RUNS: Final = 40
_STANDARD_ERRORS: Final = 2.0  # of the paired difference that count as a difference
_SILENT: Final = 0.5  # a mean answer below this share of the effect says little
_MOSTLY: Final = 1.0  # a bias above so many spreads is most of an error
_KEY: Final = ("dataset", "level", "epsilon")


def plan(scale: Scale) -> Iterator[Cell]:
    """Yield every study with the arms that see it, then a release of each size for its memory.

    All arms that are registered take part, those without a name in figures too.
    """
    epsilons = ("1",) if scale.quick else _EPSILONS
    for setting in SETTINGS.values():
        for draw in range(scale.pick(*_DRAWS[setting.size])):
            for arm in _contestants(setting, draw, scale):
                for epsilon in epsilons:
                    yield _cell(setting, arm, epsilon, draw, scale)
    shapes: dict[tuple[int, int], Setting] = {}
    for setting in SETTINGS.values():
        shapes.setdefault((setting.size, setting.dimension), setting)
    for setting in list(shapes.values())[: 1 if scale.quick else None]:
        for arm in _contestants(setting, 0, scale):
            yield _cell(setting, arm, "1", 0, scale, isolated=True)


def _cell(  # the axes of the grid
    setting: Setting, arm: Arm, epsilon: str, draw: int, scale: Scale, *, isolated: bool = False
) -> Cell:
    return Cell(
        setting.name, arm.label, epsilon, _STUDIES * scale.seed + draw, repetitions=1,
        with_intervals=True, isolated=isolated,
    )  # fmt: skip


def _contestants(setting: Setting, draw: int, scale: Scale) -> Iterator[Arm]:
    """Yield the arms that take part in a study."""
    sees_slow = not scale.quick and setting.size <= _SLOW_SIZE and draw < _SLOW_DRAWS
    for arm in ALL_ARMS:
        if arm.slow and not sees_slow:
            continue
        if setting.family != "three-arms" or takes(arm.method, arm.level, "arms"):
            yield arm


def stage(cell: Cell) -> tuple[object, ...]:
    """Return the place of a cell in an order in which a run that is cut short can be used.

    First come as many studies of each setting as a verdict needs, small settings before large
    ones and slow arms after all others; then the rest, of which every setting has its share at
    any time. Arms that see the same study follow each other.
    """
    setting, draw = SETTINGS[cell.dataset], cell.draw % _STUDIES
    if next(arm for arm in ALL_ARMS if arm.label == cell.arm).slow:
        return 2, draw, setting.name
    if draw < LEAST_DRAWS:
        return int(setting.size > _SMALL), draw, setting.name
    return 3, draw / _DRAWS[setting.size][0], setting.name


@dataclass(frozen=True, slots=True)
class Audited:
    """A lower bound on the ε of an arm's releases with a budget, at 99.9 % confidence."""

    arm: str
    epsilon: str
    claimed: str
    bound: float
    runs: int
    passed: bool


def audit_arms(
    folder: Path, scale: Scale, arms: Iterable[Arm] = ALL_ARMS, runs: int | None = None
) -> None:
    """Audit what was not audited yet, on the worst neighbours of `audit`."""
    folder.mkdir(parents=True, exist_ok=True)
    if scale.quick:
        runs = _QUICK_RUNS
        arms = [arm for arm in arms if not arm.slow]
    for arm in arms:
        for epsilon in ("1",) if scale.quick else _EPSILONS:
            path = folder / f"{arm.label}-{epsilon}.json"
            if not path.exists():
                write_whole(path, json.dumps(asdict(_audited(arm, epsilon, runs))))


def _audited(arm: Arm, epsilon: str, runs: int | None) -> Audited:
    method = METHODS[arm.method]
    options = method.options(**dict(arm.options)) if arm.options else None
    request = Request(arm.level, Fraction(epsilon), target=arm.target, options=options)
    finding = audit_release(method, arm.level, runs, request=request, patience=_PATIENCE)
    bound = 0.0 if finding.bound is None else finding.bound
    return Audited(arm.label, epsilon, finding.claimed, bound, finding.runs, finding.passed)


def read_audits(folder: Path) -> list[Audited]:
    """Read what the audits found, in the order of the arms."""
    paths = [folder / f"{arm.label}-{epsilon}.json" for arm in ALL_ARMS for epsilon in _EPSILONS]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
    return [Audited(**json.loads(text)) for text in texts]


Verdict = Literal["best", "tie", "beaten", "too few draws"]
Standing = dict[str, Any]  # what one arm did in a cell: a row of `_standings`


@dataclass(frozen=True, slots=True)
class Judged:
    """A cell: what each arm of one level did in a setting at one ε, and the verdict.

    ``default`` is what the level's default did, ``winner`` the arm with the smallest mean error,
    ``ahead`` the one that is ahead of the default by most, of those beyond two standard errors.
    """

    setting: str
    level: Level
    epsilon: str
    standings: tuple[Standing, ...]
    default: Standing | None
    winner: Standing | None
    ahead: Standing | None

    @property
    def verdict(self) -> Verdict:
        """Best, tied within two standard errors with all that are ahead, or beaten.

        A default that was refused in a draw is beaten.
        """
        ours = self.default
        if ours is None or ours["draws"] + ours["refused"] < LEAST_DRAWS:
            return "too few draws"
        if self.ahead is not None or ours["refused"]:
            return "beaten"
        return "best" if self.winner is ours else "tie"


def default_arm(level: Level) -> Arm:
    """Return the arm of what "auto" chooses at a level, with the default target."""
    chosen = (arm for arm in ALL_ARMS if arm.method == AUTO[level] and arm.level == level)
    return next(arm for arm in chosen if arm.target == "balance" and not arm.options)


def _standings(rows: pl.DataFrame) -> pl.DataFrame:
    """Return what each arm did in each cell, relative to the true effects.

    ``bias_left`` is the share of the plain difference's bias that the estimates keep; what
    begins with ``plain``, ``aipw`` and ``boosted`` are estimates of the same rows without privacy.
    """
    error, signed = pl.col("error_against_truth"), pl.col("signed_error")
    return rows.group_by(*_KEY, "method", maintain_order=True).agg(
        error.count().alias("draws"),
        error.null_count().alias("refused"),
        error.mean().alias("error"),
        (error.std() / error.count().sqrt()).alias("standard_error"),
        signed.mean().alias("bias"),
        signed.std().alias("spread"),
        pl.col("covered").mean().alias("coverage"),
        pl.col("covered").count().alias("intervals"),
        pl.col("width").mean(),
        (pl.col("toward_plain").sum() / pl.col("plain").filter(error.is_not_null()).sum()).alias(
            "bias_left"
        ),
        pl.col("cpu").median().alias("cpu_seconds"),
        pl.col("plain").mean().alias("plain_error"),
        pl.col("aipw_against_truth").mean().alias("aipw_error"),
        pl.col("boosted_against_truth").mean().alias("boosted_error"),
        pl.col("boosted_covered").mean().alias("boosted_coverage"),
        pl.col("boosted_width").mean(),
    )


def _ahead(rows: pl.DataFrame) -> dict[tuple[Any, ...], str]:
    """Return for each cell the arm that beats the default by most over the draws of both.

    With too few common draws nothing is distinguished.
    """
    defaults = {level: default_arm(level).label for level in get_args(Level)}
    is_default = pl.col("method") == pl.col("level").replace_strict(defaults)
    on = [*_KEY, "draw"]
    ours = rows.filter(is_default).select(*on, pl.col("error_against_truth").alias("ours"))
    gap = pl.col("ours") - pl.col("error_against_truth")
    gaps = (
        rows.filter(~is_default)
        .join(ours, on=on)
        .with_columns(gap=gap)
        .drop_nulls("gap")
        .group_by(*_KEY, "method", maintain_order=True)
        .agg(pl.len().alias("common"), pl.mean("gap"), error=pl.std("gap") / pl.len().sqrt())
        .filter(pl.col("common") >= LEAST_DRAWS, pl.col("gap") > _STANDARD_ERRORS * pl.col("error"))
        .sort("gap", descending=True, maintain_order=True)
    )
    return {
        key: group["method"][0]
        for key, group in gaps.partition_by(_KEY, as_dict=True, maintain_order=True).items()
    }


def judge_cells(rows: pl.DataFrame) -> list[Judged]:
    """Group the releases into cells, in the order in which settings first appear."""
    seen = rows.filter(~pl.col("isolated"))
    if seen.is_empty():
        return []
    ahead, order = _ahead(seen), {arm.label: place for place, arm in enumerate(ALL_ARMS)}
    settings = list(dict.fromkeys(seen["dataset"]))
    cells = []
    for key, group in _standings(seen).partition_by(_KEY, as_dict=True).items():
        setting, level, epsilon = key
        members = sorted(group.to_dicts(), key=lambda one: order[one["method"]])
        named = {one["method"]: one for one in members}
        winner = min(
            (one for one in members if one["draws"]), key=lambda one: one["error"], default=None
        )
        default = named.get(default_arm(level).label)
        beaten_by = named.get(ahead.get(key, ""))
        cells.append(Judged(setting, level, epsilon, tuple(members), default, winner, beaten_by))
    levels = get_args(Level)
    return sorted(
        cells,
        key=lambda one: (
            settings.index(one.setting), levels.index(one.level), float(one.epsilon)
        ),
    )  # fmt: skip


def counts(cells: Iterable[Judged]) -> Counter[Verdict]:
    """Count the verdicts."""
    return Counter(cell.verdict for cell in cells)


def explain_loss(default: Standing, ahead: Standing | None) -> str:
    """Say in a sentence where the default's larger error comes from.

    Bias and spread are the mean and the standard deviation of (estimate − truth)/|truth|.
    """
    if ahead is None:
        return f"refused in {default['refused']} draws"
    ours = f"bias {number(default['bias'])}, spread {number(default['spread'])}"
    theirs = f"bias {number(ahead['bias'])}, spread {number(ahead['spread'])}"
    if 1.0 + ahead["bias"] < _SILENT and ahead["spread"] < _SILENT:
        return (
            f"the answers of the one ahead stay near zero ({theirs}), which misses by about the "
            f"effect; ours spread further ({ours})"
        )
    if abs(default["bias"]) > _MOSTLY * default["spread"]:
        kind = (
            "ours is off on one side: confounding that it could not afford to remove, "
            "or of a shape that its model lacks"
        )
        return f"{kind} ({ours}; ahead: {theirs})"
    return f"ours spreads more by noise and sampling ({ours}; ahead: {theirs})"


def peaks_of(rows: pl.DataFrame) -> dict[tuple[str, int, int], float | None]:
    """Return the largest memory of a fresh process by arm, n and d."""
    found = rows.filter(pl.col("isolated")).select("method", "dataset", "peak_megabytes")
    return {
        (method, SETTINGS[dataset].size, SETTINGS[dataset].dimension): peak
        for method, dataset, peak in found.iter_rows()
    }


def summary_of(rows: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Return one row for each cell and arm: what is kept as summary.csv."""
    peaks = peaks_of(rows)
    bounds = {(one.arm, one.epsilon): one.bound for one in read_audits(folder / ".audits")}
    lines = []
    for cell in judge_cells(rows):
        setting = SETTINGS[cell.setting]
        for one in cell.standings:
            key = (one["method"], setting.size, setting.dimension)
            measured: dict[str, Any] = {
                "megabytes": peaks.get(key),
                "audited_epsilon": bounds.get((one["method"], cell.epsilon)),
                "verdict_of_default": cell.verdict if one is cell.default else "",
            }
            lines.append({"setting": cell.setting} | one | measured)
    return pl.DataFrame(lines, infer_schema_length=None).drop("dataset", strict=False)
