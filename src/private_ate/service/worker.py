"""The worker's loop: claim a request, run it in a process of its own, once, and write down its end.

A claim is exclusive: it is made under the store's write lock, a data set has one at a time, and the
job's charge and release are tied to it. A job that ends without a report is charged if it was not,
and its request is lost: what happened might depend on records, and a second try would be a second
look for one price.
"""

from __future__ import annotations

import json
import logging
import math
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO, cast

from private_ate.ledger.stores import Execute, Store, one, update
from private_ate.service.histories import publish_heads
from private_ate.service.job import UNAVAILABLE, Aim, Order, Report
from private_ate.service.release_times import job_seconds, visible_time
from private_ate.service.store import catalogue, requests
from private_ate.service.store.events import now
from private_ate.service.store.requests import RequestRow
from private_ate.service.vocabulary import State

log = logging.getLogger("private_ate.service.worker")

LEASE: Final = 30_000  # milliseconds without a beat after which a worker counts as dead
_BEAT: Final = 5_000
_AGAIN: Final = 60_000  # milliseconds after which a file that was not as declared is checked again
_UNCHECKED: Final = "the check of its file ended without a finding; is there memory enough for it?"
_NOTHING: Final = "it ended without a release"
_LOST: Final = f"{_NOTHING}; what it cost stays spent"
_NEXT: Final = (
    "SELECT r.id FROM service_requests r WHERE r.state = 'queued' AND r.claim = '' "
    "AND r.start <= ? AND r.dummy = ? AND NOT EXISTS (SELECT 1 FROM service_requests o WHERE "
    "o.dataset = r.dataset AND o.dummy = r.dummy AND o.claim <> '' "
    "AND o.state IN ('queued', 'charged')) ORDER BY r.start, r.id LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What only a worker knows: the folder of the records, the key of their digests, its limits."""

    store: str
    data: Path
    key: str = field(repr=False)
    heads: Path
    tick: float = 60.0
    memory: int = 8 << 30
    seconds: int = 3600


@dataclass(slots=True)
class Worker:
    """One worker: one job about records and one about made-up data at a time.

    Several may share a store.
    """

    store: Store
    settings: WorkerSettings
    name: str
    clock: Callable[[], int] = now
    _beaten: int = 0
    _published: int = 0
    _checked: dict[str, int] = field(default_factory=dict)

    def run(self, stop: threading.Event, pause: float = 0.2) -> None:
        """Work until asked to stop; the jobs at hand are finished first.

        Made-up data has a thread of its own, so that it neither delays answers about records nor
        shows by its own times how long they take.
        """
        self.abandon_claims(self.name)
        dummies = threading.Thread(target=self._work, args=(stop, pause), kwargs={"dummy": True})
        dummies.start()
        try:
            self._work(stop, pause, dummy=False)
        finally:
            stop.set()
            dummies.join()

    def _work(self, stop: threading.Event, pause: float, *, dummy: bool) -> None:
        while not stop.is_set():
            self.beat()
            if dummy:  # here no time depends on records
                self.publish()
                self.check_files()
            if not self.step(dummy=dummy):
                stop.wait(pause)

    def step(self, *, dummy: bool = False) -> bool:
        """Do the next request about records, or about made-up data; False if there is none."""
        row = self.claim(dummy=dummy)
        if row is None:
            return False
        report = self._run(row, "estimate")
        self._finish(row, report)
        publish_heads(self.store, self.settings.heads)
        return True

    def publish(self) -> None:
        """Write into the history what workers did with requests whose answers have appeared."""
        since, moment = self._published - _BEAT, self.clock()
        with self.store.snapshot() as execute:
            found = requests.unpublished(execute, since, moment)
        if found:
            with self.store.transaction() as execute:
                requests.publish_steps(execute, since, moment)
        self._published = moment

    def check_files(self) -> None:
        """Compare files with what was declared: new ones at once, others again after a minute."""
        moment, settings = self.clock(), self.settings
        with self.store.snapshot() as execute:
            unchecked = catalogue.unchecked_datasets(execute)
        for dataset in unchecked:
            if moment - self._checked.get(dataset.name, -_AGAIN) < _AGAIN:
                continue
            self._checked[dataset.name] = moment
            order = Order(
                settings.store, dataset.name, "", self.name, settings.tick,
                str(settings.data.resolve()), dataset.source, memory=settings.memory,
                seconds=settings.seconds, parent=os.getpid(), aim="check",
            )  # fmt: skip
            report = self._start(order)
            problem = _UNCHECKED if report is None or report.end != "done" else report.reason
            with self.store.transaction() as execute:
                catalogue.write_file_check(execute, dataset.name, self.name, problem, moment)
            if problem:
                log.error("data set %s is not as declared: %s", dataset.name, problem)

    def claim(self, *, dummy: bool = False) -> RequestRow | None:
        """Take the request whose slot began first, if its data set is free."""
        with self.store.snapshot() as execute:  # the write lock is for those who find something
            if one(execute, _NEXT, self.clock(), int(dummy)) is None:
                return None
        with self.store.transaction() as execute:
            found = one(execute, _NEXT, self.clock(), int(dummy))
            if found is None:
                return None
            name = str(found[0])
            self._beat(execute)
            where = "id = ? AND state = 'queued' AND claim = ''"
            self._write_claim(execute, where, name)
            return requests.find_request(execute, name)

    def beat(self) -> None:
        """Say that the worker lives; end the claims of workers that have not for long."""
        moment = now()
        if moment - self._beaten < _BEAT:
            return
        with self.store.transaction() as execute:
            self._beat(execute)
            dead = execute(
                "SELECT DISTINCT r.worker FROM service_requests r LEFT JOIN service_workers w "
                "ON w.name = r.worker WHERE r.claim <> '' AND r.state IN ('queued', 'charged') "
                "AND r.worker <> ? AND COALESCE(w.beat, 0) < ?",
                (self.name, moment - LEASE),
            ).rows
        for (name,) in dead:
            self.abandon_claims(str(name))

    def abandon_claims(self, worker: str) -> None:
        """Give up what a worker that is gone had claimed: charged, and lost."""
        with self.store.snapshot() as execute:
            left = execute(
                "SELECT id FROM service_requests WHERE worker = ? AND claim <> '' "
                "AND state IN ('queued', 'charged')",
                (worker,),
            ).rows
        for (name,) in left:
            row = self._take_over(str(name), worker)
            if row is not None:
                log.warning("request %s was left by a worker that is gone", row.id)
                self._finish(row, None)

    def _take_over(self, name: str, worker: str) -> RequestRow | None:
        """Change the claim, so that a job which still runs can neither charge nor keep anything."""
        with self.store.transaction() as execute:
            where = "id = ? AND worker = ? AND state IN ('queued', 'charged')"
            done = self._write_claim(execute, where, name, worker)
            return requests.find_request(execute, name) if done == 1 else None

    def _write_claim(self, execute: Execute, where: str, *held: str) -> int:
        claim = secrets.token_hex(16)
        return update(execute, "service_requests", where, *held, claim=claim, worker=self.name)

    def _beat(self, execute: Execute) -> None:
        self._beaten = now()
        execute(
            "INSERT INTO service_workers (name, beat) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET beat = excluded.beat",
            (self.name, self._beaten),
        )

    def _run(self, row: RequestRow, aim: Aim) -> Report | None:
        """Run one process; None if it ended without a report."""
        order = self._order(row, aim)
        return Report("refused", "ledger", UNAVAILABLE) if order is None else self._start(order)

    def _start(self, order: Order) -> Report | None:
        """Run one process, beating on; one that takes too long is killed."""
        read, write = os.pipe()
        job = subprocess.Popen(  # noqa: S603  # our own module
            [sys.executable, "-m", "private_ate.service.job", str(write)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(write,), text=True,
        )  # fmt: skip
        os.close(write)
        texts: list[str] = []
        reader = threading.Thread(target=_read_all, args=(read, texts))
        reader.start()
        with suppress(BrokenPipeError), cast("TextIO", job.stdin) as stdin:
            json.dump(asdict(order), stdin)
        give_up = time.monotonic() + order.seconds
        while job.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                job.wait(timeout=_BEAT / 1000)
            self.beat()
            if time.monotonic() > give_up:
                job.kill()
        reader.join()
        try:
            return Report(**json.loads("".join(texts)))
        except (ValueError, TypeError):
            return None

    def _order(self, row: RequestRow, aim: Aim) -> Order | None:
        settings = self.settings
        with self.store.snapshot() as execute:
            dataset = catalogue.find_dataset(execute, row.dataset)
        folder = source = ""
        if not row.dummy and aim == "estimate":
            folder, source = str(settings.data.resolve()), dataset.source
            if catalogue.open_source(settings.data, source) is None:
                log.error("data set %s has no file below the worker's folder", dataset.name)
                return None
        wanted = float(settings.seconds)  # a charge alone reads no records and must come to its end
        if aim == "estimate":
            wanted = job_seconds(row.ends - row.start, is_dummy=bool(row.dummy))
        return Order(
            settings.store, row.id, row.claim, self.name, settings.tick, folder, source,
            settings.key, settings.memory, min(math.ceil(wanted), settings.seconds), os.getpid(),
            aim,
        )  # fmt: skip

    def _finish(self, row: RequestRow, report: Report | None) -> None:
        """Write down how a job ended; by the state that the job itself reached in the ledger."""
        if (report is None or report.end == "ended") and not row.dummy:
            with self.store.snapshot() as execute:
                state = requests.find_request(execute, row.id).state
            if state == "queued":
                report = self._run(row, "charge")
        found = report or Report("ended")
        with self.store.transaction() as execute:
            state = requests.find_request(execute, row.id).state
            visible = visible_time(row.due, now(), self.settings.tick)
            after: State = "refused"
            given: dict[str, Any] = {
                "code": found.code or "ended", "reason": found.reason or _NOTHING,
            }  # fmt: skip
            if state == "charged":
                after, given = "lost", {"code": "lost", "reason": _LOST}
            elif found.end == "done" and row.dummy:
                after, given = "done", {"body": found.body}
            elif "nothing was spent" not in given["reason"]:
                given["reason"] += "; nothing was spent"
            if state in ("charged", "queued"):
                requests.move(
                    execute, row.id, state, after, self.name, claim=row.claim, visible=visible,
                    **given,
                )  # fmt: skip
        log.info("request %s has ended", row.id)
        if visible > row.due:
            log.warning("request %s was late", row.id)


def _read_all(pipe: int, texts: list[str]) -> None:
    """Read a pipe to its end, whatever comes."""
    with os.fdopen(pipe, encoding="utf-8", errors="replace") as file:
        texts.append(file.read())
