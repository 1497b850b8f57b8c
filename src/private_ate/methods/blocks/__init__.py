"""The sample-level method `blocks`: a model inside each block of rows, one joint private centre.

`plan` decides from public numbers and released counts; `partition` cuts rows by position alone;
`inside`, with `regression` and `terms`, is the model of a block and may be changed alone, as any
function of a block's own rows is private. What a block hands over (`method.block_kernel`), its
bounds, `centres` and `privacy.joint` change together, with docs/proofs/blocks.md and the replay
tests. `counts` and `compare` release sums: a change needs its sensitivity there, in that proof and
in docs/proofs/trials.md. `predict` repeats the method on guesses and follows every change of
`plan`, `centres` and `compare`.
"""
