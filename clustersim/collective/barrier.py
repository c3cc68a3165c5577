"""Barrier: no bytes, only the latency of hearing from everyone."""

from __future__ import annotations

from dataclasses import replace

from clustersim.collective.checks import require_call
from clustersim.collective.traffic import GroupShape, Traffic
from clustersim.collective.tree import tree
from clustersim.faults import BadInput, Fault

__all__ = ["barrier"]


def barrier(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """The steps of a tree all-reduce with empty messages, on one SM.

    Parameters
    ----------
    kind : {"barrier"}
    nbytes : int
        0
    shape : GroupShape

    Raises
    ------
    BadInput
        when ``kind`` is another or ``nbytes`` is not 0
    """
    require_call("barrier", kind, nbytes, ("barrier",))
    if nbytes:
        raise BadInput([Fault(key="nbytes", value=nbytes, rule="must be 0: a barrier carries nothing", nearest=0)])
    return replace(tree("all_reduce", 0, shape), algorithm="barrier", num_sms=1)
