"""A sample-level method: a private score, cells along it, one orthogonal aggregate."""
