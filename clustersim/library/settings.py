"""Settings as they are given, on the command line or in a card, checked one by one against the table of keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from clustersim.faults import Fault, nearest_name
from clustersim.library.keys import KEYS, Key
from clustersim.library.values import Refused, read_text

__all__ = ["read_settings", "read_values"]


def read_settings(texts: Iterable[str]) -> tuple[dict[str, Any], list[Fault]]:
    """Settings as the command line gives them.

    Parameters
    ----------
    texts : Iterable[str]
        ``plan.tp=8``

    Returns
    -------
    dict, list[Fault]
        the legal ones by key, and what is wrong with the others; a fault's value is the text that was typed
    """
    typed: dict[str, str] = {}
    faults = []
    for text in texts:
        name, equals, value = text.partition("=")
        key = name.strip()
        if key and equals:
            typed[key] = value
        else:
            rule, nearest = "must be a key and a value", f"{key or 'plan.tp'}=8"
            faults.append(Fault(key=key or "--set", value=text, rule=rule, nearest=nearest))
    values, refused = read_values({key: read_text(text) for key, text in typed.items()})
    faults += [Fault(key=f.key, value=typed[f.key].strip(), rule=f.rule, nearest=f.nearest) for f in refused]
    return values, faults


def read_values(given: Mapping[str, Any], file: str = "") -> tuple[dict[str, Any], list[Fault]]:
    """Settings as a card or a call gives them, checked one by one against :data:`KEYS`.

    Returns
    -------
    dict, list[Fault]
        the legal ones by key, and what is wrong with the others
    """
    values: dict[str, Any] = {}
    faults = []
    for key, value in given.items():
        try:
            values[key] = _known(key).value.read(value)
        except Refused as refused:
            example = KEYS[key].example if key in KEYS else None
            nearest = example if refused.nearest is None else refused.nearest
            faults.append(Fault(file=file, key=key, value=value, rule=refused.rule, nearest=nearest))
    return values, faults


def _known(key: str) -> Key:
    if key in KEYS:
        return KEYS[key]
    raise Refused("is not a key; all of them: clustersim show keys", nearest_name(key, KEYS))
