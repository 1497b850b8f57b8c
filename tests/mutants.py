"""Faults that tests must notice: each is written into a copy of the sources, its test must fail.

``make mutants`` runs this file. A mutant whose text is no longer in the sources is an error, so
that the table follows the code; a mutant that survives is one too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: in which file, what is replaced by what, and the test that dies of it."""

    title: str
    path: str
    honest: str
    faulty: str
    test: str


MUTANTS = (
    Mutant(
        "a row that changes its cell is paid for as one move",
        "methods/survival/first_step.py",
        "moves=2 * request.rows_per_person",
        "moves=request.rows_per_person",
        "tests/attacks/test_survival.py",
    ),
    Mutant(
        "a pseudo-value moves its sum by half the range of the table",
        "methods/survival/method.py",
        "steps.max(axis=(1, 2)) - steps.min(axis=(1, 2))",
        "(steps.max(axis=(1, 2)) - steps.min(axis=(1, 2))) // 2",
        "tests/attacks/test_survival.py",
    ),
    Mutant(
        "curves without an event tell no variance",
        "methods/survival/first_step.py",
        "one.hazards.with_least_risk(least)",
        "one.hazards",
        "tests/attacks/test_survival.py",
    ),
    Mutant(
        "the censoring curve is left out of pseudo-values",
        "methods/survival/curves.py",
        "ratio = rest / observed",
        "ratio = rest",
        "tests/unit/test_survival.py",
    ),
    Mutant(
        "whoever asks says who lacks an outcome in public",
        "ledger/roles.py",
        "if shown is not None:",
        "if shown is not None and False:",
        "tests/attacks/test_public_gaps.py",
    ),
    Mutant(
        "a curator whom another issued to is a second person",
        "service/store/events.py",
        "if owner in curators and event.actor in curators:",
        "if owner in curators and event.actor in curators and False:",
        "tests/service/test_two_persons.py",
    ),
    Mutant(
        "all units that are paid for include subgroups without an effect",
        "methods/subgroups.py",
        "tuple(used), _rows_compared(study, cells, found))",
        "tuple(used), study)",
        "tests/unit/methods/test_subgroups.py",
    ),
    Mutant(
        "features of all rows are balanced as if a subgroup's mean were theirs",
        "methods/calibrated/design.py",
        "total / one.whom) * one.target",
        "total / one.whom) * 0 * one.target",
        "tests/unit/methods/test_subgroups.py",
    ),
    Mutant(
        "subgroups count heads where sampling weights are declared",
        "methods/subgroups.py",
        "float(block.weights[counted(block)].sum())",
        "float(counted(block).sum())",
        "tests/unit/methods/test_subgroups.py",
    ),
    Mutant(
        "what is unbalanced in all subgroups averages out",
        "effects/quantities.py",
        "return [*found, [self._shared(row)]]",
        "return found",
        "tests/unit/methods/test_subgroups.py",
    ),
    Mutant(
        "subgroups share no person but also no name",
        "privacy/composed_noise.py",
        "replace(spend, part=subgroup)",
        "spend",
        "tests/unit/privacy/test_subgroup_noise.py",
    ),
    Mutant(
        "a sampling weight moves its unit like any other",
        "methods/calibrated/features.py",
        "near - units * price / UNEXPLAINED",
        "near - price / UNEXPLAINED",
        "tests/unit/test_sampling_weights.py",
    ),
    Mutant(
        "units of sampling weight zero carry weight",
        "methods/calibrated/design.py",
        "block.observed & (block.weights > 0)",
        "block.observed & (block.weights >= 0)",
        "tests/properties/test_weights_replay.py",
    ),
    Mutant(
        "weights above their declared bound are let through",
        "data/encoding.py",
        "(values >= 0) & (values <= domain.weights.high)",
        "(values >= 0)",
        "tests/unit/test_sampling_weights.py",
    ),
    Mutant(
        "private sampling weights are not clipped to their bound",
        "data/encoding.py",
        "np.clip(np.where(np.isnan(values), 0.0, values), 0.0, domain.weights.high)",
        "np.maximum(np.where(np.isnan(values), 0.0, values), 0.0)",
        "tests/unit/test_private_weights.py",
    ),
    Mutant(
        "a trial's score forgets the arm that is rarer",
        "methods/blocks/compare.py",
        "ends = np.array([-1 / (1 - probability.high), 1 / probability.low])",
        "ends = np.array([-1 / (1 - probability.low), 1 / probability.high])",
        "tests/unit/methods/test_trial.py",
    ),
    Mutant(
        "a trial's scores are not clipped before they are added",
        "methods/blocks/compare.py",
        "np.clip(forms.rows(block, centre), low, high)",
        "2 * forms.rows(block, centre)",
        "tests/properties/test_trial_replay.py",
    ),
    Mutant(
        "a cube of several outcomes is scaled to the smallest of their sensitivities",
        "privacy/linf_noise.py",
        "finer = [common // size for size in sensitivities]",
        "finer = [common // min(sensitivities) for size in sensitivities]",
        "tests/statistical/test_outcome_noise.py",
    ),
    Mutant(
        "outcomes that are drawn together have all of ε each",
        "privacy/composed_noise.py",
        "moves=spend.moves * len(asked), epsilon=spend.epsilon, part=spend.part,",
        "moves=spend.moves, epsilon=spend.epsilon, part=spend.part,",
        "tests/properties/test_outcomes_replay.py",
    ),
    Mutant(
        "a joint draw forgets that a person may have several rows",
        "privacy/composed_noise.py",
        "spend.moves * size for size in row",
        "size for size in row",
        "tests/properties/test_outcomes_replay.py",
    ),
    Mutant(
        "outcomes are drawn by arm as if none shared the person",
        "audit/replay.py",
        "return sum(map(max, groups), Fraction(0))",
        "return max(map(max, groups))",
        "tests/properties/test_outcomes_replay.py",
    ),
    Mutant(
        "the weights' rounding is not paid for",
        "methods/published/matching.py",
        "sensitivity=math.ceil(Fraction(sensitivity) / grid) + weights.size",
        "sensitivity=math.ceil(Fraction(sensitivity) / grid)",
        "tests/attacks/test_rounding.py",
    ),
    Mutant(
        "an objective's rounding is not paid for",
        "privacy/objective.py",
        "math.ceil(Fraction(self._distance) / self.grid) + self.dimension",
        "math.ceil(Fraction(self._distance) / self.grid)",
        "tests/attacks/test_rounding.py",
    ),
    Mutant(
        "the rounding of several arms' scores is not paid for",
        "methods/published/matching.py",
        "(2 << self.bits) + self.arms",
        "(2 << self.bits)",
        "tests/attacks/test_rounding.py",
    ),
    Mutant(
        "a pair of the smallest arm is paid for like one of the largest",
        "methods/calibrated/variance.py",
        "max(1, rows * max(weights) * furthest)",
        "max(1, rows * min(weights) * furthest)",
        "tests/properties/test_several_arms_label_replay.py",
    ),
    Mutant(
        "a person's rows in several arms are not paid for",
        "methods/calibrated/private.py",
        "cls(min(rows_per_person, forms), rows_per_person), cls(rows_per_person, 1)",
        "cls(1, rows_per_person), cls(1, rows_per_person)",
        "tests/properties/test_several_arms_label_replay.py",
    ),
    Mutant(
        "the sums of several arms declare the smallest weight",
        "methods/published/effect.py",
        "for size in weights.largest]",
        "for size in [min(weights.largest)] * len(weights.largest)]",
        "tests/properties/test_several_arms_label_replay.py",
    ),
    Mutant(
        "an arm may be used too seldom to stand for all",
        "methods/published/effect.py",
        "return max(-(-(arms.total - size) // size), round(smallest * arms.smaller / size))",
        "return max(1, round(smallest * arms.smaller / size))",
        "tests/properties/test_several_arms_matching.py",
    ),
    Mutant(
        "a baseline's rounding is not paid for",
        "baselines/steps.py",
        "math.ceil(Fraction(sensitivity) / grid) + math.isqrt(size) + 1",
        "math.ceil(Fraction(sensitivity) / grid)",
        "tests/attacks/test_rounding.py",
    ),
    Mutant(
        "all rows are weighted twice at the price of one half",
        "baselines/ipw.py",
        "return (rows, half), (rows, half)",
        'return (rows, replace(whole, part="a")), (rows, replace(whole, part="b"))',
        "tests/baselines/test_direct_methods.py",
    ),
    Mutant(
        "a tailored loss is taken to be as flat as the logistic one",
        "privacy/objective.py",
        "return 2 * self.loss_bounds.lipschitz * self.changes",
        "return 2 * self.changes",
        "tests/baselines/test_balancing.py",
    ),
    Mutant(
        "a tailored loss is taken to bend as little as the logistic one",
        "privacy/objective.py",
        "curvature = float(self.dimension * self.loss_bounds.curvature)",
        "curvature = float(self.dimension * LOGISTIC.curvature)",
        "tests/baselines/test_balancing.py",
    ),
    Mutant(
        "balancing forgets that a record may leave one arm's sums for the other's",
        "baselines/balancing.py",
        "sensitivity = 2 * largest_weight(",
        "sensitivity = largest_weight(",
        "tests/baselines/test_balancing.py",
    ),
    Mutant(
        "blocks spend on their sums what they spent on the score before",
        "baselines/blocking.py",
        "adding = request.epsilon - noise.spent - counting",
        "adding = request.epsilon - counting",
        "tests/baselines/test_blocking.py",
    ),
    Mutant(
        "the effects of groups are not kept within their limits",
        "baselines/grouped.py",
        "return np.clip(steps, limits.low, limits.high)[:, None]",
        "return steps[:, None]",
        "tests/baselines/test_grouped.py",
    ),
    Mutant(
        "the spread of the groups' effects forgets that all are compared",
        "baselines/grouped.py",
        "sensitivity=(count - 1) * square",
        "sensitivity=square",
        "tests/baselines/test_grouped.py",
    ),
    Mutant(
        "the effects of groups are not kept within the window that sets their noise",
        "baselines/grouped.py",
        "kept = np.clip(effects, window.low, window.high)",
        "kept = effects",
        "tests/baselines/test_private_window.py",
    ),
    Mutant(
        "the distances of a window are paid for with ε that the midpoint has spent",
        "baselines/private_window.py",
        "changes=1, epsilon=spread,",
        "changes=1, epsilon=midpoint + spread,",
        "tests/baselines/test_private_window.py",
    ),
    Mutant(
        "distances are measured from the middle of the effects, which nobody released",
        "baselines/private_window.py",
        "np.abs(values - midpoint), np.full",
        "np.abs(values - int(np.median(values))), np.full",
        "tests/baselines/test_private_window.py",
    ),
    Mutant(
        "how narrow a window may become depends on the effects",
        "baselines/private_window.py",
        "rule=spread_rule(high - low, values.size, spread)",
        "rule=spread_rule(high - low, int((values > 0).sum()) + 1, spread)",
        "tests/baselines/test_private_window.py",
    ),
    Mutant(
        "whether there is a window depends on the effects",
        "baselines/grouped.py",
        "can_choose_window(count, request.epsilon)",
        "can_choose_window(int((effects != 0).sum()), request.epsilon)",
        "tests/baselines/test_private_window.py",
    ),
    Mutant(
        "weights see who lacks an outcome where that is private",
        "engines/local.py",
        'self.observed if self.domain.outcome.missing == "public" else None',
        "self.observed",
        "tests/properties/test_missing_replay.py",
    ),
    Mutant(
        "the calibrated interval forgets the imbalance",
        "methods/calibrated/method.py",
        "arm.used.squares / share + squared * arm.imbalance",
        "arm.used.squares / share + 0 * squared * arm.imbalance",
        "tests/unit/test_interval_widths.py",
    ),
    Mutant(
        "the label planner's half-width is halved",
        "effects/quantities.py",
        "return half_width(coverage, self.noises, self.likely, self.rule)",
        "return half_width(coverage, self.noises, self.likely, self.rule) / 2",
        "tests/unit/test_plan_predictions.py",
    ),
    Mutant(
        "the detectable effect has a power of one half",
        "planning/plan.py",
        "expected.half_width + expected.margin",
        "expected.half_width",
        "tests/unit/test_plan_predictions.py",
    ),
    Mutant(
        "the label planner forgets rows per person",
        "methods/calibrated/method.py",
        "rule.rows * kept * point.cap * unit",
        "kept * point.cap * unit",
        "tests/unit/test_plan_predictions.py",
    ),
    Mutant(
        "the label planner chooses a cap for one row per person",
        "methods/calibrated/method.py",
        "budget.noise_variance / more, weighed",
        "budget.noise_variance / more / request.rows_per_person**2, weighed",
        "tests/unit/test_plan_predictions.py",
    ),
    Mutant(
        "the sample planner forgets rows per person",
        "methods/blocks/predict.py",
        "float(exact / request.rows_per_person)",
        "float(exact)",
        "tests/unit/test_plan_predictions.py",
    ),
    Mutant(
        "the planner recommends twice the ε",
        "planning/plan.py",
        'lambda x: float(f"{x:.3g}")',
        'lambda x: float(f"{2 * x:.3g}")',
        "tests/unit/test_plan_predictions.py",
    ),
    Mutant(
        "the planner names rows at which nothing is adjusted for",
        "planning/plan.py",
        "size = found.adjusting or found.least",
        "size = found.least",
        "tests/unit/test_planning.py",
    ),
    Mutant(
        "extra passes of the private solver are announced",
        "models/private_score.py",
        "quiet = self.study.unannounced()",
        "quiet = self.study",
        "tests/attacks/test_progress.py",
    ),
    Mutant(
        "a row that changes its arm pays for one of its two sums",
        "privacy/noise.py",
        "self._stair(sensitivity, epsilon / moves)",
        "self._stair(moves * sensitivity, epsilon)",
        "tests/statistical/test_arm_noise.py",
    ),
    Mutant(
        "a generalised response forgets how many arms there are",
        "privacy/noise.py",
        "Coin(arms - 1, arms - 1, 1, ",
        "Coin(1, 1, 1, ",
        "tests/statistical/test_arm_noise.py",
    ),
    Mutant(
        "a generalised response favours one of the other arms",
        "privacy/samplers.py",
        "    last = 255 - 256 % bound\n",
        "    last = 255\n",
        "tests/statistical/test_arm_noise.py",
    ),
    Mutant(
        "a private rate is remembered",
        "privacy/baseline_noise.py",
        "two_sided(rate, self.entropy, public=False)",
        "two_sided(rate, self.entropy)",
        "tests/meta/test_mechanisms.py",
    ),
    Mutant(
        "scores of the exponential mechanism are remembered",
        "privacy/rejection_samplers.py",
        "rate * gaps[place])",
        "rate * gaps[place], public=True)",
        "tests/meta/test_mechanisms.py",
    ),
    Mutant(
        "the exponential mechanism forgets that scores move both ways",
        "privacy/baseline_noise.py",
        "rate = rate_of(epsilon, 2 * spend.sensitivity[0])",
        "rate = rate_of(epsilon, spend.sensitivity[0])",
        "tests/meta/test_mechanisms.py",
    ),
    Mutant(
        "a mechanism has no law test",
        "privacy/baseline_noise.py",
        "    def _choose(self,",
        "    def choose_one(self,",
        "tests/meta/test_mechanisms.py",
    ),
    Mutant(
        "records of the sample level are looked over",
        "data/missing_rules.py",
        "return has_public_covariates(self.level)",
        "return True",
        "tests/attacks/test_undeclared.py",
    ),
    Mutant(
        "an error about public columns binds nothing",
        "charging.py",
        "            self.bind()\n",
        "",
        "tests/attacks/test_undeclared.py",
    ),
    Mutant(
        "an undeclared treatment is kept without a word",
        "data/validate_public.py",
        "    if not reading.leave_out_undeclared:\n",
        "    if not reading.level:\n",
        "tests/unit/test_declared.py",
    ),
    Mutant(
        "a missing covariate has no indicator",
        "data/validate_public.py",
        "domain.with_indicators(counts.missing)",
        "domain.with_indicators(())",
        "tests/unit/test_declared.py",
    ),
    Mutant(
        "several sites promise the smallest epsilon among them",
        "sites/compatibility.py",
        "epsilon = max(one.epsilon for one in releases)",
        "epsilon = min(one.epsilon for one in releases)",
        "tests/unit/sites/test_combine.py",
    ),
    Mutant(
        "a pooled effect forgets the noise of its sites",
        "sites/combine.py",
        "v = np.array([one.sampling_variance + one.noise_variance for one in read])",
        "v = np.array([one.sampling_variance for one in read])",
        "tests/unit/sites/test_combine.py",
    ),
    Mutant(
        "sites that happen to agree give an interval that noise does not allow",
        "sites/pooling.py",
        "max(1.0, spread)",
        "spread",
        "tests/unit/sites/test_pooling.py",
    ),
    Mutant(
        "one record may move any number of parts",
        "audit/replay.py",
        "if sum(moved_parts.values()) > 1 and len(moved_parts) > 1:",
        "if len(moved_parts) > 2:",
        "tests/properties/test_subgroups_replay.py",
    ),
    Mutant(
        "the spread of a candidate is not looked for among the deviations of blocks",
        "privacy/joint.py",
        "base = _apart(deviation, spread, blocks)",
        "base = 0 * spread",
        "tests/unit/test_joint_centres.py",
    ),
    Mutant(
        "a level follows the squared number of blocks that differ",
        "privacy/joint.py",
        "np.maximum(worst, np.abs(passed, out=passed), out=worst)",
        "np.maximum(worst, np.square(passed) // 4, out=worst)",
        "tests/unit/test_joint_centres.py",
    ),
    Mutant(
        "a vote about overlap counts as two",
        "privacy/joint.py",
        "Options.of_vote(int(np.count_nonzero(",
        "Options.of_vote(2 * int(np.count_nonzero(",
        "tests/unit/test_joint_centres.py",
    ),
    Mutant(
        "a level is drawn by all candidates up to it",
        "privacy/joint.py",
        "shells = [box - inner for",
        "shells = [box - 0 * inner for",
        "tests/unit/test_joint_centres.py",
    ),
    Mutant(
        "the first new coordinate is drawn as if all were new",
        "privacy/joint.py",
        "math.prod(before[:place]) * (now[place]",
        "math.prod(now[:place]) * (now[place]",
        "tests/unit/test_joint_centres.py",
    ),
    Mutant(
        "the joint release forgets that a row is in every partition",
        "methods/blocks/method.py",
        "changes = plan.partitions * run.changes",
        "changes = run.changes",
        "tests/properties/test_blocks_replay.py",
    ),
    Mutant(
        "a block's deviation is handed over unclipped",
        "methods/blocks/inside.py",
        "size = min(max(float(deviation), spread * 2**-12.5), 4 * spread)",
        "size = float(deviation)",
        "tests/unit/test_blocks.py",
    ),
    Mutant(
        "a block that cannot be learnt from raises",
        "methods/blocks/inside.py",
        "    except Exception:",
        "    except KeyError:",
        "tests/unit/test_blocks.py",
    ),
    Mutant(
        "a number that is not finite leaves a block",
        "methods/blocks/inside.py",
        "if not np.isfinite([effect, variance, plain.effects[:, 0]]).all():",
        "if not rows.size:",
        "tests/unit/test_blocks.py",
    ),
    Mutant(
        "all blocks weigh their rows by the weights of the first",
        "methods/blocks/inside.py",
        "weights = groups.weights[place][chosen]",
        "weights = groups.weights[0][chosen]",
        "tests/unit/test_blocks.py",
    ),
    Mutant(
        "padding repeats a row of the next block",
        "engines/grouping.py",
        "np.where(inside, offsets, 0), inside\n",
        "offsets, inside | True\n",
        "tests/properties/test_blocks_replay.py",
    ),
    Mutant(
        "blocks are planned by the true share of an arm",
        "methods/blocks/method.py",
        "rarer=float(counted.shares.min()),",
        "rarer=float(run.study.treatment.mean()),",
        "tests/unit/test_blocks.py",
    ),
    Mutant(
        "rows of other private subgroups take part",
        "methods/blocks/inside.py",
        "groups.takes_part[place] & own",
        "groups.takes_part[place] | own",
        "tests/unit/test_blocks.py",
    ),
    Mutant(
        "a row that changes arm or subgroup is counted as one move",
        "methods/blocks/compare.py",
        "moves = changes if forms.count == 1 else 2 * changes * (1 + run.subgroups.overall)",
        "moves = changes",
        "tests/properties/test_blocks_replay.py",
    ),
    Mutant(
        "counts of several arms forget that a row leaves one and enters one",
        "methods/blocks/run.py",
        "moved = (3 if weighted else 2) * changes",
        "moved = changes",
        "tests/properties/test_blocks_replay.py",
    ),
    Mutant(
        "the outcome of a row that takes no part is added to the comparison",
        "methods/blocks/compare.py",
        "away = (_outcomes(block) - centre) * block.shares",
        "away = _outcomes(block) - centre",
        "tests/properties/test_missing_replay.py",
    ),
    Mutant(
        "regressions inside blocks forget the sampling weights",
        "methods/blocks/regression.py",
        "products = self.columns.T @ (left * self.weights[:, None])",
        "products = self.columns.T @ left",
        "tests/unit/test_blocks.py",
    ),
)


@contextmanager
def planted(mutant: Mutant, copy: Path) -> Iterator[None]:
    """Write a mutant into a copy of the package for a while."""
    path = copy / "private_ate" / mutant.path
    honest = path.read_text(encoding="utf-8")
    path.write_text(honest.replace(mutant.honest, mutant.faulty), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(honest, encoding="utf-8")


def first_failure(test: str, copy: Path) -> str | None:
    """Run tests of the fast suite against a copy of the package; None if they pass."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", test],
        check=False, cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(copy)},
    )  # fmt: skip
    if done.returncode == 0:
        return None
    if done.returncode != 1:  # nothing was run: no such test, or none of the fast suite
        msg = f"{test}\n{done.stdout}{done.stderr}"
        raise SystemExit(msg)
    return re.search(r"^(?:FAILED|ERROR) \S+?::([^\s\[]+)", done.stdout, re.MULTILINE)[1]


def main() -> int:
    """Try every mutant, one on each core; one that survives makes the exit code 1."""
    cores = os.cpu_count() or 1
    copies: Queue[Path] = Queue()

    def try_one(mutant: Mutant | str) -> str | None:
        copy = copies.get()
        try:
            if isinstance(mutant, str):
                return first_failure(mutant, copy)
            with planted(mutant, copy):
                return first_failure(mutant.test, copy)
        finally:
            copies.put(copy)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(cores) as pool:
        for core in range(cores):
            copies.put(Path(folder, str(core)))
            shutil.copytree(ROOT / "src" / "private_ate", Path(folder, str(core), "private_ate"))
        tests = sorted({mutant.test for mutant in MUTANTS})
        for test, failure in zip(tests, pool.map(try_one, tests), strict=True):
            if failure is not None:
                msg = f"{test} fails without any mutant: {failure}"
                raise SystemExit(msg)
        alive = 0
        for mutant, killer in zip(MUTANTS, pool.map(try_one, MUTANTS), strict=True):
            alive += killer is None
            words = "SURVIVES" if killer is None else f"dies of {killer}"
            sys.stdout.write(f"{mutant.title}: {words}\n")
            sys.stdout.flush()
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
