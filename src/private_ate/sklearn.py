"""The scikit-learn adapter under the path that users import; `integrations.sklearn` holds it."""

from private_ate.integrations.sklearn import PrivateATE

__all__ = ["PrivateATE"]
