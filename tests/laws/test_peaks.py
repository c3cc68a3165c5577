"""No result above a device's peaks: kernels of every shape on every GPU of the library, and the ops of whole steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.memory_model import FORMS
from clustersim.hardware.roofline import roofline
from clustersim.library import list_cards, load_part
from clustersim.workload.number_format import FORMATS
from clustersim.workload.op import Compute
from clustersim.workload.precision import RECIPES
from clustersim.workload.shape.experts import Experts

GPUS = [load_part("gpu", name) for name, _ in list_cards()["gpu"]]
CLUSTERS = [name for name, _ in list_cards()["topology"] if name not in ("mixed-a100-h100", "two-sites-h100")]
SIDES = st.one_of(st.integers(1, 300), st.integers(1, 2**16))
LENGTHS = st.one_of(st.integers(1, 300), st.integers(1, 2**17))


def dtypes(gpu: GPU) -> list[str]:
    """What the device can multiply; fp32 on its vector units where it has no others."""
    return sorted({*gpu.tensor_flop_per_s, "fp32"} & FORMATS.keys())


@st.composite
def products(draw: st.DrawFn, gpu: GPU) -> Kernel:
    dtype = draw(st.sampled_from(dtypes(gpu)))
    m, n, k, batch = draw(SIDES), draw(SIDES), draw(SIDES), draw(st.integers(1, 256))
    nbytes = FORMATS[dtype].nbytes(batch * (m * k + k * n)) + 2 * batch * m * n
    flops = 2 * batch * m * n * k
    return Kernel(kind="gemm", dtype=dtype, flops=flops, nbytes=nbytes, m=m, n=n, k=k, batch=batch)


@st.composite
def attentions(draw: st.DrawFn, gpu: GPU) -> Kernel:
    """Any mask, fewer keys than queries or more, few key heads, value heads of another width, forward or backward."""
    dtype = draw(st.sampled_from([name for name in dtypes(gpu) if name in ("fp16", "bf16")]))
    queries, keys, heads, d = draw(LENGTHS), draw(LENGTHS), draw(st.integers(1, 512)), draw(st.integers(1, 576))
    values, backward = draw(st.integers(1, d)), draw(st.booleans())
    pairs = draw(st.integers(queries, queries * keys))
    flops = pairs * heads * (6 * d + 4 * values if backward else 2 * d + 2 * values)
    shared = draw(st.sampled_from([1, 1, 4, heads]))
    nbytes = 2 * (1 + backward) * (queries * heads * (d + values) + keys * max(1, heads // shared) * (d + values))
    forms = ["", *(gpu.kernels.attention if gpu.kernels else ())]
    return Kernel(
        kind="attention",
        dtype=dtype,
        flops=flops,
        nbytes=nbytes,
        m=queries,
        n=keys,
        k=d,
        batch=heads,
        form=draw(st.sampled_from(forms)),
        backward=backward,
    )


PASSES = st.builds(
    Kernel,
    kind=st.just("memory"),
    dtype=st.just("bf16"),
    flops=st.integers(0, 10**13),
    nbytes=st.integers(0, 10**13),
    form=st.sampled_from(["", *FORMS]),
)
SHAPELESS = st.builds(
    Kernel,
    kind=st.sampled_from(["gemm", "attention"]),
    dtype=st.just("fp16"),
    flops=st.integers(0, 10**16),
    nbytes=st.integers(0, 10**13),
)


def least(kernel: Kernel, gpu: GPU) -> float:
    """What the peaks allow [s]."""
    peak = gpu.vector_flop_per_s if kernel.kind == "memory" else gpu.flop_per_s(kernel.dtype)
    return max(kernel.flops / peak, kernel.nbytes / gpu.memory_bandwidth)


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_kernel_beats_a_device(gpu: GPU, data: st.DataObject) -> None:
    kernel = data.draw(st.one_of(products(gpu), attentions(gpu), PASSES, SHAPELESS))
    costs = [kernel_cost(kernel, gpu)] + [roofline(kernel, gpu)] * (not kernel.form)
    for cost in costs:
        assert least(kernel, gpu) <= cost.seconds * (1 + 1e-12)
        assert gpu.launch_latency <= cost.seconds


MODELS = {
    "gated": cs.Model(
        name="gated",
        num_layers=4,
        hidden=1024,
        num_heads=8,
        num_kv_heads=2,
        head_dim=256,
        ffn_hidden=4096,
        gated_mlp=True,
        vocab=32_000,
        max_seq_len=4096,
        norm="rmsnorm",
        positions="rope",
        tied_embeddings=False,
    ),
    "experts": cs.Model(
        name="experts",
        num_layers=4,
        hidden=2048,
        num_heads=16,
        num_kv_heads=16,
        head_dim=128,
        ffn_hidden=0,
        gated_mlp=True,
        vocab=1000,
        max_seq_len=4096,
        norm="rmsnorm",
        positions="rope",
        tied_embeddings=True,
        experts=Experts(num_experts=8, top_k=2, ffn_hidden=1024),
    ),
}
PLANS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 1, 2]),
        "pp": st.sampled_from([1, 1, 2]),
        "zero": st.integers(0, 3),
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "attention": st.sampled_from(["flash", "unfused"]),
    }
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[cs.Topology, Any]:
    """A step on one node of a cluster, or on as few as it has."""
    name, model, plan = draw(st.sampled_from(CLUSTERS)), draw(st.sampled_from(sorted(MODELS))), draw(PLANS)
    cluster = cs.load_topology(name, nodes=1)
    known = {dtype for gpu in cluster.gpus for dtype in dtypes(gpu)}
    recipes = [recipe for recipe in RECIPES if recipe == "fp32" or RECIPES[recipe].products in known]
    job = {
        "global_batch": 2 * cluster.num_devices,
        "micro_batch": draw(st.sampled_from([1, 2])),
        "seq_len": draw(st.sampled_from([128, 1024, 4096])),
        "dtype": draw(st.sampled_from(recipes)),
        "num_devices": cluster.num_devices,
    }
    try:
        step = cs.training_step(MODELS[model], cs.ParallelPlan(**plan), **job)
        return cluster, cs.simulate(cluster, step, overlap={"sm": draw(st.sampled_from([0, 1]))})
    except (BadInput, KeyError):  # combinations that the rules refuse, and dtypes that the device has no units for
        assume(False)
        raise


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(runs())
def test_no_op_of_a_step_and_no_step_beats_its_device(run: tuple[cs.Topology, Any]) -> None:
    cluster, result = run
    (gpu,) = cluster.gpus
    for lane in result.record.lanes:
        floor = [
            sum(kernel.count * least(kernel, gpu) for kernel in op.kernels) if isinstance(op, Compute) else 0.0
            for op in lane.arrays.ops
        ]
        took = lane.end_ns - lane.start_ns
        assert (np.array(floor)[lane.ops] * 1e9 <= took + 1).all()
    summary = cs.summary(result)
    if summary["mfu"] is not None:
        assert 0 < summary["mfu"] <= summary["hfu"] <= 1
        peak = gpu.flop_per_s(result.record.jobs[0].ledger.dtype)
        assert summary["model_flops_per_gpu_per_s"] <= peak
