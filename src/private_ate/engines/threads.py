"""Threads of a fold: one pool per process, and BLAS kept to one thread beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final

__all__ = ["run_all", "single_threaded_blas", "threads"]

_MOST_WORKERS: Final = 8  # a pass over rows is bound by memory: more threads do not speed it up


def threads() -> ThreadPoolExecutor:
    """Return the threads of this process; starting them costs more than a pass over few rows."""
    return _threads_of(os.getpid())


@lru_cache(maxsize=1)
def _threads_of(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  # threads do not survive a fork
    workers = min(os.cpu_count() or 1, _MOST_WORKERS)
    return ThreadPoolExecutor(workers, thread_name_prefix="fold")


def run_all(job: Callable[[int], object], places: range) -> None:
    """Run a job that writes its own part of an array for every place, on threads."""
    for _ in threads().map(job, places):
        pass


@lru_cache(maxsize=1)
def _blas() -> Any:  # noqa: ANN401  # threadpoolctl is not annotated
    from threadpoolctl import ThreadpoolController  # needed for large data only

    return ThreadpoolController()


def single_threaded_blas() -> Any:  # noqa: ANN401  # threadpoolctl is not annotated
    """Keep BLAS to one thread: folds already use all cores, and small products lose by more."""
    return _blas().limit(limits=1, user_api="blas")
