"""Effects in subgroups of public columns: a run in each, rolled up to margins and to all units.

`rows` divides the study, `method` runs, `settings` makes one report of the runs, and `table` makes
the rows of effects. `table` also serves private subgroups, which the method `blocks` releases by
itself. The words of a warning may be changed alone; which rows are in which subgroup, and which
share of ε each run has, changes together with docs/proofs/subgroups.md and `planning.table`.
"""
