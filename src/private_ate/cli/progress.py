"""A progress bar that appears on standard error when work takes a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["watch"]

_PATIENCE = 1.0  # seconds before a bar appears


@contextmanager
def watch(title: str, *, quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callable ``(title, done, total)`` that draws a bar once work takes a second."""
    from rich.console import Console  # noqa: PLC0415  # keeps --help fast
    from rich.progress import Progress, TaskID  # noqa: PLC0415  # as above

    console = Console(stderr=True)
    bar = Progress(console=console, transient=True, disable=quiet or not console.is_terminal)
    tasks: dict[str, TaskID] = {}
    start = time.monotonic()

    def step(name: str, done: int, total: int) -> None:
        if time.monotonic() - start < _PATIENCE:
            return
        if not tasks:
            bar.start()
        if name not in tasks:
            tasks[name] = bar.add_task(name or title, total=total)
        bar.update(tasks[name], completed=done, total=total)

    try:
        yield step
    finally:
        bar.stop()
