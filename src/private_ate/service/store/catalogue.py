"""Populations that own budgets, the data sets about them, and what each data set's policy allows.

A data set has an account of its own in the ledger, which binds its columns; a population's budget
covers the accounts of all its data sets together. Nothing here knows where records are: ``source``
is a name that the worker looks up below a folder of its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast, get_args
from urllib.parse import parse_qsl, urlencode

from private_ate.arguments import check_name, one_of, whole_number
from private_ate.charging import binding_of
from private_ate.data.files import SUFFIXES, DataFile, described_file
from private_ate.domain import require_one_outcome
from private_ate.errors import ArgumentError
from private_ate.ledger.chain import canonical
from private_ate.ledger.cost import Amount, BudgetUnits
from private_ate.ledger.ledger import grant_dataset
from private_ate.ledger.roles import Roles, declared_roles
from private_ate.ledger.stores import Execute, insert, one, read_one, read_rows, update
from private_ate.privacy.levels import Level, has_public_covariates
from private_ate.service.policy import Dataset, Policy, Population
from private_ate.service.store.events import CLOSED, are_two_persons, time_text, write_event
from private_ate.service.vocabulary import Conflict, Missing

_NAME: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}(?:/[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}){0,4}"
)
READING: Final = ("sep", "decimal", "encoding", "header_row", "skip_rows", "sheet")
_NUMBERS: Final = ("header_row", "skip_rows")
_LONGEST: Final = 500


def check_source(source: object) -> str:
    """Return a source: plain words, no way out of the worker's folder, a reading that is known."""
    name, _, reading = source.partition("?") if isinstance(source, str) else ("", "", "")
    is_plain = _NAME.fullmatch(name) and ".." not in name and len(str(source)) <= _LONGEST
    if not is_plain or not name.lower().endswith(SUFFIXES):
        msg = (
            f"the source is the name of a file ({', '.join(SUFFIXES)}) below the worker's folder, "
            "of letters, digits, spaces, dots, hyphens and underscores, such as 2026/clinic.csv"
        )
        raise ArgumentError(msg)
    if reading:
        _read_as(Path(name), reading)
    return str(source)


def write_source(name: str, **reading: str | int | None) -> str:
    """Return the source of a file, with what its reading has of its own; nothing says the usual."""
    said = urlencode(
        {key: one for key, one in reading.items() if one not in (None, "")}, safe=";,|:"
    )
    return check_source(f"{name}?{said}" if said else name)


def name_of(source: str) -> str:
    """Return the file's name without how it is read."""
    return source.partition("?")[0]


def open_source(folder: Path, source: str) -> DataFile | None:
    """Return a file of the worker's folder as the library reads it; None if it is not there."""
    name, _, reading = check_source(source).partition("?")
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        return None
    return _read_as(path, reading) if reading else path


def _read_as(path: Path, reading: str) -> DataFile:
    said: dict[str, Any] = dict(parse_qsl(reading, keep_blank_values=True, separator="&"))
    if not set(said) <= set(READING):
        msg = f"behind its name a source says {', '.join(READING)} and nothing else"
        raise ArgumentError(msg)
    for key in set(_NUMBERS) & set(said):
        if re.fullmatch("[0-9]{1,9}", said[key]):  # any other is refused as no number
            said[key] = int(said[key])
    found = described_file(path, **said)
    return Path(found) if isinstance(found, str) else found


_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_COLUMNS: Final = 5000
_PROPOSED: Final = "propose policy"
_CHECKED: Final = "look"  # the kind that stored histories have


_FROM: Final = "FROM service_datasets d JOIN service_populations p ON p.name = d.population"


def add_population(  # one value per decision
    execute: Execute, name: str, level: str, epsilon: Amount, delta: Amount, actor: str
) -> Population:
    """Add a population with its budget, which is never raised."""
    name = _word("population", name)
    one_of("level", level, get_args(Level))
    total = BudgetUnits.limit(epsilon, delta)
    if one(execute, "SELECT 1 FROM service_populations WHERE name = ?", name) is not None:
        msg = f"there is a population {name!r} already; budgets are never raised"
        raise Conflict(msg)
    insert(
        execute, "service_populations", name=name, level=level, epsilon=total.epsilon,
        delta=total.delta,
    )  # fmt: skip
    facts = {"level": level, "epsilon": total.epsilon_text, "delta": total.delta_text}
    write_event(execute, "population", name, actor, facts)
    return Population(name, cast("Level", level), total)


def add_dataset(execute: Execute, new: Dataset, actor: str) -> None:
    """Add a data set to a population; its account in the ledger is bound at once."""
    _word("data set", new.name)
    check_source(new.source)
    population = find_population(execute, new.population)
    if population.level != new.level:
        msg = (
            f"the budget of population {population.name!r} protects at {population.level} level; "
            "all its data sets are of that level"
        )
        raise Conflict(msg)
    known = list_datasets(execute)
    if any(other.name == new.name for other in known):
        msg = f"there is a data set {new.name!r} already"
        raise Conflict(msg)
    same_file = [other for other in known if name_of(other.source) == name_of(new.source)]
    _refuse_mixed_roles(new, same_file)
    for other in known:
        is_held = other.population == new.population and other.policy.two_persons
        if is_held and new.policy.is_looser_than(other.policy):
            msg = (
                f"two persons decide about data set {other.name!r} of the same persons; give the "
                "new one a policy that is no looser, and loosen it together"
            )
            raise Conflict(msg)
    _check_columns(new)
    whole_number("rows", new.size, 2, 1 << 40)
    whole_number("rows_per_person", new.rows_per_person, 1, 10**6)
    insert(
        execute, "service_datasets", name=new.name, population=new.population,
        domain=new.domain.to_toml(), columns=canonical(list(new.columns)), size=new.size,
        rows_per_person=new.rows_per_person, source=new.source, digest=new.digest,
        policy=canonical(new.policy.plain),
    )  # fmt: skip
    facts = {
        "population": new.population, "rows": new.size, "policy": new.policy.plain,
        "rows_per_person": new.rows_per_person, "domain": new.domain.to_toml(),
    }  # fmt: skip
    write_event(execute, "dataset", new.name, actor, facts)
    public = gaps = None
    if has_public_covariates(new.level):  # of a public gap anybody may know who lacks the outcome
        public = list(new.domain.public_columns)
        gaps = [each.column for each in new.domain.outcomes if each.missing == "public"]
    said = declared_roles(new.level, public, new.rows_per_person, gaps)
    roles = Roles(private=frozenset(new.domain.private_columns)).declare(said, new.name)
    bound = replace(binding_of(new.domain), columns=dict.fromkeys(new.columns, ""), roles=roles)
    grant_dataset(execute, new.name, population.total, bound)


def find_population(execute: Execute, name: str) -> Population:
    """Return a population by name."""
    found = next((item for item in list_populations(execute) if item.name == name), None)
    if found is None:
        msg = "there is no such population"
        raise Missing(msg)
    return found


def list_populations(execute: Execute) -> list[Population]:
    """Return all populations."""
    found = execute(
        "SELECT name, level, epsilon, delta FROM service_populations ORDER BY name", ()
    ).rows
    return [Population(name, level, BudgetUnits(*total)) for name, level, *total in found]


def find_dataset(execute: Execute, name: str) -> Dataset:
    """Return a data set by name."""
    found = read_one(execute, Dataset, f"{_FROM} WHERE d.name = ?", name)
    if found is None:
        msg = "there is no such data set"
        raise Missing(msg)
    return found


def list_datasets(execute: Execute) -> list[Dataset]:
    """Return all data sets, closed ones too."""
    return read_rows(execute, Dataset, f"{_FROM} ORDER BY d.name")


def close_dataset(execute: Execute, name: str, actor: str, now: int) -> None:
    """Take no more requests for a data set; its history stays."""
    find_dataset(execute, name)
    if update(execute, "service_datasets", "name = ? AND closed = 0", name, closed=now) != 1:
        msg = f"data set {name!r} is closed already"
        raise Conflict(msg)
    write_event(execute, CLOSED, name, actor)


def set_policy(execute: Execute, name: str, policy: Policy, actor: str) -> bool:
    """Replace what a data set's policy approves by itself; False if a second person has to agree.

    Where two persons approve what waits, a looser policy is proposed by one and confirmed by
    another, who says the same. Requests made before keep what was decided.
    """
    held = find_dataset(execute, name).policy
    if held.two_persons and policy.is_looser_than(held):
        proposed = proposed_policy(execute, name)
        if proposed is None or proposed[1] != policy:
            write_event(execute, _PROPOSED, name, actor, policy.plain)
            return False
        if not are_two_persons(execute, (proposed[0], actor)):
            msg = f"{proposed[0]!r} has proposed this policy; another person confirms it"
            raise Conflict(msg)
    update(execute, "service_datasets", "name = ?", name, policy=canonical(policy.plain))
    write_event(execute, "policy", name, actor, policy.plain)
    return True


def proposed_policy(execute: Execute, name: str) -> tuple[str, Policy] | None:
    """Return who proposed a policy that waits for a second person, and the policy."""
    found = one(
        execute,
        "SELECT kind, actor, body FROM service_events WHERE subject = ? AND kind IN (?, 'policy') "
        "ORDER BY sequence DESC LIMIT 1",
        name, _PROPOSED,
    )  # fmt: skip
    if found is None or found[0] != _PROPOSED:
        return None
    actor = str(found[1])
    revoked = one(execute, "SELECT 1 FROM service_users WHERE name = ? AND revoked > 0", actor)
    return None if revoked else (actor, Policy.read(json.loads(str(found[2]))))


def usual_policy(execute: Execute, population: str) -> Policy:
    """Return the policy of a new data set about a population: one that two persons decide about."""
    known = (item for item in list_datasets(execute) if item.population == population)
    return next((item.policy for item in known if item.policy.two_persons), Policy())


def pin_digest(execute: Execute, name: str, digest: str, actor: str, start: int) -> None:
    """Keep the keyed digest of a file at its first use, in a slot that starts at this time.

    A copy of a file that is pinned already is about the same persons, whatever its name: both data
    sets are held to what two data sets of one file are.
    """
    known = list_datasets(execute)
    new = next(item for item in known if item.name == name)
    copies = [item for item in known if item.digest == digest and item.name != name]
    _refuse_mixed_roles(new, copies)
    if update(execute, "service_datasets", "name = ? AND digest = ''", name, digest=digest) == 1:
        at = time_text(start, "milliseconds")
        write_event(execute, "pin", name, actor, at=at)


def last_file_problem(execute: Execute, name: str) -> str | None:
    """Return what is wrong with a data set's file, empty if nothing; None if not looked at yet."""
    found = one(
        execute,
        "SELECT body FROM service_events WHERE kind = ? AND subject = ? "
        "ORDER BY sequence DESC LIMIT 1",
        _CHECKED, name,
    )  # fmt: skip
    return None if found is None else str(json.loads(str(found[0]))["problem"])


def write_file_check(execute: Execute, name: str, worker: str, problem: str, began: int) -> None:
    """Keep what a worker found, if it is news, with the time at which its look began.

    How long a look takes follows from the file's length, which records decide.
    """
    if last_file_problem(execute, name) != problem:
        at = time_text(began, "milliseconds")
        write_event(execute, _CHECKED, name, worker, {"problem": problem}, at=at)


def unavailable_since(execute: Execute, name: str, moment: int) -> str:
    """Say that the newest answer about a data set's records could not be given; empty if it could.

    Only what is visible at this moment counts, so that it shows no running time.
    """
    found = one(
        execute,
        "SELECT code FROM service_requests WHERE dataset = ? AND dummy = 0 AND visible > 0 "
        "AND visible <= ? AND state IN ('done', 'lost', 'refused') "
        "ORDER BY visible DESC, id LIMIT 1",
        name, moment,
    )  # fmt: skip
    codes = {"schema": "its columns", "ledger": "its file or its budget", "records": "its records"}
    about = codes.get("" if found is None else str(found[0]), "")
    return f"the last answer could not be given, because of {about}" if about else ""


def unchecked_datasets(execute: Execute) -> list[Dataset]:
    """Return the open data sets that no worker has found to be as declared."""
    return [
        found
        for found in list_datasets(execute)
        if not found.closed and last_file_problem(execute, found.name) != ""
    ]


def _check_columns(new: Dataset) -> None:
    """Refuse a domain whose columns the table does not have, and odd names of columns."""
    if not 0 < len(new.columns) <= _MOST_COLUMNS or len(set(new.columns)) != len(new.columns):
        msg = f"columns are the names of all columns of the file, 1 to {_MOST_COLUMNS}, each once"
        raise ArgumentError(msg)
    for name in new.columns:
        check_name("column", name)
    domain = new.domain
    require_one_outcome(domain, "a data set of a service")
    needed = (*domain.private_columns, *domain.public_columns)
    lacking = next((name for name in needed if name not in new.columns), None)
    if lacking is not None:
        msg = f"the domain declares column {lacking!r}, which is not among the columns"
        raise ArgumentError(msg)
    if not domain.covariates:
        msg = "the domain declares at least one covariate"
        raise ArgumentError(msg)
    _ = domain.bounds  # an error that says how to declare them
    if domain.outcome.fills_undeclared:
        msg = (
            f"the domain does not say what a missing {domain.outcome.column!r} is; declare "
            'missing = "public", "private" or a number with the outcome'
        )
        raise ArgumentError(msg)


def _refuse_mixed_roles(new: Dataset, others: list[Dataset]) -> None:
    """Refuse an outcome that is public in another data set of the same file, or other persons.

    Two data sets may share a file to answer about two outcomes. Then they share a population, and
    at label level neither may treat the other's outcome as public, nor who lacks it.
    """
    for other in others:
        if other.population != new.population:
            msg = (
                f"the file of data set {other.name!r} belongs to population "
                f"{other.population!r}; the same persons have one budget"
            )
            raise Conflict(msg)
        if not has_public_covariates(new.level):
            continue
        for first, second in ((new, other), (other, new)):
            if first.domain.outcome.column in second.domain.public_columns:
                msg = (
                    f"column {first.domain.outcome.column!r} is private in {first.name!r} and "
                    f"public in {second.name!r}; leave it out of the covariates there"
                )
                raise Conflict(msg)
        mine, theirs = new.domain.outcome, other.domain.outcome
        if mine.column == theirs.column and (mine.missing == "public") != (
            theirs.missing == "public"
        ):
            msg = (
                f"who lacks a value of column {mine.column!r} is public in one of {new.name!r} and "
                f"{other.name!r} and private in the other; declare the same of it"
            )
            raise Conflict(msg)


def _word(role: str, name: object) -> str:
    if not isinstance(name, str) or not _WORD.fullmatch(name):
        msg = f"a {role} is named by 1 to 64 letters, digits, dots, hyphens and underscores"
        raise ArgumentError(msg)
    return name
