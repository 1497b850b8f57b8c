"""What the service keeps beside the ledger, in the same database: one transaction covers both."""
