"""A referee for all methods of both levels, on families that none of them was tuned on.

Families, runs, verdicts and the page are modules of their own. Nothing here is private.
"""
