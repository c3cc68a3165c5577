"""What crosses the link and what the CPU does with a gradient."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.workload.offload.casts import Cast
from clustersim.workload.offload.gradient_path import gradient_path, gradient_width
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.op import Compute, Copy, HostWork, Storage

POLICY = OffloadPolicy()


@pytest.mark.parametrize(("cast", "sent", "kept"), [("update", 2, 2), ("late", 2, 2), ("cpu", 2, 4), ("gpu", 4, 4)])
def test_bytes_by_who_casts(cast: Cast, sent: int, kept: int) -> None:
    policy = replace(POLICY, cast=cast)
    path = gradient_path(policy, "host", 1000, width=2)
    (copied,) = [op for op in path.leave if isinstance(op, Copy)]
    assert (copied.kind, copied.nbytes) == ("d2h", sent * 1000)
    assert gradient_width(policy, 2) == kept
    assert [op.nbytes for op in path.leave if isinstance(op, Compute)] == ([6000] if cast == "gpu" else [])
    assert [op.nbytes for op in path.arrive if isinstance(op, HostWork)] == ([6000] if cast == "cpu" else [])


def test_what_stays_on_the_gpu_moves_nothing() -> None:
    assert gradient_path(POLICY, "gpu", 1000, width=2) == gradient_path(POLICY, "host", 0, width=2)
    assert not gradient_path(POLICY, "gpu", 1000, width=2).leave


def test_fp32_gradients_need_no_cast() -> None:
    for cast in ("cpu", "gpu", "late", "update"):
        path = gradient_path(replace(POLICY, cast=cast), "host", 1000, width=4)
        assert [type(op) for op in (*path.leave, *path.arrive)] == [Copy]


@pytest.mark.parametrize("cast", ["late", "update"])
def test_what_waits_in_16_bits_on_the_host_is_in_the_flat_buffer(cast: Cast) -> None:
    """It goes there once, and comes back to the GPU for its norm."""
    path = gradient_path(replace(POLICY, cast=cast, flat_buffer=True), "host", 1000, width=2)
    assert [(op.kind, op.nbytes) for op in path.leave if isinstance(op, Copy)] == [("d2h", 2000), ("h2d", 2000)]
    assert not path.arrive


def test_all_copies_of_a_gradient_are_its_owners() -> None:
    policy = replace(POLICY, cast="gpu", flat_buffer=True)
    path = gradient_path(policy, "host", 1000, width=2, adds=True, turns=3.5)
    copies = [op for op in path.leave if isinstance(op, Copy)]
    assert [(op.name, op.turns) for op in copies] == [
        ("return gradients", 3.5),
        ("buffer gradients", 3.5),
        ("offload gradients", 3.5),
    ]


def test_drives_get_the_whole_gradient_once() -> None:
    early = gradient_path(POLICY, "nvme", 1000, width=2, last=False, adds=True)
    final = gradient_path(POLICY, "nvme", 1000, width=2)
    assert [op.nbytes for op in early.arrive] == [6000]  # added on the host: two read, one written
    assert [op.nbytes for op in final.arrive if isinstance(op, Storage)] == [2000]


def test_the_cpus_norm_reads_what_waits() -> None:
    path = gradient_path(replace(POLICY, norm="cpu", cast="cpu", cast_threads=1), "host", 1000, width=2)
    assert [(op.kind, op.nbytes, op.threads) for op in path.arrive if isinstance(op, HostWork)] == [
        ("cast", 6000, 1),
        ("norm", 4000, None),
    ]
