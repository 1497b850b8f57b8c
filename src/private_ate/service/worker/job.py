"""One job in a process of its own: limits first, then one estimate, charged at the choke point.

``python -m private_ate.service.worker.job FD`` reads an order from standard input and writes one
report to the pipe FD. It prints nothing: whatever a package would say could quote a record.
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, cast

from private_ate.errors import BudgetError, LedgerError, PrivateAteError

__all__ = ["UNAVAILABLE", "Order", "Report", "end_with_parent", "main"]

_PR_SET_PDEATHSIG: Final = 1
Aim = Literal["estimate", "charge", "check"]
End = Literal["done", "refused", "ended"]
_CHUNK: Final = 1 << 20
# Codes of errors whose texts speak of what the analyst wrote; others become a constant.
_QUOTED: Final = frozenset({"argument", "domain", "budget", "undeclared", "range"})
UNAVAILABLE: Final = "the data set cannot be used at the moment; curators see it in their queue"


def end_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this signal when the parent ends; on Linux, elsewhere nothing happens."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)


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

    def text(self) -> str:
        """Return the order as JSON."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Report:
    """How a job ended: ``ended`` says nothing more, the state of the request does."""

    end: End
    code: str = ""
    reason: str = ""
    body: str = ""


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
    try:
        return {"estimate": _estimate, "charge": _charge_only, "check": _check_file}[order.aim](
            order
        )
    except PrivateAteError as error:
        if error.code in _QUOTED and not (order.folder and order.folder in str(error)):
            return Report("refused", error.code, str(error))
        return Report("refused", error.code, UNAVAILABLE)
    except Exception:  # noqa: BLE001  # its text could quote a record; the charge was made
        return Report("ended")


def _estimate(order: Order) -> Report:
    from private_ate.api import estimate_ate
    from private_ate.service.question import settle_question
    from private_ate.service.sources import name_of, open_source
    from private_ate.service.store.catalogue import find_dataset, pin_digest
    from private_ate.service.store.requests import find_request
    from private_ate.service.store.tables import connect

    with connect(order.store) as store:
        with store.snapshot() as execute:
            row = find_request(execute, order.request)
            dataset = find_dataset(execute, row.dataset)
        settled = settle_question(row.asked, dataset)
        asked = settled.request.arguments("estimate_ate") | {
            "domain": dataset.domain, "method": settled.method.name,
        }  # fmt: skip
        if row.dummy:
            return Report("done", body=_dummy_release(dataset, asked))
        file = open_source(Path(order.folder), order.source)
        if file is None:
            raise LedgerError(UNAVAILABLE)
        digest = _keyed_digest(Path(order.folder) / name_of(order.source), bytes.fromhex(order.key))
        if dataset.digest and not hmac.compare_digest(dataset.digest, digest):
            msg = "the file is not the one that was registered"
            raise LedgerError(msg)
        if not dataset.digest:
            with store.transaction() as execute:
                pin_digest(execute, dataset.name, digest, order.worker, row.start)
        charged = {
            "ledger": _ledger(store), "dataset": dataset.name, "request_id": row.id,
            "analyst": row.analyst, "approval": _approval(order, row.plan, row.submitted),
        }  # fmt: skip
        estimate_ate(file, **asked | charged)
    return Report("done")


def _check_file(order: Order) -> Report:
    """Compare a data set's file with what was declared of it."""
    from private_ate.service.sources import open_source
    from private_ate.service.store.catalogue import find_dataset
    from private_ate.service.store.tables import connect
    from private_ate.service.worker.file_check import file_problem

    with connect(order.store) as store, store.snapshot() as execute:
        dataset = find_dataset(execute, order.request)
    return Report(
        "done", reason=file_problem(open_source(Path(order.folder), order.source), dataset)
    )


def _dummy_release(dataset: Any, asked: dict[str, Any]) -> str:  # noqa: ANN401  # Dataset, loaded late
    """Return a release about made-up data: it promises nothing and states the true effect."""
    from private_ate.api import estimate_ate
    from private_ate.datasets.dummy import DUMMY_NOTE, draw_dummy
    from private_ate.service.release_times import dummy_rows

    trial = None
    if asked["design"] == "randomized":
        trial = 0.5 if asked["probability"] is None else asked["probability"]
    study = draw_dummy(dataset.domain, dummy_rows(dataset.size), trial=trial)
    made = estimate_ate(study.frame, **asked | {"dataset": dataset.name, "seed": 1})
    note = f"dummy data: made-up people with a known effect of {study.effect:g}"
    return replace(made, guarantee=DUMMY_NOTE, warnings=(note, *made.warnings)).to_json()


def _charge_only(order: Order) -> Report:
    """Charge a job that ended without a word: how it ended might depend on records."""
    from private_ate.ledger.ledger import Charge
    from private_ate.service.question import settle_question
    from private_ate.service.store.catalogue import find_dataset
    from private_ate.service.store.requests import find_request
    from private_ate.service.store.tables import connect

    with connect(order.store) as store:
        with store.snapshot() as execute:
            row = find_request(execute, order.request)
            dataset = find_dataset(execute, row.dataset)
        bill = settle_question(row.asked, dataset).bill
        approval = _approval(order, row.plan, row.submitted)
        charge = Charge(
            dataset.name, row.id, bill.plan, bill.cost, row.analyst, bill.binding, bill.use,
            at=approval.asked_at,
        )  # fmt: skip
        _ledger(store).spend(charge, approval.on_charge)
    return Report("ended")


def _approval(order: Order, plan: str, submitted: int) -> Any:  # noqa: ANN401  # Approval, loaded late
    from private_ate.charging import Approval
    from private_ate.service.release_times import visible_time
    from private_ate.service.store.events import time_text
    from private_ate.service.store.requests import find_request, move
    from private_ate.service.store.worker_events import require_queued

    def on_charge(execute: Any) -> None:  # noqa: ANN401  # Execute
        row = find_request(execute, order.request)
        require_queued(execute, row.id, row.dataset)
        _require_population(execute, row.dataset)
        _require_approval(execute, row)
        if row.plan != plan or not move(
            execute, row.id, "queued", "charged", order.worker, claim=order.claim
        ):
            msg = "the request was withdrawn, or is another worker's; nothing was spent"
            raise LedgerError(msg)

    def on_release(execute: Any) -> None:  # noqa: ANN401  # Execute
        from private_ate.service.operations import now

        row = find_request(execute, order.request)
        visible = visible_time(row.due, now(), order.tick)
        if not move(
            execute, row.id, "charged", "done", order.worker, claim=order.claim, visible=visible
        ):
            msg = "the request was given up; its release is not kept"
            raise LedgerError(msg)

    at = time_text(submitted)
    return Approval(plan, at, on_charge, on_release)


def _require_population(execute: Any, name: str) -> None:  # noqa: ANN401  # Execute
    """Refuse a charge that the data sets of a population together cannot pay.

    Runs inside the charging transaction, after the data set's own account has paid.
    """
    from private_ate.ledger.cost import BudgetUnits
    from private_ate.service.store.catalogue import find_dataset, find_population
    from private_ate.service.store.tables import one

    population = find_population(execute, find_dataset(execute, name).population)
    spent = one(
        execute,
        "SELECT SUM(a.epsilon_spent), SUM(a.delta_spent) FROM accounts a "
        "JOIN service_datasets d ON d.name = a.dataset WHERE a.analyst = '' AND d.population = ?",
        population.name,
    )
    epsilon, delta = cast("tuple[int, int]", spent)
    if not BudgetUnits(int(epsilon), int(delta)).fits(population.total):
        msg = f"the budget of population {population.name!r} does not allow it; nothing was spent"
        raise BudgetError(msg)


def _require_approval(execute: Any, row: Any) -> None:  # noqa: ANN401  # Execute, RequestRow
    """Refuse to charge what neither the policy allows nor curators approved.

    Runs inside the charging transaction: the web process, which queued the request, may have been
    taken over, a policy may have been made narrower since, and users may have been revoked.
    """
    from private_ate.service.operations import objections_to
    from private_ate.service.question import settle_question
    from private_ate.service.store.catalogue import find_dataset
    from private_ate.service.store.requests import approvers_of
    from private_ate.service.store.users import are_two_persons, is_there

    if not is_there(execute, row.analyst):
        msg = "its analyst was revoked; nothing was spent"
        raise BudgetError(msg)
    dataset = find_dataset(execute, row.dataset)
    approved = approvers_of(execute, row)
    if approved and (not dataset.policy.two_persons or are_two_persons(execute, approved)):
        return
    settled = settle_question(row.asked, dataset)
    against = objections_to(execute, row.analyst, dataset, settled, row.submitted, row.id)
    if against:
        msg = f"the policy does not approve it: {'; '.join(against)}; nothing was spent"
        raise BudgetError(msg)


def _ledger(store: Any) -> Any:  # noqa: ANN401  # Store, Ledger
    from private_ate.ledger.ledger import Ledger

    return Ledger(store)


def _keyed_digest(path: Path, key: bytes) -> str:
    """Return a digest that only the holder of the key can compare with guesses of records."""
    found = hmac.new(key, digestmod=hashlib.sha256)
    with path.open("rb") as file:
        read: Callable[[], bytes] = lambda: file.read(_CHUNK)  # noqa: E731  # iter wants a call
        for chunk in iter(read, b""):
            found.update(chunk)
    return found.hexdigest()


if __name__ == "__main__":
    main()
