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
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, cast

from private_ate.errors import BudgetError, LedgerError, PrivateAteError

__all__ = ["Order", "Report", "main"]

Aim = Literal["estimate", "charge"]
End = Literal["done", "refused", "ended"]

_PR_SET_PDEATHSIG: Final = 1
_CHUNK: Final = 1 << 20
# Codes of errors whose texts speak of what the analyst wrote; others are told by a constant.
_TOLD: Final = frozenset({"argument", "domain", "budget", "undeclared", "range"})
_UNAVAILABLE: Final = "the data set cannot be used at the moment; its curator was told"


@dataclass(frozen=True, slots=True)
class Order:
    """What a job is to do, as plain values: ``source`` is empty for a dummy request."""

    store: str
    request: str
    claim: str
    worker: str
    tick: float
    source: str = ""
    key: str = ""
    memory: int = 8 << 30
    seconds: int = 3600
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
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError, OSError):  # a limit that is lower already stays
        resource.setrlimit(resource.RLIMIT_AS, (order.memory, order.memory))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (order.seconds, order.seconds))


def _do(order: Order) -> Report:
    """Run the job; every end is told by a code and a text of public facts."""
    try:
        return _charge_only(order) if order.aim == "charge" else _estimate(order)
    except PrivateAteError as error:
        if error.code in _TOLD and not (order.source and order.source in str(error)):
            return Report("refused", error.code, str(error))
        return Report("refused", error.code, _UNAVAILABLE)
    except Exception:  # noqa: BLE001  # its text could quote a record; the charge was made
        return Report("ended")


def _estimate(order: Order) -> Report:
    from private_ate.estimation import estimate_ate
    from private_ate.service.question import settle_question
    from private_ate.service.store.catalogue import find_dataset, pin_digest
    from private_ate.service.store.requests import find_request
    from private_ate.service.store.tables import connect

    with connect(order.store) as store:
        with store.snapshot() as execute:
            row = find_request(execute, order.request)
            dataset = find_dataset(execute, row.dataset)
        settled = settle_question(row.asked, dataset)
        question, request = row.asked, settled.request
        asked: dict[str, Any] = {
            "domain": dataset.domain, "level": dataset.level, "epsilon": request.epsilon,
            "method": settled.method.name, "target": request.target,
            "neighbors": request.neighbors, "estimand": request.estimand, "among": request.among,
            "design": request.design, "probability": request.probability, "by": request.by,
            "overall": request.overall, "confidence": request.confidence,
            "rows_per_person": request.rows_per_person, "covariates": question.covariates,
            "options": request.options, "leave_out_undeclared": question.leave_out_undeclared,
        }  # fmt: skip
        if row.dummy:
            return Report("done", body=_dummy_release(dataset, asked))
        digest = _keyed_digest(Path(order.source), bytes.fromhex(order.key))
        if dataset.digest and not hmac.compare_digest(dataset.digest, digest):
            msg = "the file is not the one that was registered"
            raise LedgerError(msg)
        if not dataset.digest:
            with store.transaction() as execute:
                pin_digest(execute, dataset.name, digest, order.worker)
        estimate_ate(
            Path(order.source), **asked, ledger=_ledger(store), dataset=dataset.name,
            request_id=row.id, analyst=row.analyst,
            approval=_approval(order, row.plan, row.submitted),
        )  # fmt: skip
    return Report("done")


def _dummy_release(dataset: Any, asked: dict[str, Any]) -> str:  # noqa: ANN401  # Dataset, loaded late
    """Return a release about made-up people: it promises nothing and tells the true effect."""
    from private_ate.datasets.dummy import DUMMY_NOTE, draw_dummy
    from private_ate.estimation import estimate_ate

    trial = None
    if asked["design"] == "randomized":
        trial = 0.5 if asked["probability"] is None else asked["probability"]
    study = draw_dummy(dataset.domain, min(dataset.size, 10_000), trial=trial)
    made = estimate_ate(study.frame, **asked, dataset=dataset.name, seed=1)
    told = f"dummy data: made-up people with a known effect of {study.effect:g}"
    return replace(made, guarantee=DUMMY_NOTE, warnings=(told, *made.warnings)).to_json()


def _charge_only(order: Order) -> Report:
    """Charge a job that ended without a word: how it ended might depend on records."""
    from private_ate.privacy.ledger.ledger import Charge
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
    from private_ate.service.store.requests import find_request, move
    from private_ate.service.ticks import visible_time

    def on_charge(execute: Any) -> None:  # noqa: ANN401  # Execute
        row = find_request(execute, order.request)
        _require_population(execute, row.dataset)
        if row.plan != plan or not move(
            execute, row.id, "queued", "charged", order.worker, claim=order.claim,
            facts={"plan": plan},
        ):  # fmt: skip
            msg = "the request was withdrawn, or is another worker's; nothing was spent"
            raise LedgerError(msg)

    def on_release(execute: Any) -> None:  # noqa: ANN401  # Execute
        from private_ate.service.desk import now

        row = find_request(execute, order.request)
        visible = visible_time(row.due, now(), order.tick)
        if not move(
            execute, row.id, "charged", "done", order.worker, claim=order.claim, visible=visible
        ):
            msg = "the request was given up; its release is not kept"
            raise LedgerError(msg)

    at = datetime.fromtimestamp(submitted / 1000, UTC).isoformat(timespec="seconds")
    return Approval(plan, at, on_charge, on_release)


def _require_population(execute: Any, name: str) -> None:  # noqa: ANN401  # Execute
    """Refuse a charge that the data sets of a population together cannot pay.

    Runs inside the charging transaction, after the data set's own account has paid.
    """
    from private_ate.privacy.ledger.cost import BudgetUnits
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


def _ledger(store: Any) -> Any:  # noqa: ANN401  # Store, Ledger
    from private_ate.privacy.ledger.ledger import Ledger

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
