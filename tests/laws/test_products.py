"""Any product of the ways to train in parallel, on one mesh: folded is full, every layer is passed once each way."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.workload.op import Compute
from clustersim.workload.schedule import SCHEDULES
from clustersim.workload.shape.experts import Experts

DENSE: dict[str, Any] = {
    "name": "small",
    "num_layers": 8,
    "hidden": 256,
    "num_heads": 8,
    "num_kv_heads": 4,
    "head_dim": 32,
    "ffn_hidden": 768,
    "gated_mlp": True,
    "vocab": 1024,
    "max_seq_len": 512,
    "norm": "rmsnorm",
    "positions": "rope",
    "tied_embeddings": False,
}
EXPERTS = Experts(num_experts=8, top_k=2, ffn_hidden=256, first_dense=1)
RANKS = 32

PLANS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4]),
        "pp": st.sampled_from([1, 2, 4]),
        "cp": st.sampled_from([1, 1, 2]),
        "ep": st.sampled_from([1, 2, 4]),
        "schedule": st.sampled_from([None, *SCHEDULES]),
        "zero": st.integers(0, 3),
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "optimizer": st.sampled_from(["adam", "muon"]),
        "overlap_dp": st.booleans(),
        "overlap_tp": st.booleans(),
    }
)


@st.composite
def jobs(draw: st.DrawFn) -> cs.Job:
    """A job of 32 ranks that the rules let through; twice as many micro-batches as stages, or more, fill a pipeline."""
    plan = draw(PLANS)
    num_replicas = RANKS // (plan["tp"] * plan["pp"] * plan["cp"])
    num_micro_batches = draw(st.sampled_from([2, 2, 3])) * plan["pp"]
    if draw(st.booleans()):
        plan |= {"zero": 0, "fsdp": True, "hsdp": draw(st.sampled_from([None, 2, 4]))}
    if plan["schedule"] in ("interleaved", "breadth-first", "interleaved-zb"):
        plan["vpp"] = 2
    model = cs.Model(**DENSE, experts=draw(st.sampled_from([None, EXPERTS])))
    plan["ep"] = plan["ep"] if model.experts else 1
    if model.experts and draw(st.booleans()):
        plan["token_imbalance"] = "zipf:1.0"
    try:
        return cs.training_step(
            model,
            cs.ParallelPlan(**plan),
            global_batch=num_replicas * num_micro_batches,
            micro_batch=1,
            seq_len=256,
            dtype=draw(st.sampled_from(["bf16", "fp8"])),
            num_devices=RANKS,
        )
    except BadInput:
        assume(False)
        raise


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs(), st.sampled_from([{}, {"slow_ranks": {5: 1.3}}]))
def test_folded_is_full(job: cs.Job, perturb: dict[str, Any]) -> None:
    topology = cs.load_topology("dgx-h100", nodes=RANKS // 8)
    runs = [cs.simulate(topology, job, steps=2, perturb=perturb, fold=fold) for fold in (False, True)]
    full, folded = (run.trace_of(range(RANKS)) for run in runs)
    for column in ("start_ns", "end_ns"):
        assert (full[column].to_numpy() == folded[column].to_numpy()).all()
    summaries = [cs.summary(run) for run in runs]
    for field in ("step_times_s", "peak_memory_bytes"):
        assert summaries[0][field] == summaries[1][field]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs())
def test_every_layer_is_passed_once_each_way(job: cs.Job) -> None:
    """By each micro-batch; gradients of weights with the rest or by themselves."""
    for program in job.programs:
        arrays = program.arrays()
        attention = [isinstance(op, Compute) and op.kind == "attention" and not op.recomputed for op in arrays.ops]
        found: Counter[tuple[str, int, int]] = Counter()
        for n in np.flatnonzero(np.array(attention)[arrays.op]):
            name, phase = arrays.ops[arrays.op[n]].name, arrays.phases[arrays.phase[n]]
            if "weight gradient" not in name:
                found[phase, arrays.micro_batch[n], arrays.layer[n]] += 1
        ways = {phase: {key[1:] for key in found if key[0] == phase} for phase, _, _ in found}
        backward = ways.get("backward", set()) | ways.get("backward input", set())
        assert ways["forward"] == backward
        assert not ways.get("backward", set()) & ways.get("backward input", set())
        for phase in ways:  # as often by one micro-batch as by another: once, or once for each part of the sequence
            assert len({count for key, count in found.items() if key[0] == phase}) == 1


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs())
def test_a_step_gives_back_what_it_takes(job: cs.Job) -> None:
    for program in job.programs:
        arrays = program.arrays()
        left = np.zeros(len(arrays.memory_keys), np.int64)
        np.add.at(left, arrays.memory[:, 2], arrays.memory[:, 3])
        assert not left.any(), dict(zip(arrays.memory_keys, left.tolist(), strict=True))
