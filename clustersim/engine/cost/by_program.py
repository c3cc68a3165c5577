"""What the ops of each program take on each kind of device that plays it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.cost.alone import local_cost
from clustersim.engine.cost.local_cost import LocalCost
from clustersim.engine.cost.program_clock import program_clock
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import CostModel
from clustersim.topology.topology import Topology
from clustersim.workload.arrays import Arrays
from clustersim.workload.op import Collective, Op

__all__ = ["local_costs"]


def local_costs(
    topology: Topology,
    programs: Sequence[Arrays],
    program_of: NDArray[np.int64],
    kind_of: NDArray[np.int64],
    device: NDArray[np.int64],
    slowdown: NDArray[np.float64],
    cost: CostModel,
) -> dict[tuple[int, int], tuple[LocalCost | None, ...]]:
    """(program, kind of device) -> cost of each distinct op; None for a collective."""
    num_kinds = int(kind_of.max()) + 1 if len(kind_of) else 0
    pairs, examples = np.unique(program_of * max(num_kinds, 1) + kind_of, return_index=True)
    costs: dict[tuple[int, float, float], dict[Op, LocalCost]] = defaultdict(dict)  # stages share most of their ops
    table = {}
    for pair, rank in zip(pairs, examples, strict=True):
        program, kind = divmod(int(pair), num_kinds)
        d = int(device[rank])
        gpu, cpu = topology.gpus[topology.gpu_of[d]], topology.cpus[topology.cpu_of[d]]
        at = partial(_at_clock, programs[program], gpu, cpu, d, topology, cost)
        full = at(costs[kind, 1.0, 1.0], 1.0, 1.0)  # a straggler keeps the clock of the others, so its factor is whole
        clock, slower = program_clock(programs[program], gpu, full), float(slowdown[rank])
        found = at(costs[kind, slower, clock], slower, clock)
        table[program, kind] = tuple(None if isinstance(op, Collective) else found[op] for op in programs[program].ops)
    return table


def _at_clock(
    program: Arrays,
    gpu: GPU,
    cpu: CPU,
    device: int,
    topology: Topology,
    cost: CostModel,
    found: dict[Op, LocalCost],
    slowdown: float,
    clock: float,
) -> dict[Op, LocalCost]:
    """``found`` with what is missing of the program's ops, on a GPU at a part of its clock."""
    clocked = gpu.at_clock(clock)
    for op in program.ops:
        if op not in found and not isinstance(op, Collective):
            found[op] = local_cost(op, clocked, cpu, device, topology, cost, slowdown)
    return found
