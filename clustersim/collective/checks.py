"""The checks that every algorithm makes on its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from clustersim.faults import BadInput, Fault, nearest_name

__all__ = ["require_call"]


def require_call(algorithm: str, kind: str, nbytes: int, kinds: Sequence[str]) -> None:
    """Raise :class:`BadInput` unless ``algorithm`` has ``kind`` and ``nbytes`` is not negative."""
    faults = []
    if kind not in kinds:
        rule = f"is not a collective of {algorithm}: {', '.join(kinds)}"
        faults.append(Fault(key="kind", value=kind, rule=rule, nearest=nearest_name(kind, kinds)))
    if nbytes < 0:
        faults.append(Fault(key="nbytes", value=nbytes, rule="must not be negative [B]", nearest=0))
    if faults:
        raise BadInput(faults)
