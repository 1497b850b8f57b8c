"""From a file or a frame to encoded columns, read value by value.

`tables` and `streams` are the two forms of a table, in memory and on disk; `encoding` turns chunks
of either into numbers, and both give the same release (tests/unit/data): change them together.
To be changed alone: a format (`csv_file` with `csv_records`, `formats`, `workbooks`),
`requested_columns`, `missing_rules`. No error, warning or shape may follow a private value.
"""
