"""The rules that most numbers of a part share."""

from __future__ import annotations

__all__ = ["require_fractions", "require_not_negative", "require_positive"]


def require_positive(part: object, *fields: str) -> None:
    """Raise ``ValueError`` naming field, value and rule unless each field of ``part`` is positive and finite."""
    for name in fields:
        value = getattr(part, name)
        if not 0 < value < float("inf"):
            raise ValueError(f"{name}: {value} must be positive and finite")


def require_not_negative(part: object, *fields: str) -> None:
    """Raise ``ValueError`` naming field, value and rule unless each field of ``part`` is zero or above, and finite."""
    for name in fields:
        value = getattr(part, name)
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name}: {value} must be zero or positive, and finite")


def require_fractions(part: object, *fields: str) -> None:
    """Raise ``ValueError`` naming field, value and rule unless each field of ``part`` is in (0, 1]."""
    for name in fields:
        value = getattr(part, name)
        if not 0 < value <= 1:
            raise ValueError(f"{name}: {value} must be a fraction in (0, 1]")
