"""A search for the neighbours that move each step of a method furthest of what it declares.

A try is a whole table with the records of one person replaced, raw values and all: bounds and
beyond, missing entries, undeclared labels. Of every step the furthest try so far is kept and
changed a little, in turn: the replacement, the table, ε or the seed of the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from private_ate import PrivateAteError
from private_ate.api import METHODS, estimate_study
from private_ate.audit.replay import Call, Recording, broken_promises, moved_share
from private_ate.data.missing_rules import Reading
from private_ate.domain import Categories, Domain
from private_ate.engines.open_table import open_table
from private_ate.methods.composition import takes
from private_ate.privacy.metrics import Metric
from private_ate.privacy.objective import SMOOTHING_SHARE, ObjectiveCalibration
from private_ate.request import Request

__all__ = ["Case", "Found", "Try", "climb"]

EPSILONS = tuple(map(Fraction, ("1", "1/10", "8", "1/1000", "1/1000000000000", "1000000")))
FEWEST, MOST = 2, 40  # records of a table
ODD_NUMBERS = (None, math.nan, math.inf, -math.inf, 1e308)
ODD_LABELS = (None, "", "undeclared")
ROUNDING = 1e-7  # of a float Hessian


@dataclass(frozen=True)
class Case:
    """A method with what is declared and asked; numbers are declared between 0 and 1."""

    method: str
    level: str
    domain: Domain
    asked: dict[str, Any] = field(default_factory=dict)

    @property
    def columns(self):
        """The role of every column, in the order of a record."""
        roles = {self.domain.treatment.column: "label"}
        for name, kind in self.domain.covariates.items():
            roles[name] = "label" if isinstance(kind, Categories) else "number"
        roles |= {one.column: "outcome" for one in self.domain.outcomes}
        if self.domain.weights is not None:
            roles[self.domain.weights.column] = "weight"
        return roles

    @property
    def roles(self):
        """The roles alone."""
        return tuple(self.columns.values())

    @property
    def people_rows(self):
        """How many rows a person may have."""
        return self.asked.get("rows_per_person", 1)

    def labels(self, column):
        """Return the declared labels of a column."""
        name = list(self.columns)[column]
        if name == self.domain.treatment.column:
            return self.domain.treatment.coded
        return self.domain.covariates[name].labels

    def replaced(self, before, after):
        """Return the record that stands in a neighbour: public entries and public gaps stay."""
        public = self.level == "label"
        keeps_gaps = public and any(one.missing == "public" for one in self.domain.outcomes)

        def entry(old, new, role):
            if public and role != "outcome":
                return old
            return old if keeps_gaps and role == "outcome" and lacks(old) != lacks(new) else new

        return tuple(map(entry, before, after, self.roles))


@dataclass(frozen=True)
class Try:
    """A table, which of its places hold one person, and what stands there in the neighbour."""

    records: tuple
    places: tuple[int, ...] = ()
    replacement: tuple = ()
    epsilon: Fraction = Fraction(1)
    seed: int = 0

    @property
    def neighbour(self):
        """The records of the neighbour."""
        records = [*self.records]
        for place, record in zip(self.places, self.replacement, strict=True):
            records[place] = record
        return records

    def with_entry(self, place, column, value):
        """Return the try with one entry of its table changed."""
        record = [*self.records[place]]
        record[column] = value
        records = (*self.records[:place], tuple(record), *self.records[place + 1 :])
        return replace(self, records=records)


@dataclass
class Found:
    """What a search found: of every step its furthest move as a share, and broken promises."""

    shares: dict[str, float] = field(default_factory=dict)
    best: dict[str, Try] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    evaluations: int = 0
    refused: int = 0

    @property
    def largest(self):
        """The largest share of what is declared that any step moved."""
        return max(self.shares.values(), default=0.0)

    def note(self, step, share, attempt):
        """Keep the furthest move of a step; of equal ones the last, so that the search wanders."""
        if share >= self.shares.get(step, 0.0):
            self.shares[step], self.best[step] = float(share), attempt


def climb(case: Case, evaluations: int, *, seed: int = 0) -> Found:
    """Search with so many pairs of runs, an eighth on fresh tables; end at a broken promise."""
    search = _Search(case, np.random.default_rng(seed))
    found = Found()
    while found.evaluations < evaluations and not found.broken:
        steps = sorted(found.best)
        if not steps or found.evaluations < max(3, evaluations // 8):
            attempt = search.drawn()
        else:
            attempt = search.changed(found.best[steps[found.evaluations % len(steps)]])
        found.evaluations += 1
        _evaluate(case, attempt, found)
    return found


def lacks(outcome):
    """Say whether an outcome is missing."""
    return outcome is None or math.isnan(outcome)


@dataclass
class _Search:
    """Draws tries, and changes them a little."""

    case: Case
    rng: np.random.Generator

    def drawn(self):
        """Return a table of mostly declared values, with a replacement."""
        rows = int(self.rng.integers(MOST // 4, MOST + 1))
        return self.changed(Try(tuple(self.record(odd=0.02) for _ in range(rows))))

    def changed(self, attempt):
        """Change one to three things, then fill in what is left open."""
        for _ in range(int(self.rng.integers(1, 4))):
            attempt = self.pick(_CHANGES)(self, attempt)
        rows, person = len(attempt.records), self.case.people_rows
        places = [place for place in attempt.places if place < rows][:person]
        while len(places) < min(person, rows):
            places.append(self.pick(sorted(set(range(rows)) - set(places))))
        wanted = (*attempt.replacement, *(self.record() for _ in range(person)))
        replacement = tuple(
            self.case.replaced(attempt.records[place], record)
            for place, record in zip(places, wanted, strict=False)
        )
        return replace(attempt, places=tuple(places), replacement=replacement)

    def pick(self, among):
        """Return one of several values, as it is."""
        return among[int(self.rng.integers(len(among)))]

    def record(self, odd=0.15):
        """Draw a record."""
        return tuple(self.entry(column, odd) for column in range(len(self.case.roles)))

    def entry(self, column, odd=0.15):
        """Draw an entry: mostly at a bound, sometimes inside, now and then an undeclared one."""
        role, is_odd = self.case.roles[column], self.rng.random() < odd
        if role == "label":
            return self.pick(ODD_LABELS if is_odd else self.case.labels(column))
        if role == "weight":
            high = self.case.domain.weights.high
            refused = self.case.level == "label"  # where weights are public
            beyond = (*ODD_NUMBERS, -1.0, 3 * high)
            return self.pick(beyond if is_odd and not refused else (0.0, high, 1e-9, high / 3))
        if is_odd:
            return self.pick((*ODD_NUMBERS, -2.0, 3.0))
        return self.pick((0.0, 1.0, 0.0, 1.0, 0.5, round(float(self.rng.random()), 6)))

    def column(self):
        """Draw a column."""
        return int(self.rng.integers(len(self.case.roles)))

    def other_replacement(self, attempt):
        """Replace by other records."""
        return replace(attempt, replacement=())

    def other_places(self, attempt):
        """Replace at other places."""
        return replace(attempt, places=())

    def other_entry(self, attempt):
        """Change one entry of a record that stands in the neighbour."""
        if not attempt.replacement:
            return attempt
        stands = [list(record) for record in attempt.replacement]
        column = self.column()
        self.pick(stands)[column] = self.entry(column)
        return replace(attempt, replacement=tuple(map(tuple, stands)))

    def other_value(self, attempt):
        """Change one entry of the table, half of the time one that is replaced."""
        spots = range(len(attempt.records))
        if self.rng.random() < 0.5:
            spots = [place for place in attempt.places if place in spots] or spots
        column = self.column()
        return attempt.with_entry(self.pick(spots), column, self.entry(column))

    def equal_column(self, attempt):
        """Give all records but a few one value: ties, and arms that are nearly empty."""
        column = self.column()
        value = self.entry(column, odd=0.02)
        kept = {*attempt.places, int(self.rng.integers(len(attempt.records)))}
        for place in range(len(attempt.records)):
            if place not in kept:
                attempt = attempt.with_entry(place, column, value)
        return attempt

    def twin(self, attempt):
        """Make two records equal."""
        records = [*attempt.records]
        records[int(self.rng.integers(len(records)))] = self.pick(attempt.records)
        return replace(attempt, records=tuple(records))

    def longer(self, attempt):
        """Add a record."""
        return replace(attempt, records=(*attempt.records, self.record())[:MOST])

    def shorter(self, attempt):
        """Drop a few records."""
        left = max(FEWEST, len(attempt.records) - int(self.rng.integers(1, 9)))
        return replace(attempt, records=attempt.records[:left])

    def other_order(self, attempt):
        """Put the records in another order."""
        order = self.rng.permutation(len(attempt.records))
        return replace(attempt, records=tuple(attempt.records[place] for place in order))

    def other_budget(self, attempt):
        """Ask with another ε."""
        return replace(attempt, epsilon=self.pick(EPSILONS))

    def other_noise(self, attempt):
        """Draw other noise in the steps before."""
        return replace(attempt, seed=int(self.rng.integers(1000)))


_CHANGES = (
    _Search.other_replacement, _Search.other_entry, _Search.other_entry, _Search.other_places,
    _Search.other_value, _Search.other_value, _Search.equal_column, _Search.twin, _Search.longer,
    _Search.shorter, _Search.other_order, _Search.other_budget, _Search.other_noise,
)  # fmt: skip


def _evaluate(case, attempt, found):
    """Run both neighbours, the second with the outputs of the first, and note what moved."""
    first = Recording()
    second = Recording(source=first)
    one = _run(case, attempt, attempt.records, first)
    other = _run(case, attempt, attempt.neighbour, second)
    broken = [] if one == other else ["the runs answer differently, given the same noisy numbers"]
    broken += broken_promises(first, second)
    found.broken += [f"{said}: {attempt}" for said in broken]
    found.refused += isinstance(one, str)
    for before, after in zip(first.calls, second.calls, strict=False):
        if before.spend == after.spend:
            found.note(before.spend.step, moved_share(before, after), attempt)
            if before.spend.metric is Metric.GRADIENT:
                share = _curvature_share(before, after, case.people_rows)
                found.note(f"{before.spend.step}, curvature", share, attempt)


def _curvature_share(one: Call, other: Call, changes: int) -> float:
    """Compare log determinants of Hessians, whose difference the ridge's part of ε bounds.

    It is the second promise of objective perturbation, which no metric of a step measures.
    """
    epsilon = one.spend.epsilon / (1 - SMOOTHING_SHARE)
    law = ObjectiveCalibration.of(one.values, changes, epsilon)
    weights = np.asarray(one.output, dtype=np.float64)

    def growth(point):
        before, after = (
            call.values.sums(call.values.study, point, curved=True).hessian for call in (one, other)
        )
        whole = before + law.ridge * np.eye(weights.size)
        # Small beside the ridge where ε is small: log determinants themselves would round it off.
        return np.log1p(np.linalg.eigvals(np.linalg.solve(whole, after - before)).real).sum()

    moved = max(abs(growth(at)) for at in (np.zeros(weights.size), weights, weights / 8))
    return moved / float(law.curvature) / (1 + ROUNDING)


def _run(case, attempt, records, recording):
    """Return the release, or the words of a refusal."""
    method = METHODS[case.method]
    types = {"label": pl.String}
    frame = pl.DataFrame(
        [list(column) for column in zip(*records, strict=True)],
        schema={name: types.get(role, pl.Float64) for name, role in case.columns.items()},
    )
    asked = {
        "treatment": None, "outcome": None, "covariates": None, "domain": case.domain,
        "level": case.level, "from_data": False,
    }  # fmt: skip
    opened = open_table(frame, asked, memory=1 << 30, engine="local", master=None)
    request = Request(case.level, attempt.epsilon, **case.asked)
    try:
        with opened.encoded(
            None, Reading(case.level, takes(method.name, case.level, "undeclared"), True)
        ) as study:
            return estimate_study(study, request, method, seed=attempt.seed, recorder=recording)
    except PrivateAteError as refusal:
        return str(refusal)
