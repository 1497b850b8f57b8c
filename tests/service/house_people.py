"""A service in a folder for tests: its people, its clinic, its desk and its worker."""

from dataclasses import dataclass, field
from pathlib import Path

from private_ate.datasets.clinic import DOMAIN, draw_clinic
from private_ate.service.desk import Desk, now
from private_ate.service.policy import Policy
from private_ate.service.question import Question
from private_ate.service.store.catalogue import Dataset, add_dataset, add_population
from private_ate.service.store.people import Actor, add_user, issue_token
from private_ate.service.store.tables import create
from private_ate.service.worker.loop import Bench, Worker

COLUMNS = (*DOMAIN.covariates, "drug", "pressure_drop")
ALICE, BOB = Actor("alice", "analyst"), Actor("bob", "analyst")
CAROL, DAVE = Actor("carol", "curator"), Actor("dave", "curator")
OLGA = Actor("olga", "auditor")
CLINIC = Dataset(
    "clinic", "patients", "label", DOMAIN, COLUMNS, 400, 1, "clinic.csv", "", False,
    Policy(epsilon_per_month="100"),
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

    def clock(self):
        return now() + self.ahead

    @property
    def desk(self):
        return Desk(self.store, tick=1.0, grace=self.grace, clock=self.clock)

    def worker(self, name="one"):
        bench = Bench(
            self.location, self.folder / "data", "ab" * 32, self.folder / "heads.ndjson", tick=1.0
        )
        return Worker(self.store, bench, name)

    def ask(self, key="k", actor=ALICE, **changes):
        plain = {"dataset": "clinic", "epsilon": "0.1", **changes}
        return self.desk.submit(actor, Question.read(plain), key)

    def add(self, dataset):
        with self.store.transaction() as execute:
            add_dataset(execute, dataset, "carol")

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
