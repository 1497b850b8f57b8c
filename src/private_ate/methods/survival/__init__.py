"""Time to an event with censoring: an outcome kind that runs a method on pseudo-values.

A share of ε releases a histogram of times and events per arm (`cells`), from which survival and
censoring curves follow (`curves`, put together in `first_step`). They turn each row's time and
event into a bounded number whose mean is the restricted mean survival time or the risk (`pseudo`),
and the rest of ε estimates its effect: `label` with the weights of the calibrated method, at sample
level the method that the request names. `bands` says how far curves may be off, `released_curves`
what a release shows of them, `predict` what to expect of a release. Each module may be changed
alone; cells, tables and sensitivities rest on docs/proofs/survival.md together.
"""
