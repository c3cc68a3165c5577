"""ZeRO-Infinity: what goes over the drive, what a step is bound by, and when the backward pass stands still."""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs
from clustersim.analysis import phases
from clustersim.workload.offload import ZeroInfinity
from clustersim.workload.offload.back_pressure import fills_up
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.op import Copy, HostWork, Storage

MODEL = "llama-3.2-1b"
NODE = "jlse-h100"
READ, WRITE = 6.9e9, 5.3e9


def job(policy: ZeroInfinity, **changes: Any) -> cs.Job:
    plan = cs.ParallelPlan(zero=3, dp=4, recompute="full", gradient_dtype="bf16", offload=policy)
    settings = {"global_batch": 4, "micro_batch": 1, "seq_len": 1024, "num_devices": 4, **changes}
    return cs.training_step(cs.load_model(MODEL), plan, **settings)


def run(policy: ZeroInfinity, **changes: Any) -> cs.Result:
    return cs.simulate(cs.load_topology(NODE), job(policy, **changes), steps=3)


def terms(result: cs.Result) -> dict[str, float]:
    found: dict[str, float] = cs.summary(result)["phases_s"]
    return found


SMALL = ZeroInfinity(subgroup_size=20_000_000)
PARAMETERS = cs.load_model(MODEL).num_parameters


def test_bytes_of_a_parameter() -> None:
    """16 read and 12 written in the update, 4 written before; over the link 2 and 4 of gradient down, 2 of it up and 2
    of weight.
    """
    arrays = job(SMALL).programs[0].arrays()
    moved: dict[str, int] = {}
    passes: dict[str, int] = {}
    for number in arrays.op.tolist():
        op = arrays.ops[number]
        if isinstance(op, Copy | Storage):
            moved[op.kind] = moved.get(op.kind, 0) + op.nbytes
        if isinstance(op, HostWork):
            passes[op.name] = passes.get(op.name, 0) + op.nbytes
    rank = PARAMETERS / 4
    assert moved["nvme_read"] == pytest.approx(16 * rank)
    assert moved["nvme_write"] == pytest.approx(16 * rank)
    assert (moved["d2h"], moved["h2d"]) == (pytest.approx(6 * rank), pytest.approx(4 * rank))
    assert {name: nbytes / rank for name, nbytes in passes.items()} == {
        "scale gradients": pytest.approx(8),
        "cpu adam": pytest.approx(28),
        "cast weights": pytest.approx(6),
    }


def test_the_update_is_as_fast_as_one_half_duplex_drive() -> None:
    """(16 P / read + 12 P / write), and what of the gradients is left to be written, on top of little else."""
    found = terms(run(SMALL))
    update = sum(found[name] for name in ("swap_in", "update", "swap_out"))
    bound = PARAMETERS * (16 / READ + 12 / WRITE)
    left = PARAMETERS * 4 / WRITE
    assert bound < update < 1.05 * (bound + left)


def test_reads_and_writes_ahead_and_behind() -> None:
    """Serial: nothing of the drive is hidden, and the step is longer by what the CPU does."""
    both = run(SMALL)
    serial = run(ZeroInfinity(subgroup_size=20_000_000, read_ahead=False, write_behind=False))
    assert cs.summary(serial)["step_time_s"] > 1.02 * cs.summary(both)["step_time_s"]
    assert terms(serial)["swap_in_overlapped"] == pytest.approx(0, abs=0.01)
    assert terms(both)["swap_in_overlapped"] > terms(serial)["swap_in_overlapped"]
    trace = serial.trace[(serial.trace["step"] == 1) & (serial.trace["rank"] == 0)]
    update = trace[trace["phase"] == "optimizer"]
    reads, writes = (update[update["kind"] == kind].sort_values("start_ns") for kind in ("nvme_read", "nvme_write"))
    assert (reads["start_ns"].to_numpy()[1:] >= writes["end_ns"].to_numpy()[:-1]).all()


def test_full_buffers_stop_the_backward_pass_until_all_are_written() -> None:
    """With room for all gradients it runs through; with little it lasts as long as the drive needs for the rest."""
    free, tight = (terms(run(ZeroInfinity(subgroup_size=20_000_000, gradient_buffers=n)))["backward"] for n in (99, 2))
    assert free < 0.25
    assert 0.6 * PARAMETERS * 4 / WRITE < tight < 1.1 * PARAMETERS * 4 / WRITE


def test_which_groups_fill_the_buffers() -> None:
    """Ten layers of 10 behind room for 3 x 12: after three of them the fourth does not fit."""
    subgroups = [Subgroup(index=n, count=10, axis="dp", chunk=0, parts=((n, 12 if n == 0 else 10),)) for n in range(10)]
    groups = [(n,) for n in reversed(range(10))]
    full = fills_up(ZeroInfinity(gradient_buffers=3), subgroups, groups)
    assert [n for n, is_full in enumerate(full) if is_full] == [2, 5, 8]
    assert not any(fills_up(ZeroInfinity(gradient_buffers=None), subgroups, groups))


@pytest.mark.parametrize(("weights", "reads"), [("gpu", 16), ("host", 16), ("nvme", 20)])
def test_weights_on_host_or_drives(weights: str, reads: int) -> None:
    """They come for the forward and for the backward pass; on drives the update writes them back."""
    policy = ZeroInfinity(subgroup_size=20_000_000, weights=weights)  # type: ignore[arg-type]
    program = job(policy).programs[0]
    arrays = program.arrays()
    ops = [arrays.ops[number] for number in arrays.op.tolist()]
    read = sum(op.nbytes for op in ops if isinstance(op, Storage) and op.kind == "nvme_read")
    assert read == pytest.approx(reads * PARAMETERS / 4)
    fetched = sum(op.nbytes for op in ops if isinstance(op, Copy) and op.name == "fetch weights")
    assert fetched == (0 if weights == "gpu" else pytest.approx(4 * PARAMETERS / 4))
    held = {"gpu": "gpu", "host": "host_pinned", "nvme": "nvme"}[weights]
    assert program.resident[f"{held}/weights"] == pytest.approx(2 * PARAMETERS / 4, rel=1e-6)


def test_memory() -> None:
    """12 + 4 bytes on drives; 2 on the host, and three subgroups with gradient, or the gradients on their way."""
    held = job(SMALL).programs[0].resident
    rank = PARAMETERS / 4
    assert held["nvme/optimizer"] == pytest.approx(12 * rank)
    assert held["nvme/gradients"] == pytest.approx(4 * rank)
    assert held["host_pinned/flat buffer"] == pytest.approx(2 * rank)
    largest = max(held["host_pinned/buffers"] // 48, 1)
    assert held["host_pinned/buffers"] == 48 * largest
    many = job(ZeroInfinity(subgroup_size=20_000_000, gradient_buffers=32)).programs[0].resident
    assert many["host_pinned/buffers"] == 4 * 32 * largest


def test_several_micro_batches_write_once() -> None:
    once, twice = (job(SMALL, global_batch=n).programs[0].arrays() for n in (4, 8))

    def written(arrays: Any) -> int:
        ops = [arrays.ops[number] for number in arrays.op.tolist()]
        return sum(op.nbytes for op in ops if isinstance(op, Storage) and op.kind == "nvme_write")

    assert written(once) == written(twice)


def test_the_terms_are_those_of_the_trace() -> None:
    result = run(SMALL)
    table = phases(result.trace)
    assert table["swap_in"].iloc[-1] == pytest.approx(terms(result)["swap_in"])
