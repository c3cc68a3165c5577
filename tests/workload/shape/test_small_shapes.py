"""Patches, encoders, towers, adapters and random features by themselves."""

from collections.abc import Callable

import pytest

from clustersim.workload.shape.encoder import Encoder
from clustersim.workload.shape.linear_attention import LinearAttention
from clustersim.workload.shape.lora import LoRA
from clustersim.workload.shape.patches import Patches
from clustersim.workload.shape.tower import Tower

PATCHES = Patches(image_size=12, patch_size=4)


def test_patches() -> None:
    assert (PATCHES.num_patches, PATCHES.num_tokens) == (9, 10)
    assert PATCHES.matrix(7) == (3 * 16, 7)
    assert PATCHES.parameters(7) == 48 * 7 + 7 + 7
    assert Patches(image_size=12, patch_size=4, class_token=False, bias=False).parameters(7) == 48 * 7


def test_random_features() -> None:
    # Two maps of d to M, one outer and one inner product of M × d, 2 FLOP an element, for each of a heads.
    assert LinearAttention(features=5).flops(num_heads=2, head_dim=3) == 2 * 4 * (2 * 5 * 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Patches(image_size=12, patch_size=5), "patch_size: 5 must divide the image's edge of 12"),
        (lambda: LinearAttention(features=0), "features: 0 must be a whole number from 1"),
        (lambda: LoRA(rank=0), "rank: 0 must be a whole number from 1"),
        (
            lambda: LoRA(rank=4, targets=("q", "q")),
            "targets: q,q must name some of q, k, v, o, gate, up, down, each once",
        ),
        (lambda: LoRA(rank=4, targets=()), "targets: none must name some of"),
        (
            lambda: Encoder(num_layers=0, num_heads=1, head_dim=1, ffn_hidden=1),
            "num_layers: 0 must be a whole number from 1 to 10000",
        ),
        (
            lambda: Tower(num_layers=1, hidden=4, num_heads=1, head_dim=4, ffn_hidden=8, projection=0, patches=PATCHES),
            "projection: 0 must be a whole number from 1",
        ),
    ],
)
def test_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        make()
