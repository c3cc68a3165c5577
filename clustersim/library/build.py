"""From a card's tables to a frozen object: units read, unknown keys refused, every number traced to a source."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.library.card import Card
from clustersim.units import UnitError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["build"]

T = TypeVar("T")

_ABOUT = ("description", "kind")
_QUANTITY = re.compile(r"\s*[+-]?[\d.]+(?:[eE][+-]?\d+)?\s*[A-Za-zµ][A-Za-zµ /]*")
_INVARIANT = re.compile(r"(?P<field>[A-Za-z_][\w.]*): \S+ (?P<rule>.+)", re.DOTALL)


def build(card: Card, cls: type[T]) -> T:
    """Check a card against a dataclass and make the object.

    The name is the card's unless the card gives one. A field marked with :class:`clustersim.units.Unit` takes a text
    with a unit. Where ``cls`` has ``sources``, each number of the card must have an entry there, under its own dotted
    key or that of a table above it.

    Parameters
    ----------
    card : Card
    cls : type
        a frozen dataclass

    Raises
    ------
    BadInput
        with every fault of the card: unknown and missing keys, wrong types and units, broken invariants, numbers
        without a source
    """
    from pydantic import ValidationError

    fields = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    data = {key: value for key, value in card.data.items() if key not in _ABOUT or key in fields}
    if "name" in fields:
        data.setdefault("name", card.name)
    faults = []
    if "sources" in fields:
        data["sources"] = dict(_leaves(data.get("sources", {})))
        faults = list(_unsourced(data))
    schema: Any = cls
    try:
        built: T = _adapter(schema).validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        raise BadInput(
            dataclasses.replace(fault, file=str(card.path))
            for fault in [*(f for e in error.errors() for f in _faults(e, data, cls)), *faults]
        ) from None
    if faults:
        raise BadInput(dataclasses.replace(fault, file=str(card.path)) for fault in faults)
    return built


@cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    # A union, since pydantic takes no configuration for a bare dataclass but hands a union's down to its members.
    return TypeAdapter(cls | None, config={"extra": "forbid"})


def _leaves(table: object, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of everything in a table that is not a table."""
    if not isinstance(table, Mapping):
        yield prefix, table
        return
    for key, value in table.items():
        yield from _leaves(value, f"{prefix}.{key}" if prefix else key)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return _QUANTITY.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unsourced(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Numbers without a source and sources without a number."""
    sources = data["sources"]
    keys = [key for key, _ in _leaves({k: v for k, v in data.items() if k != "sources"})]
    for key in keys:
        if _is_number(_at(data, key.split("."))) and not any(key == s or key.startswith(f"{s}.") for s in sources):
            rule = "must say where the number comes from"
            yield Fault(key=f"sources.{key}", value=None, rule=rule, nearest="assumed")
    for source in sources:
        if not any(key == source or key.startswith(f"{source}.") for key in keys):
            yield Fault(
                key=f"sources.{source}",
                value=sources[source],
                rule="is the source of a key that the card does not give",
                nearest=nearest_name(source, keys),
            )


def _faults(error: Mapping[str, Any], data: Mapping[str, Any], cls: type) -> Iterator[Fault]:
    """One of the validator's errors in this project's words."""
    path = [str(step) for step in error["loc"]]
    key, value = ".".join(path), error["input"]
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, UnitError):
        yield Fault(key=key, value=value, rule=raised.rule, nearest=raised.nearest)
    elif isinstance(raised, BadInput):
        for fault in raised.faults:
            yield dataclasses.replace(fault, key=".".join([*path, fault.key]))
    elif isinstance(raised, ValueError) and (invariant := _INVARIANT.fullmatch(str(raised))):
        inner = [*path, *invariant["field"].split(".")]
        yield Fault(key=".".join(inner), value=_at(data, inner), rule=invariant["rule"])
    elif error["type"] == "missing":
        yield Fault(key=key, value=None, rule="must be given")
    elif error["type"] == "unexpected_keyword_argument":
        legal = sorted(_keys_at(cls, path[:-1]))
        nearest = nearest_name(path[-1], legal)
        rule = "is not a key here" if nearest else f"is not a key here; legal: {', '.join(legal)}"
        yield Fault(key=key, value=value, rule=rule, nearest=nearest)
    else:
        rule = str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
        yield Fault(key=key, value=value, rule=rule)


def _at(data: Any, path: Sequence[str]) -> Any:
    """The value given at a dotted path; None when there is none."""
    for step in path:
        if isinstance(data, Mapping):
            data = data.get(step)
        elif isinstance(data, list) and step.isdigit() and int(step) < len(data):
            data = data[int(step)]
        else:
            return None
    return data


def _keys_at(cls: type, path: Sequence[str]) -> set[str]:
    """Field names of the dataclass at a path below ``cls``."""
    for step in path:
        hint = get_type_hints(cls).get(step)
        inner = next((h for h in (hint, *get_args(hint)) if dataclasses.is_dataclass(h)), None)
        if not isinstance(inner, type):
            return set()
        cls = inner
    return {field.name for field in dataclasses.fields(cls)}
