"""Runs chunks on processes; a run that was killed goes on where it stopped."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from private_ate.experiments.grid import Chunk
from private_ate.experiments.worker import run_chunk

__all__ = ["Watch", "run_chunks"]

Watch = Callable[[int, int], None]  # chunks done, chunks in all


def run_chunks(
    chunks: Sequence[Chunk], folder: Path, *, jobs: int = 1, watch: Watch | None = None
) -> None:
    """Run every chunk that has no result in the folder yet.

    Chunks run in the order of their hashes: a fair sample at any time, so that the time left is
    estimated well although cells differ a thousandfold in cost.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    done = {path.name for path in folder.iterdir()}
    todo = sorted((chunk for chunk in chunks if chunk.name not in done), key=lambda c: c.name)
    finished = len(chunks) - len(todo)
    for _ in _completed(todo, folder, jobs):
        finished += 1
        if watch is not None:
            watch(finished, len(chunks))


def _completed(chunks: Sequence[Chunk], folder: Path, jobs: int) -> Iterator[None]:
    isolated = any(chunk.isolated for chunk in chunks)
    if jobs == 1 and not isolated:
        for chunk in chunks:
            run_chunk(chunk, folder)
            yield
        return
    with ProcessPoolExecutor(
        # Measurements share the machine with nothing else of ours.
        max_workers=1 if isolated else jobs,
        # Spawned, not forked: polars and numba hold threads that do not survive a fork.
        mp_context=multiprocessing.get_context("spawn"),
        max_tasks_per_child=1 if isolated else None,
    ) as pool:
        futures = [pool.submit(run_chunk, chunk, folder) for chunk in chunks]
        try:
            for future in as_completed(futures):
                future.result()
                yield
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
