"""The only part that reads records: a loop that claims requests, and a job that runs one of them.

A job is a process of its own under limits, charges at the choke point and prints nothing. Alone:
the file check. Together: an order in `job` and the loop that writes it; when a step becomes public,
`release_times` and `store.worker_events`.
"""
