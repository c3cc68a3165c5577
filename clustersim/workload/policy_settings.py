"""A policy made from settings that are its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Protocol, TypeVar

from clustersim.faults import BadInput, Fault, nearest_name

__all__ = ["with_settings"]


class _Named(Protocol):
    """A dataclass with a name of its own."""

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]


_Policy = TypeVar("_Policy", bound=_Named)


def with_settings(kind: type[_Policy], settings: Mapping[str, Any], *, table: str) -> _Policy:
    """A policy with some of its fields set.

    Parameters
    ----------
    kind : type
    settings : Mapping[str, Any]
        by field
    table : str
        that the settings stand in, for the faults: ``plan.offload``

    Raises
    ------
    BadInput
        with each setting that the policy does not have
    """
    known = [field.name for field in fields(kind)]
    faults = [
        Fault(
            key=f"{table}.{name}",
            value=value,
            rule=f"is no setting of {kind.name}, which has {', '.join(known)}",
            nearest=nearest_name(name, known),
        )
        for name, value in settings.items()
        if name not in known
    ]
    if faults:
        raise BadInput(faults)
    return kind(**settings)
