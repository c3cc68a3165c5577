"""What a device holds beside the ledger, added up by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.analysis.device_memory import CONTEXT_NBYTES, device_memory
from clustersim.analysis.stage_memory import stage_memory
from clustersim.trace.collectives import CollectiveRecord

MIB = 2**20
PER_CHANNEL = 512 * 1024 + 4_915_200 + 4 * MIB


def collective(axis: str, *, channels: int, members: int = 8, job: int = 0) -> CollectiveRecord:
    numbers = dict.fromkeys(("nbytes", "num_groups", "num_nodes", "alone_ns", "latency_ns", "busiest_link_nbytes"), 1)
    words = dict.fromkeys(("algorithm", "protocol", "busiest_link", "slowest_group", "reason"), "")
    return CollectiveRecord(
        job=job,
        axis=axis,
        family=axis,
        kind="all_reduce",
        num_members=members,
        num_channels=channels,
        num_per_step=1,
        **numbers,
        **words,
    )


def held(scene, collectives, *, dtypes=("bf16", "fp8")):
    lane = scene.lane(groups={"tp": "tp/tp/0", "dp": "dp/dp/3"})
    lane.program.resident["gpu/weights"] = 10 * MIB + 1
    lane.add(scene.compute(), (0, 0, 1))
    run = scene.run()
    (stage,) = stage_memory(run.record, run.topology)
    gpu = replace(run.topology.gpus[0], tensor_flop_per_s=dict.fromkeys(dtypes, 1e12))
    return device_memory(stage, run.record.lanes[0], gpu, collectives)


def test_communicators_are_counted_once_at_their_widest(scene):
    chosen = [
        collective("tp", channels=16),
        collective("tp", channels=24),
        collective("dp", channels=2),
        collective("ep", channels=8),  # of no group of this rank
        collective("dp", channels=32, members=1),
        collective("tp", channels=32, job=1),
    ]
    device = held(scene, chosen)
    assert device.communicator_bytes == 26 * PER_CHANNEL
    assert device.device_bytes == device.reserved_bytes + CONTEXT_NBYTES + 26 * PER_CHANNEL


@pytest.mark.parametrize(("dtypes", "workspace"), [(("bf16", "fp8"), 32 * MIB), (("bf16",), 8 * MIB + 128 * 1024)])
def test_segments_hold_tensors_and_the_workspace_of_cublas(scene, dtypes, workspace):
    device = held(scene, [], dtypes=dtypes)
    assert device.allocated_bytes == 10 * MIB + 1 + workspace
    assert 0 <= device.reserved_bytes - device.allocated_bytes < 2 * MIB
    assert device.reserved_bytes % (2 * MIB) == 0
