"""A part of the library as people read it: its numbers in the units that its fields name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from clustersim.units import Unit, show

__all__ = ["quantities"]


def quantities(value: Any) -> Any:
    """A dataclass as a mapping, with the dataclasses in it; numbers with a unit as texts, others to six digits."""
    return _told(value, "")


def _told(value: Any, unit: str) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value), include_extras=True)
        return {of.name: _told(getattr(value, of.name), _unit_of(hints[of.name])) for of in fields(value)}
    if isinstance(value, Mapping):
        return {key: _told(item, unit) for key, item in value.items()}
    if isinstance(value, int | float) and not isinstance(value, bool) and unit:
        return show(value, unit)
    return f"{value:.6g}" if isinstance(value, float) else value


def _unit_of(hint: Any) -> str:
    """The unit of a field's type, or of the numbers in it; empty where they have none."""
    found = [of.symbol for of in getattr(hint, "__metadata__", ()) if isinstance(of, Unit)]
    if get_origin(hint) is Annotated and found:
        return found[0]
    return next((unit for part in get_args(hint) if (unit := _unit_of(part))), "")
