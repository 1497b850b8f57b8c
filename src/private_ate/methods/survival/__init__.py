"""Time to an event with censoring: an outcome kind that runs a method on pseudo-values.

A share of ε releases a histogram of times and events per arm, from which survival and censoring
curves follow (`first_step`, by the numerics of `curves`). They turn each row's time and event into
a bounded number whose mean is the restricted mean survival time or the risk, and the rest of ε
estimates its effect (`method`): at label level with the weights of the calibrated method, at sample
level by the method that the request names.
Each module may be changed alone; cells, tables and sensitivities rest on docs/proofs/survival.md.
"""
