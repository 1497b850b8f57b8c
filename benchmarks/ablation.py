"""What each part of a level's default is worth: error and coverage without it, exactly.

Effects are those against the reference arm, in units of the true effect. ``rmse`` is the root mean
square error over studies and over the distribution of the release, ``left`` the share of the bias
of a plain difference that remains, ``far`` the largest probability of being off by more than three
effects, ``shapes`` and ``overlap`` the probabilities that the release says so (at label level
``shapes`` is the evidence). ``ratio`` is the error without the part over that of the whole default
on the same studies.

At sample level every study is released once; of the blocks that were cut the distribution of the
release is then computed without drawing: all centres, spreads and flags with their probabilities.
Label level: `ablation_label`.

    python benchmarks/ablation.py --families linear,tree-3 --size 10000 --studies 2
    python benchmarks/ablation.py --level label --size 1000 --studies 4 --epsilons 1
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple
from unittest.mock import patch

import ablation_label as label
import numpy as np

from private_ate import BlocksOptions, estimate_ate
from private_ate.experiments.families import Study, make_study
from private_ate.experiments.references import plain_contrasts, records_of
from private_ate.methods.blocks import centres
from private_ate.methods.blocks import inside as block_model
from private_ate.methods.blocks import method as blocks
from private_ate.methods.blocks.plan import BlocksPlan
from private_ate.privacy.joint import JointRule, Options
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

PARTS = ("squares", "terms", "forest", "twin", "boosting", "slopes", "flags")
FAR = 3.0
FAMILIES = "linear,nonlinear,curved,rules-2,tree-3,k-of-m,plateau,rare,varied,three-arms,trial"


class Cut(NamedTuple):
    """A study's blocks and what their release takes besides; ``rate`` multiplies levels."""

    rule: JointRule
    plan: BlocksPlan
    table: np.ndarray
    rate: Fraction


@dataclass
class Line:
    """Sums over studies and effects."""

    squares: list[float] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)
    halves: list[float] = field(default_factory=list)
    far: list[float] = field(default_factory=list)
    shapes: list[float] = field(default_factory=list)
    overlap: list[float] = field(default_factory=list)
    left: float = 0.0
    naive: float = 0.0

    def add_bias(self, naive: float, bias: float) -> None:
        """Add the bias that is left of that of a plain difference."""
        self.left += float(np.sign(naive) * bias)
        self.naive += abs(float(naive))

    @property
    def rmse(self) -> float:
        """Root mean square error."""
        return math.sqrt(np.mean(self.squares))

    def entries(self) -> dict[str, str]:
        """Return the cells of a line."""
        return {
            "rmse": f"{self.rmse:.3f}",
            "left": f"{self.left / self.naive:.2f}",
            "coverage": f"{np.mean(self.covered):.2f}",
            "half-width": f"{np.mean(self.halves):.2f}",
            "far": f"{max(self.far):.0e}" if self.far else "",
            "shapes": f"{np.mean(self.shapes):.2f}",
            "overlap": f"{np.mean(self.overlap):.2f}" if self.overlap else "",
        }


def main() -> None:
    asked = parse()
    writer = None
    for family, epsilon in itertools.product(asked.families.split(","), asked.epsilons.split(",")):
        for row in lines(family, epsilon, asked):
            if writer is None:
                writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
            sys.stdout.flush()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level", choices=("label", "sample"), default="sample")
    parser.add_argument("--families", default=FAMILIES)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--dimension", type=int, default=20)
    parser.add_argument("--epsilons", default="1,2")
    parser.add_argument("--studies", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=None)
    parser.add_argument("--first-seed", type=int, default=51_000)
    parser.add_argument("--parts", help="those to leave out, in turn, with commas; all if not said")
    asked = parser.parse_args()
    if asked.parts is None:
        asked.parts = ",".join(PARTS if asked.level == "sample" else label.PARTS)
    return asked


def lines(family: str, epsilon: str, asked: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Measure one family at one ε: the whole model, then without each part."""
    seeds = range(asked.first_seed, asked.first_seed + asked.studies)
    studies = [make_study(family, asked.size, asked.dimension, None, seed) for seed in seeds]
    whole = None
    kept: list[Cut] = []
    is_label = asked.level == "label"
    for part in ["", *filter(None, asked.parts.split(","))]:
        line = Line()
        with label.without(part) if is_label else without(part):
            for place, (study, seed) in enumerate(zip(studies, seeds, strict=True)):
                if is_label:
                    label.add(line, study, float(epsilon), seed)
                    continue
                if part == "flags" and kept:  # they only widen intervals
                    found = kept[place]
                else:
                    found = cut(study, float(epsilon), seed, asked.partitions)
                kept += [found] if part == "" else []
                add(line, study, found, part)
        whole = line.rmse if whole is None else whole
        yield {
            "family": family, "n": asked.size, "d": asked.dimension, "epsilon": epsilon,
            "studies": asked.studies, "without": part, **line.entries(),
            "ratio": f"{line.rmse / whole:.3f}",
        }  # fmt: skip
    label.forget()


def cut(study: Study, epsilon: float, seed: int, partitions: int | None) -> Cut:
    """Release a study once, and keep what the joint release is made of."""
    kept: list[Cut] = []
    honest = Noise.joint_centres
    plans = []

    def joint(self, step, values, *, rule, changes, epsilon):
        kept.append(Cut(rule, plans[-1], np.asarray(values), epsilon / (2 * changes)))
        return honest(self, step, values, rule=rule, changes=changes, epsilon=epsilon)

    def table(run, plan, keys, honest=blocks._block_table):
        plans.append(plan)
        return honest(run, plan, keys)

    with (
        patch.object(Noise, "joint_centres", joint),
        patch.object(blocks, "_block_table", table),
    ):
        estimate_ate(
            study.frame, domain=study.domain, level="sample", epsilon=epsilon, seed=seed,
            design="unknown" if study.probability is None else "randomized",
            probability=study.probability,
            options=BlocksOptions(partitions=partitions),
        )  # fmt: skip
    if not kept:
        msg = "no blocks were cut: n·ε is too small"
        raise SystemExit(msg)
    return kept[0]


def add(line: Line, study: Study, found: Cut, part: str) -> None:
    """Add the distributions of all effects against the reference."""
    width = study.domain.bounds.width
    options = found.rule.boxes(found.table)
    reference = str(study.domain.treatment.coded[0])
    pairs = [pair for pair in study.contrasts if pair[1] == reference]
    plain = dict(zip(study.contrasts, plain_contrasts(records_of(study))[0], strict=True))
    for place, pair in enumerate(pairs):
        truth = study.contrasts[pair]
        unit = study.unit / width
        weights = outside(options[:place] + options[place + 1 :], found)
        errors = found.rule.centre.candidates / OUTCOME_STEPS / unit - truth / study.unit
        one = options[place]
        rows = list(one.rows)
        chances = np.array([weights[one.levels(row)] for row in range(len(rows))])
        chances /= chances.sum()
        away = np.abs(errors)
        halves, mean = np.zeros(len(rows)), chances.sum(axis=0) @ errors
        for row, (spread, flag, _) in enumerate(rows):
            if chances[row].sum() > 1e-6:
                flagged = bool(flag) and part != "flags"
                halves[row] = half_width(found, spread, chances[row], flag=flagged) / unit
        line.squares.append(float((chances @ errors**2).sum()))
        line.covered.append(float((chances * (away <= halves[:, None])).sum()))
        line.halves.append(float(chances.sum(axis=1) @ halves))
        line.far.append(float(chances[:, away > FAR].sum()))
        line.shapes.append(
            float(sum(chances[row].sum() for row, (_, f, _) in enumerate(rows) if f))
        )
        line.add_bias((plain[pair] - truth) / study.unit, mean)
    if found.rule.asks_vote:
        weights = outside(options[:-1], found)
        silent, heard = (weights[options[-1].levels(row)].sum() for row in range(2))
        line.overlap.append(float(heard / (silent + heard)))


def outside(others: Sequence[Options], found: Cut) -> np.ndarray:
    """Return the weight of one candidate of each level, all other coordinates being drawn too."""
    levels = np.arange(len(found.table) + 1)
    boxes = np.ones(levels.size)
    for one in others:
        sizes = one.counts.sum(axis=0).cumsum().astype(float)
        boxes *= sizes / sizes[-1]
    falling = np.exp(-float(found.rate) * levels)
    steps = np.diff(boxes, prepend=0.0) * falling
    return falling * boxes + steps[::-1].cumsum()[::-1] - steps


def half_width(found: Cut, spread: int, chances: np.ndarray, *, flag: bool) -> float:
    """Return the half-width of the 95 % interval around the middle of a spread's centres."""
    rule, middle = found.rule, int(np.searchsorted(chances.cumsum(), chances.sum() / 2))
    quantity = centres.centre_quantity(
        rule, found.plan, Request("sample", Fraction(1)), found.rate,
        centre=int(rule.centre.candidates[middle]),
        spread=rule.spreads[spread] / OUTCOME_STEPS, flag=flag,
    )  # fmt: skip
    low, high = quantity.interval
    return (high - low) / 2


@contextmanager
def without(part: str) -> Iterator[None]:
    """Take a part out of the model inside blocks; flags are taken out of the interval."""
    kernel, forest = blocks.block_kernel, block_model.out_of_bag
    changes = {
        "terms": lambda inside: inside._replace(terms=0),
        "forest": lambda inside: inside._replace(forest=inside.forest._replace(trees=0)),
        "slopes": lambda inside: inside._replace(slopes=0),
    }

    def changed(groups, inside, spread, seed):
        return kernel(groups, changes[part](inside), spread, seed)

    def only_first(codes, targets, weights, size, seed):
        found = forest(codes, targets, weights, size, seed)
        second = seed % blocks._SEEDS == 2  # the second forest of the outcome has this seed
        return tuple(np.zeros_like(one) for one in found) if second else found

    places = {
        "squares": (block_model, "clipped_squares", np.zeros_like),
        "twin": (block_model, "_TWIN", math.inf),
        "boosting": (block_model, "out_of_bag", only_first),
    } | dict.fromkeys(changes, (blocks, "block_kernel", changed))
    if part in places:
        with patch.object(*places[part]):
            yield
    elif part in ("", "flags"):
        yield
    else:
        msg = f"no such part: {part}; one of {', '.join(PARTS)}"
        raise SystemExit(msg)


if __name__ == "__main__":
    main()
