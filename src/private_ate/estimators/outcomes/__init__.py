"""Effects on several outcomes: a run per outcome, drawn together at the choke point."""
