"""How a text becomes a value."""

from __future__ import annotations

from typing import Any

__all__ = ["read_text"]


def read_text(text: str) -> Any:
    """A value as people type it: ``8``, ``0.5``, ``true``, ``[a, b]``, ``{37: 1.3}``; else the text itself.

    Names in lists and mappings need no quotes; what stands in a mapping is parted by ``:`` or ``=``.
    """
    text = text.strip()
    inner = text[1:-1]
    if text[:1] + text[-1:] == "[]":
        return [read_text(item) for item in inner.split(",") if item.strip()]
    if text[:1] + text[-1:] == "{}":
        pairs = (_pair(item) for item in inner.split(",") if item.strip())
        return {str(read_text(name)): read_text(value) for name, value in pairs}
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return inner
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _pair(item: str) -> tuple[str, str]:
    at = max(item.rfind(":"), item.rfind("="))
    return (item[:at], item[at + 1 :]) if at > 0 else (item, "")
