"""The service: analysts ask by plan, records stay with the worker, a ledger counts."""
