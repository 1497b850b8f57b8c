"""The operations of a service: what each role can do, each as one transaction on the store.

Nothing here opens records, and nothing here computes: plans are predicted from public sizes, and a
request is a row that a worker takes up. Refusals follow public facts alone. Endpoints and pages ask
here, so that a role's right stands in one place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from private_ate.arguments import check_name
from private_ate.datasets.dummy import DummyStudy, draw_dummy
from private_ate.errors import ArgumentError, LedgerError
from private_ate.ledger.accounts import find_entry, read_entries
from private_ate.ledger.chain import Entry, canonical
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.stores import Execute, Store, insert, one, update
from private_ate.service.histories import RecentCheck, first_hidden
from private_ate.service.limits import Limits, Shares
from private_ate.service.policy import Balance, Dataset, Policy, Population, Question
from private_ate.service.release_times import dummy_bound, running_bound
from private_ate.service.settling import Planned, Settled, job_size, plan_question, settle_question
from private_ate.service.store import catalogue, users
from private_ate.service.store.catalogue import find_dataset, find_population
from private_ate.service.store.events import Event, are_two_persons, now, read_events
from private_ate.service.store.group_commit import Group
from private_ate.service.store.requests import (
    RequestRow,
    approvers_of,
    assign_slots,
    count_requests,
    end_with,
    find_request,
    insert_request,
    list_requests,
    move,
    objections_to,
    spent_and_reserved,
)
from private_ate.service.vocabulary import (
    Actor,
    BudgetRefusal,
    Conflict,
    Forbidden,
    Missing,
    NotReady,
    State,
)

# A curator chooses a reason: a text of their own could reveal what they saw.
REASONS: Final = {
    "purpose": "the purpose is not one that this data set serves",
    "cost": "it takes more of the population's budget than its purpose justifies",
    "method": "another method or estimand is wanted",
    "again": "the question was answered already",
}


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that the web process does; ``tick`` and ``grace`` are seconds.

    ``manages`` says whether data sets, policies and approvals can be written here; not where the
    web has a role of its own in the database.
    """

    store: Store
    tick: float = 60.0
    grace: float = 10.0
    clock: Callable[[], int] = now
    manages: bool = True
    limits: Limits = field(default_factory=Limits)
    shares: Shares = field(default_factory=Shares, repr=False, compare=False)
    group: Group = field(init=False, repr=False, compare=False)
    checks: RecentCheck = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", Group(self.store))
        object.__setattr__(self, "checks", RecentCheck(self.store, self.clock))

    # What there is ------------------------------------------------------------------------------

    def datasets(self) -> list[tuple[Dataset, Balance]]:
        """Return the catalogue with what is left of each budget."""
        with self.store.snapshot() as execute:
            populations = {item.name: item for item in catalogue.list_populations(execute)}
            balances = {
                name: self._balance(execute, population) for name, population in populations.items()
            }
            return [(item, balances[item.population]) for item in catalogue.list_datasets(execute)]

    def dataset(self, name: str) -> tuple[Dataset, Balance]:
        """Return one data set with what is left of its population's budget."""
        with self.store.snapshot() as execute:
            found = find_dataset(execute, name)
            return found, self._balance(execute, find_population(execute, found.population))

    def file_problems(self) -> dict[str, str | None]:
        """Return what the worker found wrong with each open data set's file; None if not yet seen.

        The newest answer that could not be given for want of a usable file counts as well.
        """
        with self.store.snapshot() as execute:
            found: dict[str, str | None] = {}
            for dataset in catalogue.list_datasets(execute):
                if dataset.closed:
                    continue
                problem = catalogue.last_file_problem(execute, dataset.name)
                failed = catalogue.unavailable_since(execute, dataset.name, self.clock())
                found[dataset.name] = problem or (failed or problem)
            return found

    def populations(self) -> list[Balance]:
        """Return what is left of each population's budget."""
        with self.store.snapshot() as execute:
            return [self._balance(execute, item) for item in catalogue.list_populations(execute)]

    def draw_dummy(self, actor: Actor, name: str, rows: int) -> DummyStudy:
        """Draw made-up data from the declared domain alone, in the actor's turn."""
        found, _ = self.dataset(name)
        with self.shares.turn(actor.name):
            return draw_dummy(found.domain, rows)

    def _balance(self, execute: Execute, population: Population) -> Balance:
        gone = spent_and_reserved(execute, population.name, self.clock())
        return Balance(population.name, population.total, population.total - gone)

    # Asking -------------------------------------------------------------------------------------

    def settle(self, question: Question) -> Settled:
        """Check a question without keeping it."""
        with self.store.snapshot() as execute:
            dataset = find_dataset(execute, question.dataset)
        return settle_question(question, dataset)

    def plan(self, actor: Actor, question: Question, half_width: float | None = None) -> Planned:
        """Say what a question would cost and what to expect of its answer; spends nothing."""
        actor.require("analyst", "curator")
        settled = self.settle(question)
        with self.shares.turn(actor.name):
            plan = plan_question(settled, half_width)
        with self.store.snapshot() as execute:
            objections = objections_to(
                execute, actor.name, settled.dataset, settled.asks, self.clock()
            )
        _, balance = self.dataset(settled.dataset.name)
        return Planned.of(settled, plan, balance, objections)

    def submit(self, actor: Actor, question: Question, key: str) -> RequestRow:
        """Keep a request; the same key and plan give the same request again.

        One transaction looks at what is left, asks the policy and queues the request or lets it
        wait. Requests that are under way count as spent, so no two share the last ε.
        """
        actor.require("analyst", write=True)
        check_name("idempotency key", key)
        settled = self.settle(question)
        words = f"{actor.name}\0{key}".encode("utf-8", "surrogatepass")
        name = "r" + hashlib.sha256(words).hexdigest()[:31]
        bill = settled.bill
        moment = self.clock()
        fresh = RequestRow(
            name, settled.dataset.name, actor.name, canonical(question.plain), bill.plan,
            bill.cost.epsilon, bill.cost.delta, int(question.dummy), "planned", "", "", moment,
            0, 0, 0, 0, 0, "[]", "", "", "",
        )  # fmt: skip

        def keep(execute: Execute) -> RequestRow:
            if one(execute, "SELECT id FROM service_requests WHERE id = ?", name) is None:
                self._keep(execute, actor, fresh, question, settled)
            known = find_request(execute, name)
            if (known.plan, known.dummy, known.dataset) != (fresh.plan, fresh.dummy, fresh.dataset):
                msg = "this idempotency key was used for another plan; choose a new one"
                raise Conflict(msg)
            return known

        return self.group.run(keep)

    def _keep(
        self,
        execute: Execute,
        actor: Actor,
        fresh: RequestRow,
        question: Question,
        settled: Settled,
    ) -> None:
        """Keep a new request, queued or waiting, if its data set and its budget allow it."""
        dataset = find_dataset(execute, fresh.dataset)
        if dataset.closed:
            msg = f"data set {dataset.name!r} is closed; it takes no more requests"
            raise Conflict(msg)
        under_way, waiting, a_day = count_requests(
            execute, actor.name, dummy=question.dummy, moment=fresh.submitted
        )
        self.limits.require_room(under_way, a_day, dummy=question.dummy)
        against: tuple[str, ...] = ()
        if question.dummy:
            allowed = dataset.policy.methods
            if settled.method.name not in allowed:
                msg = (
                    f"made-up data of data set {dataset.name!r} is answered by the methods of its "
                    f"policy ({', '.join(allowed) or 'none'}), not by {settled.method.name!r}"
                )
                raise Conflict(msg)
        else:
            if catalogue.last_file_problem(execute, dataset.name):
                msg = (
                    f"the file of data set {dataset.name!r} is not as declared; its curators see "
                    "what is wrong, and nothing was spent"
                )
                raise Conflict(msg)
            self._require_budget(execute, dataset, fresh.cost)
            against = objections_to(execute, actor.name, dataset, settled.asks, self.clock())
        if against:
            self.limits.require_room_to_wait(waiting)
        insert_request(execute, fresh)
        if not against:
            self._approve(execute, fresh, settled, "policy")
            return
        reasons = "; ".join(against)
        facts = {"why": reasons}
        move(execute, fresh.id, "planned", "waiting", "policy", reason=reasons, facts=facts)

    def _require_budget(self, execute: Execute, dataset: Dataset, cost: BudgetUnits) -> None:
        balance = self._balance(execute, find_population(execute, dataset.population))
        if not cost.fits(balance.left):
            msg = (
                f"asked for {cost} but population {balance.population!r} has {balance.left} left "
                f"of {balance.total}; nothing was spent"
            )
            raise BudgetRefusal(msg)

    def _approve(self, execute: Execute, row: RequestRow, settled: Settled, actor: str) -> None:
        """Approve and queue; the slot of the work follows from public numbers."""
        moment = self.clock()
        bound = dummy_bound if row.dummy else running_bound
        length = round(1000 * bound(job_size(settled)))
        names = json.dumps([*row.has_approved, actor])
        facts = {"plan": row.plan}
        move(execute, row.id, row.state, "approved", actor, facts=facts, approvers=names, reason="")
        move(
            execute, row.id, "approved", "queued", actor,
            queued=moment, start=moment + 1, ends=moment + 1 + length,
        )  # fmt: skip
        assign_slots(execute, row, moment, self.grace, self.tick)

    # Deciding -----------------------------------------------------------------------------------

    def approve(self, actor: Actor, name: str, plan: str) -> RequestRow:
        """Approve the plan with this hash; with two persons' rule the second one queues it."""
        self.require_management(actor)
        row = self.show(actor, name)
        settled = self.settle(row.asked)
        if settled.bill.plan != row.plan:
            msg = "the data set was declared anew since; this plan is no more"
            raise Conflict(msg)
        with self.store.transaction() as execute:
            row = find_request(execute, name)
            _require_waiting(row)
            if plan != row.plan:
                msg = "this is not the hash of the plan that waits; look at it again"
                raise Conflict(msg)
            dataset = find_dataset(execute, row.dataset)
            if dataset.closed:
                msg = f"data set {dataset.name!r} is closed; nothing more is approved for it"
                raise Conflict(msg)
            approved = approvers_of(execute, row)
            if actor.name in approved:
                msg = "you have approved it; another curator decides"
                raise Conflict(msg)
            both = (*approved, actor.name)
            is_enough = not dataset.policy.two_persons or are_two_persons(execute, both)
            if approved and not is_enough:
                msg = (
                    "who issues an account or a token can act in its name, and one of you issued "
                    "to the other; another person decides"
                )
                raise Conflict(msg)
            insert(execute, "service_approvals", request=row.id, plan=row.plan, approver=actor.name)
            if not is_enough:
                names = json.dumps([actor.name])
                update(execute, "service_requests", "id = ?", name, approvers=names)
                return find_request(execute, name)
            self._require_budget(execute, dataset, row.cost)
            self._approve(execute, row, settled, actor.name)
            return find_request(execute, name)

    def require_management(self, actor: Actor) -> None:
        """Refuse what only a curator may write, and only the worker's side where it is apart."""
        actor.require("curator", write=True)
        if not self.manages:
            msg = (
                "data sets, policies and approvals are written on the worker's side of this "
                "service: serve add, serve policy, serve approve"
            )
            raise Forbidden(msg)

    def add_dataset(
        self, actor: Actor, new: Dataset, epsilon: str | None, delta: str = "0"
    ) -> None:
        """Register a data set, and its population if a budget is given."""
        self.require_management(actor)
        with self.store.transaction() as execute:
            if epsilon is not None:
                catalogue.add_population(
                    execute, new.population, new.level, epsilon, delta, actor.name
                )
            catalogue.add_dataset(execute, new, actor.name)

    def usual_policy(self, population: str) -> Policy:
        """Return the policy of a new data set about a population."""
        with self.store.snapshot() as execute:
            return catalogue.usual_policy(execute, population)

    def close_dataset(self, actor: Actor, name: str) -> None:
        """Take no more requests for a data set."""
        actor.require("curator", write=True)
        with self.store.transaction() as execute:
            catalogue.close_dataset(execute, name, actor.name, self.clock())

    def set_policy(self, actor: Actor, name: str, policy: Policy) -> bool:
        """Replace what a data set's policy approves; False if a second person has to agree."""
        self.require_management(actor)
        with self.store.transaction() as execute:
            return catalogue.set_policy(execute, name, policy, actor.name)

    def proposed_policy(self, name: str) -> tuple[str, Policy] | None:
        """Return who proposed a policy that waits for a second person, and the policy."""
        with self.store.snapshot() as execute:
            return catalogue.proposed_policy(execute, name)

    # Users --------------------------------------------------------------------------------------

    def tokens(self, actor: Actor) -> list[users.Token]:
        """Return all tokens without their secrets."""
        actor.require("curator")
        with self.store.snapshot() as execute:
            return users.list_tokens(execute)

    def users(self, actor: Actor) -> list[users.User]:
        """Return all users, those who were revoked too."""
        actor.require("curator")
        with self.store.snapshot() as execute:
            return users.list_users(execute, self.clock())

    def issue_token(self, actor: Actor, owner: str, role: str, scope: str, days: int) -> str:
        """Return a new token, of a new user or of one who is there; it is shown once."""
        actor.require("curator", write=True)
        with self.store.transaction() as execute:
            moment = self.clock()
            users.add_user(execute, owner, role, actor.name, moment)
            return users.issue_token(execute, owner, actor.name, moment, days=days, scope=scope)

    def revoke_token(self, actor: Actor, name: str) -> None:
        """Revoke a token with its sessions."""
        actor.require("curator", write=True)
        with self.store.transaction() as execute:
            users.revoke_token(execute, name, actor.name, self.clock())

    def revoke(self, actor: Actor, name: str) -> None:
        """Revoke a user with all tokens, sessions, approvals and requests that have not started."""
        actor.require("curator", write=True)
        with self.store.transaction() as execute:
            moment = self.clock()
            users.revoke_user(execute, name, actor.name, moment)
            for row in end_with(execute, name, actor.name, moment):
                assign_slots(execute, row, moment, self.grace, self.tick)

    # Requests -----------------------------------------------------------------------------------

    def refuse(self, actor: Actor, name: str, reason: str) -> RequestRow:
        """Refuse a request that waits, for one of the listed reasons."""
        actor.require("curator", write=True)
        if reason not in REASONS:
            msg = f"the reason is one of {', '.join(REASONS)}"
            raise ArgumentError(msg)
        with self.store.transaction() as execute:
            row = find_request(execute, name)
            _require_waiting(row)
            move(
                execute, name, "waiting", "refused", actor.name, code=reason,
                reason=REASONS[reason], visible=self.clock(), facts={"why": reason},
            )  # fmt: skip
            return find_request(execute, name)

    def cancel(self, actor: Actor, name: str) -> RequestRow:
        """Cancel a request that has not started; by the clock alone, never by the work."""
        actor.require("analyst", "curator", write=True)
        with self.store.transaction() as execute:
            row = self._own(actor, find_request(execute, name))
            moment = self.clock()
            shown = row.shown(moment)
            early = shown == "waiting" or (shown == "queued" and moment < row.start)
            if not early or row.state not in ("waiting", "queued"):  # a worker's clock may be ahead
                msg = "it has started or ended; what it costs stays spent"
                raise Conflict(msg)
            move(execute, name, row.state, "cancelled", actor.name, visible=moment)
            assign_slots(execute, row, moment, self.grace, self.tick)
            return find_request(execute, name)

    # Reading ------------------------------------------------------------------------------------

    def show(self, actor: Actor, name: str) -> RequestRow:
        """Return a request of the analyst's own, or any to curators and auditors."""
        with self.store.snapshot() as execute:
            return self._own(actor, find_request(execute, name))

    def requests(
        self, actor: Actor, states: tuple[State, ...] = (), *, most: int = 200, skip: int = 0
    ) -> list[RequestRow]:
        """Return requests that the actor may see, the newest first; ``skip`` leaves some out."""
        whose = actor.name if actor.role == "analyst" else ""
        with self.store.snapshot() as execute:
            return list_requests(execute, analyst=whose, states=states, last=most, skip=skip)

    def release(self, actor: Actor, name: str) -> str:
        """Return a release as JSON, once it is visible."""
        with self.store.snapshot() as execute:
            row = self._own(actor, find_request(execute, name))
            if row.state != "done" or not row.is_visible(self.clock()):
                msg = "there is no release of this request, or not yet"
                raise NotReady(msg)
            if row.dummy:
                return row.body
            kept = find_entry(execute, row.dataset, row.id, "release")
        if kept is None:
            msg = "the ledger does not hold this release"
            raise LedgerError(msg)
        return kept.body

    def histories(self, actor: Actor) -> tuple[list[Entry], list[Event]]:
        """Return the public part of the ledger and all events; no records and no secrets."""
        actor.require("curator", "auditor")
        with self.store.snapshot() as execute:
            events, end = read_events(execute), first_hidden(execute, self.clock())
            return [entry for entry in read_entries(execute) if entry.sequence < end], events

    def _own(self, actor: Actor, row: RequestRow) -> RequestRow:
        if actor.role == "analyst" and row.analyst != actor.name:
            msg = "there is no such request"
            raise Missing(msg)
        return row


def _require_waiting(row: RequestRow) -> None:
    if row.state != "waiting":
        msg = "this request does not wait for a decision"
        raise Conflict(msg)
