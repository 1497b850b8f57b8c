"""One job in a process of its own: limits first, then one estimate, charged at the choke point.

``python -m private_ate.service.job FD`` reads an order from standard input and writes one report to
the pipe FD. It prints nothing: whatever a package would say could quote a record. A job is an
estimate, a charge alone, or a look at a data set's file, which compares its header, its separator
and its number of rows with what was declared, as the check does. All of these are public, and no
sentence holds a value.
"""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from private_ate.api import estimate_ate
from private_ate.charging import Approval
from private_ate.data.csv_file import CsvFile
from private_ate.data.files import (
    MEMORY_LIMIT,
    DataFile,
    file_of,
    open_table,
    read_schema,
    require_counted_records,
)
from private_ate.datasets.dummy import DUMMY_NOTE, draw_dummy
from private_ate.errors import BudgetError, LedgerError, PrivateAteError
from private_ate.ledger.binding import Charge
from private_ate.ledger.ledger import Ledger
from private_ate.ledger.stores import Execute, Store
from private_ate.service.policy import Dataset
from private_ate.service.release_times import dummy_rows, visible_time
from private_ate.service.settling import Settled, settle_question
from private_ate.service.store import catalogue, requests
from private_ate.service.store.events import are_two_persons, is_there, now, time_text
from private_ate.service.store.requests import RequestRow
from private_ate.service.store.tables import connect

Aim = Literal["estimate", "charge", "check"]
End = Literal["done", "refused", "ended"]
UNAVAILABLE: Final = "the data set cannot be used at the moment; curators see it in their queue"


@dataclass(frozen=True, slots=True)
class Order:
    """What a job is to do, as plain values; ``source`` is a data set's file, empty for a dummy.

    A check of a file has the name of the data set in place of a request's.
    """

    store: str
    request: str
    claim: str = field(repr=False)
    worker: str
    tick: float
    folder: str = field(default="", repr=False)
    source: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    memory: int = 8 << 30
    seconds: int = 3600
    parent: int = 0  # the worker's process
    aim: Aim = "estimate"


@dataclass(frozen=True, slots=True)
class Report:
    """How a job ended: ``ended`` says nothing more, the state of the request does."""

    end: End
    code: str = ""
    reason: str = ""
    body: str = ""


_PR_SET_PDEATHSIG: Final = 1
# Codes of errors whose texts speak of what the analyst wrote; others become a constant.
_QUOTED: Final = frozenset({"argument", "domain", "budget", "undeclared", "range"})


def end_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this signal when the parent ends; on Linux, elsewhere nothing happens."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)


def main() -> None:
    """Read the order, do it, write the report."""
    pipe = int(sys.argv[1])
    order = Order(**json.loads(sys.stdin.read()))
    _limit(order)
    report = _do(order)
    with os.fdopen(pipe, "w", encoding="utf-8") as file:
        json.dump(asdict(report), file)
    os._exit(0)  # nothing of other packages runs after the report


def _limit(order: Order) -> None:
    """Die with the worker, leave no core, take no more memory and time than allowed."""
    end_with_parent(order.parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError, OSError):  # a limit that is lower already stays
        resource.setrlimit(resource.RLIMIT_AS, (order.memory, order.memory))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (order.seconds, order.seconds))


def _do(order: Order) -> Report:
    """Run the job; every end is reported by a code and a text of public facts."""
    steps = {"estimate": estimate, "charge": charge, "check": check}
    try:
        return steps[order.aim](order)
    except PrivateAteError as error:
        if error.code in _QUOTED and not (order.folder and order.folder in str(error)):
            return Report("refused", error.code, str(error))
        return Report("refused", error.code, UNAVAILABLE)
    except Exception:  # noqa: BLE001  # its text could quote a record; the charge was made
        return Report("ended")


def estimate(order: Order) -> Report:
    """Estimate, charged at the choke point; made-up data costs nothing."""
    with connect(order.store) as store:
        row, settled = _asked(store, order)
        dataset = settled.dataset
        asked = settled.request.arguments("estimate_ate") | {
            "domain": dataset.domain, "method": settled.method.name,
        }  # fmt: skip
        if row.dummy:
            return Report("done", body=_dummy_release(dataset, asked))
        file = catalogue.open_source(Path(order.folder), order.source)
        if file is None:
            raise LedgerError(UNAVAILABLE)
        # Only the holder of the key can compare it with guesses of records.
        keyed = hmac.new(bytes.fromhex(order.key), digestmod=hashlib.sha256)
        with (Path(order.folder) / catalogue.name_of(order.source)).open("rb") as records:
            digest = hashlib.file_digest(records, lambda: keyed).hexdigest()
        if dataset.digest and not hmac.compare_digest(dataset.digest, digest):
            msg = "the file is not the one that was registered"
            raise LedgerError(msg)
        if not dataset.digest:
            with store.transaction() as execute:
                catalogue.pin_digest(execute, dataset.name, digest, order.worker, row.start)
        charged = {
            "ledger": Ledger(store), "dataset": dataset.name, "request_id": row.id,
            "analyst": row.analyst, "approval": _approval(order, row),
        }  # fmt: skip
        estimate_ate(file, **asked | charged)
    return Report("done")


def charge(order: Order) -> Report:
    """Charge a job that ended without a word: how it ended might depend on records."""
    with connect(order.store) as store:
        row, settled = _asked(store, order)
        bill, approval = settled.bill, _approval(order, row)
        charged = Charge(
            settled.dataset.name, row.id, bill.plan, bill.cost, row.analyst, bill.binding, bill.use,
            at=approval.asked_at,
        )  # fmt: skip
        Ledger(store).spend(charged, approval.on_charge)
    return Report("ended")


def check(order: Order) -> Report:
    """Compare a data set's file with what was declared of it."""
    with connect(order.store) as store, store.snapshot() as execute:
        dataset = catalogue.find_dataset(execute, order.request)
    return Report(
        "done",
        reason=file_problem(catalogue.open_source(Path(order.folder), order.source), dataset),
    )


def _asked(store: Store, order: Order) -> tuple[RequestRow, Settled]:
    """Return the request of an order, and what it asks of its data set."""
    with store.snapshot() as execute:
        row = requests.find_request(execute, order.request)
        dataset = catalogue.find_dataset(execute, row.dataset)
    return row, settle_question(row.asked, dataset)


def _dummy_release(dataset: Dataset, asked: dict[str, Any]) -> str:
    """Return a release about made-up data: it promises nothing and states the true effect."""
    trial = None
    if asked["design"] == "randomized":
        trial = 0.5 if asked["probability"] is None else asked["probability"]
    study = draw_dummy(dataset.domain, dummy_rows(dataset.size), trial=trial)
    made = estimate_ate(study.frame, **asked | {"dataset": dataset.name, "seed": 1})
    note = f"dummy data: made-up people with a known effect of {study.effect:g}"
    return replace(made, guarantee=DUMMY_NOTE, warnings=(note, *made.warnings)).to_json()


def _approval(order: Order, asked: RequestRow) -> Approval:
    """Return what was approved, and the steps of the request beside its charge and its release."""

    def on_charge(execute: Execute) -> None:
        row = requests.find_request(execute, order.request)
        requests.require_queued(execute, row.id, row.dataset)
        # The data set's own account has paid; so must all that share the population's budget.
        population = catalogue.find_population(
            execute, catalogue.find_dataset(execute, row.dataset).population
        )
        if not requests.spent_of(execute, population.name).fits(population.total):
            msg = (
                f"the budget of population {population.name!r} does not allow it; nothing was spent"
            )
            raise BudgetError(msg)
        _require_approval(execute, row)
        if row.plan != asked.plan or not requests.move(
            execute, row.id, "queued", "charged", order.worker, claim=order.claim
        ):
            msg = "the request was withdrawn, or is another worker's; nothing was spent"
            raise LedgerError(msg)

    def on_release(execute: Execute) -> None:
        row = requests.find_request(execute, order.request)
        visible = visible_time(row.due, now(), order.tick)
        if not requests.move(
            execute, row.id, "charged", "done", order.worker, claim=order.claim, visible=visible
        ):
            msg = "the request was given up; its release is not kept"
            raise LedgerError(msg)

    return Approval(asked.plan, time_text(asked.submitted), on_charge, on_release)


def _require_approval(execute: Execute, row: RequestRow) -> None:
    """Refuse to charge what neither the policy allows nor curators approved.

    Runs inside the charging transaction: the web process, which queued the request, may have been
    taken over, a policy may have been made narrower since, and users may have been revoked.
    """
    if not is_there(execute, row.analyst):
        msg = "its analyst was revoked; nothing was spent"
        raise BudgetError(msg)
    dataset = catalogue.find_dataset(execute, row.dataset)
    approved = requests.approvers_of(execute, row)
    if approved and (not dataset.policy.two_persons or are_two_persons(execute, approved)):
        return
    asks = settle_question(row.asked, dataset).asks
    against = requests.objections_to(execute, row.analyst, dataset, asks, row.submitted, row.id)
    if against:
        msg = f"the policy does not approve it: {'; '.join(against)}; nothing was spent"
        raise BudgetError(msg)


def file_problem(file: DataFile | None, dataset: Dataset) -> str:
    """Return a sentence on what keeps a file from being as declared; empty if nothing does."""
    if file is None:
        return "there is no file of this name below the worker's folder"
    try:
        return next(_problems(file, dataset), "")
    except PrivateAteError:
        return "the file cannot be read; private-ate check on the worker's side says why"


def _problems(file: DataFile, dataset: Dataset) -> Iterator[str]:
    meant = file_of(file)
    names = tuple(read_schema(file))
    if meant is not None:
        require_counted_records(meant, dataset.level)
    if isinstance(meant, CsvFile) and len(names) == 1 < len(dataset.columns):
        others = [sign for sign in (",", ";", "\t", "|") if sign in names[0]]
        signs = " or ".join("a tab" if sign == "\t" else f"{sign!r}" for sign in others)
        if others:
            yield f"its header is one field; fields seem to be separated by {signs}: say so"
    for name in dataset.columns:
        if name not in names:
            yield f"column {name!r} was declared and is not in its header"
    for name in names:
        if name not in dataset.columns:
            yield f"its header has column {name!r}, which was not declared"
    # By public columns, as an estimate counts them: a sheet ends at its last entry in one of these.
    public = dataset.domain.public_columns
    found = open_table(file, MEMORY_LIMIT, public, public=public).rows
    if found != dataset.size:
        yield f"it has {found} rows; {dataset.size} were declared"


if __name__ == "__main__":
    main()
