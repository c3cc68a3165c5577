"""The parts refuse what no part can be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.library import load_part

GPU, CPU, LINK, NIC, SWITCH, DRIVE, CHIP = (
    load_part(kind, name)
    for kind, name in [
        ("gpu", "h100-sxm"),
        ("cpu", "grace"),
        ("link", "nvlink4"),
        ("nic", "connectx-7"),
        ("switch", "quantum-2"),
        ("drive", "nvme-gen5"),
        ("superchip", "gh200"),
    ]
)


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        (GPU, "memory_bandwidth", 0),
        (GPU, "num_sms", -1),
        (GPU, "launch_latency", float("nan")),
        (GPU, "tensor_flop_per_s", {"bf16": -1.0}),
        (GPU.efficiency, "gemm_peak", 1.01),
        (GPU.efficiency, "memory_peak", 0.0),
        (GPU.efficiency, "gemm_half_flops", -1.0),
        (GPU.efficiency, "gemm_peak_of", {"fp8": 2.0}),
        (GPU.efficiency, "gemm_half_flops_of", {"fp8": float("inf")}),
        (CPU, "num_cores", 0),
        (CPU, "memory_efficiency", 1.5),
        (CPU, "core_bandwidth", 0.0),
        (CPU, "pageable_bandwidth", float("inf")),
        (CPU, "num_numa_nodes", 0),
        (CPU.work["adam"], "efficiency", 1.2),
        (CPU.work["adam"], "core_bandwidth", -1.0),
        (CPU.work["adam_torch"], "latency", -1.0),
        (LINK, "bandwidth", float("inf")),
        (LINK, "latency", -1e-6),
        (LINK, "efficiency", 0.0),
        (LINK, "return_efficiency", 1.5),
        (LINK, "copy_latency", -1.0),
        (NIC, "bandwidth", 0.0),
        (NIC, "latency", float("nan")),
        (NIC, "efficiency", 1.1),
        (SWITCH, "radix", 0),
        (SWITCH, "latency", -1.0),
        (SWITCH, "reduction_bandwidth", 0.0),
        (SWITCH, "reduction_slots", 0),
        (DRIVE, "write_bandwidth", 0.0),
        (DRIVE, "latency", float("inf")),
        (DRIVE, "efficiency", 0.0),
        (CHIP, "num_gpus", 0),
    ],
)
def test_an_impossible_number_is_refused_by_name(part: object, field: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{field}[\w.]*: "):
        replace(part, **{field: value})  # type: ignore[type-var]


@pytest.mark.parametrize("part", [LINK, NIC])
def test_payload_bandwidth(part: object) -> None:
    assert part.payload_bandwidth == part.bandwidth * part.efficiency  # type: ignore[attr-defined]


def test_flop_per_s() -> None:
    assert GPU.flop_per_s("bf16") == GPU.tensor_flop_per_s["bf16"]
    assert GPU.flop_per_s("fp32") == GPU.vector_flop_per_s
    amd = load_part("gpu", "mi300x")
    assert amd.flop_per_s("fp32") == amd.tensor_flop_per_s["fp32"]
    with pytest.raises(KeyError, match="no int8 matrix units"):
        GPU.flop_per_s("int8")
