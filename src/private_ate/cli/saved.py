"""Releases in files: read with one sentence for every error, and kept apart from other files."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from private_ate.release import Release

__all__ = ["read_release", "read_text", "require_apart"]


def read_release(path: Path) -> Release:
    """Read a release that was saved as JSON; errors name the file."""
    from private_ate.release import Release  # keeps --help fast

    text = read_text(path)
    try:
        return Release.from_json(text)
    except ArgumentError as cause:
        msg = f"{str(path)!r}: {cause}"
        raise ArgumentError(msg) from cause


def read_text(path: Path) -> str:
    """Read the file of a release."""
    if not path.exists():
        msg = f"there is no file {str(path)!r}"
        raise ArgumentError(msg)
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        msg = f"the release {str(path)!r} cannot be read"
        raise ArgumentError(msg) from cause


def require_apart(files: Mapping[str, Path | None]) -> None:
    """Refuse two roles for one file, before anything is spent or overwritten.

    ``files`` are paths by the flag or word that names them. A curator's page in the place of a page
    to share would be handed on; a page in the place of the data or of a ledger would destroy them.
    """
    named = [(role, path) for role, path in files.items() if path is not None]
    for (first, one), (second, other) in combinations(named, 2):
        if _same(one, other):
            msg = f"{first} and {second} name the same file, {str(one)!r}; nothing was done"
            raise ArgumentError(msg)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or one.samefile(other)
    except OSError:  # a file that is not there yet is not another one
        return False
