"""What is saved: every byte of weights and optimizer state once, from where it is."""

from __future__ import annotations

from collections import Counter
from types import ModuleType
from typing import Any

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.workload.checkpoint import STRATEGIES, Asynchronous, Checkpoint, Lazy, Synchronous
from clustersim.workload.model import Model
from clustersim.workload.offload import MlpOffload, OffloadPolicy, ZeroInfinity, ZeroOffload
from clustersim.workload.op import Storage


def job_of(model: Model, policy: Checkpoint | None, *, num_devices: int = 4, **plan: Any) -> cs.Job:
    return cs.training_step(
        model,
        cs.ParallelPlan(checkpoint=policy, **plan),
        global_batch=16,
        micro_batch=1,
        seq_len=128,
        num_devices=num_devices,
    )


def moved(job: cs.Job) -> Counter[tuple[str, str]]:
    """Bytes that all ranks save in a round, by the op's name and kind."""
    found: Counter[tuple[str, str]] = Counter()
    for role in job.program_of.tolist():
        arrays = job.programs[role].arrays()
        saves = arrays.phase == arrays.phases.index("checkpoint")
        for op in (arrays.ops[n] for n in arrays.op[saves].tolist()):
            assert isinstance(op, cs.Copy | cs.Storage | cs.HostWork)
            found[op.name, op.kind] += op.nbytes
    return found


@pytest.mark.parametrize(
    "plan",
    [
        {"dp": 4},
        {"dp": 4, "zero": 1},
        {"dp": 4, "zero": 3},
        {"dp": 4, "fsdp": True, "hsdp": 2},
        {"tp": 2, "dp": 2, "zero": 1, "sequence_parallel": False},
        {"pp": 2, "dp": 2, "zero": 2},
        {"pp": 2, "dp": 2, "vpp": 2},
        {"pp": 2, "dp": 2, "schedule": "dualpipe"},
    ],
)
def test_every_byte_is_saved_once(llama: Model, plan: dict[str, Any]) -> None:
    """Vocabulary and norms are padded or held twice with tp, so a little more is saved then."""
    job = job_of(llama, Asynchronous(), **plan)
    of = moved(job)
    spare = 1.02 if "tp" in plan else 1.0001
    for name, width in (("save weights", 2), ("save optimizer", 12)):
        assert width * llama.num_parameters <= of[name, "d2h"] <= spare * width * llama.num_parameters
    assert of["write checkpoint", "fs_write"] == of["save weights", "d2h"] + of["save optimizer", "d2h"]


@pytest.mark.parametrize(
    ("offload", "kind"),
    [(ZeroOffload(), "copy"), (ZeroInfinity(subgroup_size=10**6), "nvme_read"), (None, "d2h")],
)
def test_state_that_is_off_the_gpu_does_not_leave_it(llama: Model, offload: OffloadPolicy | None, kind: str) -> None:
    of = moved(job_of(llama, Lazy(), dp=4, zero=3 if offload else 0, offload=offload))
    factor = 2 if kind == "copy" else 1  # a pass of the CPU reads and writes
    assert of["save optimizer", kind] == pytest.approx(factor * 12 * llama.num_parameters, rel=1e-4)


def test_what_a_cache_keeps_is_not_read_from_drives(llama: Model) -> None:
    """Other subgroups stay on the host in every other step."""
    policy = MlpOffload(subgroup_size=10**6, tiers=("nvme",), cache=1)
    job = job_of(llama, Lazy(), dp=4, zero=3, offload=policy)
    assert job.period == policy.period == 2
    of, plain = moved(job), moved(job_of(llama, Lazy(), dp=4, zero=3, offload=ZeroInfinity(subgroup_size=10**6)))
    assert of["save optimizer", "copy"] > 0
    both = of["save optimizer", "copy"] // 2 + of["save optimizer", "nvme_read"]
    assert both == pytest.approx(2 * plain["save optimizer", "nvme_read"], rel=1e-4)


def test_a_synchronous_save_writes_host_memory_from_where_it_is(llama: Model) -> None:
    of = moved(job_of(llama, Synchronous(), dp=4, zero=3, offload=ZeroOffload()))
    assert not [name for name, kind in of if kind == "copy"]
    assert of["serialise", "serialise"] == 2 * of["write checkpoint", "fs_write"]


def test_files_and_versions(llama: Model) -> None:
    job = job_of(llama, Asynchronous(files=3, chunk_bytes=2**20, keeps=5, every=2, metadata_bytes=1000), dp=4, zero=1)
    assert job.period == 2
    arrays = job.programs[0].arrays()
    ops = [arrays.ops[n] for n in arrays.op.tolist()]
    assert sum(op.files for op in ops if isinstance(op, Storage)) == 3
    assert {f"checkpoint write {k}" for k in range(3)} <= set(arrays.streams)
    part = sum(op.nbytes for op in ops if isinstance(op, Storage)) - 1000
    assert arrays.resident["file_system/checkpoints"] == 5 * part
    assert job.pools["checkpoint buffer"].capacity == part


@pytest.mark.parametrize("policy", [kind(every=3, tier="nvme", chunk_bytes=2**21) for kind in STRATEGIES.values()])
@pytest.mark.parametrize(
    "offload", [None, ZeroOffload(delayed=True), ZeroInfinity(subgroup_size=10**6, pinned_weights=True)]
)
def test_what_is_taken_is_given_back(
    llama: Model, policy: Checkpoint, offload: OffloadPolicy | None, star: ModuleType
) -> None:
    job = job_of(llama, policy, dp=4, zero=3 if offload else 1, offload=offload, launch="none")
    for program in job.programs:
        arrays = program.arrays()
        for key in range(len(arrays.memory_keys)):
            assert arrays.memory[arrays.memory[:, 2] == key, 3].sum() == 0, arrays.memory_keys[key]
        for pool in range(len(arrays.pools)):
            use = arrays.pool_use[arrays.pool_use[:, 2] == pool]
            assert use[use[:, 1] == 0, 3].sum() == use[use[:, 1] == 1, 3].sum()
    if policy.pinned:
        runs = [cs.simulate(star.cluster(2, 2), job, steps=6, fold=fold) for fold in (True, False)]
        folded, full = (cs.summary(run) for run in runs)
        assert folded["status"] == full["status"] == "ok"
        assert folded["step_times_s"] == full["step_times_s"]


def test_a_thread_that_issues_kernels_waits_too(llama: Model) -> None:
    """Of a step behind a save, the first call of the host waits for it; and the calls of an update, for lazy copies."""
    for policy, phase in ((Asynchronous(every=2), "forward"), (Lazy(every=2), "optimizer")):
        arrays = job_of(llama, policy, dp=4, zero=1, launch="eager").programs[0].arrays()
        saves = arrays.phases.index("checkpoint")
        held = arrays.carries[arrays.phase[arrays.carries[:, 0]] == saves][:, 1]
        host = held[arrays.stream[held] == arrays.streams.index("host")]
        assert [arrays.phases[arrays.phase[k]] for k in host.tolist()] == [phase]


def test_what_cannot_be_saved_is_refused(llama: Model) -> None:
    with pytest.raises(BadInput) as error:
        job_of(llama, Lazy(), dp=4, sync_every=2)
    assert [fault.key for fault in error.value.faults] == ["plan.sync_every"]
    with pytest.raises(BadInput) as error:
        job_of(llama, Lazy(every=0, pool_bytes=0, files=2, tier="host"), dp=4)
    wrong = {fault.key for fault in error.value.faults}
    assert wrong == {f"plan.checkpoint.{name}" for name in ("every", "pool_bytes", "files")}
    with pytest.raises(BadInput):
        job_of(llama, "lazy", dp=4)  # type: ignore[arg-type]
