"""Our label-level method: calibration weights under a cap, then staircase noise.

The public half sees covariates, arms, n, ε and guesses: `design.pose` settles a weight problem per
arm, `weights.weigh` chooses caps and returns `PublicWeights`: integer weights of every arm as a
function of a block of rows (`steps`), the largest of them (`largest`), caps and imbalance. The
private half sees outcomes: `private.add_outcomes` adds up integers that any function makes of a
block, `private.release_quantities` releases linear forms of the arms' sums for a given ε and given
ranges per arm, and `method.estimate_quantities` makes the estimate of them.
`method.estimate_rows` is one user of these, `methods.survival` another: it chooses weights for
its own guess and the variance of its own noise, spends a part of ε on curves, makes a bounded
integer of each row and releases their sums with what is left of ε. `method.predictor` says what to
expect of a release.

Weights (`weights`, `solver`), sums and noise (`private`) and what a release says (`settings`,
`notes`) may be changed alone. What a feature is, its share of variance, the predicted error behind
a cap and what an interval covers must be changed together (`features`, `weights.choose_cap`,
`method.error_variances`), and a sensitivity with docs/proofs/calibrated.md.
"""
