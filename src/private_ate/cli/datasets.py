"""`private-ate datasets`: the benchmarks, where they come from and what is declared of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Look at the benchmark data sets.", no_args_is_help=True)


@app.command("list")
def list_datasets() -> None:
    """List the data sets, and which of them can be read here."""
    from private_ate.datasets import registry  # keeps --help fast
    from private_ate.errors import DatasetError  # as above

    width = max(map(len, registry))
    for name, loader in registry.items():
        try:
            dataset = loader()
        except DatasetError as missing:
            typer.echo(f"{name:<{width}}  not here: {missing}")
            continue
        typer.echo(
            f"{name:<{width}}  {dataset.treated} treated, {dataset.control} control, "
            f"{len(dataset.domain.covariates)} covariates; {dataset.source}"
        )


@app.command("show")
def show_dataset(
    name: Annotated[str, typer.Argument(help="Name of a data set.", metavar="NAME")],
) -> None:
    """Show a data set's arms, its effects and its declared domain; not private."""
    from private_ate.datasets import load  # keeps --help fast

    dataset = load(name)
    truth = "not known" if dataset.true_effect is None else f"{dataset.true_effect:.6g}"
    lines = [
        f"# {dataset.name}: {dataset.source}",
        f"# {dataset.treated} treated, {dataset.control} control",
        f"# true effect: {truth}",
        f"# matching estimate without limits and noise, not private: {dataset.exact_effect():.6g}",
        "# The domain declares observed ranges, as the paper does; yours comes from a code book.",
        "",
        dataset.domain.to_toml(),
    ]
    typer.echo("\n".join(lines), nl=False)


@app.command("save")
def save_dataset(
    name: Annotated[str, typer.Argument(help="Name of a data set.", metavar="NAME")],
    out: Annotated[Path, typer.Option(help="Folder for the files.", metavar="DIR")] = Path(),
) -> None:
    """Write a data set as NAME.csv with its domain NAME.toml, to try commands on."""
    from private_ate.datasets import load  # keeps --help fast

    dataset = load(name)
    out.mkdir(parents=True, exist_ok=True)
    dataset.frame.write_csv(out / f"{name}.csv")
    dataset.domain.write(out / f"{name}.toml")
    typer.echo(f"wrote {out / f'{name}.csv'} and {out / f'{name}.toml'}; public, not private")
