"""What the ops of each program take on each kind of device that plays it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.cost.alone import local_cost
from clustersim.engine.cost.local_cost import LocalCost
from clustersim.engine.cost.within_power import within_power
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
    costs: dict[tuple[int, float], dict[Op, LocalCost]] = defaultdict(dict)  # stages share most of their ops
    limited, table = within_power(cost), {}
    for pair, rank in zip(pairs, examples, strict=True):
        program, kind = divmod(int(pair), num_kinds)
        d, slower = int(device[rank]), float(slowdown[rank])
        gpu, cpu = topology.gpus[topology.gpu_of[d]], topology.cpus[topology.cpu_of[d]]
        found = costs[kind, slower]
        for op in programs[program].ops:
            if op not in found and not isinstance(op, Collective):
                found[op] = local_cost(op, gpu, cpu, d, topology, limited, slower)
        table[program, kind] = tuple(None if isinstance(op, Collective) else found[op] for op in programs[program].ops)
    return table
