"""The curator's check of the records before an estimate. Not private, spends nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from private_ate.arguments import parse_memory
from private_ate.arrays import Integers, Words
from private_ate.checking.arms import (
    count_subgroups,
    judge_arms,
    judge_subgroups,
    judge_support,
    weigh_arms,
)
from private_ate.checking.column_counts import (
    ArmPositions,
    ColumnCounts,
    Entries,
    HashCounts,
    ValueCounts,
    hash_entries,
    read_entries,
    spread_bits,
)
from private_ate.checking.columns import (
    is_named_id,
    judge_covariate,
    judge_declarations,
    reveals_arm,
)
from private_ate.checking.findings import Arms, DataCheck, Finding, Support
from private_ate.checking.outcome import (
    EventCounts,
    judge_outcome,
    judge_survival,
    judge_time_like_outcome,
)
from private_ate.checking.proposals import propose_declaration, propose_lines
from private_ate.checking.repeats import (
    TELLS,
    RowSample,
    judge_copies,
    judge_ids,
    judge_lines,
    judge_persons,
    judge_repeats,
)
from private_ate.data.csv_file import CsvFile, find_long_lines
from private_ate.data.files import (
    MEMORY_LIMIT,
    file_of,
    open_schema,
    open_table,
    without_words,
)
from private_ate.data.inputs import (
    Covariates,
    asked_columns,
    covariate_names,
    hash_persons,
    resolve_domain,
    unasked_outcomes,
)
from private_ate.data.tables import Table, require_labels, require_numbers
from private_ate.domain import (
    Categories,
    Domain,
    Interval,
    Outcome,
    Survival,
    Treatment,
    label_text,
)
from private_ate.domain.domain import Cells
from private_ate.engines.disk_columns import tell_rows
from private_ate.engines.local import Progress
from private_ate.engines.spark_table import is_spark_frame
from private_ate.errors import ArgumentError, SchemaError
from private_ate.parameters import checked
from private_ate.privacy.levels import Level

__all__ = ["check_data"]


def check_data(  # noqa: PLR0913  # the questions that an estimate asks about columns
    data: object,
    *,
    domain: Domain | None = None,
    level: Level | None = None,
    treatment: str | Treatment | None = None,
    outcome: str | Sequence[str] | None = None,
    covariates: Covariates = None,
    by: str | Sequence[str] = (),
    person: str | None = None,
    rows_per_person: int = 1,
    leave_out_undeclared: bool = False,
    memory_limit: str | float = MEMORY_LIMIT,
    progress: Progress | None = None,
) -> DataCheck:
    """Compare the records with what is declared of them; **not private**, for the curator alone.

    Says per column what is missing, unreadable, clipped or undeclared and what looks like an id, a
    date, a constant or a consequence of treatment; how large the arms are and how well they
    overlap; which rows repeat; and what a missing declaration could look like. Charges no ledger.

    Parameters
    ----------
    data
        A pandas, polars or pyarrow table, or the path of a CSV or Parquet file. A file is read as
        the estimate reads it, in chunks if it is larger than ``memory_limit``.
    domain : Domain
        What is declared. Columns without a declaration are described and a line is proposed.
    level : "label" or "sample", optional
        The level of the estimate that is planned; without one the stricter reading counts.
    treatment, outcome, covariates
        Columns, as in ``estimate_ate``.
    by : list of str
        Subgroups that are planned, as in ``estimate_ate``: their arms are counted.
    person : str, optional
        A column that names the person of each row; no person may have more than
        ``rows_per_person`` rows. Without it, rows that are the same in every column are counted.
    leave_out_undeclared : bool
        Whether rows without a declared treatment are left out on purpose.
    memory_limit, progress
        As in ``estimate_ate``.

    Returns
    -------
    DataCheck
        Findings with a severity, a sentence and a remedy; its repr shows no value.
    """
    given: dict[str, object] = {
        "rows_per_person": rows_per_person, "leave_out_undeclared": leave_out_undeclared, "by": by,
    }  # fmt: skip
    read = checked(given if level is None else {**given, "level": level})
    memory = parse_memory(memory_limit)
    named = resolve_domain(domain, treatment, outcome)
    subgroups = cast("tuple[str, ...]", read["by"])
    Cells.of(named, subgroups)  # refuses what makes none
    if is_spark_frame(data):
        msg = "a check looks at every row on this machine; collect the data frame, or give a file"
        raise ArgumentError(msg)
    schema = _columns(data, named, covariates, level)
    unasked = unasked_outcomes(domain, named)
    names = covariate_names(schema, named, covariates, person=person, unasked=unasked)
    counted = _Pass(named, names, person, schema.names)

    def look() -> DataCheck:
        public = [named.treatment.column, *names]
        table = open_table(data, memory, counted.columns, public=public)
        counted.read(table, progress)
        file = file_of(data)
        long_lines = find_long_lines(file) if isinstance(file, CsvFile) else (0, 0)
        support = _weigh(table, counted, progress)
        arms, rows = counted.arms, int(counted.rows.sum())
        leaves_out = leave_out_undeclared
        findings = [
            *judge_arms(arms, named.treatment, leaves_out=leaves_out),
            *_judge_columns(counted, level),
            *_judge_rows(counted, rows_per_person, long_lines),
            *judge_support(support, arms),
        ]
        ids = {finding.column for finding in findings if finding.topic in ("persons", TELLS)}
        proposed = propose_lines(
            named, arms, counted.outcomes, counted.covariates, leaves_out=leaves_out,
            left_out={name for name in names if name in ids},
        )  # fmt: skip
        findings += _judge_times(table, counted, schema.names)
        if subgroups:
            cells = count_subgroups(table.chunks(counted.columns), named, subgroups)
            findings += judge_subgroups(cells)
        return DataCheck(rows, arms, tuple(findings), support, proposed)

    return without_words(look)


def _columns(data: object, domain: Domain, covariates: Covariates, level: Level | None) -> Table:
    """Return the table's schema; refuse columns that are not there."""
    schema = open_schema(data, level)
    is_text = isinstance(file_of(data), CsvFile)
    if is_text and len(schema.names) == 1 and any(sign in schema.names[0] for sign in ",;\t|"):
        msg = (
            "the first line holds no such separator but commas, semicolons, tabs or bars; say "
            "which of them separates fields"
        )
        raise SchemaError(msg, parameter="sep")
    asked = asked_columns(domain, covariates)
    schema.require(domain.treatment.column, "treatment", asked)
    for name in domain.private_columns:
        schema.require(name, "outcome", asked)
    arms_are = require_labels if domain.treatment.bins is None else require_numbers
    arms_are(schema, domain.treatment.column)
    return schema


class _Pass:
    """One pass over the rows and what it counts."""

    def __init__(
        self, domain: Domain, names: tuple[str, ...], person: str | None, every: tuple[str, ...]
    ) -> None:
        """Plan a pass; rows are compared in every column unless persons are named."""
        used = (domain.treatment.column, *domain.private_columns, *names)
        self.domain, self.person = domain, person
        self.columns = every if person is None else tuple(dict.fromkeys((*used, person)))
        self.positions = positions = ArmPositions(domain.treatment)
        self.outcomes = [
            ColumnCounts(one.column, one.bounds or None, positions) for one in domain.outcomes
        ]
        self.covariates = [
            ColumnCounts(name, domain.covariates.get(name), positions) for name in names
        ]
        self.events = {
            one.column: EventCounts(one, positions.size)
            for one in domain.outcomes
            if one.reads_labels
        }
        self.rows = np.zeros(positions.size, np.int64)
        self.undeclared = ValueCounts(places=positions.size)
        self.missing = 0  # rows without a treatment
        self.beyond = 0  # doses beyond the outer edges of bins
        self.hashes = HashCounts()
        self.sample = RowSample()
        # Columns that may name persons.
        self.ids = {} if person else {name: HashCounts() for name in every if is_named_id(name)}

    def read(self, table: Table, progress: Progress | None) -> None:
        """Count all rows, chunk by chunk."""
        done = 0
        for chunk in table.chunks(self.columns):
            self._add(chunk)
            tell_rows(progress, done, done + chunk.rows, table.rows)
            done += chunk.rows
        if not done:
            msg = "the table has no rows"
            raise SchemaError(msg)

    def _add(self, chunk: Table) -> None:
        column = self.domain.treatment.column
        arms = self.positions.place(chunk)
        self.rows += np.bincount(arms, minlength=self.positions.size)
        parts = self.positions.take_part(arms)
        tallies = {tally.name: tally for tally in (*self.outcomes, *self.covariates)}
        hashes: Words = np.zeros(chunk.rows, dtype=np.uint64)
        compared: dict[str, Entries] = {}
        for name in self.columns:
            entries = read_entries(chunk, name)
            if name in self.ids:
                self.ids[name].add(hash_persons(chunk, name)[~entries.is_missing])
            if name == column:
                self._add_treatment(entries, arms)
            if name in tallies:
                events = self.events.get(name)
                own = entries if events is None else events.read(chunk, entries, arms)
                tallies[name].add(chunk, own, parts)
                compared[name] = entries
            if self.person is None:
                hashes = spread_bits(hashes ^ hash_entries(entries))
            elif self.person == name:
                hashes = hash_persons(chunk, name)
        self.hashes.add(hashes)
        self.sample.add(compared, chunk.rows)

    def _add_treatment(self, entries: Entries, arms: Integers) -> None:
        neither = arms == self.positions.outside
        self.missing += int(np.count_nonzero(entries.is_missing & neither))
        self.undeclared.add(entries, neither, arms)
        edges = self.domain.treatment.bins
        if edges is not None:
            doses = entries.numbers
            self.beyond += int(np.count_nonzero((doses < edges[0]) | (doses > edges[-1])))

    @property
    def arms(self) -> Arms:
        """The sizes of the arms."""
        *sizes, neither = map(int, self.rows)
        counts = dict(zip(self.positions.labels, sizes, strict=True))
        treatment = self.domain.treatment
        return Arms(
            counts[label_text(treatment.treated)], counts[label_text(treatment.control)],
            self.missing, self.undeclared.ordered(), neither, counts, self.beyond,
        )  # fmt: skip


def _judge_columns(counted: _Pass, level: Level | None) -> Iterator[Finding]:
    """Yield what there is to say about outcomes and covariates, in their order."""
    domain = counted.domain
    for place, tally in enumerate(counted.outcomes):
        if not isinstance(domain.outcomes[place], Survival):  # judged by times and events together
            yield from judge_outcome(
                tally, domain.of_outcome(place), counted.events.get(tally.name)
            )
    copies = judge_copies(
        counted.sample,
        [tally.name for tally in counted.outcomes],
        [tally.name for tally in counted.covariates],
    )
    for tally in counted.covariates:
        yield from judge_covariate(tally, level, copies[tally.name])
    yield from judge_declarations(counted.covariates, level)


def _judge_rows(
    counted: _Pass, rows_per_person: int, long_lines: tuple[int, int]
) -> Iterator[Finding]:
    """Yield what there is to say about whole rows."""
    rows = int(counted.rows.sum())
    if counted.person is None:
        yield judge_repeats(counted.hashes, rows)
        yield from judge_ids(counted.ids, rows_per_person)
    else:
        yield judge_persons(counted.hashes, counted.person, rows, rows_per_person)
    yield from judge_lines(*long_lines, rows)


def _judge_times(table: Table, counted: _Pass, every: tuple[str, ...]) -> list[Finding]:
    """Judge a time to an event, or say that a plain outcome looks like one."""
    domain, columns = counted.domain, counted.columns
    if isinstance(domain.outcome, Survival):
        used = (*domain.private_columns, domain.treatment.column, *domain.covariates)
        return list(judge_survival(table.chunks(used), domain, counted.positions))
    seen = [name for name in every if name in columns]
    low = float(counted.outcomes[0].low.min())
    return list(judge_time_like_outcome(table.chunks(columns), domain, seen, low))


def _weigh(table: Table, counted: _Pass, progress: Progress | None) -> Support | None:
    """Weigh the arms by the covariates that can be used as they are."""
    usable: dict[str, Interval | Categories] = {}
    for tally in counted.covariates:
        kind = propose_declaration(tally) if tally.declared is None else tally.declared
        reveals = reveals_arm(tally) is not None
        if kind is not None and not tally.is_refused_as(kind) and not reveals:
            usable[tally.name] = kind
    arms = counted.arms
    if not usable or min(arms.counts.values()) < 2:
        return None
    left_out = tuple(tally.name for tally in counted.covariates if tally.name not in usable)
    # The outcome is not read, so any bounds do.
    unread = Outcome(counted.domain.outcome.column, Interval(0, 1))
    known = Domain(counted.domain.treatment, unread, usable)
    all_in_arms = not arms.neither or known.treatment.other is not None
    return weigh_arms(table, known, left_out, progress, all_in_arms=all_in_arms)
