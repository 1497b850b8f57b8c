"""Adapters for other libraries: scikit-learn's estimators and DoWhy's.

Each calls `api.estimate_ate` and holds no row after it. Users import them as `private_ate.sklearn`
and `private_ate.dowhy`, which stay. Each may be changed alone; their parameters come from
`parameters`, to which tests/meta/test_parameters.py holds them.
"""
