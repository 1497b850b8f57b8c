"""The service's tables in the ledger's database, and the transactions that change them.

Every change writes an event into one hash chain, in the same transaction. Alone: a query that only
reads. Together: a column in `tables`, its dataclass, and the web's rights there; a
step of a request in `vocabulary` and `requests`.
"""
