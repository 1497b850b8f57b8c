"""The budget ledger: charge before computing, store afterwards, never forget either.

`ledger` is what the rest of the package calls. `chain` (history), `accounts` (balances), `binding`
and `roles` (what a data set is bound to) are one invariant, replayed from the history before every
charge: change them together, and ledgers of older versions must still be read.
To be changed alone: `cost`, and a kind of database in `stores`.
"""
