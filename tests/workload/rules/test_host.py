"""What the host's settings go with."""

from __future__ import annotations

from typing import Any

import pytest

from clustersim.library.model import load_model
from clustersim.workload.case import Case
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.rules import find_faults
from clustersim.workload.rules.host import host_notes


def case(**plan: Any) -> Case:
    whole = ParallelPlan(**{"dp": 1, **plan})
    return Case(model=load_model("gpt2"), plan=whole, global_batch=8, micro_batch=1, seq_len=512, dtype="bf16")


@pytest.mark.parametrize(
    ("plan", "faults"),
    [
        ({"launch": "eager", "wait_norm": True, "update_kernels": "foreach", "optimizer": "adamw"}, []),
        ({"launch": "modules", "pp": 2, "wait_messages": True}, []),
        ({"launch": "modules", "pp": 2, "vpp": 2, "wait_messages": True}, [("plan.wait_messages", False)]),
        ({"launch": "modules", "pp": 2, "schedule": "zb-h1", "wait_messages": True}, [("plan.wait_messages", False)]),
        ({"launch": "layers", "pp": 2, "wait_layers": True}, []),
        ({"launch": "layers", "pp": 2, "vpp": 2, "wait_layers": True}, [("plan.wait_layers", False)]),
        ({"launch": "modules", "pp": 2, "wait_kernels": True}, []),
        ({"launch": "modules", "pp": 2, "schedule": "zb-h1", "wait_kernels": True}, [("plan.wait_kernels", False)]),
        ({"update_kernels": "loop", "optimizer": "lion"}, [("plan.update_kernels", "fused")]),
        ({"launch": "egaer"}, [("plan.launch", "eager")]),
        ({"update_kernels": "fuse"}, [("plan.update_kernels", "fused")]),
        ({"clip": 1}, [("plan.clip", True)]),
    ],
)
def test_faults(plan: dict[str, Any], faults: list[tuple[str, object]]) -> None:
    assert [(fault.key, fault.nearest) for fault in find_faults(case(**plan))] == faults


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ({"wait_norm": True}, ["plan.wait_norm"]),
        ({"wait_messages": True, "pp": 2}, ["plan.wait_messages"]),
        ({"wait_messages": True, "launch": "eager"}, ["plan.wait_messages"]),
        ({"wait_layers": True}, ["plan.wait_layers"]),
        ({"module_hooks": True}, ["plan.module_hooks"]),
        ({"module_hooks": True, "launch": "eager"}, []),
        ({"wait_layers": True, "launch": "layers"}, []),
        ({"wait_kernels": True}, ["plan.wait_kernels"]),
        ({"memory_breakdown": True}, ["plan.memory_breakdown"]),
        ({"memory_breakdown": True, "launch": "layers"}, []),
        ({"wait_kernels": True, "launch": "eager"}, []),
        ({"wait_messages": True, "wait_norm": True, "launch": "eager", "pp": 2}, []),
    ],
)
def test_settings_without_effect(plan: dict[str, Any], told: list[str]) -> None:
    assert [note.partition(":")[0] for note in host_notes(case(**plan))] == told
