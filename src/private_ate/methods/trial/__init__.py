"""Trials at sample level: the probability of treatment is known, so no ε is paid to learn it.

`probability` reads what was declared, `plan` splits ε by public numbers, `method` releases, and
`expected` predicts: it follows every change of `plan` and `method`. Sensitivities change together
with docs/proofs/trials.md. Estimates adjusted by covariates are made by `blocks`.
"""
