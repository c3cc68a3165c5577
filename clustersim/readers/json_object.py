"""A JSON object read key by key: every fault is kept, every default taken is remembered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput, Fault, nearest_name

__all__ = ["JsonObject", "load_object"]


class JsonObject:
    """The top level of a JSON file, with a record of what was read from it.

    A null counts as an absent key. A faulty value reads as 0 or False, so that the reading goes on and all faults come
    together; :meth:`check` raises them.

    Parameters
    ----------
    path : Path
        shown in faults
    values : dict[str, Any]
        the object

    Attributes
    ----------
    faults : list[Fault]
        what was wrong so far
    defaults : dict[str, object]
        key -> the value taken because the key was absent
    origins : dict[str, str]
        name of what was asked for -> the key it came from, or ``assumed``
    """

    def __init__(self, path: Path, values: dict[str, Any]) -> None:
        self.path = path
        self.values = values
        self.faults: list[Fault] = []
        self.defaults: dict[str, object] = {}
        self.origins: dict[str, str] = {}
        self._asked: set[str] = set()
        self._inner_unread: dict[str, Any] = {}

    def count(self, name: str, *keys: str, largest: int, default: int | None = None) -> int:
        """A whole number from 1 to ``largest``; 0 after a fault.

        Parameters
        ----------
        name : str
            what the number is for, in :attr:`origins`
        *keys : str
            synonyms, the preferred one first; several that are present must agree
        largest : int
            upper bound
        default : int, optional
            taken when no key is present; without it, that is a fault
        """
        rule = f"must be a whole number from 1 to {largest}"
        key, value = self._first(name, keys, default)
        if value is None:
            self.fault(key, f"{rule}, and is missing")
            return 0
        if value == 0 and key in self.defaults:
            return 0  # derived from a value that has a fault of its own
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
            self.fault(key, rule, nearest=_nearest_count(value, largest))
            return 0
        return value

    def flag(self, name: str, key: str, *, default: bool) -> bool:
        """True or false under ``key``; False after a fault."""
        key, value = self._first(name, (key,), default)
        if not isinstance(value, bool):
            self.fault(key, "must be true or false", nearest=bool(value) if value in (0, 1) else default)
            return False
        return value

    def number(self, name: str, key: str, *, low: float, high: float, default: float) -> float:
        """A number from ``low`` to ``high`` under ``key``; ``low`` after a fault."""
        key, value = self._first(name, (key,), default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.fault(key, f"must be a number from {low:g} to {high:g}", nearest=default)
            return low
        return value

    def word(self, name: str, key: str, *, words: Sequence[str], default: str) -> str:
        """One of ``words`` under ``key``; ``default`` after a fault."""
        key, value = self._first(name, (key,), default)
        if value not in words:
            self.fault(key, f"must be one of {', '.join(words)}", nearest=nearest_name(str(value), words))
            return default
        return str(value)

    def inner(self, key: str) -> JsonObject:
        """The object under ``key``, empty where there is none; :meth:`absorb` takes what reading it left."""
        self._asked.add(key)
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            self.fault(key, "must be an object, that is {...}")
        return JsonObject(self.path, value if isinstance(value, dict) else {})

    def absorb(self, key: str, inner: JsonObject) -> None:
        """Take over faults, defaults, origins and unread values of the object under ``key``, under dotted keys."""
        self.faults += [replace(fault, key=f"{key}.{fault.key}") for fault in inner.faults]
        self.defaults |= {f"{key}.{name}": value for name, value in inner.defaults.items()}
        place, dotted = f"{self.path.name}: ", f"{self.path.name}: {key}."
        self.origins |= {name: origin.replace(place, dotted, 1) for name, origin in inner.origins.items()}
        self._inner_unread |= {f"{key}.{name}": value for name, value in inner.unread().items()}

    def take(self, key: str) -> Any:
        """The value under ``key``, unchecked; None where it is absent."""
        self._asked.add(key)
        return self.values.get(key)

    def fault(self, key: str, rule: str, *, nearest: object = None) -> None:
        """Keep a fault of the value under ``key``."""
        value = self.values.get(key, self.defaults.get(key))
        self.faults.append(Fault(file=str(self.path), key=key, value=value, rule=rule, nearest=nearest))

    def check(self) -> None:
        """Raise :class:`BadInput` with every fault kept, if there is one."""
        if self.faults:
            raise BadInput(self.faults)

    def unread(self) -> dict[str, Any]:
        """The values that nothing asked for."""
        return {key: value for key, value in self.values.items() if key not in self._asked} | self._inner_unread

    def _first(self, name: str, keys: tuple[str, ...], default: object) -> tuple[str, Any]:
        self._asked.update(keys)
        present = [key for key in keys if self.values.get(key) is not None]
        if not present:
            if default is not None:
                self.defaults[keys[0]] = default
                self.origins[name] = f"assumed: {keys[0]} is absent from {self.path.name}"
            return keys[0], default
        first = present[0]
        self.origins[name] = f"{self.path.name}: {first}"
        for twin in present[1:]:
            if self.values[twin] != self.values[first]:
                self.fault(twin, f"must equal {first}, its other name", nearest=self.values[first])
        return first, self.values[first]


def load_object(path: str | Path) -> JsonObject:
    """Read a file that holds one JSON object.

    Raises
    ------
    BadInput
        when there is no such file, it is not JSON (with line and column), not an object, or has a key twice
    """
    path = Path(path)

    def refuse(key: str, value: object, rule: str, nearest: object = None) -> BadInput:
        return BadInput([Fault(file=str(path), key=key, value=value, rule=rule, nearest=nearest)])

    if not path.is_file():
        beside = [p.name for p in path.parent.glob("*.json")] if path.parent.is_dir() else []
        raise refuse("file", str(path), "must be a file that exists", nearest_name(path.name, beside))
    twice: list[str] = []

    def pairs_to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice[:] = sorted({name for name in names if names.count(name) > 1})
        return dict(pairs)

    try:
        text = path.read_text(encoding="utf-8-sig")
        values = json.loads(text, object_pairs_hook=pairs_to_dict)
    except json.JSONDecodeError as error:
        line = (error.doc.splitlines() or [""])[min(error.lineno, len(error.doc.splitlines()) or 1) - 1]
        place = f"line {error.lineno}, column {error.colno}"
        raise refuse(place, line.strip()[:60], f"must be JSON: {error.msg}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise refuse("file", str(path), f"must be a readable JSON file: {error}") from error
    if not isinstance(values, dict):
        raise refuse("file", type(values).__name__, "must be a JSON object, that is {...}")
    found = JsonObject(path, values)
    for key in twice:
        found.fault(key, "must appear once")
    return found


def _nearest_count(value: object, largest: int) -> int | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    if isinstance(value, bool) or number != number:
        return None
    return round(min(max(number, 1), largest))
