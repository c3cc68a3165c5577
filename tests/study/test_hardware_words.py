"""Hardware that is written in several ways."""

from __future__ import annotations

import pytest

from clustersim.study.hardware_words import has_words, sizes_told


@pytest.mark.parametrize(
    ("hardware", "words", "has"),
    [
        ("H100-80GB-PCIe", ("h100 pcie",), True),
        ("A100-SXM4 40 GiB", ("a100", "40gb"), True),
        ("A100-40G", ("a100", "40gb"), True),
        ("DGX A100 640GB", ("a100", "40gb"), False),
        ("A100, 40 Gb/s", ("a100", "40gb"), False),
        ("A100-SXM4, PCIe Gen4", ("a100 pcie",), False),
        ("H200", ("h20",), False),
        ("L40S", ("l4",), False),
        ("MI355X", ("mi355",), True),
    ],
)
def test_joints_case_and_sizes(hardware: str, words: tuple[str, ...], has: bool) -> None:
    assert has_words(hardware, words) is has


def test_sizes_are_no_rates() -> None:
    assert sizes_told("8x H100 80GB, 3200 Gb/s, 2 TB host") == (80,)
