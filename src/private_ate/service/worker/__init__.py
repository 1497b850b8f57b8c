"""The only part that reads records: a loop that claims requests, and a job that runs one of them.

A job is a process of its own under limits, charges at the choke point and prints nothing. Alone:
what a look at a file finds (`tasks`). Together: an `order`, the loop that writes it and the job
that reads it; when a step becomes public, `release_times` and `store.requests`.
"""
