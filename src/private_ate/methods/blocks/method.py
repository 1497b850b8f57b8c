"""Our sample-level method: models inside blocks of rows, one joint private centre.

Rows are cut into blocks by their positions. Inside a block effects are adjusted by regression and
forests, without noise; one draw releases centre and spread of the block effects of all arms,
outcomes and subgroups. A record sits in one block per partition, so it moves few blocks whatever
the number of covariates is. A public rule and the released counts decide whether blocks can pay;
if not, the arms are compared as they are. Privacy: docs/proofs/blocks.md.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.effects.estimate import Estimate
from private_ate.methods.blocks.centres import centre_quantity, joint_rule
from private_ate.methods.blocks.compare import compare_arms_as_they_are
from private_ate.methods.blocks.inside import block_kernel
from private_ate.methods.blocks.notes import adjusted_words, unadjusted_words
from private_ate.methods.blocks.partition import draw_keys, draw_shuffles
from private_ate.methods.blocks.plan import (
    MOST_PARTITIONS,
    BlocksPlan,
    plain_shares,
    plan_blocks,
)
from private_ate.methods.blocks.run import Counts, Run, release_counts
from private_ate.methods.blocks.table import Released, estimate_of
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from private_ate.study import MatchingStudy

_SEEDS: Final = 8  # forests and shuffles of one block, each with a seed of its own


def estimate_blocks(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Estimate average treatment effects with whole records private.

    Neighbours: one person's rows replaced, n public. Cost: the request's ε, pure. Proof:
    docs/proofs/blocks.md.
    """
    run = Run.of(study, request, noise)
    ask, counted = run.ask, None
    # Drawn before any noise, so that partitions never depend on what was released.
    keys = draw_keys(run.options.partitions or MOST_PARTITIONS, noise)
    plan = plan_blocks(ask, run.options)
    if plan.adjusts:
        # The arms are counted, and blocks are cut if the smallest leaves enough in every block.
        if run.trial is None:
            counted = release_counts(run, request.epsilon * ask.counting)
        else:
            counted = Counts.known(ask.size, run.trial.shares)
        plan = plan_blocks(
            ask, run.options,
            members=float(counted.members.min()) * counted.effective_share,
            rarer=float(counted.shares.min()),
        )  # fmt: skip
    if counted is None or not plan.adjusts:
        return estimate_of(_compare(run, counted))
    return estimate_of(_release_blocks(run, plan, counted, keys))


def _compare(run: Run, counted: Counts | None) -> Released:
    """Compare the arms as they are; a count that was paid for already is made use of.

    In a trial no arm is counted, but rows that take part where some may not.
    """
    ask, request, trial = run.ask, run.request, run.trial
    words = unadjusted_words(request, tried=counted is not None, dimension=ask.dimension)
    counting = None if counted is None else ask.counting
    if trial is not None:
        is_full = run.study.everyone_takes_part
        counted = Counts.known(ask.size, trial.shares) if is_full else None
        counting = Fraction(0) if is_full else None
    shares = plain_shares(ask, with_interval=request.confidence is not None, counting=counting)
    if counted is None:
        counted = release_counts(run, request.epsilon * shares.counts)
    quantities = compare_arms_as_they_are(run, counted, shares)
    known = trial is None or trial.constant is not None
    return Released(run, quantities, counted if known else None, words)


def _release_blocks(run: Run, plan: BlocksPlan, counted: Counts, keys: bytes) -> Released:
    """Cut blocks, and release the centres and spreads of their effects by one draw."""
    ask, request, domain = run.ask, run.request, run.study.domain
    epsilon = request.epsilon * (1 - ask.counting)
    rule = joint_rule(plan, ask.coordinates, epsilon / run.changes)
    changes = plan.partitions * run.changes
    table = _block_table(run, plan, keys)
    drawn = run.noise.joint_centres("effect", table, rule=rule, changes=changes, epsilon=epsilon)
    spreads = [rule.spreads[place] / OUTCOME_STEPS for place in drawn.spreads]
    quantities = [
        centre_quantity(
            rule, plan, request, epsilon / (2 * changes), centre=centre, spread=spread, flag=flag,
            with_interval=request.confidence is not None,
        )
        for centre, spread, flag in zip(drawn.centres, spreads, drawn.flags, strict=True)
    ]  # fmt: skip
    arms, groups = ask.arms - 1, ask.subgroups
    nested = [
        [quantities[at : at + arms] for at in range(first, first + groups * arms, arms)]
        for first in range(0, ask.coordinates, groups * arms)
    ]
    flagged = [name for name, flag in zip(_coordinate_names(run), drawn.flags, strict=True) if flag]
    words = adjusted_words(
        plan, request, domain, flagged=flagged, shares=counted.shares.min(axis=0).tolist(),
        spread=spreads[0], apart=drawn.vote,
    )  # fmt: skip
    return Released(run, nested, counted, words, plan, drawn, spreads[0])


def _coordinate_names(run: Run) -> list[str]:
    """Name every coordinate by what distinguishes it from the others; empty where there is one."""
    labels = run.study.domain.treatment.coded
    arms = [""] if len(labels) == 2 else [f"{label} against {labels[0]}" for label in labels[1:]]
    groups = [*run.subgroups.names, *(["all units"] if run.subgroups.overall else [])] or [""]
    outcomes = [view.domain.outcome.column for view in run.views] if len(run.views) > 1 else [""]
    return [", ".join(filter(None, names)) for names in product(outcomes, groups, arms)]


def _block_table(run: Run, plan: BlocksPlan, keys: bytes) -> Integers:
    """Return what all blocks hand over, a row of integers for each block of each partition.

    Neighbours: at most ``rows_per_person`` blocks of each partition change, by any amount.
    """
    tables = []
    for part, shuffle in enumerate(draw_shuffles(run.ask.size, plan.blocks, plan.partitions, keys)):
        columns = []
        for place, view in enumerate(run.views):
            number = part * len(run.views) + place
            # The first outcome's blocks vote: the arms are the same for all of them.
            inside = plan.inside._replace(vote=plan.inside.vote and place == 0)
            kernel = block_kernel(run.subgroups, inside, plan.spread, _SEEDS * (number + 1))
            columns.append(view.by_groups(shuffle, kernel, title="blocks of rows"))
        said = [column[:, :-1] for column in columns]
        tables.append(np.concatenate([*said, columns[0][:, -1:]], axis=1))
    return np.concatenate(tables)
