"""Label level with effects that vary: coverage of every estimand, of all units and in subgroups.

Run: python benchmarks/accuracy_subgroups.py --table coverage --file subgroups.jsonl

Every study is drawn afresh and has known effects of all units and of each subgroup, for each
estimand; releases are real ones with their intervals, seeded, so nothing is private. Two tables:

- ``coverage``: the share of intervals that hold the true effect: of all units without subgroups
  (``alone``), of all units rolled up from four subgroups (``rolled``) or paid for beside them
  (``paid``), of the subgroups themselves, and of all rows of a table at once by its simultaneous
  intervals. Two arms are the families ``varied`` and ``curved`` of
  `private_ate.experiments.families`; three arms are drawn here, with effects that follow the
  score, for all units and among those of arm B.
- ``overall``: root mean square errors of all units paid for beside eight subgroups at ε, over those
  of all units asked for alone at ε/2, by noise and by everything.

Everything measured is appended to a file, and what the file holds is not measured again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import softmax

from private_ate import Domain, Interval, Release, Treatment, estimate_ate
from private_ate.experiments.families import make_study

CUTS = ("x0<0", "x1<0")
FIRST_SEED = 7001  # of studies; the code was tried on seeds below 100
LEAST = 0.93


@dataclass(frozen=True, slots=True)
class Asked:
    """A line of the table: a family, whose effect, in which form."""

    family: str
    estimand: str
    form: str

    def arguments(self) -> dict[str, object]:
        """Return what distinguishes the request."""
        found: dict[str, object] = {}
        if self.estimand in ("att", "atc", "ato"):
            found["estimand"] = self.estimand
        elif self.estimand.startswith("among "):
            found["among"] = self.estimand.removeprefix("among ")
        if self.form != "alone":
            found |= {"by": list(CUTS), "overall": self.form == "paid"}
        return found


LINES = [
    *(
        Asked(family, estimand, form)
        for family in ("varied", "curved")
        for estimand in ("ate", "att", "atc", "ato")
        for form in ("alone", "rolled")
    ),
    Asked("varied", "ate", "paid"),
    Asked("curved", "ate", "paid"),
    *(
        Asked("three arms", estimand, form)
        for estimand in ("ate", "among B")
        for form in ("alone", "rolled")
    ),
]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A study with its true effects: by estimand, subgroup and arm."""

    frame: pl.DataFrame
    domain: Domain
    truth: dict[str, dict[tuple[str | None, str, str], float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=("coverage", "overall"), default="coverage")
    parser.add_argument("--sizes", default="2000,10000")
    parser.add_argument("--epsilons", default="1,4")
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--forms", default="alone,rolled,paid")
    parser.add_argument("--draws", type=int, default=200, help="of each study of `overall`")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--file", type=Path, default=Path("accuracy_subgroups.jsonl"))
    parser.add_argument("--only-print", action="store_true")
    arguments = parser.parse_args()
    if arguments.table == "overall":
        overall(arguments)
        return
    found = _read(arguments.file)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    epsilons = arguments.epsilons.split(",")
    if not arguments.only_print:
        # By studies first, so that a run that is stopped has as many of every line.
        with arguments.file.open("a", encoding="utf-8") as file:
            for number in range(arguments.studies):
                for size in sizes:
                    lines = [line for line in LINES if line.form in arguments.forms.split(",")]
                    _measure(lines, arguments.first_seed + number, size, epsilons, found, file)
    _print(found)


def _measure(lines, seed, size, epsilons, found, file):
    """Measure all lines of one study that the file does not hold."""
    drawn: dict[str, Drawn] = {}
    for line in lines:
        for epsilon in epsilons:
            key = json.dumps([line.family, line.estimand, line.form, size, epsilon, seed])
            if key in found:
                continue
            if line.family not in drawn:
                drawn[line.family] = draw(line.family, size, seed)
            study = drawn[line.family]
            release = estimate_ate(
                study.frame, domain=study.domain, level="label", epsilon=epsilon, seed=seed,
                **line.arguments(),
            )  # fmt: skip
            found[key] = _rows(release, study.truth[line.estimand])
            file.write(json.dumps({"key": key, "rows": found[key]}) + "\n")
            file.flush()


def _rows(release: Release, truth) -> list[list]:
    """Return (is a finest cell, is all units, error, half-width, both coverages) of every row."""
    rows = []
    for row in release.effects:
        true = truth[row.subgroup, row.arm, row.against]
        low, high = row.interval
        wide = row.simultaneous or row.interval
        cell = row.subgroup is not None and "," in row.subgroup
        rows.append(
            [cell, row.subgroup is None, row.estimate - true, (high - low) / 2,
             low <= true <= high, wide[0] <= true <= wide[1]]
        )  # fmt: skip
    return rows


def draw(family: str, size: int, seed: int) -> Drawn:
    """Return a study of a family with the truth of every row of a table."""
    if family == "three arms":
        return _three_arms(size, np.random.default_rng(seed))
    study = make_study(family, size, 5, 0.4, seed)
    truth: dict[str, dict] = {}
    for name, chosen in _groups(study.frame).items():
        for estimand, effect in study.units.effects(chosen).items():
            truth.setdefault(estimand, {})[name, "1", "0"] = effect
    return Drawn(study.frame, study.domain, truth)


def _groups(frame: pl.DataFrame) -> dict[str | None, np.ndarray]:
    """Return the members of all units, of the margins and of the cells of both cuts."""
    below = [frame[name].to_numpy() < 0 for name in ("x0", "x1")]
    sides = [{f"x{j}<0": low, f"x{j}≥0": ~low} for j, low in enumerate(below)]
    found: dict[str | None, np.ndarray] = {None: np.ones(frame.height, dtype=bool)}
    found |= sides[0] | sides[1]
    for first, one in sides[0].items():
        for second, other in sides[1].items():
            found[f"{first}, {second}"] = one & other
    return found


def _three_arms(size: int, rng: np.random.Generator) -> Drawn:
    """Draw three arms by a multinomial logit; effects of the others follow the first score."""
    x = rng.standard_normal((size, 5)) * 0.8 + 0.6 * rng.standard_normal((size, 1))
    slopes = rng.standard_normal((3, 5)) * 0.5
    score = x @ (slopes - slopes.mean(axis=0)).T
    chances = softmax(score, axis=1)
    codes = (chances.cumsum(axis=1) < rng.random(size)[:, None]).sum(axis=1).clip(0, 2)
    along = score[:, 2] - score[:, 0]
    along = along / along.std()
    prognosis = 0.6 * along + 0.5 * x[:, 0]
    effects = np.outer(1 + 0.6 * np.tanh(along), [0.0, 0.6, 1.2])
    expected = 5 + prognosis[:, None] + effects
    noise = 0.8 * rng.standard_normal(size)
    outcomes = np.clip(expected + noise[:, None], 0, 10)
    columns = {f"x{j}": np.clip(x[:, j], -4, 4) for j in range(5)}
    labels = np.array(["A", "B", "C"])
    frame = pl.DataFrame({"t": labels[codes], "y": outcomes[np.arange(size), codes]} | columns)
    domain = Domain(
        Treatment("t", arms=tuple(labels.tolist())), ("y", Interval(0, 10)),
        dict.fromkeys(columns, Interval(-4, 4)),
    )  # fmt: skip
    truth: dict[str, dict] = {"ate": {}, "among B": {}}
    for name, chosen in _groups(frame).items():
        for estimand, among in (("ate", chosen), ("among B", chosen & (codes == 1))):
            means = outcomes[among].mean(axis=0)
            for arm, against in ((1, 0), (2, 0), (2, 1)):
                key = name, str(labels[arm]), str(labels[against])
                truth[estimand][key] = float(means[arm] - means[against])
    return Drawn(frame, domain, truth)


def _read(path: Path) -> dict[str, list]:
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {line["key"]: line["rows"] for line in lines}


def _print(found: dict[str, list]) -> None:
    """Print coverage of all units, of the finest cells and of a whole table, by line."""
    lines: dict[tuple, list] = {}
    for key, rows in found.items():
        family, estimand, form, size, epsilon, _ = json.loads(key)
        lines.setdefault((family, estimand, form, int(size), float(epsilon)), []).append(rows)
    print("| family | estimand | form | n | ε | studies | all units | margins | cells | at once |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for line, studies in sorted(lines.items()):
        whole = [row[4] for rows in studies for row in rows if row[1]]
        cells = [row[4] for rows in studies for row in rows if row[0]]
        margins = [row[4] for rows in studies for row in rows if not row[0] and not row[1]]
        once = [all(row[5] for row in rows) for rows in studies]
        texts = [_share(whole), _share(margins), _share(cells), _share(once)]
        print("| " + " | ".join([*map(str, line[:3]), f"{line[3]:,}", f"{line[4]:g}",
              str(len(studies)), *texts]) + " |")  # fmt: skip


def _share(hits: list[bool]) -> str:
    if not hits:
        return ""
    share = float(np.mean(hits))
    return f"{share:.3f}".lstrip("0") + (" !" if share < LEAST else "")


def overall(arguments: argparse.Namespace) -> None:
    """Compare errors of all units beside eight subgroups with those of all units alone at ε/2."""
    by = [*CUTS, "x2<0"]
    for family in ("varied", "curved"):
        for size in (int(size) for size in arguments.sizes.split(",")):
            for epsilon in (float(epsilon) for epsilon in arguments.epsilons.split(",")):
                study = make_study(family, size, 5, 0.4, arguments.first_seed)
                errors = {"paid": [], "rolled": [], "alone": []}
                asked = {
                    "paid": {"epsilon": epsilon, "by": by, "overall": True},
                    "rolled": {"epsilon": epsilon, "by": by},
                    "alone": {"epsilon": epsilon / 2},
                }
                for seed in range(arguments.draws):
                    for name, more in asked.items():
                        release = estimate_ate(
                            study.frame, domain=study.domain, level="label", seed=seed, **more
                        )
                        errors[name].append(release.ate - study.effects["ate"])
                shown = {name: np.array(values) for name, values in errors.items()}
                noise = {name: values.std() for name, values in shown.items()}
                whole = {name: float(np.sqrt((v**2).mean())) for name, v in shown.items()}
                print(
                    f"| {family} | {size:,} | {epsilon:g} | {arguments.draws} | "
                    f"{noise['paid'] / noise['alone']:.2f} | "
                    f"{whole['paid'] / whole['alone']:.2f} | "
                    f"{noise['rolled'] / noise['alone']:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
