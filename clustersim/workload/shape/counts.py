"""The rule that the counts of every shape share: whole numbers in a range."""

from __future__ import annotations

__all__ = ["require_counts"]


def require_counts(part: object, *names: str, least: int = 1, most: int = 2**24) -> None:
    """Raise ``ValueError`` naming field, value and rule unless each field is a whole number in the range."""
    for name in names:
        value = getattr(part, name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"{name}: {value!r} must be a whole number from {least} to {most}")
