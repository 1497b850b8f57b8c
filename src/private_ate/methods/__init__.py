"""The methods, and what they share.

A package for each method, whose record in `registry` names its functions; what composes with what
is one table, `composition`. `request` holds what was asked. Methods do not know each other: what
two of them need is a module here (`public_arms`, `effect_tables`). A method may be changed alone;
`request` and `composition` are changed with `parameters` and docs/methods.md.
"""
