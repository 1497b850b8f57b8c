"""A referee for all methods of both levels, on families that none of them was tuned on.

`families` and `outcomes` generate studies, `plan` says how many, `draws` runs and measures,
`verdicts` compares; `tables`, `figures` and `page` show. Families and rules are never changed after
a look at their results; texts and figures may be changed alone. Nothing here is private.
"""
