"""Direct, step by step: one message a pair, all at once."""

from __future__ import annotations

import numpy as np

from clustersim.collective.channels import PEERS_AT_ONCE
from clustersim.collective.direct import KINDS
from clustersim.collective.steps.parts import cut
from clustersim.collective.steps.schedule import Schedule, Script, require_steps
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput, Fault

__all__ = ["direct"]


def direct(kind: str, nbytes: int, shape: GroupShape, num_slices: int = 1) -> Schedule:
    """Transfers of :func:`clustersim.collective.direct.direct`.

    Chunk (i, j) of an all-to-all goes from member i to member j; the others have one chunk a member. No transfer waits
    for another but the earlier slices of its pair.

    Parameters
    ----------
    kind : {"all_to_all", "all_gather", "reduce_scatter", "gather", "scatter"}
    nbytes : int
        payload S [B]
    shape : GroupShape
    num_slices : int
        messages a block is cut into

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, ``num_slices`` is not positive, or a member has more peers
        than it serves at once
    """
    require_steps("direct", kind, nbytes, KINDS, num_slices)
    n = shape.num_members
    if n - 1 > PEERS_AT_ONCE:
        rule = f"members serve {PEERS_AT_ONCE} peers at once, and are played step by step up to that"
        raise BadInput([Fault(key="group", value=n, rule=rule, nearest=PEERS_AT_ONCE + 1)])
    num_blocks = n * n if kind == "all_to_all" else n
    blocks = cut(nbytes, n) * (num_blocks // n)
    script = Script(n, [piece for block in blocks for piece in cut(block, num_slices)])
    block_of = np.arange(num_blocks).repeat(num_slices)
    first, second = block_of // n, block_of % n  # of an all-to-all: from, to
    member = np.arange(n)[:, None]
    own, root, every = second == member, member == 0, np.ones(script.shape, dtype=bool)
    held, wanted = {
        "all_to_all": (first == member, own),
        "all_gather": (own, every),
        "reduce_scatter": (every, own),
        "gather": (own, root),
        "scatter": (root, own),
    }[kind]
    for away in range(1, n):
        for i in range(n):
            j = (i + away) % n
            if (kind == "gather" and j) or (kind == "scatter" and i):
                continue
            block = {"all_to_all": i * n + j, "all_gather": i, "gather": i}.get(kind, j)
            for piece in range(num_slices):
                script.send(i, j, (block * num_slices + piece,), adds=kind == "reduce_scatter")
    return script.schedule("direct", kind, held, wanted)
