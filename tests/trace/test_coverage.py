"""What a run says is worth measuring is what measures it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import clustersim as cs
from clustersim.hardware.kernel import Kernel
from clustersim.readers import kernel_table
from clustersim.trace.coverage import Coverage
from clustersim.trace.timed_work import TimedWork

H100 = cs.load_topology("dgx-h100", nodes=1)


def work(kernel: Kernel | None = None, **changes: object) -> TimedWork:
    given = {"job": 0, "category": "compute", "seconds": 1.0, "provenance": "modelled", "spread": 0.1}
    if kernel is not None:
        given |= {"kind": kernel.kind, "device": "h100-sxm", "kernel": kernel}
    return TimedWork(**(given | changes))  # type: ignore[arg-type]


def test_missing_kernels_filled_in_are_a_table_that_measures_the_run(tmp_path: Path) -> None:
    plan = cs.ParallelPlan(dp=1, attention="unfused", dropout=True)
    job = cs.training_step(cs.load_model("gpt2"), plan, global_batch=1, micro_batch=1, seq_len=256)
    missing = pd.DataFrame(cs.simulate(H100, job).coverage.missing["kernels"])
    missing.assign(time_us=5.0).to_csv(tmp_path / "mine.csv", index=False)
    run = cs.simulate(H100, job, cost=kernel_table.read(tmp_path / "mine.csv"))
    assert run.coverage["measured"] == pytest.approx(1)
    assert run.coverage.missing["kernels"] == []


def test_the_longest_comes_first_with_its_share() -> None:
    gemm = Kernel(kind="gemm", dtype="bf16", flops=2 * 8 * 16 * 32, nbytes=1792, m=8, n=16, k=32)
    norm = Kernel(kind="memory", dtype="bf16", flops=0, nbytes=64, form="norm")
    timed = [
        work(norm, seconds=0.5, provenance="assumed"),
        work(gemm, seconds=1.0),
        work(gemm, seconds=1.0, job=1),
        work(gemm, seconds=4.5, provenance="measured", device="a40"),
        work(
            kind="all_reduce", category="communication", axis="dp", nbytes=64, num_members=8, num_nodes=2, seconds=1.0
        ),
    ]
    missing = Coverage({"measured": 0.5625, "modelled": 0.375, "assumed": 0.0625}, timed).missing
    assert missing["kernels"] == [
        {"device": "h100-sxm", "kind": "gemm", "dtype": "bf16", "m": 8, "n": 16, "k": 32, "batch": 1, "form": ""}
        | {"share": 0.25, "provenance": "modelled"},
        {"device": "h100-sxm", "kind": "memory", "dtype": "bf16", "form": "norm", "nbytes": 64}
        | {"share": 0.0625, "provenance": "assumed"},
    ]
    assert missing["collectives"] == [
        {"collective": "all_reduce", "nbytes": 64, "ranks": 8, "nodes": 2, "axis": "dp"}
        | {"share": 0.125, "provenance": "modelled"}
    ]


def test_equal_shares_stand_in_the_order_of_their_columns() -> None:
    """Whatever the order in which a run, folded or not, comes upon them."""
    sends = [
        work(kind="send_recv", category="communication", axis=axis, nbytes=nbytes, num_members=2, num_nodes=1)
        for axis, nbytes in (("pp", 64), ("cp", 64), ("pp", 32))
    ]
    orders = [Coverage({}, order).missing["collectives"] for order in (sends, sends[::-1])]
    assert orders[0] == orders[1]
    assert [(row["axis"], row["nbytes"]) for row in orders[0]] == [("pp", 32), ("cp", 64), ("pp", 64)]


def test_masks_are_told_by_their_work_and_kernels_without_a_shape_left_out() -> None:
    whole = 4 * 4 * 128 * 128 * 64
    attention = Kernel(kind="attention", dtype="bf16", flops=whole // 2, nbytes=1, m=128, n=128, k=64, batch=4)
    (row,) = Coverage({}, [work(attention)]).missing["kernels"]
    assert (row["causal"], row["backward"], row["flops"]) == (1, 0, whole // 2)
    shapeless = Kernel(kind="gemm", dtype="bf16", flops=whole, nbytes=1)
    assert Coverage({}, [work(shapeless)]).missing["kernels"] == []
