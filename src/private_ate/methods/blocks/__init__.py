"""The sample-level method `blocks`: a model inside each block of rows, one joint private centre.

`run` holds a request on a study and counts its rows; `plan` decides from public numbers and these
counts; `partition` cuts rows by position alone. `inside`, with `regression`, is the model of a
block and may be changed alone, as any function of a block's own rows is private. What a block hands
over (`inside.block_kernel`), its bounds, `centres` and `privacy.joint` change together, with
docs/proofs/blocks.md and the replay tests. `run` and `compare` release sums: a change needs its
sensitivity there, in that proof and in docs/proofs/trials.md. `predict` repeats the method on
guesses and follows every change of `plan`, `centres` and `compare`.
"""
