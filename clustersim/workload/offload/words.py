"""Settings of a policy that are words, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from clustersim.faults import Fault, nearest_name
from clustersim.workload.offload.policy import OffloadPolicy

__all__ = ["word_faults"]


def word_faults(policy: OffloadPolicy) -> Iterator[Fault]:
    """Settings that are none of the words of their ``Literal``.

    A key of the command line may name words of all policies; which of them one policy knows, its fields say.
    """
    hints = get_type_hints(type(policy))
    for name in (field.name for field in fields(policy)):
        words, value = _words(hints[name]), getattr(policy, name)
        if words and value not in words:
            told = [str(word) for word in words if word is not None]
            rule = f"must be one of {', '.join(told)} for {policy.name}"
            nearest = nearest_name(str(value), told) or told[0]
            yield Fault(key=f"plan.offload.{name}", value=value, rule=rule, nearest=nearest)


def _words(hint: Any) -> tuple[Any, ...]:
    """What a field may be, where all of it is words and None; else nothing."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) not in (Union, UnionType):
        return ()
    parts = [(None,) if part is NoneType else _words(part) for part in get_args(hint)]
    return tuple(word for part in parts for word in part) if all(parts) else ()
