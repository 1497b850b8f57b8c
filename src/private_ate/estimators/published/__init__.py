"""The paper's method: propensity score matching with a limit on reuse, at both levels."""
