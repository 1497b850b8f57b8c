"""The pages that `private-ate estimate` writes when asked: a report, a curator's page."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from private_ate.errors import ArgumentError, SchemaError
from private_ate.privacy.levels import has_public_covariates
from private_ate.settings import LedgerNote

if TYPE_CHECKING:
    from private_ate.data.requested_columns import Covariates
    from private_ate.domain import Domain
    from private_ate.release import Release
    from private_ate.release.public_facts import PublicFacts

__all__ = ["curator_text", "public_facts", "require_folder", "spent_before"]


def require_folder(path: Path | None) -> None:
    """Refuse a page that could not be written, before any ε is spent."""
    if path is not None and not path.parent.is_dir():
        msg = f"the folder of {str(path)!r} does not exist; nothing was spent"
        raise ArgumentError(msg)


def public_facts(
    release: Release,
    data: object | None,
    domain: Domain,
    covariates: Covariates,
    *,
    options: object | None = None,
    analyst: str | None = None,
    spent_before: float | None = None,
) -> PublicFacts:
    """Gather what a page may add to the release: the command, the domain, public columns by arm.

    Without data, as when a cluster holds them, there is no overlap to show.
    """
    from private_ate.release.public_facts import PublicFacts  # keeps --help fast

    overlap, table = None, None
    if has_public_covariates(release.level) and data is not None:
        from private_ate.estimators.overlap import describe_overlap  # as above

        # A release that was made without names, such as one without a guarantee, used all.
        used = "all" if covariates is None and not domain.covariates else covariates
        overlap = describe_overlap(data, domain=domain, covariates=used)
        if domain.weights is None:
            from private_ate.estimators.curator.table_one import describe_arms  # as above

            table = describe_arms(release, data, domain=domain, covariates=used, options=options)
    return PublicFacts(
        command=shlex.join(["private-ate", *map(_without_secrets, sys.argv[1:])]),
        domain=domain.to_toml(),
        treatment=domain.treatment.column,
        outcome=domain.outcome.column,
        overlap=overlap,
        table=table,
        analyst=analyst or "",
        spent_before=spent_before,
    )


def spent_before(release: Release, ledger: str | None) -> float | None:
    """Return what the data's budget had spent before this release, as its ledger has it."""
    note = LedgerNote.of(release.settings)
    if ledger is None or note is None:
        return None
    from private_ate.privacy.ledger.ledger import Ledger  # as above

    with closing(Ledger.open(ledger)) as held:
        account = next(each for each in held.accounts(note.dataset) if not each.analyst)
    return float(account.total.epsilon_text) - note.left - float(release.epsilon)


def curator_text(
    release: Release,
    data: object,
    domain: Domain,
    covariates: Covariates,
    options: object | None = None,
) -> str:
    """Return the curator's page; what it cannot show it says on the page and nowhere else."""
    from private_ate.estimators.exact import diagnose_ate  # numba loads here
    from private_ate.report.curator import refused_page  # keeps --help fast

    try:
        diagnostics = diagnose_ate(
            data,
            domain=domain,
            covariates=covariates,
            epsilon=float(release.epsilon),
            neighbors=release.facts.neighbors or 5,
            release=release,
            options=options,
        )
    except SchemaError as error:  # an empty arm is private at sample level
        return refused_page(str(error))
    return diagnostics.to_html(release)


def _without_secrets(argument: str) -> str:
    """Keep of a URL its scheme only: the address of a team's ledger may hold a password."""
    return re.sub(r"(\w+://).*", r"\1…", argument, flags=re.DOTALL)
