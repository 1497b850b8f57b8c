"""From a file or a frame to encoded columns, read value by value.

`tables` are columns in memory, `files` opens any format as a table or in chunks of one; `encoding`
turns either into numbers, and both give the same release (tests/unit/data): change them together.
To be changed alone: a format (`csv_file`, `formats`, `workbooks`), `inputs` (which columns are
meant), `missing_rules`. No error, warning or shape may follow a private value.
"""
