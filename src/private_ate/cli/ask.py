"""`private-ate ask`: put a question to a service and wait for its release."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from private_ate.cli import flags
from private_ate.errors import ArgumentError

__all__ = ["ask"]


def ask(
    url: Annotated[str, typer.Argument(help="Address of the service.", metavar="URL")],
    dataset: Annotated[str, typer.Argument(help="Name of the data set.", metavar="DATASET")],
    epsilon: Annotated[str, typer.Option(help="What the answer may cost.", metavar="E")],
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with your token; otherwise PRIVATE_ATE_TOKEN.", metavar="FILE"),
    ] = None,
    estimand: flags.EstimandName = "ate",
    among: flags.Among = None,
    design: flags.DesignName = "unknown",
    probability: flags.Probability = None,
    by: flags.By = None,
    overall: flags.Overall = False,
    covariates: flags.Covariates = None,
    confidence: flags.Confidence = "0.95",
    method: Annotated[str, typer.Option(help="auto or a method by name.")] = "auto",
    half_width: Annotated[
        float | None, typer.Option(help="Say which ε reaches this half-width.", metavar="W")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Makes a repeat safe: the same key, the same request.")
    ] = None,
    purpose: Annotated[
        str, typer.Option(help="What the answer is for; curators read it.", metavar="TEXT")
    ] = "",
    outcome_sd: Annotated[
        float | None,
        typer.Option(
            help="A public guess of the outcome's standard deviation among people treated alike.",
            metavar="SD",
        ),
    ] = None,
    dummy: Annotated[
        bool, typer.Option("--dummy", help="Ask made-up people; costs nothing.")
    ] = False,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Print what to expect as a table and stop.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Plan a question, put it to a service, wait for the release."""
    from json import dumps  # keeps --help fast

    from private_ate.cli.estimate import (  # as above
        parse_confidence,
        parse_probability,
        split_names,
    )
    from private_ate.service.client import Client  # as above

    question: dict[str, Any] = {
        "estimand": estimand, "among": among, "design": design, "method": method,
        "probability": parse_probability(probability), "by": split_names(by) or [],
        "overall": overall, "covariates": split_names(covariates),
        "confidence": parse_confidence(confidence), "dummy": dummy, "purpose": purpose,
        "outcome_sd": outcome_sd,
    }  # fmt: skip
    client = Client(url, _token(token_file))
    planned = client.plan(dataset, epsilon=epsilon, half_width=half_width, **question)
    if plan_only:
        typer.echo(dumps(planned.told, indent=2, ensure_ascii=False) if json else str(planned))
        return
    release = planned.ask(key).wait()
    typer.echo(release.to_json() if json else str(release))


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
