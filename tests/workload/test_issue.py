"""The calls of the host: each op is issued once, in order, before it can start."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from clustersim.workload.exchange import Dispatch
from clustersim.workload.host_calls import LAUNCHES
from clustersim.workload.issue import issue
from clustersim.workload.job import Job
from clustersim.workload.layers.dispatch import ROUTING_MAPS, TOKEN_COUNTS
from clustersim.workload.model import Model
from clustersim.workload.offload import OffloadPolicy, Zero3Offload
from clustersim.workload.op import Collective, Compute, HostLaunch
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.training_step import training_step

HOSTS = [launching for launching in LAUNCHES if launching != "none"]
KINDS = ("forward", "backward", "experts", "experts_backward", "operators", "collectives", "compiled", "entries")
KINDS += ("graphs", "waits", "hooks", "hooks_backward", "collections")
PLANS: list[dict[str, Any]] = [
    {"dp": 2},
    {"dp": 2, "fsdp": True, "recompute": "full"},
    {"dp": 2, "tp": 2, "pp": 2, "zero": 1, "recompute": "selective"},
    {"dp": 1, "pp": 4, "schedule": "zb-h1"},
    {"dp": 1, "pp": 2, "vpp": 2, "tp": 2},
]


def step(model: Model, **plan: Any) -> Job:
    return training_step(model, ParallelPlan(**plan), global_batch=8, micro_batch=1, seq_len=128)


def calls(program: Program) -> Counter[str]:
    arrays = program.arrays()
    found: Counter[str] = Counter()
    for k in arrays.op.tolist():
        op = arrays.ops[k]
        if isinstance(op, HostLaunch):
            for name in KINDS:
                found[name] += getattr(op, name)
    return found


def kernels(program: Program) -> Counter[str]:
    arrays = program.arrays()
    found: Counter[str] = Counter()
    for k in arrays.op.tolist():
        op = arrays.ops[k]
        if isinstance(op, Compute):
            found["kernels"] += sum(kernel.count for kernel in op.kernels)
        found["collectives"] += isinstance(op, Collective)
    return found


@pytest.mark.parametrize("plan", PLANS)
def test_every_kernel_is_issued_once(llama: Model, plan: dict[str, Any]) -> None:
    for plain, issued in zip(step(llama, **plan).programs, step(llama, **plan, launch="eager").programs, strict=True):
        work, issuing = kernels(plain), calls(issued)
        assert issuing["forward"] + issuing["backward"] + issuing["operators"] == work["kernels"]
        assert issuing["collectives"] == work["collectives"]
        assert work == kernels(issued)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("launching", HOSTS)
def test_nothing_else_changes(llama: Model, plan: dict[str, Any], launching: str) -> None:
    for plain, issued in zip(step(llama, **plan).programs, step(llama, **plan, launch=launching).programs, strict=True):
        before, after = plain.arrays(), issued.arrays()
        n = len(before)
        assert [before.ops[k] for k in before.op] == [after.ops[k] for k in after.op[:n]]
        assert all(isinstance(after.ops[k], HostLaunch) for k in after.op[n:])
        kept = after.edges[(after.edges < n).all(axis=1)]
        np.testing.assert_array_equal(kept, before.edges)
        np.testing.assert_array_equal(after.memory, before.memory)


@pytest.mark.parametrize("plan", PLANS)
def test_what_runs_waits_for_its_issue(llama: Model, plan: dict[str, Any], run_untimed: Any) -> None:
    job = step(llama, **plan, launch="modules", wait_norm=True)
    done = run_untimed(job)
    assert done.complete
    for rank, order in done.order.items():
        arrays = job.programs[job.program_of[rank]].arrays()
        assert isinstance(arrays.ops[arrays.op[order[0]]], HostLaunch)
        gpu = [k for k in order if not isinstance(arrays.ops[arrays.op[k]], HostLaunch)]
        issued = {int(b) for b, a in arrays.edges if isinstance(arrays.ops[arrays.op[b]], HostLaunch) and a in gpu}
        host = [k for k in order if isinstance(arrays.ops[arrays.op[k]], HostLaunch)]
        assert issued >= set(host[:-1])


def test_without_a_host_nothing_is_added(gpt: Model) -> None:
    plain, told = step(gpt, dp=1), step(gpt, dp=1, wait_norm=True, wait_messages=True)
    assert [p.arrays().digest for p in plain.programs] == [p.arrays().digest for p in told.programs]
    program = Program("empty")
    issue(program, "eager")
    assert len(program) == 0


def test_a_pass_of_a_layer_is_one_op(gpt: Model) -> None:
    (program,) = step(gpt, dp=1, launch="eager").programs
    arrays = program.arrays()
    host = [k for k in range(len(arrays)) if isinstance(arrays.ops[arrays.op[k]], HostLaunch)]
    forwards = [k for k in host if arrays.phases[arrays.phase[k]] == "forward" and arrays.micro_batch[k] == 0]
    assert arrays.layer[forwards].tolist() == [-1, *range(gpt.num_layers), -1]


@pytest.mark.parametrize("launching", ["eager", "layers", "modules"])
def test_kernels_count_where_they_are_issued(gpt: Model, launching: str) -> None:
    program = step(gpt, dp=1, recompute="full", launch=launching).programs[0]
    arrays = program.arrays()
    expected: Counter[str] = Counter()
    for k in range(len(arrays)):
        op, phase = arrays.ops[arrays.op[k]], arrays.phases[arrays.phase[k]]
        if isinstance(op, Compute):
            again = op.recomputed or phase == "forward"
            lines = phase == "optimizer" or (op.name.startswith("loss") and launching != "eager")
            where = "operators" if lines else "forward" if again else "backward"
            expected[where] += sum(kernel.count for kernel in op.kernels)
    assert all(expected[where] for where in ("forward", "backward", "operators"))
    found = calls(program)
    assert {where: found[where] for where in expected} == expected


def test_graphs_and_compiled_regions_are_entered_once_a_pass(llama: Model) -> None:
    passes = 8 * 2 * (llama.num_layers + 2)
    graphs = calls(step(llama, dp=1, launch="cuda_graphs").programs[0])
    assert graphs["graphs"] == passes
    assert graphs["operators"] < 5
    compiled = calls(step(llama, dp=1, launch="compiled").programs[0])
    assert compiled["entries"] == graphs["graphs"]
    assert compiled["compiled"] > compiled["entries"]


def test_modules_that_are_captured_are_one_call_a_pass(llama: Model) -> None:
    plain, graphs = (step(llama, dp=1, launch="modules", cuda_graphs=of).programs[0] for of in ((), ("attn", "mlp")))
    passes = 8 * 2 * llama.num_layers
    before, after = calls(plain), calls(graphs)
    assert after["graphs"] == passes
    captured: Counter[str] = Counter()
    arrays = plain.arrays()
    for k in np.flatnonzero(arrays.layer >= 0).tolist():
        op, phase = arrays.ops[arrays.op[k]], arrays.phases[arrays.phase[k]]
        if isinstance(op, Compute) and phase != "optimizer":
            captured[phase] += sum(kernel.count for kernel in op.kernels)
    assert after["forward"] == before["forward"] - captured["forward"] + passes
    assert after["backward"] == before["backward"] - captured["backward"]
    assert after["operators"] == before["operators"]


def test_experts_are_outside_of_graphs() -> None:
    from clustersim.library.model import load_model

    scopes = ("attn", "moe_router", "moe_preprocess")
    plans = ({}, {"cuda_graphs": scopes}, {"cuda_graphs": scopes, "expert_kernels": "each"})
    plain, graphs, each = (
        calls(
            training_step(
                load_model("mixtral-8x7b"),
                ParallelPlan(dp=2, ep=2, launch="modules", **plan),  # type: ignore[arg-type]
                global_batch=2,
                micro_batch=1,
                seq_len=128,
            ).programs[0]
        )
        for plan in plans
    )
    layers = 32
    assert plain["collectives"] - graphs["collectives"] == layers  # counts of tokens
    # a call to sort, two products, an activation and a call to sort back, and the graph's own
    assert 6 * layers <= graphs["forward"] < plain["forward"] - 5 * layers
    assert graphs["waits"] == plain["waits"]
    # two products of three further experts forward, four backward
    assert each["experts"] == 2 * 3 * layers
    assert each["experts_backward"] == 4 * 3 * layers
    assert each["forward"] == graphs["forward"]


def test_gradients_are_reduced_where_they_are_whole(gpt: Model) -> None:
    job = step(gpt, dp=2, launch="eager", bucket_bytes=1_000_000)
    arrays = job.programs[0].arrays()
    host = {int(a): int(b) for b, a in arrays.edges if isinstance(arrays.ops[arrays.op[b]], HostLaunch)}
    reductions = [k for k in range(len(arrays)) if arrays.ops[arrays.op[k]].name == "all-reduce gradients"]
    assert len(reductions) > 2
    passes = [b for k, b in host.items() if arrays.phases[arrays.phase[k]] == "backward" and arrays.micro_batch[k] == 3]
    assert min(passes) < host[reductions[0]] < max(passes)


def test_the_host_waits_where_it_reads(gpt: Model) -> None:
    program = step(gpt, dp=1, launch="modules", wait_norm=True).programs[0]
    arrays = program.arrays()
    norm, update = (k for k in range(len(arrays)) if arrays.ops[arrays.op[k]].category == "optimizer")
    assert arrays.ops[arrays.op[norm]].name == "gradient norm"
    edges = {(int(b), int(a)) for b, a in arrays.edges}
    (host,) = (a for b, a in edges if b == norm and isinstance(arrays.ops[arrays.op[a]], HostLaunch))
    assert (host, update) in edges
    assert arrays.ops[arrays.op[host]].waits == 1


def test_messages_that_are_waited_for(gpt: Model) -> None:
    job = step(gpt, dp=1, pp=2, launch="modules", wait_messages=True)
    arrays = job.programs[1].arrays()
    edges = [(int(b), int(a)) for b, a in arrays.edges]
    waited = {
        b for b, a in edges if isinstance(arrays.ops[arrays.op[a]], HostLaunch) and arrays.ops[arrays.op[a]].waits
    }
    messages = [k for k in range(len(arrays)) if getattr(arrays.ops[arrays.op[k]], "axis", "") == "pp"]
    assert len(messages) > 10
    assert waited >= {k for k in messages if arrays.ops[arrays.op[k]].kind in ("send", "recv")}


@pytest.mark.parametrize("plan", [{"dp": 2, "fsdp": True}, {"dp": 1, "tp": 2}, {"dp": 2, "tp": 2, "pp": 2, "zero": 1}])
def test_a_host_that_waits_for_kernels_issues_them_in_turn(
    llama: Model, plan: dict[str, Any], run_untimed: Any
) -> None:
    job = step(llama, **plan, launch="modules", wait_kernels=True)
    assert run_untimed(job).complete
    for plain, program in zip(step(llama, **plan).programs, job.programs, strict=True):
        arrays, work = program.arrays(), kernels(plain)
        assert calls(program)["waits"] == work["kernels"] + work["collectives"]
        hosts = [k for k in range(len(arrays)) if isinstance(arrays.ops[arrays.op[k]], HostLaunch)]
        edges = [(int(b), int(a)) for b, a in arrays.edges]
        waited = {b for b, a in edges if a in hosts and b < len(plain)}
        last = {a for b, a in edges if b == hosts[-1]}
        assert waited >= set(range(min(last)))


@pytest.mark.parametrize(("dispatch", "name"), [("all_to_all", TOKEN_COUNTS), ("hybridep", ROUTING_MAPS)])
def test_what_tells_of_tokens_is_read_before_they_are_sent(dispatch: Dispatch, name: str) -> None:
    from clustersim.library.model import load_model

    model = load_model("mixtral-8x7b")
    plan = ParallelPlan(dp=2, ep=2, dispatch=dispatch, launch="modules")
    job = training_step(model, plan, global_batch=2, micro_batch=1, seq_len=128)
    arrays = job.programs[0].arrays()
    counts = [k for k in range(len(arrays)) if arrays.ops[arrays.op[k]].name == name]
    read = {int(b) for b, a in arrays.edges if isinstance(arrays.ops[arrays.op[a]], HostLaunch)}
    assert len(counts) == model.num_layers
    assert read >= set(counts)


@pytest.mark.parametrize("plan", PLANS[:3])
@pytest.mark.parametrize("launching", HOSTS)
def test_waiting_for_kernels_adds_no_calls(llama: Model, plan: dict[str, Any], launching: str) -> None:
    ahead, in_turn = (
        [calls(program) for program in step(llama, **plan, launch=launching, wait_kernels=wait).programs]
        for wait in (False, True)
    )
    for free, held in zip(ahead, in_turn, strict=True):
        assert {**free, "waits": 0} == {**held, "waits": 0}


@pytest.mark.parametrize("launching", HOSTS)
def test_each_step_between_exchanges_has_the_same_calls(llama: Model, launching: str) -> None:
    """Local SGD: a program of several steps enters each pass once a step."""
    one, two, three = (calls(step(llama, dp=2, sync_every=n, launch=launching).programs[0]) for n in (1, 2, 3))
    assert all(three[name] - two[name] == two[name] - one[name] for name in one)
    for name in ("compiled", "entries", "graphs"):
        assert two[name] == 2 * one[name]


def test_a_product_in_parts_is_one_call(llama: Model) -> None:
    plan = {"tp": 4, "dp": 1, "sequence_parallel": True, "launch": "modules"}
    whole, parts = (calls(step(llama, **plan, tp_overlap=overlap).programs[0]) for overlap in ("none", "userbuffers"))
    # sums of what a ring brings are kernels of their own, and what is gathered again for weights' gradients a call
    assert whole["forward"] == parts["forward"]
    assert whole["backward"] <= parts["backward"] <= 1.3 * whole["backward"]
    assert whole["collectives"] <= parts["collectives"] <= 1.5 * whole["collectives"]


def test_a_host_that_waits_in_layers_stops_before_each_mlp(gpt: Model) -> None:
    program = step(gpt, dp=1, recompute="full", launch="layers", wait_layers=True).programs[0]
    arrays = program.arrays()
    ops = [arrays.ops[k] for k in arrays.op]
    before: dict[int, list[int]] = {}
    for b, a in arrays.edges.tolist():
        before.setdefault(a, []).append(b)
    waiting = [k for k, op in enumerate(ops) if isinstance(op, HostLaunch) and op.waits]
    # 8 micro-batches, forward and again before backward
    assert len(waiting) == 8 * 2 * gpt.num_layers
    for k in waiting:
        (awaited,) = (b for b in before[k] if isinstance(ops[b], Compute))
        assert ops[awaited].kind == "norm"
        (issued,) = (a for a, of in before.items() if k in of and isinstance(ops[a], Compute))
        assert ops[issued].kind == "mlp"
        # what it waits for has been issued: the calls of that pass end before the wait
        assert calls_before(program, k)["forward"] >= sum(
            sum(kernel.count for kernel in op.kernels)
            for j, op in enumerate(ops[: awaited + 1])
            if isinstance(op, Compute) and arrays.phases[arrays.phase[j]] == "forward"
        )


@pytest.mark.parametrize("policy", [None, Zero3Offload()])
@pytest.mark.parametrize("plan", [{}, {"recompute": "full", "wait_kernels": True}])
def test_garbage_is_collected_six_times_a_micro_batch(
    gpt: Model, plan: dict[str, Any], policy: OffloadPolicy | None
) -> None:
    """DeepSpeed, runtime/engine.py: before and after forward, backward and step."""
    whole, plain = (
        step(gpt, dp=1, launch="layers", offload=policy, **plan, memory_breakdown=on).programs[0]
        for on in (True, False)
    )
    told = calls(whole)
    assert told["collections"] == 6 * 8 * whole.arrays().period
    assert {**told, "collections": 0} == {**calls(plain), "collections": 0}


def test_hooks_go_around_what_has_weights_each_time_that_it_runs(gpt: Model) -> None:
    plain, hooked = (
        calls(step(gpt, dp=1, attention="unfused", recompute="full", launch="layers", module_hooks=on).programs[0])
        for on in (False, True)
    )
    # a layer: two norms and four products, not those of scores, forward and again; beside layers an embedding, a norm
    # and a head
    assert hooked["hooks"] == 8 * (2 * 6 * gpt.num_layers + 3)
    assert hooked["hooks_backward"] == 8 * (10 * gpt.num_layers + 4)
    assert hooked - Counter({"hooks": hooked["hooks"], "hooks_backward": hooked["hooks_backward"]}) == plain


def test_what_a_graph_holds_has_no_hooks(gpt: Model) -> None:
    program = step(gpt, dp=1, launch="layers", module_hooks=True, cuda_graphs=("attn",)).programs[0]
    # two products of the MLP remain in a layer
    assert calls(program)["hooks"] == 8 * (2 * gpt.num_layers + 3)


def calls_before(program: Program, host: int) -> Counter[str]:
    arrays = program.arrays()
    found: Counter[str] = Counter()
    for k in arrays.op[:host].tolist():
        op = arrays.ops[k]
        if isinstance(op, HostLaunch):
            found += Counter(forward=op.forward, backward=op.backward)
    return found
