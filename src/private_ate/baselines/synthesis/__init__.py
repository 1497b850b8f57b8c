"""Synthetic records: what AIM and PrivSyn share.

`records` encodes rows and has the options of both; `graphical_model` is AIM's model, `marginals`
is PrivSyn's: each of these two may be changed alone. All but counting works on released numbers.
"""
