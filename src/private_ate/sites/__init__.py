"""Several sites: releases that were made apart, pooled into one effect without spending more.

`combine` is the entry and pools every row of the table; `compatibility` refuses releases of
different questions or of the same persons, `input` reads a site's variances, `pooling` is
meta-analysis of arrays, `guarantee` says what is promised together, `values` holds the result and
is its JSON.
"""
