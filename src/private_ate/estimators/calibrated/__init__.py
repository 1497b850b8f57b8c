"""Our label-level method: calibration weights under a cap, then staircase noise.

The public half sees covariates, arms, n, ε and guesses: `design.pose` settles a weight problem per
arm, `weights.weigh` chooses caps and returns `PublicWeights`: integer weights of every arm as a
function of a block of rows (`steps`), the largest of them (`largest`), caps and imbalance. The
private half sees outcomes: `private.add_outcomes` adds up integers that any function makes of a
block, `private.release_sums` releases linear forms of the arms' sums for a given ε and given
integer sensitivities per arm. `method.estimate_rows` is one user of both.

Another kind of outcome uses the same halves: pose and weigh with its own guess and the variance of
its own noise, spend a part of ε on what it needs, make a bounded integer of each row, add these up
with the same weights and release the sums with what is left of ε; `method.error_variances` turns
a variance that it knows into those of the arms' means. `predict` says what to expect of a release.
Weights, sums and noise may be changed alone; what a feature is, its share of variance and what an
interval covers must be changed together.
"""
