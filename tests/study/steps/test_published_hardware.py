"""Hardware in people's words."""

from __future__ import annotations

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.machine import machine_of
from clustersim.study.steps.published_hardware import find_card
from clustersim.study.steps.refusal import RefusedError


@pytest.mark.parametrize(
    ("hardware", "card", "gpu"),
    [
        ("NVIDIA H100 80GB HBM3", "dgx-h100", "h100-sxm"),
        ("H100 NVL", "h100-pcie-pairs", "h100-pcie"),
        ("A100-SXM4-40GB (AWS p4d.24xlarge)", "dgx-a100-40gb", "a100-sxm-40gb"),
        ("V100-SXM2-32GB (p3dn.24xlarge)", "aws-p3dn", "v100-sxm2"),
        ("V100-SXM2-16GB", "dgx1-v100", "v100-sxm2-16gb"),
        ("Tesla V100-PCIE-32GB", "workstation-4090", "v100-pcie"),
        ("8x RTX 4090 24GB", "workstation-4090", "rtx-4090"),
        ("NVIDIA L40S (PCIe)", "workstation-4090", "l40s"),
        ("NVIDIA L4", "workstation-4090", "l4"),
        ("Tesla T4", "workstation-4090", "t4"),
        ("GH200 (Alps, 4 a node)", "gh200-quad", "gh200"),
        ("A100-40G", "dgx-a100-40gb", "a100-sxm-40gb"),
        ("A100 40 GB", "dgx-a100-40gb", "a100-sxm-40gb"),
        ("DGX A100 640GB", "dgx-a100", "a100-sxm-80gb"),
        ("DGX A100 320GB", "dgx-a100-40gb", "a100-sxm-40gb"),
        ("A100-SXM4-80GB, PCIe Gen4 host", "dgx-a100", "a100-sxm-80gb"),
        ("NVIDIA H100-PCIE-80GB", "h100-pcie-pairs", "h100-pcie"),
        ("H100 80GB PCIe", "h100-pcie-pairs", "h100-pcie"),
        ("V100 16 GB", "dgx1-v100", "v100-sxm2-16gb"),
        ("A800 PCIe 80GB", "a100-pcie-pairs", "a100-pcie-80gb"),
        ("p5en.48xlarge", "hgx-h200", "h200-sxm"),
        ("Polaris A100", "polaris", "a100-sxm-40gb"),
        ("Frontier", "frontier", "mi250x-gcd"),
        ("DGX-2", "dgx2-v100", "v100-sxm3"),
        ("Isambard-AI GH200", "gh200-quad", "gh200"),
    ],
)
def test_a_card_and_a_gpu_stand_for_it(hardware: str, card: str, gpu: str) -> None:
    machine, told, known = machine_of(StepRow(line=2, value=1.0, hardware=hardware, gpus=4, nodes=1), 4)
    assert (machine.card, machine.topology().gpus[0].name, known) == (card, gpu, True)
    assert told == [f"card: {card} stands for {hardware}"]


@pytest.mark.parametrize(
    ("hardware", "told"),
    [
        ("A100 PCIe 40GB", ["card: its GPUs have 80 GiB; published as 'A100 PCIe 40GB'"]),
        ("DGX A100 640GB", []),
        ("H100 80GB, 400 Gb/s", []),
        ("H100", []),
    ],
)
def test_another_memory_than_the_cards_is_told(hardware: str, told: list[str]) -> None:
    _, assumed, _ = machine_of(StepRow(line=2, value=1.0, hardware=hardware, gpus=4, nodes=1), 4)
    assert assumed[1:] == told


@pytest.mark.parametrize("hardware", ["TPU v4", "A10G (g5.48xlarge)", "Gaudi 2", ""])
def test_what_has_no_card_is_refused(hardware: str) -> None:
    with pytest.raises(RefusedError):
        find_card(StepRow(line=2, value=1.0, hardware=hardware, gpus=8))


@pytest.mark.parametrize(
    ("hardware", "near"), [("MI325X", "; nearest: MI355"), ("A10G", "; nearest: A10"), ("Gaudi 2", "")]
)
def test_a_refusal_names_the_gpu_that_is_nearest(hardware: str, near: str) -> None:
    with pytest.raises(RefusedError) as refused:
        find_card(StepRow(line=2, value=1.0, hardware=hardware, gpus=8))
    assert refused.value.detail == f"hardware {hardware!r}{near}"


@pytest.mark.parametrize(("gpus", "nodes", "of_a_node"), [(1, 1, 1), (2, None, 2), (16, None, 8), (12, 2, 6)])
def test_a_node_on_pcie_has_as_many_gpus_as_are_told(gpus: int, nodes: int | None, of_a_node: int) -> None:
    machine, *_ = machine_of(StepRow(line=2, value=1.0, hardware="RTX 3090", gpus=gpus, nodes=nodes), gpus)
    assert (machine.ranks_per_node, machine.nodes) == (of_a_node, -(-gpus // of_a_node))
