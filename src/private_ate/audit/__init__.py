"""The audit: whether this installation's noise keeps what releases promise.

Three looks at the code that is installed here, each able to fail: the samplers' distributions,
every noisy step of every method on worst-case neighbours, and whole releases of those neighbours.
A pass is no proof; a finding is one, up to the stated confidence.
"""

from private_ate.audit.run import Finding, run_audit

__all__ = ["Finding", "run_audit"]
