"""Effects in subgroups: a run per public cell, rolled up to margins and to all units."""
