"""Several sites: releases that were made apart, pooled into one effect without spending more.

`combine` is the entry, reads every site's variances and pools every row of the table;
`compatibility` refuses releases of different questions or of the same persons and says what is
promised together, `pooling` is meta-analysis of arrays, `values` holds the result and is its JSON.
"""
