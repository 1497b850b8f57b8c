"""The DoWhy adapter under the path that users import; `integrations.dowhy` holds it."""

from private_ate.integrations.dowhy import PrivateATE

__all__ = ["PrivateATE"]
