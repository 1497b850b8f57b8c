"""Choke points of runs that compose: of subgroups, of shares of ε, of several outcomes.

A unit is in one subgroup and it is public in which one, so that costs of different subgroups do
not add up (docs/proofs/subgroups.md). Of several outcomes every run has a choke point of its own
and stops where it asks for noise; when all have asked for the same step, one joint draw answers
them. Only one run computes at a time: a thread is used only because a run can wait in it
(docs/proofs/outcomes.md).
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Generic, TypeVar

from private_ate.errors import NumericRangeError
from private_ate.privacy.distributions import sum_noise
from private_ate.privacy.entropy import Entropy
from private_ate.privacy.metrics import Spend
from private_ate.privacy.noise import Noise

__all__ = ["SubgroupNoise", "named_noise", "run_together"]

Result = TypeVar("Result")
Output = TypeVar("Output")

_SUMS: Final = ("staircase", "staircase_disjoint", "staircase_by_arm")
_SPREADS: Final = ("laplace", "laplace_disjoint")


def named_noise(noise: Noise, name: str) -> Noise:
    """Return the choke point of a run that has a share of ε; its steps bear its name.

    Neighbours and cost are those of each mechanism; costs add up in ``noise``, which draws.
    """
    return _forwarded(noise, lambda spend: replace(spend, step=f"{name}: {spend.step}"))


@dataclass(slots=True)
class SubgroupNoise:
    """The choke points of disjoint subgroups of a study, one row per person.

    Attributes
    ----------
    noise : Noise
        The choke point of the whole study.
    """

    noise: Noise
    _names: set[str] = field(default_factory=set, repr=False)

    def within(self, subgroup: str) -> Noise:
        """Return the choke point of one subgroup, to be asked for once.

        Neighbours differ in one row, whose subgroup is public and the same in both, so that all
        subgroups together cost the largest cost of one (docs/proofs/subgroups.md).
        """
        if not subgroup or subgroup in self._names:
            msg = "every subgroup has a name of its own"
            raise NumericRangeError(msg)
        self._names.add(subgroup)

        def mark(spend: Spend) -> Spend:
            if spend.part:
                msg = f"step {spend.step!r} divides the rows of a subgroup again"
                raise NumericRangeError(msg)
            return replace(spend, part=subgroup)

        return _forwarded(self.noise, mark)


@dataclass(slots=True)
class _ForwardedNoise(Noise):
    """A choke point that hands every call over to another one, under another entry."""

    whole: Noise | None = field(default=None, repr=False)
    mark: Callable[[Spend], Spend] = field(default=lambda spend: spend, repr=False)

    def _release(self, spend: Spend, values: Any, draw: Callable[[], Output]) -> Output:  # noqa: ANN401  # whatever goes in
        if self.whole is None:
            msg = "a forwarded choke point belongs to another one"
            raise NumericRangeError(msg)
        marked = self.mark(spend)
        self.spends.append(spend)
        return self.whole._release(marked, values, draw)  # noqa: SLF001  # the same choke point


def _forwarded(noise: Noise, mark: Callable[[Spend], Spend]) -> Noise:
    return _ForwardedNoise(
        noise.entropy, noise.recorder, outcomes=noise.outcomes, whole=noise, mark=mark
    )


def run_together(noise: Noise, jobs: Sequence[Callable[[Noise], Result]]) -> list[Result]:
    """Run a job per outcome on choke points that draw together; return what each came to.

    Neighbours: one person's outcomes replaced, all of them at once (label level). A job's inputs
    must be functions of its own outcome, of public columns and of what it was answered. Cost: what
    one job says it spends, because the numbers that all jobs ask for in a step are drawn together
    by `Noise.cubes`, or by staircases that share ε. Proof: docs/proofs/outcomes.md.
    """
    runs = [_Run(job, noise.entropy, len(jobs)) for job in jobs]
    try:
        _resume(runs, [None] * len(runs))
        while not all(run.is_done for run in runs):
            if any(run.is_done for run in runs):
                msg = "an outcome was finished while others still asked for noise"
                raise NumericRangeError(msg)
            _resume(runs, _answer(noise, [run.asked for run in runs if run.asked is not None]))
        return [run.result for run in runs]
    finally:
        for run in runs:
            run.stop()


def _resume(runs: Sequence[_Run[Any]], answers: Sequence[object]) -> None:
    """Let one run after the other go on to its next question or to its end."""
    for run, answer in zip(runs, answers, strict=True):
        run.go_on(answer)
        if run.error is not None:
            raise run.error


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a run asks for: the step as it would cost alone, and what goes in."""

    spend: Spend
    values: tuple[int, ...] = field(repr=False)

    @property
    def kind(self) -> tuple[object, ...]:
        """What must be alike in all runs; sensitivities may differ."""
        spend = self.spend
        return spend.step, spend.mechanism, spend.epsilon, spend.size, spend.part, spend.moves


class _StoppedError(BaseException):
    """Ends a run whose result is no longer needed; no method may catch it."""


@dataclass(slots=True)
class _OutcomeNoise(Noise):
    """The choke point of one outcome: it draws nothing, asks and waits."""

    ask: Callable[[_Asked], Any] = field(default=lambda _: None, repr=False)

    def _release(self, spend: Spend, values: Any, draw: Callable[[], Output]) -> Output:  # noqa: ANN401, ARG002  # whatever goes in; drawn for all at once
        self.spends.append(spend)
        held = (values,) if isinstance(values, int) else tuple(values)
        answer: Output = self.ask(_Asked(spend, held))
        return answer

    def _secret(self, draw: Callable[[], Any]) -> Any:  # noqa: ANN401, ARG002  # as above
        msg = "outcomes that are drawn together have no secrets of their own"
        raise NumericRangeError(msg)


class _Run(Generic[Result]):
    """One job in a thread that waits until it is resumed."""

    result: Result

    def __init__(self, job: Callable[[Noise], Result], entropy: Entropy, outcomes: int) -> None:
        self.asked: _Asked | None = None
        self.error: BaseException | None = None
        self.is_done = False
        self._answers: SimpleQueue[object] = SimpleQueue()
        self._questions: SimpleQueue[_Asked | None] = SimpleQueue()  # None at the end
        noise = _OutcomeNoise(entropy, outcomes=outcomes, ask=self._ask)
        context = contextvars.copy_context()  # settings of numpy and decimal among others
        self._thread = Thread(target=context.run, args=(self._work, job, noise), daemon=True)
        self._thread.start()

    def go_on(self, answer: object) -> None:
        """Answer, and wait until the run asks again or ends."""
        self._answers.put(answer)
        self.asked = self._questions.get()

    def stop(self) -> None:
        """End a run that still waits."""
        if not self.is_done:
            self.go_on(_StoppedError)
        self._thread.join()

    def _work(self, job: Callable[[Noise], Result], noise: Noise) -> None:
        try:
            self._next_answer()
            self.result = job(noise)
        except BaseException as error:  # noqa: BLE001  # raised again by whoever waits
            self.error = error
        finally:
            self.is_done = True
            self._questions.put(None)

    def _ask(self, asked: _Asked) -> object:
        self._questions.put(asked)
        return self._next_answer()

    def _next_answer(self) -> object:
        answer = self._answers.get()
        if answer is _StoppedError:
            raise _StoppedError
        return answer


def _answer(noise: Noise, asked: Sequence[_Asked]) -> list[Any]:
    """Draw for all runs at once; return what each of them asked for."""
    spend = asked[0].spend
    if len({one.kind for one in asked}) != 1:
        msg = f"outcomes ask for different steps beside {spend.step!r}"
        raise NumericRangeError(msg)
    is_sum = spend.mechanism in _SUMS
    if not is_sum and (spend.mechanism not in _SPREADS or len(spend.sensitivity) != spend.size):
        msg = f"step {spend.step!r} ({spend.mechanism}) is not drawn for several outcomes at once"
        raise NumericRangeError(msg)
    rows = list(zip(*(one.values for one in asked), strict=True))
    sizes = list(zip(*(one.spend.sensitivity for one in asked), strict=True))
    quieter = sum_noise(len(asked), spend.epsilon, spend.moves)
    if is_sum and quieter.name == "staircase":
        flat = noise.staircase_by_arm(
            spend.step, [value for row in rows for value in row],
            sensitivities=[size for row in sizes for size in row],
            moves=spend.moves * len(asked), epsilon=spend.epsilon, part=spend.part,
        )  # fmt: skip
        noisy = [flat[first : first + len(asked)] for first in range(0, len(flat), len(asked))]
    else:
        noisy = noise.cubes(
            spend.step, rows, sensitivities=[[spend.moves * size for size in row] for row in sizes],
            epsilon=spend.epsilon, part=spend.part,
        )  # fmt: skip
    columns = [list(column) for column in zip(*noisy, strict=True)]
    return [column[0] for column in columns] if spend.mechanism == "staircase" else columns
