"""Products in parts: the same work and bytes, in an order whose end can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import networkx as nx
import numpy as np
import pytest

import clustersim as cs
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Cost, Kernel
from clustersim.hardware.roofline import roofline
from clustersim.workload.exchange import Exchange
from clustersim.workload.job import Job
from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.layers.piece import Piece
from clustersim.workload.model import Model
from clustersim.workload.op import Collective, Compute
from clustersim.workload.passes.chain import Chain
from clustersim.workload.passes.tensor_parallel import gather, reduction
from clustersim.workload.passes.tensor_parallel_overlap import as_tokens_come, as_tokens_go
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard
from clustersim.workload.tensor_overlap import TensorOverlap
from clustersim.workload.training_step import training_step

Way = Literal["ring", "pipeline"]
TP = 4
BATCH: dict[str, Any] = {"global_batch": 8, "micro_batch": 2, "seq_len": 128}


@pytest.fixture
def shard(llama: Model, new_shard: Callable[..., Shard]) -> Shard:
    return new_shard(llama, tp=TP, sequence_parallel=True)


def kernels_of(pieces: Sequence[Piece]) -> list[Kernel]:
    return [kernel for piece in pieces if isinstance(piece.op, Compute) for kernel in piece.op.kernels]


def collectives_of(pieces: Sequence[Piece]) -> list[Collective]:
    return [piece.op for piece in pieces if isinstance(piece.op, Collective)]


class TestWork:
    @pytest.mark.parametrize("way", ["ring", "pipeline"])
    @pytest.mark.parametrize("build", [attention, mlp])
    def test_the_flop_are_those_of_the_whole_product(
        self, shard: Shard, build: Callable[[Shard], Any], way: Way
    ) -> None:
        overlap = TensorOverlap(gather=way, reduce=way, num_chunks=3)
        for pieces in (build(shard).forward, build(shard).backward):
            cut = as_tokens_go(as_tokens_come(pieces, shard, overlap, what="x"), shard, overlap, what="y")
            assert sum(k.flops for k in kernels_of(cut)) == sum(k.flops for k in kernels_of(pieces))
            rows = [k.m for k in kernels_of(cut) if k.kind == "gemm"]
            parts = [shard.rows] * TP if way == "ring" else [TP * n for n in (21, 21, 22)]
            assert all(rows.count(m) >= 2 for m in parts)  # the first product and the last

    def test_a_ring_sends_what_a_ring_algorithm_sends(self, shard: Shard) -> None:
        """Each rank sends (t-1)/t of the whole; gathered, always to its neighbour, reduced, once to every other."""
        overlap = TensorOverlap(gather="ring", reduce="ring")
        come = collectives_of(as_tokens_come(mlp(shard).forward, shard, overlap, what="x"))
        assert sum(op.nbytes for op in come) == shard.full_nbytes * (TP - 1) // TP
        assert len(set(come)) == 1
        go = collectives_of(as_tokens_go(mlp(shard).forward, shard, overlap, what="y"))
        assert sum(op.nbytes for op in go) == shard.full_nbytes * (TP - 1) // TP
        to = [op.algorithm.share[0].index(1.0) for op in go if isinstance(op.algorithm, Exchange)]
        assert to == [1, 2, 3]

    @pytest.mark.parametrize("num_chunks", [1, 3, 64])
    def test_chunks_have_all_the_bytes(self, shard: Shard, num_chunks: int) -> None:
        overlap = TensorOverlap(gather="pipeline", reduce="pipeline", num_chunks=num_chunks)
        for pieces in (
            as_tokens_come(mlp(shard).forward, shard, overlap, what="x"),
            as_tokens_go(mlp(shard).forward, shard, overlap, what="y"),
        ):
            found = collectives_of(pieces)
            assert len(found) == num_chunks
            assert sum(op.nbytes for op in found) == shard.full_nbytes

    def test_the_matrix_is_read_again_for_each_part(self, shard: Shard) -> None:
        overlap = TensorOverlap(gather="ring")
        cut = as_tokens_come(mlp(shard).forward, shard, overlap, what="x")
        more = sum(k.nbytes for k in kernels_of(cut)) - sum(k.nbytes for k in kernels_of(mlp(shard).forward))
        assert more == (TP - 1) * shard.width * shard.model.hidden * shard.mlp_in_features


class TestOneChunk:
    """One chunk is the collective and the product as they were."""

    @pytest.mark.parametrize("plan", [{}, {"overlap_tp": False}, {"recompute": "full"}, {"pp": 2, "schedule": "zb-h1"}])
    def test_it_is_the_program_without_overlap(self, llama: Model, plan: dict[str, Any]) -> None:
        whole, one = (
            training_step(llama, ParallelPlan(tp=4, dp=1, **plan, **given), **BATCH)
            for given in ({}, {"tp_overlap": "pipeline", "tp_overlap_chunks": 1})
        )
        cluster = cs.load_topology("dgx-h100")
        times = [cs.summary(cs.simulate(cluster, job))["step_times_s"] for job in (whole, one)]
        assert times[0] == times[1]


@pytest.mark.parametrize("tp_overlap", ["ring", "pipeline", "userbuffers"])
@pytest.mark.parametrize(
    "plan", [{}, {"overlap_tp": False}, {"recompute": "full", "pp": 2}, {"schedule": "zb-h1", "pp": 2}]
)
def test_the_step_ends_and_gives_all_its_memory_back(
    llama: Model, run_untimed: Callable[[Job], Any], plan: dict[str, Any], tp_overlap: str
) -> None:
    job = training_step(llama, ParallelPlan(tp=4, dp=1, tp_overlap=tp_overlap, **plan), **BATCH)
    done = run_untimed(job)
    assert done.complete
    assert done.lowest == 0
    assert not any(left for left in done.left.values())


@pytest.mark.parametrize(
    "changes",
    [{"parallel_residual": True}, {"experts": Experts(num_experts=4, top_k=2, ffn_hidden=64, every=2)}],
    ids=["parallel residual", "experts in every second layer"],
)
def test_other_layers(
    llama: Model, run_untimed: Callable[[Job], Any], flops_of: Callable[..., int], changes: dict[str, Any]
) -> None:
    model = replace(llama, **changes)
    plain, ring = (
        training_step(model, ParallelPlan(tp=4, dp=1, tp_overlap=word), **BATCH) for word in ("none", "ring")
    )
    assert flops_of(ring.programs[0]) == flops_of(plain.programs[0])
    assert len(ring.programs[0]) > len(plain.programs[0])
    done = run_untimed(ring)
    assert done.complete
    assert done.lowest == 0
    assert not any(done.left.values())


class TestTime:
    """A product of t parts that take g each, and collectives that take e each beside it, alone on their links."""

    def cluster(self) -> cs.Topology:
        graph: nx.Graph[str] = nx.Graph()
        graph.add_node("switch", role="switch")
        for g in range(TP):
            graph.add_node(f"gpu{g}", role="gpu", node=0)
            graph.add_edge(f"gpu{g}", "switch", bandwidth="100 GB/s", latency="1 us")
        return cs.Topology.from_networkx(graph, gpu=cs.load_part("gpu", "h100-sxm"), cpu=cs.load_part("cpu", "grace"))

    def ends_ns(self, pieces: Sequence[Piece], flop_per_s: float) -> tuple[int, list[int], list[int]]:
        """End of the run, durations of its products, of its collectives."""

        def cost(kernel: Kernel, gpu: GPU) -> Cost:
            return Cost(seconds=kernel.flops / flop_per_s, bound="tensor", provenance="assumed")

        chain = Chain(stage=0, phase="forward")
        chain.write(pieces, layer=0)
        program = chain.fragment([0]).program
        group = cs.GroupFamily(name="tp", members=np.arange(TP)[None], slots=("tp",))
        job = cs.Job(name="x", programs=(program,), program_of=np.zeros(TP, np.int64), families=(group,))
        run = cs.simulate(self.cluster(), job, cost=cost, overlap={"sm": 0, "hbm": 0})
        rows = run.trace[run.trace["rank"] == 0]
        took = (rows["end_ns"] - rows["start_ns"]).astype(int)
        of = rows["category"] == "communication"
        products = took[~of & ~rows["name"].str.startswith("sum")]
        return int(rows["end_ns"].max()), products.tolist(), took[of].tolist()

    @pytest.mark.parametrize("flop_per_s", [1e12, 1e14])  # products that take longer than their messages, and shorter
    @pytest.mark.parametrize("way", ["ring", "pipeline"])
    @pytest.mark.parametrize("side", ["come", "go"])
    def test_the_end(self, shard: Shard, side: str, way: Way, flop_per_s: float) -> None:
        product = next(piece for piece in mlp(shard).forward if piece.product)
        overlap = TensorOverlap(gather=way, reduce=way, num_chunks=TP)
        make = as_tokens_come if side == "come" else as_tokens_go
        end, (g, *_), (e, *_) = self.ends_ns(make([product], shard, overlap, what="x"), flop_per_s)
        if way == "ring":
            expected = g + (TP - 1) * max(g, e) if side == "come" else max(TP * g, g + (TP - 1) * e)
        else:
            expected = g + e + (TP - 1) * max(g, e)
        assert abs(end - expected) <= 2 * TP  # each of them is rounded up
        op = gather(shard, "x") if side == "come" else reduction(shard, "x")
        whole = [Piece(op=op), product] if side == "come" else [product, Piece(op=op)]
        after, products, collectives = self.ends_ns(whole, flop_per_s)
        assert after == sum(products) + sum(collectives)
        assert max(sum(products), sum(collectives)) <= end
        if g > e:
            assert end < after

    def test_parts_of_small_products_are_slower(self, shard: Shard) -> None:
        """By the cost model alone: a part pays for a launch, and fills the GPU less."""
        gpu = cs.load_part("gpu", "h100-sxm")
        product = next(piece.product for piece in mlp(shard).forward if piece.product)
        whole = sum(roofline(k, gpu).seconds for k in product.kernels(shard))
        parts = TP * sum(roofline(k, gpu).seconds for k in product.kernels(shard, tokens=shard.rows))
        assert parts > 1.5 * whole


def test_the_words_of_a_plan() -> None:
    assert TensorOverlap.of("none") == TensorOverlap()
    assert TensorOverlap.of("ring") == TensorOverlap(gather="ring", reduce="ring")
    assert TensorOverlap.of("userbuffers", num_chunks=2) == replace(
        TensorOverlap(gather="ring", reduce="pipeline"), num_chunks=2
    )
