"""What the service refuses: a code, a sentence made of public facts, and an HTTP status."""

from __future__ import annotations

from typing import ClassVar

from private_ate.errors import PrivateAteError

__all__ = [
    "BudgetRefusal",
    "Conflict",
    "Forbidden",
    "Missing",
    "NotReady",
    "ServiceRefusal",
    "TooMany",
    "Unauthorized",
]


class ServiceRefusal(PrivateAteError):  # noqa: N818  # that is what it is
    """The service does not do what was asked; nothing was spent."""

    code: ClassVar[str] = "refused"
    status: ClassVar[int] = 400


class Unauthorized(ServiceRefusal):
    """Who asks did not show a token that is valid now."""

    code: ClassVar[str] = "unauthorized"
    status: ClassVar[int] = 401


class Forbidden(ServiceRefusal):
    """The role or scope of a token does not allow it."""

    code: ClassVar[str] = "forbidden"
    status: ClassVar[int] = 403


class Missing(ServiceRefusal):
    """There is no such thing, or not for who asks."""

    code: ClassVar[str] = "missing"
    status: ClassVar[int] = 404


class Conflict(ServiceRefusal):
    """The state of things does not allow it any more."""

    code: ClassVar[str] = "conflict"
    status: ClassVar[int] = 409


class BudgetRefusal(Conflict):
    """The budget does not allow the request."""

    code: ClassVar[str] = "budget"


class NotReady(Conflict):
    """The answer is not visible yet."""

    code: ClassVar[str] = "not-ready"


class TooMany(ServiceRefusal):
    """More was asked than the service takes in a while."""

    code: ClassVar[str] = "too-many"
    status: ClassVar[int] = 429
