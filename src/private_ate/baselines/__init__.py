"""Competitors: methods of other authors, each with the promise that it can keep.

One file per method, registered by name in `methods.registry`; nothing else imports them. A
method may be changed alone, with its page in `docs/baselines` and its section of the proofs.
Shared: `row_splits`, `perturbation`, `strata`, `estimand_weights`, `nuisance_models`,
`private_window`, `synthesis`; after a change there run all of `tests/baselines`.
"""
