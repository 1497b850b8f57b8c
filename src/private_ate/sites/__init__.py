"""Several sites: releases that were made apart, pooled into one effect without spending more.

`combine` is the entry; `compatibility` refuses releases of different questions or of the same
people, `input` reads a site's variances, `pooling` is meta-analysis of arrays, `rows` applies it to
every row of the table, `guarantee` says what is promised together, `values` holds the result and is
its JSON.
"""
