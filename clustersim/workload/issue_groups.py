"""Groups of ops that the host issues one after the other: passes of a layer with the messages before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays
from clustersim.workload.op import Collective

__all__ = ["IssueGroups", "issue_groups"]

_POINT_TO_POINT = ("send", "recv")
_NO_OP = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class IssueGroups:
    """n ops in g groups.

    Parameters
    ----------
    order : NDArray[int64], shape (n,)
        ops in the order of their issue
    begin : NDArray[int64], shape (g + 1,)
        place in ``order`` of the first op of each group, and n
    lead : NDArray[int64], shape (g,)
        the op that says what each group is a pass of
    opens : NDArray[bool], shape (g,)
        whether the pass is entered here
    waits : NDArray[int64], shape (w, 2)
        (op, group that the host issues when it has ended)
    """

    order: NDArray[np.int64]
    begin: NDArray[np.int64]
    lead: NDArray[np.int64]
    opens: NDArray[np.bool_]
    waits: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lead)

    @property
    def group(self) -> NDArray[np.int64]:
        """Group of the op at each place, shape (n,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.begin))

    def first(self, marked: NDArray[np.bool_]) -> NDArray[np.int64]:
        """First marked place of each group, else its last one; ``marked`` by place, shape (n,)."""
        last = self.begin[1:] - 1
        places = np.append(np.flatnonzero(marked), len(marked))
        found: NDArray[np.int64] = np.minimum(places[np.searchsorted(places, self.begin[:-1])], last)
        return found

    def heads(self, arrays: Arrays) -> NDArray[np.int64]:
        """(op, group): the first op of each group on each stream, shape (number of them, 2)."""
        of = self.group
        places = np.unique(of * len(arrays.streams) + arrays.stream[self.order], return_index=True)[1]
        return np.stack([self.order[places], of[places]], axis=1)


def issue_groups(arrays: Arrays, stops: Mapping[int, Sequence[int]], *, apart: bool, hooks: bool = True) -> IssueGroups:
    """Passes of a layer with the messages before them, in the order of issue.

    Parameters
    ----------
    arrays : Arrays
    stops : Mapping[int, Sequence[int]]
        op -> ops whose end the host waits for before it issues it; a pass goes on behind one as another group
    apart : bool
        messages are groups by themselves, which the host waits for
    hooks : bool
        gradients are reduced where the pass that makes them is; otherwise where the program has it
    """
    hooked = _hooked(arrays)
    order = _order(arrays, np.flatnonzero(hooked)) if hooks else np.arange(len(arrays))
    is_message = np.array([isinstance(op, Collective) and op.kind in _POINT_TO_POINT for op in arrays.ops], dtype=bool)
    message = is_message[arrays.op[order]]
    label = np.where(message, -1, _labels(arrays)[order])
    stopped = np.zeros(len(arrays), dtype=bool)
    stopped[[op for op, before in stops.items() if before]] = True
    # reductions of gradients go with what stands before them, whatever that is
    told = np.flatnonzero(message | ~hooked[order]) if hooks else np.arange(len(order))
    starts = np.ones(len(told), dtype=bool)
    starts[1:] = label[told[1:]] != label[told[:-1]]
    begin = told[starts | (stopped[order[told]] & ~message[told])]
    begin[0] = 0
    lead, of_messages = order[begin], message[begin]
    after_messages = np.append(False, of_messages[:-1])
    waits = [(before, g) for g, op in enumerate(lead.tolist()) for before in stops.get(op, ())] if stops else []
    posted = _NO_OP.reshape(0, 2)
    if apart:
        group = np.cumsum(np.isin(np.arange(len(order)), begin)) - 1
        places = np.flatnonzero(message)
        posted = np.stack([order[places], group[places] + 1], axis=1)
        posted = posted[posted[:, 1] < len(lead)]
    joined = after_messages & ~stopped[lead] if not apart else np.zeros(len(lead), dtype=bool)
    kept = np.append(~joined[1:], True)  # messages that the pass behind them takes in are no group of their own
    number = np.cumsum(kept) - kept
    found = np.concatenate([np.array(waits, dtype=np.int64).reshape(-1, 2), posted])
    return IssueGroups(
        order=order,
        begin=np.append(np.where(joined, np.append(0, begin[:-1]), begin)[kept], len(order)),
        lead=lead[kept],
        opens=_opens(arrays, label[begin], lead, hooked)[kept],
        waits=np.stack([found[:, 0], number[found[:, 1]]], axis=1),
    )


def _opens(
    arrays: Arrays, label: NDArray[np.int64], lead: NDArray[np.int64], hooked: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether groups enter their passes: the first with its label, and all that belong to no layer."""
    passes = np.flatnonzero(label >= 0)
    updates = (label >= 0) & (np.array(arrays.phases)[arrays.phase[lead]] == "optimizer")
    # of several steps in one program each enters its passes again
    step = (np.cumsum(updates) - updates)[passes]
    opens = np.zeros(len(lead), dtype=bool)
    first = np.unique(step * (1 + int(label.max(initial=0))) + label[passes], return_index=True)[1]
    opens[passes[first]] = True
    opens[passes] |= arrays.layer[lead[passes]] < 0
    return opens & ~hooked[lead]


def _labels(arrays: Arrays) -> NDArray[np.int64]:
    """By op a number for its phase, micro-batch, layer, stage and step."""
    code = np.zeros(len(arrays), dtype=np.int64)
    for column in (arrays.phase, arrays.micro_batch, arrays.layer, arrays.stage, arrays.step):
        low = int(column.min(initial=0))
        code = code * (int(column.max(initial=0)) - low + 1) + (column - low)
    return code


def _order(arrays: Arrays, hooked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ops in the order of their issue: that of the program, but reductions of gradients where they are due."""
    place: dict[int, tuple[int, int]] = {}
    for before, op in arrays.edges[np.isin(arrays.edges[:, 1], hooked)].tolist():
        due = place.get(before, (before, 0))[0]
        place[op] = max(place.get(op, (-1, op)), (due, op))
    first, second = np.arange(len(arrays)), np.zeros(len(arrays), dtype=np.int64)
    for op, (due, own) in place.items():
        first[op], second[op] = due, own
    return np.lexsort((second, first))


def _hooked(arrays: Arrays) -> NDArray[np.bool_]:
    """Ops that reduce gradients when they are whole: the pass that makes them issues them, whatever stands between."""
    backward = np.array([phase == "backward" for phase in arrays.phases], dtype=bool)[arrays.phase]
    beside = np.array([stream != "compute" for stream in arrays.streams], dtype=bool)[arrays.stream]
    hooked: NDArray[np.bool_] = (arrays.micro_batch < 0) & backward & beside
    return hooked
