"""Who pays for a request: the data set's account and the analyst's cap."""

from __future__ import annotations

from private_ate.errors import BudgetError, LedgerError
from private_ate.privacy.ledger.binding import Charge, Uncapped
from private_ate.privacy.ledger.chain import Account
from private_ate.privacy.ledger.cost import BudgetUnits
from private_ate.privacy.ledger.names import fold_name
from private_ate.privacy.ledger.store import Execute, read_accounts

__all__ = ["accounts_of", "add_account", "paying_accounts", "refusal", "take"]


def accounts_of(execute: Execute, dataset: str) -> list[Account]:
    """Return the accounts of a data set, or say which data sets there are."""
    accounts = read_accounts(execute)
    named = [account for account in accounts if account.dataset == dataset]
    if not named:
        known = ", ".join(repr(account.dataset) for account in accounts if not account.analyst)
        msg = f"the ledger has no data set {dataset!r}; it has {known or 'none'}"
        raise LedgerError(msg)
    return named


def paying_accounts(
    accounts: list[Account], charge: Charge, uncapped: Uncapped | None
) -> list[Account]:
    """Return the data set's account and the analyst's cap; without one, as the ledger says.

    All spellings of a name share its cap. Where somebody has a cap, an analyst without one, or
    without a name, is refused unless ``uncapped`` is "allowed": else a cap would hold only those
    who like to be held.
    """
    whole = [account for account in accounts if not account.analyst]
    caps = [account for account in accounts if account.analyst]
    folded = fold_name(charge.analyst)
    same = [account for account in caps if fold_name(account.analyst) == folded]
    # A ledger of version 0.1 may hold two caps that fold alike; then the spelling decides.
    exact = [account for account in same if account.analyst == charge.analyst]
    cap = (exact or same)[:1]
    if cap or not caps or uncapped == "allowed":
        return [*whole, *cap]
    if not folded:
        msg = (
            f"analysts of data set {charge.dataset!r} have caps: say who asks (analyst=); "
            "nothing was spent"
        )
        raise BudgetError(msg, parameter="analyst")
    msg = (
        f"analyst {charge.analyst!r} has no cap in data set {charge.dataset!r}, where analysts "
        "are capped; nothing was spent (its holder may allow others)"
    )
    raise BudgetError(msg, parameter="uncapped")


def add_account(execute: Execute, dataset: str, analyst: str, limit: BudgetUnits) -> None:
    """Open an account with nothing spent."""
    execute(
        "INSERT INTO accounts (dataset, analyst, epsilon_total, delta_total, epsilon_spent, "
        "delta_spent) VALUES (?, ?, ?, ?, 0, 0)",
        (dataset, analyst, limit.epsilon, limit.delta),
    )


def take(execute: Execute, account: Account, cost: BudgetUnits) -> bool:
    """Spend if it fits; the condition is part of the update."""
    answer = execute(
        "UPDATE accounts SET epsilon_spent = epsilon_spent + ?, delta_spent = delta_spent + ? "
        "WHERE dataset = ? AND analyst = ? AND epsilon_spent + ? <= epsilon_total "
        "AND delta_spent + ? <= delta_total",
        (cost.epsilon, cost.delta, account.dataset, account.analyst, cost.epsilon, cost.delta),
    )
    return answer.changed == 1


def refusal(charge: Charge, account: Account) -> BudgetError:
    """Say what was asked, what is left and what to do."""
    whose = f"data set {account.dataset!r}"
    if account.analyst:
        whose = f"analyst {account.analyst!r} in {whose}"
    left = account.left
    advice = "ask for no more than that" if left.epsilon > 0 else "nothing more can be released"
    return BudgetError(
        f"asked for {charge.cost} but {whose} has {left} left of {account.total}; "
        f"{advice}, nothing was spent"
    )
