"""Any spread of experts runs folded as it runs in full; what is popular sets the time; what overlaps is hidden."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.workload.shape.experts import Experts

MODEL = cs.Model(
    name="small",
    num_layers=4,
    hidden=256,
    num_heads=8,
    num_kv_heads=8,
    head_dim=32,
    ffn_hidden=512,
    gated_mlp=True,
    vocab=1024,
    max_seq_len=512,
    norm="rmsnorm",
    positions="rope",
    tied_embeddings=False,
    experts=Experts(
        num_experts=16,
        top_k=2,
        ffn_hidden=256,
        num_shared=1,
        shared_ffn_hidden=256,
        every=2,
        num_groups=4,
        top_groups=2,
    ),
)
CLUSTER = cs.load_topology("dgx-h100", nodes=2)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Plans of 16 ranks that are legal for the model."""
    tp, pp = draw(st.sampled_from([(1, 1), (2, 1), (4, 1), (1, 2), (2, 2)]))
    etp = draw(st.sampled_from([1, tp]))
    ep = draw(st.sampled_from([n for n in (1, 2, 4, 8, 16) if 16 // pp % (n * etp) == 0]))
    dispatch = draw(st.sampled_from(["all_to_all", "hierarchical", "deepep", "hybridep"]))
    plan = {
        "tp": tp,
        "pp": pp,
        "ep": ep,
        "etp": etp,
        "dispatch": dispatch,
        "zero": draw(st.integers(0, 3)),
        "overlap_dispatch": draw(st.integers(1, 3)),
        "overlap_shared": draw(st.booleans()),
        "capacity_factor": draw(st.sampled_from([None, 0.7, 1.25])),
        "recompute": draw(st.sampled_from(["none", "full"])),
    }
    if dispatch == "all_to_all":
        plan["token_imbalance"] = draw(st.sampled_from(["uniform", "zipf:0.5", "zipf:2"]))
    if pp > 1:
        plan["schedule"] = draw(st.sampled_from(["1f1b", "zb-h1", "dualpipe"]))
    return plan


def simulate(plan: dict[str, Any], *, model: cs.Model = MODEL, fold: bool = True, global_batch: int = 64) -> cs.Result:
    step = cs.training_step(
        model, cs.ParallelPlan(**plan), global_batch=global_batch, micro_batch=1, seq_len=256, num_devices=16
    )
    return cs.simulate(CLUSTER, step, steps=2, fold=fold)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans())
def test_folded_is_full(plan: dict[str, Any]) -> None:
    """With twice as many micro-batches as stages in each replica."""
    global_batch = 2 * plan["pp"] * (16 // (plan["tp"] * plan["pp"]))
    folded, full = (cs.summary(simulate(plan, fold=fold, global_batch=global_batch)) for fold in (True, False))
    for name in ("step_times_s", "peak_memory_bytes", "breakdown_s"):
        assert folded[name] == full[name]


def step_time(**plan: Any) -> float:
    return float(cs.summary(simulate(plan))["step_time_s"])


def test_the_hottest_rank_sets_the_time() -> None:
    times = [step_time(ep=16, token_imbalance=f"zipf:{s}") for s in (0, 0.5, 1, 2)]
    assert times == sorted(times)
    assert times[-1] > times[0]
    # with every copy at one rank, no rank waits for more tokens than all there are
    rows = [[1.0, 1.0] + [0.0] * 14]
    assert step_time(ep=8, token_imbalance=rows) >= step_time(ep=8, token_imbalance="zipf:2")


def test_a_capacity_takes_the_imbalance_away() -> None:
    assert step_time(ep=16, token_imbalance="zipf:2", capacity_factor=1.0) < step_time(ep=16, token_imbalance="zipf:2")


def test_once_a_node_is_less_between_nodes() -> None:
    def crossing(dispatch: str) -> float:
        table = simulate({"ep": 16, "dispatch": dispatch}).collectives
        mine = table[(table["axis"] == "ep") & (table["kind"] == "all_to_all")]
        return float(mine["busiest_link_nbytes"].max())

    assert crossing("deepep") < crossing("all_to_all")


def exposed(table: pd.DataFrame, names: tuple[str, ...]) -> tuple[float, float]:
    """Time of the named collectives, and how much of it no kernel ran beside, of one rank [ns]."""
    kernels = table[table["stream"] == "compute"]
    busy = kernels[["start_ns", "end_ns"]].to_numpy()
    mine = table[table["name"].isin(names)][["start_ns", "end_ns"]].to_numpy()
    whole = float((mine[:, 1] - mine[:, 0]).sum())
    starts, ends = np.maximum(mine[:, None, 0], busy[None, :, 0]), np.minimum(mine[:, None, 1], busy[None, :, 1])
    return whole, whole - float((ends - starts).clip(min=0).sum())


def test_dualpipe_hides_the_exchange_of_one_unit_behind_the_kernels_of_the_other() -> None:
    names = tuple(f"{way} {what}" for way in ("dispatch", "combine") for what in _SENT)
    parts = {}
    for schedule in ("1f1b", "dualpipe"):
        wide = replace(MODEL, hidden=2048, num_heads=16, num_kv_heads=16, head_dim=128, ffn_hidden=4096)
        run = simulate({"pp": 2, "ep": 8, "schedule": schedule}, model=wide)
        whole, alone = exposed(run.trace_of([0]), names)
        parts[schedule] = alone / whole
    assert parts["1f1b"] > 0.9
    assert parts["dualpipe"] < 0.5 * parts["1f1b"]


_SENT = ("tokens", "expert outputs", "output gradients", "input gradients")
