"""One table of a card as the arguments of the callables it describes: checked against their signatures."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, make_dataclass, replace
from functools import cache
from typing import Any, get_args, get_type_hints

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.communication import Communication, Transport
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.hardware.nic import NIC
from clustersim.hardware.storage import Drive
from clustersim.hardware.superchip import Superchip
from clustersim.hardware.switch import Switch
from clustersim.library.build import build
from clustersim.library.card import Card

__all__ = ["find_builder", "named_parts", "parameters", "read_section"]

_KINDS = {
    GPU: "gpu",
    CPU: "cpu",
    Link: "link",
    NIC: "nic",
    Switch: "switch",
    Drive: "drive",
    Superchip: "superchip",
    Communication: "communication",
    Transport: "transport",
}


def find_builder(key: str, name: object, known: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """The builder that a card names.

    Parameters
    ----------
    key : str
        where the name stands, for the fault
    name : object
        one of ``known``, or ``"my_package.module:function"``
    known : Mapping[str, Callable]
        by short name

    Raises
    ------
    BadInput
        when it is neither, or cannot be imported
    """
    if isinstance(name, str) and name in known:
        return known[name]
    rule = f"is not one of {', '.join(known)}, nor a callable as 'my_package.module:function'"
    if isinstance(name, str) and ":" in name:
        module, _, attribute = name.partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            rule = f"cannot be imported: {error}"
        else:
            if callable(found):
                return found  # type: ignore[no-any-return]
            rule = "is not a callable"
    raise BadInput([Fault(key=key, value=name, rule=rule, nearest=nearest_name(str(name), known))])


@cache
def parameters(target: Callable[..., Any]) -> frozenset[str]:
    """Names of what ``target`` takes."""
    return frozenset(inspect.signature(target).parameters)


def read_section(
    card: Card,
    key: str,
    table: Mapping[str, Any],
    targets: Sequence[Callable[..., Any]],
    supplied: Collection[str] = (),
) -> dict[str, Any]:
    """A table's values, checked against the signatures of the callables that will take them.

    A parameter annotated with a kind of part takes the name of a card (``named_parts``).

    Parameters
    ----------
    card : Card
        which the table stands in
    key : str
        of the table, to name faults by
    table : Mapping[str, Any]
        without its ``build``
    targets : Sequence[Callable]
        together they take every key
    supplied : Collection[str]
        parameters that do not come from the card

    Raises
    ------
    BadInput
        for unknown and missing keys and wrong types
    """
    schema = _schema(tuple(targets), frozenset(supplied))
    try:
        built: Any = build(replace(card, data=dict(table)), schema)
    except BadInput as error:
        raise BadInput(replace(fault, key=f"{key}.{fault.key}") for fault in error.faults) from None
    return {name: getattr(built, name) for name in table}


def named_parts(table: Mapping[str, Any], targets: Sequence[Callable[..., Any]]) -> dict[str, tuple[str, str]]:
    """Parameter -> (kind, name of the card), of those that the callables take as parts and the table has as texts."""
    kinds = {name: kind for target in targets for name, kind in _part_kinds(target).items()}
    return {name: (kinds[name], value) for name, value in table.items() if name in kinds and isinstance(value, str)}


@cache
def _schema(targets: tuple[Callable[..., Any], ...], supplied: frozenset[str]) -> type:
    """A dataclass of the parameters, parts by name."""
    found: dict[str, tuple[str, Any, Any]] = {}
    for target in targets:
        hints, kinds = _hints(target), _part_kinds(target)
        for name, parameter in inspect.signature(target).parameters.items():
            if name in supplied:
                continue
            optional = parameter.default is not inspect.Parameter.empty
            kind: Any = (str | None if optional else str) if name in kinds else hints.get(name, Any)
            found[name] = (name, kind, field(default=None) if optional else field())
    return make_dataclass("Table", list(found.values()), kw_only=True, frozen=True)


@cache
def _part_kinds(target: Callable[..., Any]) -> dict[str, str]:
    """Parameter -> kind of part, for those that take one."""
    return {
        name: _KINDS[part]
        for name, hint in _hints(target).items()
        for part in (hint, *get_args(hint))
        if isinstance(part, type) and part in _KINDS
    }


def _hints(target: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(target, include_extras=True)
