"""Dataclasses as mappings, and mappings as lines of dotted keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["dotted_lines", "plain_fields"]


def dotted_lines(answer: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Dotted key and value of everything in an answer, as people read it."""
    lines: list[tuple[str, str]] = []
    for key, value in answer.items():
        if isinstance(value, Mapping):
            lines += dotted_lines(value, f"{prefix}{key}.")
        elif isinstance(value, int) and not isinstance(value, bool):
            lines.append((f"{prefix}{key}", f"{value:,}"))
        elif isinstance(value, list | tuple):
            lines.append((f"{prefix}{key}", ", ".join(map(str, value))))
        else:
            lines.append((f"{prefix}{key}", str(value)))
    return lines


def plain_fields(value: Any) -> Any:
    """A dataclass as a mapping, with the dataclasses in it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_fields(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain_fields(item) for key, item in value.items()}
    return value
