"""Between an estimate and its ledger: what is charged, to which data set, and when.

The charge is made at the choke point, immediately before the first noise is drawn, so arguments
that a method refuses spend nothing. Records are read and encoded inside the charge: a failure
there, like any error that is not one of ours, might depend on them and is charged as if noise had
been drawn. Public columns that are not what was declared are reported for free, once the ledger
holds them public: no outcome decides about it, and the columns can never be outcomes afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from private_ate.codec import encode
from private_ate.data.inputs import Covariates, Outline, settle_names
from private_ate.data.tables import Columns, schema_of
from private_ate.domain.column_types import Categories, Interval, Treatment, label_text
from private_ate.domain.domain import Domain
from private_ate.domain.outcome import Outcome, Survival
from private_ate.errors import (
    ArgumentError,
    LedgerError,
    PrivateAteError,
    RecordsError,
    SchemaError,
)
from private_ate.ledger.binding import Binding, Charge
from private_ate.ledger.chain import digest
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.ledger import Also, Ledger, Receipt
from private_ate.ledger.roles import Use
from private_ate.methods.registry import Method
from private_ate.privacy.budget import parse_delta
from private_ate.privacy.levels import has_public_covariates
from private_ate.release.release import Release
from private_ate.request import Request
from private_ate.settings import LedgerNote

__all__ = [
    "Approval",
    "Bill",
    "bill_for",
    "bill_for_columns",
    "binding_of",
    "charge_and_make",
    "person_held",
    "refuse_uncharged",
]

Make = Callable[[Callable[[], None]], Release]


@dataclass(frozen=True, slots=True)
class Bill:
    """What a request costs, the hash of its public parameters, and the data set it is about.

    ``words`` is the object whose hash is ``plan``, as plain values.
    """

    plan: str
    cost: BudgetUnits
    binding: Binding
    use: Use
    words: Mapping[str, Any]
    older_plan: str = ""  # as a version hashed it whose categories had their last label as other


@dataclass(frozen=True, slots=True)
class Approval:
    """What was approved before a request runs; nothing else is charged or kept.

    For a service, which decides about a plan before anybody may look at records.

    Attributes
    ----------
    plan : str
        The hash that was approved, as :func:`bill_for_columns` gives it.
    asked_at : str
        When it was asked for. Stands for the clock in the release and in the ledger, so that
        neither shows how long the work took.
    on_charge, on_release : callable, optional
        Run in the very transactions that charge the ledger and keep the release.
    """

    plan: str
    asked_at: str
    on_charge: Also | None = None
    on_release: Also | None = None


@dataclass(slots=True)
class _ChargeOnce:
    """Charges one request once, and stores its release."""

    ledger: Ledger
    charge: Charge
    approval: Approval | None
    receipt: Receipt | None = None

    def pay(self) -> None:
        """Charge the ledger; further calls do nothing."""
        if self.receipt is None:
            also = None if self.approval is None else self.approval.on_charge
            self.receipt = self.ledger.spend(self.charge, also)

    def bind(self) -> None:
        """Bind a data set that no request has bound, before a fact about its columns is reported.

        Otherwise a column could be asked about as if it were public, for nothing, and be an
        outcome in the next request.
        """
        use = self.charge.use
        if use is None or not has_public_covariates(use.level):
            return
        if self.ledger.roles(self.charge.dataset).level is None:
            self.ledger.bind(
                self.charge.dataset,
                level=use.level,
                public=(use.treatment, *use.covariates),
                rows_per_person=use.rows_per_person,
                public_gaps=use.public_gaps,
            )

    def run(self, make: Make) -> Release:
        """Make a release that pays before its first noise, and store it."""
        try:
            release = make(self.pay)
        except RecordsError:  # whether records can be read is a fact about them
            self.pay()
            raise
        except SchemaError:  # a fact about public columns, so they are public from now on
            self.bind()
            raise
        except PrivateAteError:
            raise
        except Exception:
            self.pay()
            raise
        cost = BudgetUnits.of(release.epsilon, parse_delta(release.delta))
        if self.receipt is None or not release.is_private or not cost.fits(self.charge.cost):
            msg = "the release does not keep what was charged for; nothing is released"
            raise PrivateAteError(msg)
        note = LedgerNote(
            dataset=self.charge.dataset,
            request=self.charge.request,
            head=self.receipt.head,
            left=float(self.receipt.left.epsilon_text),
        )
        noted = replace(
            release,
            settings={**release.settings, "ledger": encode(note)},
            dataset=release.dataset or self.charge.dataset,
        )
        also = None if self.approval is None else self.approval.on_release
        self.ledger.store(self.charge, noted.to_json(), also)
        return noted


def refuse_uncharged(request: Request) -> None:
    """Refuse a request that names a ledger which cannot charge it; nothing is opened yet."""
    if not isinstance(request.ledger, Ledger | str | Path):
        msg = "the ledger is a Ledger, the path of one, or a postgresql:// URL"
        raise ArgumentError(msg)
    if request.seed is not None or request.bounds == "from-data":
        msg = "a ledger keeps private releases only: leave out seed and bounds='from-data'"
        raise ArgumentError(msg)


def person_held(request: Request, person: str, count: Callable[[], int]) -> int:
    """Return how many rows a person may have in a data set that is bound.

    The ids are read only where the holder named their column public, and hold nobody to more rows
    than the data set is bound to.
    """
    with _opened(request) as (ledger, dataset):
        bound = ledger.roles(dataset).require_person(person, dataset)
        most = count()
        if most > bound:
            msg = (
                f"by {person!r} somebody has {most} rows, and data set {dataset!r} is bound to "
                f"rows_per_person={bound}; keep {bound} of each person's rows"
            )
            raise LedgerError(msg)
        return bound


@contextmanager
def _opened(request: Request) -> Iterator[tuple[Ledger, str]]:
    """Yield the ledger of a request and its data set; one that is opened here is closed again."""
    named = cast("Ledger | str | Path", request.ledger)
    ledger = named if isinstance(named, Ledger) else Ledger.open(named)
    try:
        yield ledger, _only_dataset(ledger) if request.dataset is None else request.dataset
    finally:
        if ledger is not named:
            ledger.close()


def charge_and_make(request: Request, bill: Bill, make: Make) -> Release:
    """Return the stored release of a repeated request, or charge for a new one and store it."""
    with _opened(request) as (ledger, dataset):
        if request.ledger_head is not None:  # without that entry the ledger is an old copy
            ledger.verify(request.ledger_head)
        approval = cast("Approval | None", request.approval)
        if approval is not None and approval.plan != bill.plan:
            msg = "this is not the plan that was approved; nothing was spent"
            raise LedgerError(msg)
        charge = Charge(
            dataset, request.request_id or uuid4().hex, bill.plan, bill.cost,
            request.analyst or "", bill.binding, bill.use, bill.older_plan,
            "" if approval is None else approval.asked_at,
        )  # fmt: skip
        stored = ledger.stored(charge)
        if stored is not None:
            return Release.from_json(stored)
        ledger.check(charge)  # what the rest would refuse is refused early
        return _ChargeOnce(ledger, charge, approval).run(make)


def binding_of(domain: Domain, table: Columns | None = None) -> Binding:
    """Return the outside view of a table: names of columns and declared knowledge.

    Types are no part of it: one value decides about the type of a pandas column.
    """
    columns = None if table is None else dict.fromkeys(table.names, "")
    declared = {name: _declaration(kind) for name, kind in domain.covariates.items()}
    declared[domain.treatment.column] = _arms_declared(domain.treatment)
    for outcome in domain.outcomes:
        if isinstance(outcome, Survival):  # the horizon is part of the question, not of the data
            rule = outcome.missing or "censored at 0"
            declared[outcome.column] = f"time to {_event(outcome)}missing {rule}"
            declared[outcome.event] = f"what ended {outcome.column!r}"
        elif outcome.bounds is not None:
            declared[outcome.column] = _event(outcome) + _declaration(
                outcome.bounds, outcome.missing
            )
    if domain.weights is not None:
        declared[domain.weights.column] = f"sampling weights, 0 to {domain.weights.high!r}"
    return Binding(columns, declared)


def _event(outcome: Outcome) -> str:
    """Say which label is the event; nothing where none is declared, as every ledger before."""
    return "" if outcome.event_label is None else f"event {json.dumps(outcome.event_label)}, "


def _arms_declared(treatment: Treatment) -> str:
    """Say which arms are compared; of two labels as every ledger before said it."""
    rest = "" if treatment.other is None else f", else {label_text(treatment.other)!r}"
    if treatment.arms is None:
        control, treated = treatment.labels
        return f"treatment {treated!r} against {control!r}{rest}"
    labels = " | ".join(json.dumps(label) for label in treatment.coded)
    edges = "" if treatment.bins is None else f" in bins {list(treatment.bins)!r}"
    return f"arms {labels}{edges}{rest}"


def bill_for(
    request: Request,
    method: str,
    options: type,
    domain: Domain,
    outline: Outline | None,
) -> Bill:
    """Say what a request costs and rests on; its plan is the hash of all that was asked.

    Without an outline the domain is that of an encoded study.
    """
    public = tuple(domain.covariates) if outline is None else outline.covariates
    binding = binding_of(domain, None if outline is None else outline.table)
    plan: dict[str, Any] = {
        "method": method,
        "request": _plain(request.hashed(domain.treatment.size)),
        "options": type(request.options).__name__,
        "treatment": domain.treatment.column,
        "outcome": domain.outcome.column,
        "covariates": list(public),
        "binding": binding.text,
    }
    if domain.further:
        plan["outcome"] = [one.column for one in domain.outcomes]
    if isinstance(domain.outcome, Survival):
        plan["survival"] = _plain(domain.outcome.question)
    if domain.weights is not None:
        plan["weights"] = domain.weights.column
        public = (*public, domain.weights.column)
    if request.leave_out_undeclared:  # at its usual value it is no part of the hash, as before
        plan["leave_out_undeclared"] = True
    if request.person is not None:
        plan["person"] = request.person
        public = (*public, request.person)
    older = {**plan, "binding": binding.as_before().text}
    shows = has_public_covariates(request.level)
    gaps = tuple(one.column for one in domain.outcomes if shows and one.missing == "public")
    use = Use(
        request.level, domain.treatment.column, domain.outcome.column, public,
        request.rows_per_person, domain.private_columns[1:], gaps,
    )  # fmt: skip
    cost = BudgetUnits.of(request.epsilon, _delta_of(request, options))
    return Bill(digest(plan), cost, binding, use, plan, digest(older))


def bill_for_columns(
    names: Sequence[str],
    request: Request,
    method: Method,
    domain: Domain,
    covariates: Covariates = None,
) -> Bill:
    """Say what a request would cost and which plan it is, from the names of the columns alone.

    Opens no data: what somebody approves before a record is read has the hash that the ledger is
    charged with afterwards.
    """
    import polars as pl

    columns = schema_of(pl.DataFrame(schema=dict.fromkeys(names, pl.String)), typed=False)
    outline = settle_names(
        columns, covariates=covariates, domain=domain, level=request.level, from_data=False
    )
    return bill_for(request, method.name, method.options, domain, outline)


def _delta_of(request: Request, options: type) -> Fraction:
    """Return the δ of a request: what its options say, zero for a pure method.

    Options that choose other neighbours than replace-one are refused: costs add up only if all of
    them speak of the same neighbours.
    """
    chosen = request.options
    if chosen is None and is_dataclass(options):
        chosen = options()
    if getattr(chosen, "adjacency", "replace") != "replace":
        msg = "a ledger adds up costs for replace-one neighbours; leave out adjacency"
        raise ArgumentError(msg)
    if not getattr(chosen, "is_private", True):
        msg = "a ledger keeps private releases only, and with these options nothing is promised"
        raise ArgumentError(msg)
    return parse_delta(getattr(chosen, "delta", 0) or 0)


def _only_dataset(ledger: Ledger) -> str:
    names = [account.dataset for account in ledger.accounts() if not account.analyst]
    if len(names) != 1:
        listed = ", ".join(repr(name) for name in names) or "none"
        msg = f"say which data set of the ledger is used (dataset=); it has {listed}"
        raise ArgumentError(msg, parameter="dataset")
    return names[0]


def _declaration(kind: Interval | Categories, rule: str | None = None) -> str:
    if isinstance(kind, Interval):
        # Without a rule the text is what it always was, so that older ledgers still match.
        ends = f"{kind.low!r} to {kind.high!r}, missing {rule or repr(kind.fill)}"
        return f"binary, {ends}" if kind.is_binary else ends
    labels = " | ".join(json.dumps(label) for label in kind.labels)
    return labels if kind.other is None else f"{labels}, else {kind.other!r}"


def _plain(value: Any) -> Any:  # noqa: ANN401  # plain values of a frozen dataclass
    """Return fractions and decimals as exact texts, containers as lists and dicts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
