"""Our sample-level method: models inside blocks of rows, one joint private centre.

Rows are cut into blocks by their positions. Inside a block effects are adjusted by regression and
forests, without noise; one draw releases centre and spread of the block effects of all arms,
outcomes and subgroups. A record sits in one block per partition, so it moves few blocks whatever
the number of covariates is. A public rule and the released counts decide whether blocks can pay;
if not, the arms are compared as they are. Privacy: docs/proofs/blocks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.domain.subgroups import Cells
from private_ate.effects.estimate import Estimate
from private_ate.methods.blocks.centres import (
    GRID,
    effect_quantity,
    joint_rule,
    released_spread,
)
from private_ate.methods.blocks.compare import Forms, compare_arms_as_they_are
from private_ate.methods.blocks.counts import Counts, Subgroups, release_counts
from private_ate.methods.blocks.inside import Said, block_effects
from private_ate.methods.blocks.notes import (
    Words,
    adjusted_words,
    overlap_words,
    rare_arm_notes,
    trial_words,
    unadjusted_words,
    wide_bounds_notes,
)
from private_ate.methods.blocks.partition import draw_keys, draw_shuffles
from private_ate.methods.blocks.plan import (
    MOST_PARTITIONS,
    Ask,
    BlocksOptions,
    BlocksPlan,
    Inside,
    plain_shares,
    plan_blocks,
)
from private_ate.methods.blocks.table import Released, estimate_of
from private_ate.methods.composition import options_of
from private_ate.methods.probability import probability_of
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from private_ate.study import Groups, MatchingStudy, Study

__all__ = ["BlocksOptions", "estimate_blocks"]

_SEEDS: Final = 8  # forests and shuffles of one block, each with a seed of its own


@dataclass(frozen=True, slots=True)
class _Run:
    """A request on a study: what is public, and one view of the rows for each outcome."""

    views: tuple[Study, ...]
    request: Request
    options: BlocksOptions
    noise: Noise = field(repr=False)
    subgroups: Subgroups
    ask: Ask

    @property
    def study(self) -> Study:
        """The rows with the first outcome."""
        return self.views[0]

    @property
    def changes(self) -> int:
        """How many rows of a partition neighbours differ in."""
        return self.request.rows_per_person


def estimate_blocks(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Estimate average treatment effects with whole records private.

    Neighbours: one person's rows replaced, n public. Cost: the request's ε, pure. Proof:
    docs/proofs/blocks.md.
    """
    run = _run(study, request, noise)
    # Drawn before any noise, so that partitions never depend on what was released.
    keys = draw_keys(run.options.partitions or MOST_PARTITIONS, noise)
    if not plan_blocks(run.ask, run.options).adjusts:
        released = _compare(run, None)
    else:
        released = _try_blocks(run, keys)
    return estimate_of(released, study.domain, request, noise)


def _run(study: MatchingStudy, request: Request, noise: Noise) -> _Run:
    options = options_of(request, BlocksOptions, "blocks")
    domain = study.domain
    cells = Cells.of(domain, request.by) if request.by else None
    subgroups = Subgroups(cells, request.overall)
    outcomes = len(domain.outcomes)
    views = [study.with_outcome(place) for place in range(outcomes)] if outcomes > 1 else [study]
    labels = domain.treatment.coded
    probability = None
    if request.probability is not None:
        probability = probability_of(domain, request.probability)
    ask = Ask(
        study.size,
        study.dimension,
        float(request.epsilon / request.rows_per_person),
        arms=len(labels),
        subgroups=subgroups.count,
        outcomes=outcomes,
        estimand=request.estimand,
        among=-1 if request.among is None else labels.index(request.among),
        design=request.design,
        probability=probability,
        binary=all(domain.of_outcome(place).bounds.is_binary for place in range(outcomes)),
    )
    shown = [view if place == 0 else view.unannounced() for place, view in enumerate(views)]
    return _Run(tuple(shown), request, options, noise, subgroups, ask)


def _compare(run: _Run, counted: Counts | None) -> Released:
    """Compare the arms as they are; a count that was paid for already is made use of.

    In a trial no arm is counted, and its words say how treatment was given.
    """
    request, epsilon, trial = run.request, run.request.epsilon, run.ask.probability
    shares = plain_shares(
        max(run.ask.size // run.subgroups.count, 4), run.ask.epsilon,
        with_interval=request.confidence is not None, is_trial=trial is not None,
    )  # fmt: skip
    counting = shares.counts
    words = unadjusted_words(request, tried=counted is not None, dimension=run.ask.dimension)
    if trial is not None:
        words = trial_words()
        known = (1 - trial.typical, trial.typical)
        if run.study.everyone_takes_part:
            counting, counted = Fraction(0), Counts.known(run.ask.size, known)
        else:
            counted = _count(run, epsilon * counting, known)
    elif counted is None:
        counted = _count(run, epsilon * counting)
    else:
        counting = run.ask.counting
    quantities = compare_arms_as_they_are(
        run.views, run.subgroups, Forms.of(counted, trial), run.noise,
        means=epsilon * shares.means,
        effect=epsilon * (1 - counting - shares.means - shares.interval),
        interval=epsilon * shares.interval,
        changes=run.changes,
    )  # fmt: skip
    told = counted if trial is None or trial.constant is not None else None
    return Released(quantities, run.subgroups, told, words, adjusted=False)


def _count(run: _Run, epsilon: Fraction, shares: Sequence[float] = ()) -> Counts:
    return release_counts(
        run.study, run.subgroups, run.noise, epsilon=epsilon, changes=run.changes, shares=shares
    )


def _try_blocks(run: _Run, keys: bytes) -> Released:
    """Count the arms, and cut blocks if the smallest of them leaves enough in every block."""
    ask = run.ask
    if ask.probability is None:
        counted = _count(run, run.request.epsilon * ask.counting)
    else:
        counted = Counts.known(ask.size, (1 - ask.probability.typical, ask.probability.typical))
    plan = plan_blocks(
        ask, run.options,
        members=float(counted.members.min()) * counted.effective_share,
        rarer=float(counted.shares.min()),
    )  # fmt: skip
    if not plan.adjusts:
        return _compare(run, counted)
    table = _block_table(run, plan, keys)
    epsilon = run.request.epsilon * (1 - ask.counting)
    rule = joint_rule(plan, ask.coordinates, epsilon / run.changes)
    changes = plan.partitions * run.changes
    drawn = run.noise.joint_centres("effect", table, rule=rule, changes=changes, epsilon=epsilon)
    quantities = [
        effect_quantity(
            rule, plan, drawn, place, epsilon / (2 * changes),
            changes=run.changes, coverage=run.request.coverage,
            with_interval=run.request.confidence is not None,
        )
        for place in range(ask.coordinates)
    ]  # fmt: skip
    per, arms = ask.subgroups * (ask.arms - 1), ask.arms - 1
    nested = [
        [quantities[first + group * arms : first + (group + 1) * arms]
         for group in range(ask.subgroups)]
        for first in range(0, ask.coordinates, per)
    ]  # fmt: skip
    spreads = [released_spread(rule, place) for place in drawn.spreads]
    return Released(
        nested, run.subgroups, counted,
        _words(run, plan, counted, drawn.flags, spreads[0], apart=drawn.vote),
        adjusted=True, plan=plan, flags=drawn.flags, apart=drawn.vote, spread=spreads[0],
    )  # fmt: skip


def _words(
    run: _Run,
    plan: BlocksPlan,
    counted: Counts,
    flags: Sequence[bool],
    spread: float,
    *,
    apart: bool,
) -> Words:
    """Return what is said of an adjusted effect."""
    domain, request = run.study.domain, run.request
    if run.ask.probability is not None:
        words = trial_words(in_blocks=True)
    else:
        names = [name for name, flag in zip(_coordinate_names(run), flags, strict=True) if flag]
        words = adjusted_words(plan, request.estimand, names)
    notes = [
        *words.notes,
        *rare_arm_notes(plan, counted.shares.min(axis=0).tolist(), domain.treatment.coded),
        *wide_bounds_notes(domain.bounds, plan, spread),
    ]
    words = replace(words, notes=tuple(notes))
    return overlap_words(words, request.estimand) if apart else words


def _coordinate_names(run: _Run) -> list[str]:
    """Name every coordinate by what distinguishes it from the others; empty where there is one."""
    labels = run.study.domain.treatment.coded
    arms = [""] if len(labels) == 2 else [f"{label} against {labels[0]}" for label in labels[1:]]
    groups = [*run.subgroups.names, *(["all units"] if run.subgroups.overall else [])] or [""]
    outcomes = [view.domain.outcome.column for view in run.views] if len(run.views) > 1 else [""]
    return [
        ", ".join(name for name in (outcome, group, arm) if name)
        for outcome in outcomes
        for group in groups
        for arm in arms
    ]


def _block_table(run: _Run, plan: BlocksPlan, keys: bytes) -> Integers:
    """Return what all blocks hand over, a row of integers for each block of each partition.

    Neighbours: at most ``rows_per_person`` blocks of each partition change, by any amount.
    """
    shuffles = draw_shuffles(run.ask.size, plan.blocks, plan.partitions, keys)
    tables = []
    for part, shuffle in enumerate(shuffles):
        columns = []
        for place, view in enumerate(run.views):
            number = part * len(run.views) + place
            # The first outcome's blocks vote: the arms are the same for all of them.
            inside = plan.inside._replace(vote=plan.asks_vote and place == 0)
            kernel = block_kernel(run.subgroups, inside, plan.spread, _SEEDS * (number + 1))
            columns.append(view.by_groups(shuffle, kernel, title="blocks of rows"))
        said = [column[:, :-1] for column in columns]
        tables.append(np.concatenate([*said, columns[0][:, -1:]], axis=1))
    return np.concatenate(tables)


def block_kernel(
    subgroups: Subgroups, inside: Inside, spread: float, seed: int
) -> Callable[[Groups], Integers]:
    """Return the function from stacked blocks to the integers that they hand over.

    Each row of its answer is a function of its own block: effect, deviation, difference to the
    plain model and a bit for every subgroup and arm, clipped and rounded, then the vote.
    """

    def kernel(groups: Groups) -> Integers:
        codes = subgroups.codes(groups.covariates)
        found = [_one_block(groups, place, codes[place]) for place in range(len(groups.arm))]
        return np.array(found, dtype=np.int64)

    def _one_block(groups: Groups, place: int, codes: Integers) -> list[int]:
        vote = False
        numbers: list[int] = []
        for group in range(subgroups.count):
            rows = groups.takes_part[place]
            if group < len(subgroups.names):
                rows = rows & (codes == group)
            said = _say(groups, place, rows, inside, seed)
            numbers += _integers(said, inside.arms - 1, spread)
            vote |= said is not None and said.apart
        return [*numbers, int(vote)]

    return kernel


def _say(groups: Groups, place: int, rows: Integers, inside: Inside, seed: int) -> Said | None:
    """Let one block say its effects; None where it cannot, whatever the reason is."""
    chosen = np.flatnonzero(rows)
    weights = groups.weights[place][chosen]
    chosen, weights = chosen[weights > 0], weights[weights > 0]
    weights = weights * (chosen.size / max(float(weights.sum()), 1e-300))
    try:
        return block_effects(
            np.ascontiguousarray(groups.covariates[place][chosen]),
            groups.arm[place][chosen],
            groups.outcome[place][chosen] / OUTCOME_STEPS - 0.5,
            weights,
            inside,
            seed,
        )
    except Exception:  # noqa: BLE001  # nothing may leave a block but its public answer
        return None


def _integers(said: Said | None, arms: int, spread: float) -> list[int]:
    """Return a block's numbers, clipped and rounded one by one; public ones if it cannot say."""
    if said is None:
        return [0, round(GRID * spread), 0, 0] * arms
    found = []
    for effect, deviation, plain in zip(said.effect, said.deviation, said.plain, strict=True):
        value, straight = (min(max(float(one), -1.0), 1.0) for one in (effect, plain))
        size = min(max(float(deviation), spread * 2**-12.5), 4 * spread)
        found += [
            round(GRID * value), round(GRID * size), round(GRID * (straight - value)),
            int(said.other),
        ]  # fmt: skip
    return found
