"""`private-ate demo`: a bundled synthetic study, both levels, files to play with."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from private_ate.cli.output import public_facts, watch
from private_ate.privacy.levels import Level

if TYPE_CHECKING:
    from private_ate.datasets.clinic import ClinicStudy
    from private_ate.release.release import Release


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demonstration's files.")] = Path("demo"),
    epsilon: Annotated[str, typer.Option(help="Privacy budget of each release.")] = "1.0",
) -> None:
    """Release the effect of a simulated drug at both levels and show what it costs."""
    from rich.console import Console  # keeps --help fast

    from private_ate.api import estimate_ate  # as above
    from private_ate.datasets.clinic import draw_clinic  # as above
    from private_ate.report.text import release_table  # as above

    study = _described(draw_clinic())
    out.mkdir(parents=True, exist_ok=True)
    study.frame.write_csv(out / "clinic.csv")
    study.domain.write(out / "clinic.toml")
    with watch("estimating") as progress:
        releases = [
            estimate_ate(
                study.frame, domain=study.domain, level=level, epsilon=epsilon, progress=progress
            )
            for level in get_args(Level)
        ]
    for release in releases:
        (out / f"release-{release.level}.json").write_text(release.to_json() + "\n", "utf-8")
    (out / "report.html").write_text(_page(study, releases, out), "utf-8")
    console = Console(highlight=False)
    console.print(_introduction(study))
    for release in releases:
        console.print(release_table(release))
        console.print()
    console.print(_farewell(out), soft_wrap=True)


def _described(study: ClinicStudy) -> ClinicStudy:
    """Declare what a curator would: a unit, a name, and that it is public who lacks an outcome."""
    from private_ate.domain import StudyLabel  # keeps --help fast

    outcome = replace(study.domain.outcome.with_missing("public"), unit="mmHg")
    domain = replace(study.domain, outcome=outcome, study=StudyLabel("clinic, simulated"))
    return replace(study, domain=domain)


def _introduction(study: ClinicStudy) -> str:
    return (
        f"\nA simulated study of {study.frame.height:,} patients: a drug against high blood "
        "pressure, given to older and sicker people. By construction it lowers pressure by "
        f"{study.true_effect:g} mmHg more than no drug, on average.\n"
    )


def _farewell(out: Path) -> str:
    """Say where the files are; the last line is a command that runs as it is printed."""
    command = shlex.join(
        [
            *_program(), "estimate", str(out / "clinic.csv"), "--domain", str(out / "clinic.toml"),
            "--level", "label", "--epsilon", "0.5",
        ]
    )  # fmt: skip
    return (
        f"Files are in {out}/. A page with both releases, to open in a browser: "
        f"{out / 'report.html'}\n\nTry your own request:\n\n{command}"
    )


def _program() -> list[str]:
    """Return the words that run this program here: its name, or where it is if no shell knows."""
    here = Path(sys.argv[0])
    if shutil.which("private-ate") is not None:
        return ["private-ate"]
    if here.name == "private-ate" and here.exists():
        return [str(here)]
    return [sys.executable, "-m", "private_ate"]


def _page(study: ClinicStudy, releases: list[Release], out: Path) -> str:
    from private_ate.report.html import releases_page  # keeps --help fast

    pairs = []
    for release in releases:
        command = (
            f"private-ate estimate {out}/clinic.csv --domain {out}/clinic.toml "
            f"--level {release.level} --epsilon {float(release.epsilon):g}"
        )
        facts = public_facts(release, study.frame, study.domain, None)
        pairs.append((release, replace(facts, command=command, domain="")))
    return releases_page(
        pairs,
        title="A drug against high blood pressure: one study, two promises",
        introduction=_introduction(study).strip(),
    )
