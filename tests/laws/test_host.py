"""A host that is never late costs one call, one that always is sets the pace, and folding stays exact."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.analysis.breakdown import breakdown
from clustersim.hardware.launch_times import LaunchTimes
from clustersim.workload.host_calls import LAUNCHES
from clustersim.workload.offload import OffloadPolicy

HOSTS = [launching for launching in LAUNCHES if launching != "none"]
NOTHING = dict.fromkeys((field.name for field in fields(LaunchTimes)), 0.0)
MODEL = replace(cs.load_model("gpt2"), num_layers=4, vocab=2048)
NODE = cs.load_topology("dgx-h100")


def host(**times: float) -> cs.Topology:
    """A node whose host takes these times [s], 0 where none is given."""
    cpu = replace(NODE.cpus[0], launch=LaunchTimes(**{**NOTHING, **times}))
    return replace(NODE, cpus=(cpu,) * len(NODE.cpus))


def job(**plan: Any) -> cs.Job:
    whole = cs.ParallelPlan(**{"dp": 1, **plan})
    return cs.training_step(MODEL, whole, global_batch=8 * (whole.dp or 1), micro_batch=1, seq_len=512)


def kernels(op: object) -> int:
    """Kernels that an op of the host issues."""
    return sum(int(getattr(op, name, 0)) for name in ("forward", "backward", "operators"))


def step_ns(topology: cs.Topology, of: cs.Job, **arguments: Any) -> int:
    return max(int(lane.end_ns.max()) for lane in cs.simulate(topology, of, **arguments).record.lanes)


PLANS = [{"dp": 2}, {"dp": 2, "fsdp": True}, {"tp": 2, "pp": 2}, {"pp": 2, "vpp": 2}]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("launching", HOSTS)
def test_a_host_that_takes_no_time_changes_nothing(plan: dict[str, Any], launching: str) -> None:
    assert step_ns(host(), job(**plan, launch=launching)) == step_ns(host(), job(**plan))


def test_a_host_that_is_never_late_costs_its_first_call() -> None:
    call = 1e-7
    plain, issued = step_ns(host(), job()), step_ns(host(operator=call, operator_backward=call), job(launch="eager"))
    # the embedding's kernels are issued together: look-up, and what adds positions
    assert plain + 1 <= issued <= plain + 3 * 100


@pytest.mark.parametrize("policy", [None, OffloadPolicy()])
def test_garbage_holds_up_a_step_where_nothing_runs_ahead(policy: OffloadPolicy | None) -> None:
    """A host that waits for each kernel stands still for all of them, one that runs ahead for no more."""
    for wait in (True, False):
        plan = {"launch": "layers", "wait_kernels": wait, "offload": policy}
        plain, collects = (
            step_ns(host(collection=1e-3), job(**plan, memory_breakdown=on), steps=1) for on in (False, True)
        )
        spent = (collects - plain) / 48e6  # 8 micro-batches, 6 times 1 ms
        assert spent == pytest.approx(1, rel=1e-3) if wait else 0.05 < spent <= 1.001


def test_a_host_that_waits_for_kernels_adds_its_calls_to_them() -> None:
    call, wait = 1e-5, 3e-6
    topology = host(operator=call, operator_backward=call, wait=wait)
    of = job(launch="eager", wait_kernels=True)
    arrays = of.programs[0].arrays()
    issued = [arrays.ops[k] for k in arrays.op.tolist()]
    calls, waits = sum(map(kernels, issued)), sum(getattr(op, "waits", 0) for op in issued)
    assert calls == waits > 100
    together = step_ns(host(), job()) + round((calls * call + waits * wait) * 1e9)
    assert step_ns(topology, of) == pytest.approx(together, abs=len(issued))


def test_a_host_that_is_always_late_sets_the_pace() -> None:
    call, of = 1e-3, job(launch="eager")
    arrays = of.programs[0].arrays()
    calls = sum(kernels(arrays.ops[k]) for k in arrays.op.tolist())
    total = calls * 10**6
    late = host(operator=call, operator_backward=call)
    assert total <= step_ns(late, of) <= total + step_ns(host(), job())
    run = cs.simulate(late, of)
    spent = breakdown(run.trace)
    assert spent["host"].iloc[0] == pytest.approx(total / 1e9, rel=0.05)
    assert spent["bubble"].iloc[0] < 0.05 * spent["host"].iloc[0]


def test_later_calls_never_end_a_step_sooner() -> None:
    ends = [
        step_ns(host(operator=t, module=2 * t, module_backward=t), job(launch="modules"))
        for t in (0.0, 1e-6, 1e-5, 1e-4)
    ]
    assert ends == sorted(ends)
    assert ends[-1] > 2 * ends[0]


def test_a_host_that_waits_cannot_run_ahead() -> None:
    times = {"operator": 2e-5, "module": 4e-5, "module_backward": 2e-5, "wait": 1e-5}
    ahead = step_ns(host(**times), job(pp=2, launch="modules"), steps=3)
    norm = step_ns(host(**times), job(pp=2, launch="modules", wait_norm=True), steps=3)
    messages = step_ns(host(**times), job(pp=2, launch="modules", wait_norm=True, wait_messages=True), steps=3)
    assert ahead < norm < messages


def test_a_host_that_waits_in_layers_cannot_hide_slow_passes_behind_quick_ones() -> None:
    times = {"layer": 6e-5, "layer_backward": 1e-6, "wait": 1e-6}
    ahead, waits = (step_ns(host(**times), job(launch="layers", wait_layers=wait)) for wait in (False, True))
    assert ahead < waits < ahead + step_ns(host(), job())


def test_hooks_around_modules_hold_up_a_host_that_is_late() -> None:
    call = 5e-5
    times = {"layer": call, "layer_backward": call, "hook": 3 * call, "hook_backward": call}
    plain, hooked = (step_ns(host(**times), job(launch="layers", module_hooks=on)) for on in (False, True))
    modules = 8 * (3 * (6 * MODEL.num_layers + 3) + 10 * MODEL.num_layers + 4)
    # the last calls of a step are still to be made when the device has nothing left to run
    assert hooked - plain == pytest.approx(modules * call * 1e9, rel=0.02)


def test_graphs_free_the_host() -> None:
    times = {"operator": 2e-5, "operator_backward": 2e-5, "compiled": 1e-5, "entry": 2e-5, "graph": 4e-6}
    times |= {"layer": 3e-5, "layer_backward": 3e-5, "module": 4e-5, "module_backward": 4e-5}
    by = {launching: step_ns(host(**times), job(launch=launching)) for launching in HOSTS}
    assert by["cuda_graphs"] < by["compiled"] < by["eager"] < by["layers"] < by["modules"]


@settings(deadline=None, max_examples=12)
@given(
    st.sampled_from(
        [
            *PLANS,
            {"dp": 2, "tp": 2},
            {"pp": 2, "dp": 2, "wait_layers": True},
            {"dp": 2, "zero": 3, "module_hooks": True},
            {"pp": 2, "dp": 2, "wait_messages": True},
            {"pp": 2, "dp": 2, "wait_kernels": True},
        ]
    ),
    st.sampled_from(HOSTS),
    st.booleans(),
    st.sampled_from([1e-6, 3e-5]),
)
def test_folded_and_full_runs_agree(plan: dict[str, Any], launching: str, wait: bool, call: float) -> None:
    topology = host(**dict.fromkeys(NOTHING, call) | {"module": 2 * call, "compiled": call / 2})
    of = job(**plan, launch=launching, wait_norm=wait)
    folded, full = cs.simulate(topology, of, steps=2), cs.simulate(topology, of, steps=2, fold=False)
    ends = {lane.rank: lane.end_ns for lane in full.record.lanes}
    for lane in folded.record.lanes:
        np.testing.assert_array_equal(lane.end_ns, ends[lane.rank])


def test_a_cpu_without_launch_times_is_refused() -> None:
    silent = replace(NODE, cpus=tuple(replace(cpu, launch=None) for cpu in NODE.cpus))
    with pytest.raises(cs.BadInput) as refused:
        cs.simulate(silent, job(launch="eager"))
    assert [(fault.key, fault.nearest) for fault in refused.value.faults] == [("plan.launch", "none")]
    cs.simulate(silent, job())
