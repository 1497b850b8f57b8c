"""What a release promises and all noise that keeps the promise.

`noise` is the choke point: every mechanism is a public method of `Noise`, those of baselines in
`baseline_noise`. They draw with `samplers`, `rejection_samplers`, `linf_noise` and `objective`; a
mechanism, its proof in docs/proofs and its entry in tests/mechanisms.py change together.
`composed_noise` composes runs. To be changed alone: `distributions` and `quantiles` (what intervals
read) and `accounting`, public arithmetic; `quantization` with docs/proofs/integers.md; `budget` and
`levels` with the ledger.
"""
