"""A simulated rank, which stands for its class: its ops and how far each of them is."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

from clustersim.engine.loop.ends import Ends
from clustersim.engine.loop.rendezvous import Rendezvous
from clustersim.engine.role.role import Role
from clustersim.engine.scene.scene import LaneSpec
from clustersim.engine.scene.signature import Signature
from clustersim.engine.sharing.activity import Activity
from clustersim.engine.strands.gates import reach
from clustersim.engine.strands.strands import Played
from clustersim.engine.strands.stretch import Stretch

__all__ = ["Lane"]


class Lane:
    """A simulated rank.

    Attributes
    ----------
    waits : bytearray or list[int]
        by op, predecessors that have not ended
    behind : array of int64
        by op, the latest end of those among its predecessors whose end is known [ns]
    ns : array of int64
        by op, its duration [ns], or a code of ``end_code.py``
    granted : dict[int, int]
        the same for ops that wait for a pool, once they have it
    gives : dict or None
        ops that give back to pools; None spares the look
    start, end : array of int64
        by op [ns]; -1 before. Those on strands are written by :meth:`write`
    strands : Strands
        its ops that have the code ``STRUNG``
    stretches : dict[Stretch, None]
        strands in progress
    played : list[Played]
        what has been played of strands and is not written yet
    untold : list[tuple[int, int]]
        (place, begin [ns]) of the knots in it whose changes of rate are not in the history yet
    watched : tuple[int, int] or None
        (place, begin [ns]) of a knot that is played op by op with nothing beside it, to keep its course
    num_joined : int
        collectives in progress that it is a member of
    own : tuple[int, ...]
        resources that only itself uses and collectives that it takes part in
    signatures, unshared : list[Signature | None]
        kinds of op, with and without their demands
    kind : array of int32
        by op, index into them: its distinct op, or with noise itself
    running : dict[int, Activity]
        its own ops in progress that can be re-rated
    taken : int
        SMs that collectives hold at present
    """

    __slots__ = (
        "behind",
        "end",
        "first_target",
        "flat",
        "gives",
        "granted",
        "kind",
        "ns",
        "num_joined",
        "num_sms",
        "op",
        "own",
        "played",
        "rendezvous",
        "running",
        "sequence",
        "signatures",
        "slot",
        "spec",
        "start",
        "stores",
        "strands",
        "stretches",
        "taken",
        "targets",
        "unshared",
        "untold",
        "waits",
        "watched",
    )

    def __init__(
        self,
        spec: LaneSpec,
        role: Role,
        signatures: Sequence[Signature | None],
        kind: array[int],
        ends: Ends,
        *,
        own: tuple[int, ...] = (),
    ) -> None:
        flat = role.flat
        self.spec = spec
        self.flat = flat
        self.waits = flat.num_before[:]
        self.behind = array("q", bytes(8 * len(flat)))
        self.ns = ends.ns
        self.granted = ends.granted
        self.op = role.op_array
        self.kind = kind
        self.gives = flat.giving or None
        self.targets = flat.targets
        self.first_target = flat.first_target
        self.slot = flat.slot
        self.sequence = flat.sequence
        self.start = array("q", b"\xff" * 8 * len(flat))
        self.end = array("q", b"\xff" * 8 * len(flat))
        self.signatures = signatures
        self.unshared = [None if k is None else replace(k, demands=(), timings=k.timings) for k in signatures]
        self.rendezvous: list[Rendezvous] = []
        self.stores = spec.stores
        self.running: dict[int, Activity] = {}
        self.num_sms = spec.num_sms
        self.taken = 0
        self.strands = ends.strands
        self.stretches: dict[Stretch, None] = {}
        self.played: list[Played] = []
        self.untold: list[tuple[int, int]] = []
        self.watched: tuple[int, int] | None = None
        self.num_joined = 0
        self.own = own

    def owner(self, op: int) -> tuple[Lane | Rendezvous, int]:
        """Whose op it is, and its number there: a collective is its rendezvous'."""
        return (self.rendezvous[self.slot[op]], self.sequence[op]) if self.slot[op] >= 0 else (self, op)

    def meeting_signature(self, op: int) -> Signature:
        """That of a collective."""
        meeting = self.rendezvous[self.slot[op]]
        return meeting.signatures[meeting.script[self.sequence[op]]]

    def is_quiet(self, but: Stretch | None = None) -> bool:
        """Whether nothing, but for one strand in progress, runs that could slow it, or be slowed."""
        return not (self.running or self.num_joined or len(self.stretches) > (but is not None))

    def play(self, op: int, begin: int) -> tuple[int, int]:
        """Play what nothing slows of a strand, from one of its ops; (the last op of it, the end of that [ns])."""
        strands = self.strands
        first, begins = strands.at[op], strands.begins(0)
        last = reach(self, first, begin + begins[first + 1] - begins[first], alone=False)
        self.played.append((first, last, begin, 0))
        return strands.ops[last - 1], begin + begins[last] - begins[first]

    def write(self, now: int) -> None:
        """Write start and end of what has been played of strands, that in progress as far as it has started."""
        begun = []
        for stretch in self.stretches:
            if stretch.bent is not None:
                self.end[stretch.bent.number] = stretch.since
            if stretch.first < stretch.last:
                begun.append((stretch.first, stretch.place(now, begun=True)[0] + 1, stretch.since, stretch.taken))
        self.untold += self.strands.write([*self.played, *begun], self.start, self.end)
        self.played.clear()

    def cancel(self, now: int) -> None:
        """Leave strands as they are now, their ops in progress as plain ones, and release nothing any more."""
        for stretch in self.stretches:
            stretch.play(stretch.place(now, begun=False)[0] + 1)
            stretch.unbend()
            stretch.due = -1
        self.stretches.clear()
        self.write(now)
        self.running.clear()
        self.taken = self.num_joined = 0
        self.watched = None
        self.gives = None
        self.first_target = array("i", bytes(4 * len(self.first_target)))  # for what is still on the clock
