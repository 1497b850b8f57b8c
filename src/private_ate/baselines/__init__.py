"""Competitors: methods of other authors, each with the promise that it can keep.

One file per method, registered by name in `methods.registry`; nothing else imports them. A
method may be changed alone, with its page in `docs/baselines` and its section of the proofs.
Shared: `steps`, `nuisance_models`, `private_window`, and of AIM and PrivSyn `synthetic_records`;
`graphical_model` is AIM's alone and `marginals` PrivSyn's. After a change of what is shared run
all of `tests/baselines`.
"""
