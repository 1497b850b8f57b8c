"""`private-ate combine`: one effect from the releases of several sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from private_ate.cli.output import read_release, require_apart, require_writable
from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from private_ate.release.release import Release


def combine(
    releases: Annotated[
        list[Path],
        typer.Argument(help="Releases in JSON, one a site.", metavar="A.json B.json …"),
    ],
    model: Annotated[
        str, typer.Option(help="random (effects vary between sites) or fixed (one effect).")
    ] = "random",
    confidence: Annotated[
        str | None, typer.Option(help="Coverage of intervals; default: the releases' own.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write a page that may be shared.", metavar="OUT.html")
    ] = None,
) -> None:
    """Combine releases of several sites into one effect; spends nothing.

    Sites are named after their files. They answer one question and have nobody in common.
    """
    from private_ate.data.files import write_whole  # keeps --help fast
    from private_ate.sites.combine import combine as combine_releases  # as above

    if report is not None:
        require_writable(report)
        for path in releases:
            require_apart({"--report": report, "a release": path})
    combined = combine_releases(_named(releases), cast("Any", model), confidence=confidence)
    if report is not None:
        write_whole(report, combined.to_html())
    typer.echo(combined.to_json() if json else str(combined))


def _named(paths: list[Path]) -> dict[str, Release]:
    """Read releases by the names of their files, by their paths where those are the same."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        msg = "a file is named twice; its units would count twice"
        raise ArgumentError(msg)
    return {name: read_release(path) for name, path in zip(names, paths, strict=True)}
