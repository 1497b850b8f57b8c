"""Time to an event with censoring: an outcome kind that runs a method on pseudo-values.

A share of ε releases a histogram of times and events per arm (`cells`), which tells survival and
censoring curves (`curves`, put together in `first_step`). They turn each row's time and event into
a bounded number whose mean is the restricted mean survival time or the risk (`pseudo`), and the
rest of ε estimates its effect: `label` with the weights of the calibrated method, `sample` with
whatever method the request names. `bands` tells how far curves may be off, `facts` what a release
shows of them, `predict` what to expect of a release. Each module may be changed alone; cells,
tables and sensitivities rest on docs/proofs/survival.md together.
"""
