"""`private-ate ask`: put a question to a service and wait for its release."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from private_ate.cli import flags
from private_ate.cli.output import print_json
from private_ate.errors import ArgumentError
from private_ate.parameters import keywords_of


@flags.takes_flags("ask")
def ask(
    url: Annotated[str, typer.Argument(help="Address of the service.", metavar="URL")],
    dataset: Annotated[str, typer.Argument(help="Name of the data set.", metavar="DATASET")],
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with your token; otherwise PRIVATE_ATE_TOKEN.", metavar="FILE"),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Makes a repeat safe: the same key, the same request.")
    ] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Print what to expect as a table and stop.")
    ] = False,
    **given: Any,  # noqa: ANN401  # flags of the table of parameters
) -> None:
    """Plan a question, put it to a service, wait for the release."""
    from private_ate.service.client import Client  # keeps --help fast

    client = Client(url, _token(token_file))
    question = keywords_of("ask", "service", given)
    planned = client.plan(dataset, half_width=given["half_width"], **question)
    if plan_only:
        if given["json"]:
            print_json(planned.told)
        else:
            typer.echo(str(planned))
        return
    release = planned.ask(key).wait()
    typer.echo(release.to_json() if given["json"] else str(release))


def _token(path: Path | None) -> str:
    if path is None:
        token = os.environ.get("PRIVATE_ATE_TOKEN", "")
    else:
        try:
            token = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as cause:
            msg = "the file of the token cannot be read"
            raise ArgumentError(msg) from cause
    if not token.strip():
        msg = "give a token: a file of it, or the variable PRIVATE_ATE_TOKEN"
        raise ArgumentError(msg)
    return token.strip()
