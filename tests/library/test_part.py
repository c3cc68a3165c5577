"""The part cards: all load, all say where their numbers come from, none counts a sparse peak."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.hardware.gpu import GPU
from clustersim.library import list_cards, load_part, load_parts, read_card

PARTS = ("gpu", "cpu", "superchip", "link", "nic", "switch", "drive")
CARDS = [(kind, name) for kind, cards in list_cards().items() if kind in PARTS for name, _ in cards]
GPUS = [name for kind, name in CARDS if kind == "gpu"]

# Dense FLOP per cycle and SM (or compute unit) of the 16-bit matrix units, from the vendors' architecture papers.
FLOP_PER_CYCLE = {
    "v100": 1024, "t4": 1024, "a100": 2048, "a800": 2048, "a30": 2048, "a10": 1024, "a40": 1024, "l4": 1024,
    "rtx-3090": 512, "rtx-4090": 512, "rtx-6000-ada": 1024, "h100": 4096, "h800": 4096, "h200": 4096, "gh200": 4096,
    "h20": 1024, "b200": 8192, "b300": 8192, "gb200": 8192, "gb300": 8192, "mi210": 1024, "mi250x": 1024,
    "mi300x": 2048, "mi355x": 4096,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), CARDS)
def test_a_card_loads_and_each_source_says_of_what_sort_it_is(kind: str, name: str) -> None:
    part = load_part(kind, name)
    assert part.name == name
    assert part.sources
    sorts = ("datasheet: ", "measured: ", "derived: ", "paper: ", "assumed")
    assert [s for s in part.sources.values() if not s.startswith(sorts)] == []


@pytest.mark.parametrize("name", GPUS)
def test_the_tensor_peak_is_dense(name: str) -> None:
    """A sparse peak would need a clock of twice the real one: no GPU here runs above 2.6 GHz or below 1.3."""
    gpu = load_part("gpu", name)
    family = max((f for f in FLOP_PER_CYCLE if name.startswith(f)), key=len)
    half = gpu.tensor_flop_per_s["fp16"]
    assert 1.3e9 < half / (gpu.num_sms * FLOP_PER_CYCLE[family]) < 2.6e9
    assert gpu.tensor_flop_per_s.get("bf16", half) == half
    assert gpu.tensor_flop_per_s.get("fp8", 2 * half) == pytest.approx(2 * half, rel=0.02)
    assert gpu.tensor_flop_per_s.get("mxfp8", 2 * half) == pytest.approx(2 * half, rel=0.02)
    assert 4 <= gpu.tensor_flop_per_s.get("nvfp4", 4 * half) / half <= 6
    assert gpu.tensor_flop_per_s.get("tf32", half / 2) == pytest.approx(half / 2, rel=0.03)


@pytest.mark.parametrize("name", GPUS)
def test_each_dtype_has_its_own_gemm_numbers(name: str) -> None:
    gpu = load_part("gpu", name)
    expected = ({"fp32"} | set(gpu.tensor_flop_per_s)) - {"fp16", "bf16"}
    assert set(gpu.efficiency.gemm_peak_of) == set(gpu.efficiency.gemm_half_flops_of) == expected


@pytest.mark.parametrize(
    ("name", "links", "total"),
    [("nvlink2", 6, 300e9), ("nvlink3", 12, 600e9), ("nvlink4", 18, 900e9), ("nvlink5", 18, 1.8e12)],
)
def test_links_are_counted_by_direction(name: str, links: int, total: float) -> None:
    assert 2 * links * load_part("link", name).bandwidth == total


def test_a_superchip_is_made_of_cards() -> None:
    chip = load_part("superchip", "gb200")
    assert (chip.gpu.name, chip.cpu.name, chip.num_gpus) == ("gb200", "grace-gb200", 2)
    assert chip.link.bandwidth * chip.num_gpus == load_part("superchip", "gh200").link.bandwidth


def test_a_part_is_found_beside_the_card_that_names_it(tmp_path: Path) -> None:
    text = read_card("gpu", "h100-sxm").path.read_text().replace('"3.35 TB/s"', '"4 TB/s"')
    (tmp_path / "mine.toml").write_text(text)
    gpu = load_part("gpu", "./mine.toml", beside=tmp_path / "cluster.toml")
    assert isinstance(gpu, GPU)
    assert (gpu.name, gpu.memory_bandwidth) == ("mine", 4e12)


def test_the_faults_of_several_parts_come_together(tmp_path: Path) -> None:
    (tmp_path / "wire.toml").write_text('bandwidth = "1 GB"\nlatency = 0\n[sources]\nlatency = "assumed"\n')
    beside = tmp_path / "cluster.toml"
    with pytest.raises(BadInput) as caught:
        load_parts({"node.gpu": ("gpu", "h100"), "node.link": ("link", "./wire.toml")}, beside=beside)
    assert [(f.file, f.key, f.nearest) for f in caught.value.faults] == [
        (str(beside), "node.gpu", "h100-sxm"),
        (str(tmp_path / "wire.toml"), "bandwidth", "1 GB/s"),
        (str(tmp_path / "wire.toml"), "sources.bandwidth", "assumed"),
    ]


def test_only_parts_are_loaded_here() -> None:
    with pytest.raises(BadInput, match="is no part"):
        load_part("model", "gpt2")
