"""A progress bar that appears on standard error when work takes a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

__all__ = ["watch"]

_PATIENCE = 1.0  # seconds before a bar appears


@contextmanager
def watch(
    title: str, *, quiet: bool = False, lines: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callable ``(title, done, total)`` that draws a bar once work takes a second.

    A bar shows how far its pass is, the rate and the time that is left; the next pass of the same
    title starts it anew. Where standard error is no terminal nothing is drawn, unless ``lines``
    asks for a line at the start of each pass: for work that sees no records.
    """
    from rich.console import Console  # keeps --help fast
    from rich.progress import (  # as above
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    rate = TextColumn("{task.fields[rate]}")
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate,
        TimeRemainingColumn(),
        console=console, transient=True, disable=quiet or not console.is_terminal,
    )  # fmt: skip
    told = lines and not quiet and not console.is_terminal
    tasks: dict[str, TaskID] = {}
    done_before: dict[str, int] = {}
    start = time.monotonic()

    def step(name: str, done: int, total: int) -> None:
        if time.monotonic() - start < _PATIENCE:
            return
        if not tasks:
            bar.start()
        if told and name not in tasks:
            typer.echo(f"{title}: {name}", err=True)
        if name not in tasks:
            tasks[name] = bar.add_task(name or title, total=total, rate="")
        elif done < done_before[name]:
            bar.reset(tasks[name], total=total, rate="")
        done_before[name] = done
        speed = bar.tasks[bar.task_ids.index(tasks[name])].speed
        known = "" if speed is None else f"{speed:,.0f}/s"
        bar.update(tasks[name], completed=done, total=total, rate=known)

    try:
        yield step
    finally:
        if bar.live.is_started:  # rich before 14.3 ends a bar that it never drew with an empty line
            bar.stop()
