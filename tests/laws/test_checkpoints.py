"""Any strategy of saving, with any offloading: folded is full, and no state changes while it is copied."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.workload.checkpoint import STRATEGIES, Checkpoint, Synchronous
from clustersim.workload.offload import POLICIES, MlpOffload, OffloadPolicy

SMALL = cs.Model(
    name="small",
    num_layers=4,
    hidden=256,
    num_heads=8,
    num_kv_heads=4,
    head_dim=32,
    ffn_hidden=768,
    gated_mlp=True,
    vocab=1024,
    max_seq_len=512,
    norm="rmsnorm",
    positions="rope",
    tied_embeddings=False,
)
RANKS = 16
_COMMON: dict[str, Any] = {
    "every": st.integers(1, 3),
    "tier": st.sampled_from(["nvme", "file_system"]),
    "chunk_bytes": st.sampled_from([2**18, 2**28]),
    "files": st.integers(1, 3),
    "pinned": st.booleans(),
    "serialises": st.booleans(),
    "metadata_bytes": st.sampled_from([0, 1000]),
}
BUFFERS = st.sampled_from([None, 10**6, 10**9])
SAVES = st.one_of(
    *(
        st.builds(kind, **_COMMON, **({} if kind is Synchronous else {"pool_bytes": BUFFERS}))
        for kind in STRATEGIES.values()
    )
)
OFFLOADS = st.sampled_from(
    [
        None,
        None,
        MlpOffload(subgroup_size=200_000, tiers=("nvme",), cache=1),
        *(kind(subgroup_size=200_000) for kind in POLICIES.values() if kind is not MlpOffload),
    ]
)
PLANS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2]),
        "pp": st.sampled_from([1, 2]),
        "zero": st.sampled_from([0, 1, 2, 3]),
        "launch": st.sampled_from(["none", "eager"]),
    }
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(SAVES, OFFLOADS, PLANS, st.sampled_from([{}, {"slow_ranks": {5: 1.3}}]))
def test_folded_is_full_and_state_stays_while_it_is_copied(
    policy: Checkpoint, offload: OffloadPolicy | None, plan: dict[str, Any], perturb: dict[str, Any]
) -> None:
    job = cs.training_step(
        SMALL,
        cs.ParallelPlan(**plan, offload=offload, checkpoint=policy),
        global_batch=32,
        micro_batch=1,
        seq_len=256,
        num_devices=RANKS,
    )
    topology = cs.load_topology("polaris", nodes=RANKS // 4)
    steps = 2 * job.period + 1
    runs = [cs.simulate(topology, job, steps=steps, perturb=perturb, fold=fold) for fold in (False, True)]
    full, folded = (run.trace_of(range(RANKS)) for run in runs)
    for column in ("start_ns", "end_ns"):
        assert (full[column].to_numpy() == folded[column].to_numpy()).all()
    for program in job.programs:
        arrays = program.arrays()
        for key in range(len(arrays.memory_keys)):
            assert arrays.memory[arrays.memory[:, 2] == key, 3].sum() == 0, arrays.memory_keys[key]
        for pool in range(len(arrays.pools)):
            use = arrays.pool_use[arrays.pool_use[:, 2] == pool]
            assert use[use[:, 1] == 0, 3].sum() == use[use[:, 1] == 1, 3].sum(), arrays.pools[pool]
    table = cs.analysis.checkpoints(full)
    assert table["step"].tolist() == [n for n in range(steps) if (n + 1) % policy.every == 0]
    assert (table["committed"] >= table["copied"]).all()
    saved = 14 * SMALL.num_parameters
    assert ((saved <= table["nbytes"] - RANKS * policy.metadata_bytes) & (table["nbytes"] < 1.1 * saved + 10**5)).all()
    named = full["name"].astype(str)
    copies = full[named.str.startswith("save ") & (full["phase"] == "checkpoint")]
    updates = full[named.str.endswith("adam")]
    for (rank, step), mine in copies.groupby(["rank", "step"]):
        changes = updates[(updates["rank"] == rank) & (updates["step"] == step + 1)]
        assert not len(changes) or changes["start_ns"].min() >= mine["end_ns"].max()
