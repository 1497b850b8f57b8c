"""A service in a folder for tests: its people, its clinic, its service and its worker."""

import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from private_ate.datasets import clinic
from private_ate.datasets.clinic import draw_clinic
from private_ate.ledger.ledger import Ledger
from private_ate.service.limits import Limits
from private_ate.service.operations import Service
from private_ate.service.policy import Dataset, Policy, Question
from private_ate.service.store.catalogue import add_dataset, add_population
from private_ate.service.store.events import now
from private_ate.service.store.tables import create
from private_ate.service.store.users import add_user, issue_token
from private_ate.service.vocabulary import Actor
from private_ate.service.worker import Worker, WorkerSettings

# A service is told what a missing outcome counts as.
DOMAIN = replace(clinic.DOMAIN, outcome=clinic.DOMAIN.outcome.with_missing(10.0))
COLUMNS = (*DOMAIN.covariates, "drug", "pressure_drop")
ALICE, BOB = Actor("alice", "analyst"), Actor("bob", "analyst")
CAROL, DAVE = Actor("carol", "curator"), Actor("dave", "curator")
OLGA = Actor("olga", "auditor")
WIDE = Policy(
    epsilon_per_month="1000", epsilon_at_least="0.000001", requests_per_day=10**6,
    methods=("calibrated", "published"),
    estimands=("ate", "att", "atc", "ato", "difference"),  # what `published` may turn to
)  # fmt: skip
CLINIC = Dataset(
    "clinic", "patients", "label", DOMAIN, COLUMNS, 400, 1, "clinic.csv", "", False,
    Policy(epsilon_per_month="100"),
)  # fmt: skip


COMMAND = (
    "from private_ate.service.job import end_with_parent\n"
    f"end_with_parent({os.getpid()})\n"
    "from private_ate.cli.app import main\n"
    "main()"
)


def start_command(*words, stdout=subprocess.DEVNULL, **more):
    """Start a command of ours that ends with this process, however it ends."""
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, words)],
        stdout=stdout, stderr=subprocess.DEVNULL, **more,
    )  # fmt: skip


@dataclass
class House:
    """A service with a clock that can be set forward, and its worker."""

    location: str
    folder: Path
    store: object
    tokens: dict = field(default_factory=dict)
    ahead: int = 0
    grace: float = 0.0
    limits: Limits = field(default_factory=lambda: Limits(1000, 1000, 1000))

    def clock(self):
        return now() + self.ahead

    @property
    def service(self):
        return Service(self.store, tick=1.0, grace=self.grace, clock=self.clock, limits=self.limits)

    @property
    def ledger(self):
        return Ledger(self.store)

    def worker(self, name="one"):
        bench = WorkerSettings(
            self.location, self.folder / "data", "ab" * 32, self.folder / "heads.ndjson", tick=1.0
        )
        return Worker(self.store, bench, name, self.clock)

    def ask(self, key="k", actor=ALICE, **changes):
        plain = {"dataset": "clinic", "epsilon": "0.1", **changes}
        return self.service.submit(actor, Question.read(plain), key)

    def add(self, dataset):
        with self.store.transaction() as execute:
            add_dataset(execute, dataset, "carol")

    def add_lanes(self, count):
        """Add data sets of the clinic's file; each has slots of its own. Return all names."""
        names = [f"clinic-{number}" for number in range(1, count)]
        for name in names:
            self.add(replace(CLINIC, name=name))
        return ["clinic", *names]

    def wait(self, seconds=600):
        self.ahead += 1000 * seconds


def furnish(location, folder, epsilon="1"):
    """Make a store with three roles, one population and the clinic's data set."""
    (folder / "data").mkdir(exist_ok=True)
    draw_clinic(400).frame.write_csv(folder / "data" / "clinic.csv")
    house = House(str(location), folder, create(location))
    with house.store.transaction() as execute:
        for actor in (ALICE, BOB, CAROL, DAVE, OLGA):
            add_user(execute, actor.name, actor.role, "test", now())
            house.tokens[actor.name] = issue_token(execute, actor.name, "test", now())
        add_population(execute, "patients", "label", epsilon, "0", "test")
        add_dataset(execute, CLINIC, "test")
    return house
