"""A release, a plan or a combination as text, page, notebook card, table, figure and data frame.

Every format takes its rows from `effects_table` and its sentences from `phrasing`; what differs is
how they are drawn. Alone: the look of one format. Together: a column or a row (`effects_table`,
then all formats follow), a sentence about the promise (`phrasing`), the functions that values name
in `private_ate.showing`. `markup` builds HTML and SVG, and escapes every text that it did not make.
"""
