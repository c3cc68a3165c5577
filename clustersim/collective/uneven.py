"""Uneven all-to-all: members send one another unequal shares, as tokens to experts of a mixture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustersim.collective.channels import PEERS_AT_ONCE, point_to_point_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import flows_on_busiest_link, memory_traffic
from clustersim.collective.direct import MAX_MEMBERS
from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.faults import BadInput, Fault

__all__ = ["Uneven"]

SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Uneven:
    """Direct all-to-all in which member i sends ``share[i, j]`` of its nbytes to member j.

    An algorithm, to be pinned: ``algorithms={"all_to_all": Uneven(share)}``. Each sender's bytes are whole and add up
    to nbytes exactly: the flow to j is the difference of the rounded sums of the shares up to j and before it. What
    ``share[i, i]`` says is copied in memory, and the longest copy counts for all. Pairs without a share have no flow.
    Each member serves up to ``PEERS_AT_ONCE`` others at once. Objects with equal shares are equal.

    Parameters
    ----------
    share : ArrayLike, shape (n, n)
        fractions of what the row's member sends: rows are senders, columns receivers, each row sums to 1

    Raises
    ------
    BadInput
        with every row that has a negative number, one that is not finite, or another sum; when the matrix is not
        square or has more than 2048 members. When called, if ``kind`` is not all_to_all, ``nbytes`` is negative, or the
        group has another number of members
    """

    share: NDArray[np.float64]

    def __init__(self, share: ArrayLike) -> None:
        matrix = np.array(share, dtype=np.float64)
        faults = list(_faults(matrix))
        if faults:
            raise BadInput(faults)
        matrix.setflags(write=False)
        object.__setattr__(self, "share", matrix)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Uneven) and np.array_equal(self.share, other.share)

    def __hash__(self) -> int:
        return hash(self.share.tobytes())

    def __repr__(self) -> str:
        fullest, digest = self.share.sum(axis=0).max(), sha256(self.share.tobytes()).hexdigest()[:8]
        return f"Uneven({len(self.share)} members, the fullest receives {fullest:.3g} of one's bytes, {digest})"

    def __call__(self, kind: str, nbytes: int, shape: GroupShape) -> Traffic:
        """Flows; see the class."""
        require_call("uneven", kind, nbytes, ("all_to_all",))
        n = shape.num_members
        if n != len(self.share):
            rule = f"members, but share is for {len(self.share)}"
            raise BadInput([Fault(key="group", value=n, rule=rule, nearest=len(self.share))])
        reached = np.cumsum(self.share, axis=1)
        reached /= reached[:, -1:]  # so that the last is 1 and no byte is lost
        upto = np.rint(reached * nbytes).astype(np.int64)
        sent = upto.copy()
        sent[:, 1:] -= upto[:, :-1]
        source, destination = np.nonzero((self.share > 0) & ~np.eye(n, dtype=bool))
        phase = Phase(
            source=source.astype(np.int64),
            destination=destination.astype(np.int64),
            nbytes=sent[source, destination],
            num_steps=-(-self._most_peers(source, destination) // PEERS_AT_ONCE),
        )
        phases = (phase,) if len(source) else ()
        memory = memory_traffic(kind, nbytes, shape, phases)
        if phases:
            memory += sent.sum(axis=0) - nbytes  # the buffer that is received is as large as what comes
        return Traffic(
            algorithm="uneven",
            phases=phases,
            pipelined=True,
            memory_nbytes=memory,
            num_sms=point_to_point_sms(Layout.of(shape).num_nodes, self._most_peers(source, destination)),
            num_flows=flows_on_busiest_link(phases),
            own_nbytes=int(sent.diagonal().max()),
        )

    @staticmethod
    def _most_peers(source: NDArray[np.int64], destination: NDArray[np.int64]) -> int:
        """That one member sends to, or receives from."""
        return max((int(np.bincount(end).max()) for end in (source, destination) if len(end)), default=0)


def _faults(share: NDArray[np.float64]) -> Iterator[Fault]:
    """Everything that is wrong with a matrix."""
    if share.ndim != 2 or share.shape[0] != share.shape[1] or not share.size:
        yield Fault(
            key="share", value=share.shape, rule="must be a square matrix: senders in rows, receivers in columns"
        )
        return
    if len(share) > MAX_MEMBERS:
        yield Fault(
            key="share", value=len(share), rule=f"members are too many; at most {MAX_MEMBERS}", nearest=MAX_MEMBERS
        )
    for i, row in enumerate(share):
        if not np.isfinite(row).all() or (row < 0).any():
            worst = float(row[~np.isfinite(row) | (row < 0)][0])
            yield Fault(key=f"share[{i}]", value=worst, rule="must be finite and not negative", nearest=0.0)
        elif abs(row.sum() - 1) > SUM_TOLERANCE:
            rule = "must sum to 1: fractions of what the member sends"
            yield Fault(key=f"share[{i}]", value=float(row.sum()), rule=rule, nearest=1.0)
