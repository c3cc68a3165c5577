"""Cards hold dense peaks: data sheets often print twice as much, for matrices half of which is zero.

Sources: the data sheets and architecture papers of NVIDIA (V100, T4, A10, A30, A40, A100, H100, H20, H200, GH200, L4,
L40S, GA102, Ada, HGX B200 and B300, GB200 and GB300 NVL72) and of AMD (MI210, MI250X, MI300X, MI355X).
"""

from __future__ import annotations

import pytest

from clustersim.library import list_cards, load_part

GPUS = [name for name, _ in list_cards()["gpu"]]

# TFLOP/s: fp16, bf16, fp8, tf32 dense, with fp32 sums; None where the device has no such matrix units.
DENSE: dict[str, tuple[float, float | None, float | None, float | None]] = {
    "v100-sxm2": (125, None, None, None),
    "v100-sxm2-16gb": (125, None, None, None),
    "v100-sxm3": (125, None, None, None),
    "v100-pcie": (112, None, None, None),
    "t4": (65, None, None, None),
    "a10": (125, 125, None, 62.5),
    "a30": (165, 165, None, 82),
    "a40": (149.7, 149.7, None, 74.8),
    "a100-pcie-80gb": (312, 312, None, 156),
    "a100-sxm-40gb": (312, 312, None, 156),
    "a100-sxm-80gb": (312, 312, None, 156),
    "a800-sxm": (312, 312, None, 156),
    "rtx-3090": (71, 71, None, 35.6),
    "rtx-4090": (165.2, 165.2, 330.3, 82.6),
    "rtx-6000-ada": (364.2, 364.2, 728.5, 182.1),
    "l4": (121, 121, 242, 60),
    "l40s": (362, 362, 733, 183),
    "h100-pcie": (756, 756, 1513, 378),
    "h100-sxm": (989.4, 989.4, 1978.9, 494.7),
    "h100-sxm-500w": (989.4, 989.4, 1978.9, 494.7),
    "h800-sxm": (989.4, 989.4, 1978.9, 494.7),
    "h200-sxm": (989.4, 989.4, 1978.9, 494.7),
    "gh200": (989.4, 989.4, 1978.9, 494.7),
    "gh200-144gb": (989.4, 989.4, 1978.9, 494.7),
    "h20": (148, 148, 296, 74),
    "b200": (2250, 2250, 4500, 1125),
    "b300": (2250, 2250, 4500, 1125),
    "gb200": (2500, 2500, 5000, 1250),
    "gb300": (2500, 2500, 5000, 1250),
    "mi210": (181, 181, None, None),
    "mi250x-gcd": (191.5, 191.5, None, None),
    "mi300x": (1307.4, 1307.4, 2614.9, 653.7),
    "mi355x": (2516.6, 2516.6, 5033.2, None),
}
# Eight or seventy-two of them, as the data sheets have it: PFLOP/s dense, and the number of GPUs.
NVFP4 = {"b200": (72, 8), "b300": (105, 8), "gb200": (720, 72), "gb300": (1080, 72)}


def test_every_card_is_among_them() -> None:
    assert set(GPUS) == set(DENSE)


@pytest.mark.parametrize("name", GPUS)
def test_a_card_has_the_dense_peaks_of_its_data_sheet(name: str) -> None:
    has = load_part("gpu", name).tensor_flop_per_s
    told = dict(zip(("fp16", "bf16", "fp8", "tf32"), DENSE[name], strict=True))
    assert {dtype: has.get(dtype) for dtype in told} == {
        dtype: None if rate is None else pytest.approx(rate * 1e12, rel=0.01) for dtype, rate in told.items()
    }


@pytest.mark.parametrize("name", GPUS)
def test_only_blackwell_multiplies_four_bits(name: str) -> None:
    has = load_part("gpu", name).tensor_flop_per_s.get("nvfp4")
    if name in NVFP4:
        rate, num_gpus = NVFP4[name]
        assert has == pytest.approx(rate * 1e15 / num_gpus, rel=0.01)
    else:
        assert has is None


@pytest.mark.parametrize("name", GPUS)
def test_no_source_speaks_of_sparsity(name: str) -> None:
    gpu = load_part("gpu", name)
    assert [text for text in gpu.sources.values() if "spars" in text.lower()] == []
    sources = [key for key in gpu.sources if key.partition(".")[0] == "tensor_flop_per_s"]
    assert "tensor_flop_per_s" in sources


@pytest.mark.parametrize("name", GPUS)
def test_matrix_units_are_faster_the_narrower_the_format(name: str) -> None:
    """By the same factor of two from format to format, but for four bits, and never slower than vector units."""
    gpu = load_part("gpu", name)
    rates = gpu.tensor_flop_per_s
    half = rates["fp16"]
    assert rates.get("bf16", half) == half
    assert rates.get("tf32", half / 2) == pytest.approx(half / 2, rel=0.03)
    assert rates.get("fp8", 2 * half) == pytest.approx(2 * half, rel=0.02)
    assert half >= 1.9 * gpu.vector_flop_per_s
