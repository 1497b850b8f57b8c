"""The paper's figures and tables, and our own comparisons, as experiments that can be rerun.

`catalogue` names the experiments; `plans` makes their grids, `chunks` runs them, `results` sums up;
`claims`, `claims_parameters` and `findings` are sentences, `figures` and `markdown` pictures and
tables. A sentence or figure may be changed alone; a column of results changes with its readers and
`docs/results`. Nothing here is private: errors are measured against the records.
"""
