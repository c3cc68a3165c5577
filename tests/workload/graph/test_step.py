"""The job of a graph: bytes that leave arrive, gradients are reduced once, and the run takes what can be worked out."""

from __future__ import annotations

import numpy as np
import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.topology.topology import Topology
from clustersim.workload.graph import Estimate, Graph, GraphOp, graph_step
from clustersim.workload.job import Job
from clustersim.workload.op import Collective

NET = Graph(
    name="net",
    ops=(
        GraphOp(name="stem", seconds=1e-3, out_nbytes=1e6, parameters=1_000_000, device=0),
        GraphOp(name="left", seconds=2e-3, out_nbytes=2e6, after=("stem",), parameters=2_000_000, device=0),
        GraphOp(name="middle", seconds=2e-3, out_nbytes=3e6, after=("stem",), parameters=3_000_000, device=1),
        GraphOp(name="right", seconds=1e-3, out_nbytes=3e6, after=("stem",), parameters=4_000_000, device=1),
        GraphOp(name="join", seconds=1e-3, after=("left", "middle", "right"), parameters=5_000_000, device=0),
    ),
)


@pytest.fixture(scope="module")
def dgx1() -> Topology:
    return cs.load_topology("dgx1-v100")


def messages(job: Job, device: int, kind: str) -> list[tuple[str, int]]:
    arrays = job.programs[device].arrays()
    ops = [arrays.ops[k] for k in arrays.op.tolist()]
    return [(op.slot, op.nbytes) for op in ops if isinstance(op, Collective) and op.kind == kind]


@pytest.mark.parametrize("estimate", [None, Estimate(bandwidth=2e10)])
def test_what_leaves_arrives(estimate: Estimate | None) -> None:
    job = graph_step(NET, batch=1, devices=2, replicas=3, estimate=estimate)
    assert cs.check(job) == []
    assert [n for _, n in messages(job, 0, "send")] == [n for _, n in messages(job, 1, "recv")]
    assert [n for _, n in messages(job, 1, "send")] == [n for _, n in messages(job, 0, "recv")]
    # forward: stem once for both its readers, then middle and right; backward: their gradients, and stem's summed once
    assert sorted(n for _, n in messages(job, 0, "send")) == [1_000_000, 3_000_000, 3_000_000]
    assert sorted(n for _, n in messages(job, 1, "send")) == [1_000_000, 3_000_000, 3_000_000]


def test_gradients_are_reduced_once_and_in_buckets() -> None:
    for bucket, counts in ((1, (3, 2)), (12_000_000, (2, 2)), (10**9, (1, 1))):
        job = graph_step(NET, batch=1, devices=2, replicas=4, bucket_nbytes=bucket)
        reduced = [messages(job, d, "all_reduce") for d in (0, 1)]
        assert tuple(map(len, reduced)) == counts
        assert [sum(n for _, n in r) for r in reduced] == [4 * 8_000_000, 4 * 7_000_000]
    alone = graph_step(NET, batch=1, devices=2)
    assert messages(alone, 0, "all_reduce") == []
    (family,) = [f for f in job.families if f.name == "dp"]
    assert family.members.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_a_shared_gradient_waits_for_all_that_share() -> None:
    steps = tuple(
        GraphOp(name=f"t{k}", seconds=1e-3, out_nbytes=1, beside="t0", parameters=0 if k else 100) for k in range(3)
    )
    job = graph_step(Graph(name="shared", ops=steps), batch=1, replicas=2, bucket_nbytes=1)
    arrays = job.programs[0].arrays()
    names = [arrays.ops[k].name for k in arrays.op.tolist()]
    at = names.index("all-reduce gradients")
    before = arrays.edges[arrays.edges[:, 1] == at][:, 0]
    assert [names[k] for k in before] == [[n for n in names if n.endswith("backward")][-1]]


def test_one_device_takes_three_times_its_forward_pass(dgx1: Topology) -> None:
    job = graph_step(NET, batch=2, update_nbytes=0)
    step = cs.summary(cs.simulate(dgx1, job))["step_time_s"]
    assert step == pytest.approx(3 * 2 * 7e-3)


def test_two_devices_take_what_is_estimated_without_contention(dgx1: Topology) -> None:
    pair = dgx1.route(np.array([0]), np.array([1]))[0]
    rows = pair[pair >= 0]
    bandwidth = float(dgx1.resources.capacity[rows].min())
    estimate = Estimate(bandwidth=bandwidth)
    for placement in ("column", "list"):
        job = graph_step(NET, batch=1, devices=2, placement=placement, estimate=estimate, update_nbytes=0)
        step = cs.summary(cs.simulate(dgx1, job))["step_time_s"]
        # the estimate knows no latency and no protocol; the messages here take 0.1 ms of some 14
        assert step == pytest.approx(job.plan["estimate_s"], rel=0.03)
        assert step < 3 * 7e-3


def test_memory_comes_back_to_what_stays(dgx1: Topology) -> None:
    job = graph_step(NET, batch=1, devices=2)
    for program in job.programs:
        arrays = program.arrays()
        assert arrays.memory[:, 3].sum() == 0
        assert (arrays.memory[:, 3] > 0).any()
    assert job.programs[0].resident == {"gpu/weights": 32e6, "gpu/gradients": 32e6, "gpu/optimizer": 32e6}
    alone = cs.summary(cs.simulate(dgx1, graph_step(NET, batch=1)))["peak_memory_bytes"]["gpu"]
    # weights, gradients, momentum; the outputs of four ops; the gradients that join makes of three of them; and, as the
    # first of these three goes back, that of stem's output
    assert alone == 3 * 60e6 + (1 + 2 + 3 + 3) * 1e6 + (2 + 3 + 3) * 1e6 + 1e6


def test_a_backward_pass_of_ones_own(dgx1: Topology) -> None:
    own = Graph(
        name="own",
        ops=(
            GraphOp(name="f", seconds=1e-3, out_nbytes=10, parameters=100),
            GraphOp(name="b", seconds=5e-3, after=("f",), phase="backward", beside="f"),
        ),
    )
    job = graph_step(own, batch=1, replicas=2, update_nbytes=0)
    assert len(job.programs[0]) == 3
    assert messages(job, 0, "all_reduce") == [("dp", 400)]
    assert 6e-3 < cs.summary(cs.simulate(dgx1, job))["step_time_s"] < 6.1e-3


def test_work_grows_with_the_batch_where_it_does() -> None:
    g = Graph(
        name="g",
        ops=(
            GraphOp(name="a", flops=100, nbytes=10, out_nbytes=4, parameters=50, launches=2),
            GraphOp(name="b", flops=100, per_sample=False, after=("a",), out_nbytes=4),
        ),
    )
    job = graph_step(g, batch=8, replicas=2)
    a, b, b_back, a_back = [job.programs[0].arrays().ops[k] for k in job.programs[0].arrays().op.tolist()[:4]]
    assert (a.flops, a.nbytes) == (800, 80 + 200)
    assert (b.flops, b.nbytes) == (100, 32 + 4)
    assert (b_back.flops, a_back.flops) == (200, 1600)
    assert [k.count for k in a_back.kernels] == [2, 2]
    assert (job.ledger.samples, job.ledger.tokens) == (16, 0)
    assert job.ledger.model_flops == 2 * 3 * 900


def test_a_placement_can_be_used_again() -> None:
    first = graph_step(NET, batch=1, devices=2, placement="list", estimate=Estimate(bandwidth=2e10))
    where = first.plan["placement"]
    assert set(where) == {op.name for op in NET.ops}
    again = graph_step(
        NET,
        batch=1,
        devices=2,
        placement=lambda graph, _: [where[op.name] for op in graph.ops],
        estimate=Estimate(bandwidth=2e10),
    )
    assert [p.arrays().digest for p in again.programs] == [p.arrays().digest for p in first.programs]


def test_an_idle_device_is_told() -> None:
    job = graph_step(NET, batch=1, devices=3)
    assert any("device 2" in note for note in job.notes)
    assert cs.check(job) == []


def test_every_fault_of_the_call_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        graph_step(NET, batch=0, devices=0, replicas=-1, update_nbytes=-1)
    assert [fault.key for fault in caught.value.faults] == ["batch", "devices", "replicas", "update_nbytes"]
    with pytest.raises(BadInput, match="2 ranks"):
        graph_step(NET, batch=1, devices=2, device_of_rank=[0])
    job = graph_step(NET, batch=1, devices=2, device_of_rank=[3, 5])
    assert job.devices is not None
    assert job.devices.tolist() == [3, 5]
    with pytest.raises(BadInput) as caught:
        Graph(name="x", ops=(GraphOp(name="a", seconds=1, after=("bb",)), GraphOp(name="b", seconds=1, after=("b",))))
    assert [(fault.key, fault.nearest) for fault in caught.value.faults] == [("a, after", "b"), ("b, after", None)]
