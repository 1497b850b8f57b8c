"""The budget ledger: charge before computing, store after, never forget either."""
