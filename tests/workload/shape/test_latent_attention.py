"""Latent attention against lists of tensors as checkpoints name them."""

from dataclasses import replace

import pytest

from clustersim.workload.shape.latent_attention import LatentAttention

LATENT = LatentAttention(kv_rank=6, nope_dim=4, rope_dim=2, value_dim=3, q_rank=7)


def test_matrices() -> None:
    assert LATENT.matrices(10, 5) == {
        "q_down": (10, 7),
        "q_up": (7, 5 * 6),
        "kv_down": (10, 6 + 2),
        "kv_up": (6, 5 * (4 + 3)),
        "attention_out": (5 * 3, 10),
    }
    assert LATENT.norm_parameters == 6 + 7


def test_queries_straight_from_the_residual_stream() -> None:
    straight = replace(LATENT, q_rank=None)
    assert straight.matrices(10, 5)["q"] == (10, 30)
    assert straight.norm_parameters == 6


@pytest.mark.parametrize("field", ["kv_rank", "nope_dim", "rope_dim", "value_dim", "q_rank"])
def test_widths_are_positive(field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field}: 0 must be a whole number from 1"):
        replace(LATENT, **{field: 0})
