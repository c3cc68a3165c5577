"""A fragment: the ops of one chunk for one micro-batch.

Kernels stand on the stream ``compute``, collectives on one stream for each slot, the host's work on ``cpu work``. Bytes
are counted under these keys: ``gpu/activations`` from forward to backward, ``gpu/workspace`` while an op runs,
``gpu/communication`` for what is on its way to or from another stage, ``gpu/weights`` and ``gpu/gradients`` for
gathered weights and for gradients that are yet to be reduced.
"""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.op import Collective, Copy, HostWork, Op, Storage
from clustersim.workload.program import Program

__all__ = ["ACTIVATIONS", "COMMUNICATION", "GRADIENTS", "WEIGHTS", "WORKSPACE", "Fragment", "stream_of"]

ACTIVATIONS, WORKSPACE, COMMUNICATION = "gpu/activations", "gpu/workspace", "gpu/communication"
WEIGHTS, GRADIENTS = "gpu/weights", "gpu/gradients"


def stream_of(op: Op) -> str:
    """The stream of an op: ``compute``, a collective's slot, ``h2d`` and ``d2h``, ``nvme_read`` …, or ``cpu work``."""
    match op:
        case Collective():
            return op.slot
        case Copy() | Storage():
            return op.kind
        case HostWork():
            return "cpu work"
        case _:
            return "compute"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fragment:
    """A chunk's ops.

    Parameters
    ----------
    program : Program
    entries : tuple[int, ...]
        ops that wait for the chunk's input
    early : tuple[int, ...]
        ops that need not wait for it: weights that are gathered ahead
    exits : tuple[int, ...]
        ops whose end gives the chunk's output
    op_of_block : tuple[int, ...]
        forward: the block's first op, which its weights must be there for; backward: the op that completes their
        gradient, -1 where the fragment has none
    takes : tuple[tuple[int, tuple[int, ...]], ...]
        ops that gather weights, in order, each the first of its parameter group, with the group's blocks
    gives : tuple[int, ...]
        ops whose end gives gathered weights back, in order
    room : int, optional
        parameter groups that may be gathered at a time; None: any number
    fills : tuple[int, ...]
        first ops of the backward passes of parameter groups that make gradients to be reduced, in order
    drains : tuple[int, ...]
        ops whose end leaves these gradients reduced, in order
    leaves, returns : tuple[tuple[int, int], ...]
        (first block of a layer, op that takes its activations off the GPU, or brings them back)
    """

    program: Program
    entries: tuple[int, ...]
    exits: tuple[int, ...]
    op_of_block: tuple[int, ...]
    early: tuple[int, ...] = ()
    takes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    gives: tuple[int, ...] = ()
    room: int | None = None
    fills: tuple[int, ...] = ()
    drains: tuple[int, ...] = ()
    leaves: tuple[tuple[int, int], ...] = ()
    returns: tuple[tuple[int, int], ...] = ()
