"""How much the referee runs: draws of each setting, and which arms take part in a draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from private_ate.experiments.arms import ALL_ARMS, Arm
from private_ate.experiments.referee.families import SETTINGS, Setting

__all__ = ["EPSILONS", "FULL", "LEAST_DRAWS", "QUICK", "Extent", "Task"]

EPSILONS: Final = ("0.5", "1", "2", "4")
LEAST_DRAWS: Final = 5
"""Common draws that a comparison of two arms needs."""
_SMALL: Final = 10_000  # units up to which a study is small


@dataclass(frozen=True, slots=True)
class Task:
    """One draw of a setting, which all its arms see."""

    setting: Setting
    draw: int
    arms: tuple[Arm, ...]

    @property
    def name(self) -> str:
        """The name of the file that keeps what came out."""
        return f"{self.setting.name}-{self.draw}.json"


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is run.

    Attributes
    ----------
    draws : mapping of int to int
        Studies of a setting by its size.
    slow_size, slow_draws : int
        Slow arms see the first draws of settings up to this size.
    epsilons : tuple of str
        Budgets.
    audit_runs : int or None
        Releases in an audit for either neighbour; None takes as many as fit into ten seconds.
    settings : tuple of settings
        Study designs.
    arms : tuple of arms
        Contestants: by default all that are registered.
    """

    draws: dict[int, int]
    slow_size: int
    slow_draws: int
    epsilons: tuple[str, ...] = EPSILONS
    audit_runs: int | None = None
    settings: tuple[Setting, ...] = SETTINGS
    arms: tuple[Arm, ...] = ALL_ARMS

    def tasks(self) -> list[Task]:
        """Return what is to be run in an order in which a run that is cut short can be used.

        First come as many studies of each setting as a verdict needs, small settings before large
        ones and slow arms after all others; then the rest, of which every setting has its share at
        any time. A study with slow arms is a task twice, and its answers are kept together.
        """
        found = [
            (self._stage(task, draws), place, task)
            for place, (setting, draws) in enumerate(self._sizes())
            for draw in range(draws)
            for task in self._tasks(setting, draw)
        ]
        return [task for _, _, task in sorted(found, key=lambda entry: entry[:2])]

    @property
    def studies(self) -> list[Task]:
        """Every study once, with all arms that see it, setting by setting."""
        pairs = [(setting, draw) for setting, draws in self._sizes() for draw in range(draws)]
        return [self._tasks(setting, draw)[-1] for setting, draw in pairs]

    def contestants(self, setting: Setting) -> Sequence[Arm]:
        """Return the arms that take part in a setting at all."""
        return self._tasks(setting, 0)[-1].arms

    def _sizes(self) -> list[tuple[Setting, int]]:
        return [(setting, self.draws[setting.size]) for setting in self.settings]

    def _tasks(self, setting: Setting, draw: int) -> list[Task]:
        fast = Task(setting, draw, tuple(arm for arm in self.arms if not arm.slow))
        if setting.size > self.slow_size or draw >= self.slow_draws:
            return [fast]
        return [fast, Task(setting, draw, self.arms)]

    def _stage(self, task: Task, draws: int) -> tuple[int, float]:
        """Return the place of a task in the order: its stage, and how far within."""
        if any(arm.slow for arm in task.arms):
            return 2, task.draw
        if task.draw < LEAST_DRAWS:
            return int(task.setting.size > _SMALL), task.draw
        return 3, task.draw / draws


FULL: Final = Extent(
    {300: 100, 700: 100, 1000: 100, 10_000: 30, 100_000: 8}, slow_size=1000, slow_draws=5
)
"""A few hours on two cores."""
QUICK: Final = Extent(
    {300: 4, 700: 4, 1000: 4, 10_000: 2, 100_000: 1},
    slow_size=0,
    slow_draws=0,
    epsilons=("1",),
    audit_runs=40,
)
"""Some minutes: it shows that everything works, its verdicts mean little."""
