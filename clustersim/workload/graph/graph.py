"""A data-flow graph: ops with their work, what they hand on, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.units import Unit

__all__ = ["WIDTH", "Graph", "GraphOp", "OpKind", "Phase", "find_faults"]

OpKind = Literal["gemm", "attention", "memory"]
Phase = Literal["forward", "backward"]

WIDTH: Mapping[str, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}
"""Bytes of an element in memory."""


LARGEST: Mapping[str, float] = {
    "flops": 1e16,
    "seconds": 1e6,
    "nbytes": 2**44,
    "out_nbytes": 2**44,
    "parameters": 2**42,
    "gradient_nbytes": 2**44,
    "weight_nbytes": 2**44,
    "device": 2**20,
}
"""The largest amount of one op and sample: far beyond any, and near enough to catch a slip of the keyboard."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphOp:
    """One op of a graph: one row of its table.

    Amounts are those of one sample where ``per_sample``, else of a step whatever the batch. Parameters, gradients and
    weights never depend on the batch.

    Parameters
    ----------
    name : str
        unique in the graph
    flops : float
        [FLOP]; a multiply-add counts two
    seconds : float, optional
        measured time instead of work [s]; such an op takes it on every device
    nbytes : float, optional
        HBM traffic beside the weights [B]; None: its inputs and its output, each once
    out_nbytes : float
        what each of its successors needs [B]
    after : tuple[str, ...]
        ops whose outputs it reads
    device : int, optional
        which of a worker's devices it sits on
    kind : {"gemm", "attention", "memory"}
        what does the work; a convolution is a gemm
    dtype : str
        of its operands, one of :data:`WIDTH`
    per_sample : bool
    parameters : int
        weights that it owns
    gradient_nbytes : int, optional
        what its weights add to the all-reduce [B]; None: ``parameters`` in ``dtype``. Fewer where the gradient is
        sparse
    weight_nbytes : int, optional
        weights that it reads [B]; None: as ``gradient_nbytes``. An op that uses the weights of another says how many
    launches : int
        equal kernels, one after the other, that its work is spread over
    phase : {"forward", "backward"}
    beside : str, optional
        an op whose device it shares: one that owns the weights it uses
    """

    name: str
    flops: Annotated[float, Unit("FLOP")] = 0.0
    seconds: Annotated[float | None, Unit("s")] = None
    nbytes: Annotated[float | None, Unit("B")] = None
    out_nbytes: Annotated[float, Unit("B")] = 0.0
    after: tuple[str, ...] = ()
    device: int | None = None
    kind: OpKind = "gemm"
    dtype: str = "fp32"
    per_sample: bool = True
    parameters: int = 0
    gradient_nbytes: Annotated[int | None, Unit("B")] = None
    weight_nbytes: Annotated[int | None, Unit("B")] = None
    launches: int = 1
    phase: Phase = "forward"
    beside: str | None = None

    @property
    def gradient(self) -> int:
        """Bytes of its gradient [B]."""
        return WIDTH[self.dtype] * self.parameters if self.gradient_nbytes is None else self.gradient_nbytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """Ops that hang together.

    Parameters
    ----------
    name : str
    ops : tuple[GraphOp, ...]
        in any order
    sources : Mapping[str, str]
        where its numbers come from, or ``assumed``

    Raises
    ------
    BadInput
        with every fault of :func:`find_faults`
    """

    name: str
    ops: tuple[GraphOp, ...]
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = list(find_faults(self.ops, [(self.name, op.name) for op in self.ops]))
        if faults:
            raise BadInput(faults)

    def __repr__(self) -> str:
        """One line: name, ops, parameters."""
        return f"Graph({self.name}: {len(self.ops)} ops, {self.parameters:,} parameters)"

    @property
    def parameters(self) -> int:
        """Weights of all ops."""
        return sum(op.parameters for op in self.ops)

    @property
    def has_backward(self) -> bool:
        """Whether its backward pass is among its ops."""
        return any(op.phase == "backward" for op in self.ops)


def find_faults(ops: Sequence[GraphOp], places: Sequence[tuple[str, str]]) -> Iterator[Fault]:
    """What is wrong with ops taken together: names, links, and amounts that contradict each other.

    Parameters
    ----------
    ops : Sequence[GraphOp]
    places : Sequence[tuple[str, str]]
        file and key of each op, for the messages
    """
    if not ops:
        yield Fault(key="ops", value=0, rule="must be at least one op", nearest=1)
        return
    first: dict[str, int] = {}
    for k, (op, (file, key)) in enumerate(zip(ops, places, strict=True)):
        if first.setdefault(op.name, k) != k:
            rule = f"must be the name of one op only; it is that of {places[first[op.name]][1]} too"
            yield Fault(file=file, key=f"{key}, op", value=op.name, rule=rule)
    for op, (file, key) in zip(ops, places, strict=True):
        links = [("after", name) for name in op.after] + ([("beside", op.beside)] if op.beside is not None else [])
        for column, name in links:
            if name not in first:
                near = nearest_name(name, first)
                yield Fault(file=file, key=f"{key}, {column}", value=name, rule="must be an op", nearest=near)
        yield from _alone(op, file, key)
    cycle = _cycle(ops, first)
    if cycle:
        file, key = places[first[cycle[0]]]
        path = " -> ".join([*cycle, cycle[0]])
        yield Fault(
            file=file, key=f"{key}, after", value=path, rule="must not be a cycle: these ops wait for each other"
        )


def _alone(op: GraphOp, file: str, key: str) -> Iterator[Fault]:
    """What is wrong with one op whatever the others."""
    if op.dtype not in WIDTH:
        near = nearest_name(op.dtype, WIDTH)
        yield Fault(
            file=file, key=f"{key}, dtype", value=op.dtype, rule=f"must be one of {', '.join(WIDTH)}", nearest=near
        )
    for name, allowed in (("kind", get_args(OpKind)), ("phase", get_args(Phase))):
        value = getattr(op, name)
        if value not in allowed:
            rule, near = f"must be one of {', '.join(allowed)}", nearest_name(str(value), allowed)
            yield Fault(file=file, key=f"{key}, {name}", value=value, rule=rule, nearest=near)
    for name in LARGEST:
        value = getattr(op, name)
        if value is not None and not 0 <= value < float("inf"):
            yield Fault(file=file, key=f"{key}, {name}", value=value, rule="must be finite and at least 0", nearest=0)
        elif value is not None and value > LARGEST[name]:
            rule = f"must be at most {LARGEST[name]:g}"
            yield Fault(file=file, key=f"{key}, {name}", value=value, rule=rule, nearest=LARGEST[name])
    if op.launches < 1:
        yield Fault(file=file, key=f"{key}, launches", value=op.launches, rule="must be at least 1", nearest=1)
    if op.seconds is not None and op.flops:
        yield Fault(
            file=file, key=f"{key}, seconds", value=op.seconds, rule="must not stand beside flops: give one of them"
        )
    if op.kind != "memory" and op.seconds is None and not op.flops:
        rule = f"must be above 0 for a {op.kind}"
        yield Fault(file=file, key=f"{key}, flops", value=op.flops, rule=rule, nearest="kind memory")


def _cycle(ops: Sequence[GraphOp], number: Mapping[str, int]) -> list[str]:
    """Names of one cycle, each before the next; empty when there is none."""
    before = {op.name: [name for name in op.after if name in number] for op in ops}
    waits = {name: len(names) for name, names in before.items()}
    after: dict[str, list[str]] = {name: [] for name in before}
    for name, names in before.items():
        for other in names:
            after[other].append(name)
    free = [name for name, n in waits.items() if not n]
    for name in free:  # grows while it is walked
        for other in after[name]:
            waits[other] -= 1
            if not waits[other]:
                free.append(other)
    at = next((name for name, n in waits.items() if n), None)
    seen: list[str] = []
    while at is not None and at not in seen:
        seen.append(at)
        at = next(name for name in before[at] if waits[name])
    return [] if at is None else seen[seen.index(at) :][::-1]
