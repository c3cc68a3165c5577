"""The one rule that most numbers of a part share: positive and finite."""

from __future__ import annotations

__all__ = ["require_positive"]


def require_positive(part: object, *fields: str) -> None:
    """Raise ``ValueError`` naming field, value and rule unless each field of ``part`` is positive and finite."""
    for name in fields:
        value = getattr(part, name)
        if not 0 < value < float("inf"):
            raise ValueError(f"{name}: {value} must be positive and finite")
