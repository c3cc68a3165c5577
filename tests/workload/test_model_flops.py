"""Model FLOP against loops over tokens, and against closed forms from papers."""

from dataclasses import replace

import pytest

from clustersim.workload.model import Model
from clustersim.workload.model_flops import ModelFlops, forward_flops, training_flops
from clustersim.workload.shape.encoder import Encoder
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shape.latent_attention import LatentAttention
from clustersim.workload.shape.linear_attention import LinearAttention
from clustersim.workload.shape.lora import LoRA
from clustersim.workload.shape.mamba import Mamba
from clustersim.workload.shape.patches import Patches
from clustersim.workload.shape.sliding_window import SlidingWindow
from clustersim.workload.shape.tower import Tower

DENSE = Model(
    name="tiny",
    num_layers=4,
    hidden=12,
    num_heads=6,
    num_kv_heads=2,
    head_dim=5,
    ffn_hidden=29,
    gated_mlp=True,
    vocab=17,
    max_seq_len=64,
    norm="rmsnorm",
    positions="rope",
    tied_embeddings=False,
)
S = 16


def test_a_dense_decoder_is_palms_formula() -> None:
    flops = training_flops(DENSE, S)
    assert flops.matmul == 6 * DENSE.matmul_parameters * S
    assert flops.attention_full == 12 * DENSE.num_layers * 30 * S * S
    assert flops.attention == flops.attention_full // 2
    assert flops.total == flops.matmul + flops.attention
    assert flops.total_full_attention == flops.matmul + flops.attention_full


@pytest.mark.parametrize("window", [1, 5, 16, 40])
def test_a_window_counts_the_pairs_in_it(window: int) -> None:
    # Pairs on a grid fine enough that the half cell on the diagonal is small: token t sees from t - w to t.
    fine = 64
    length, reach = S * fine, window * fine
    pairs = sum(min(t + 0.5, reach) for t in range(length)) / fine**2
    model = replace(DENSE, window=SlidingWindow(tokens=window))
    assert forward_flops(model, S).attention == pytest.approx(4 * pairs * 4 * 30, rel=1e-3)
    assert forward_flops(model, S).attention_full == forward_flops(DENSE, S).attention_full


def test_layers_without_the_window_see_all() -> None:
    alternating = replace(DENSE, window=SlidingWindow(tokens=4, full_every=2))
    everywhere = replace(DENSE, window=SlidingWindow(tokens=4))
    pair = forward_flops(DENSE, S).attention + forward_flops(everywhere, S).attention
    assert forward_flops(alternating, S).attention == pair // 2


def test_an_encoder_has_no_mask() -> None:
    flops = forward_flops(replace(DENSE, causal=False), S)
    assert flops.attention == flops.attention_full == forward_flops(DENSE, S).attention_full


def test_experts_count_as_often_as_a_token_meets_them() -> None:
    model = replace(DENSE, ffn_hidden=0, experts=Experts(num_experts=8, top_k=2, ffn_hidden=7))
    met = 4 * (12 * 50 + 30 * 12 + 12 * 8 + 2 * 3 * 12 * 7) + 12 * 17
    assert training_flops(model, S).matmul == 6 * met * S
    assert model.matmul_parameters == met


def test_latent_attention_has_heads_of_two_widths() -> None:
    latent = LatentAttention(kv_rank=6, nope_dim=4, rope_dim=2, value_dim=3)
    model = replace(DENSE, num_kv_heads=6, head_dim=6, latent=latent)
    assert forward_flops(model, S).attention_full == 4 * 6 * 2 * S**2 * (6 + 3)


def test_random_features_grow_with_the_sequence() -> None:
    model = replace(DENSE, linear=LinearAttention(features=9))
    assert forward_flops(model, 2 * S).attention == 2 * forward_flops(model, S).attention
    assert forward_flops(model, S).attention == 4 * S * 8 * 6 * 9 * 5


def test_a_state_space_scans() -> None:
    model = replace(
        DENSE,
        num_heads=0,
        num_kv_heads=0,
        head_dim=0,
        ffn_hidden=0,
        positions="none",
        mamba=Mamba(version=1, inner=24, state=3, dt_rank=2),
    )
    flops = forward_flops(model, S)
    assert (flops.attention, flops.scan) == (0, 4 * S * 7 * 24 * 3)
    assert flops.matmul == 2 * S * (4 * (12 * 48 + 24 * 8 + 2 * 24 + 24 * 12) + 12 * 17)


def test_an_encoder_reads_its_own_number_of_tokens() -> None:
    encoder = Encoder(num_layers=3, num_heads=6, head_dim=5, ffn_hidden=29)
    model = replace(DENSE, num_kv_heads=6, positions="relative", relative_buckets=8, encoder=encoder)
    e = 40
    flops = forward_flops(model, S, encoder_seq_len=e)
    self_attention, mlp = 4 * 12 * 30, 3 * 12 * 29
    decoder = 4 * (S * (self_attention + mlp + 2 * 12 * 30) + e * 2 * 12 * 30) + S * 12 * 17
    assert flops.matmul == 2 * (decoder + 3 * e * (self_attention + mlp))
    assert flops.attention == 4 * (2 * 30 * S**2 + 4 * 30 * S * e) + 3 * 4 * 30 * e**2
    assert forward_flops(model, S) == forward_flops(model, S, encoder_seq_len=S)
    assert forward_flops(model, S).matmul == 2 * S * model.matmul_parameters


def test_frozen_weights_have_no_gradient() -> None:
    adapted = replace(DENSE, adapters=LoRA(rank=2))
    flops = training_flops(adapted, S)
    assert flops.matmul == 4 * DENSE.matmul_parameters * S + 6 * adapted.adapter_parameters * S
    assert flops.attention == training_flops(DENSE, S).attention


def test_a_module_that_predicts_further_tokens_is_a_layer_a_matrix_and_the_head() -> None:
    with_module = forward_flops(replace(DENSE, mtp=1), S)
    more = with_module.matmul - forward_flops(DENSE, S).matmul
    layer = 12 * 50 + 30 * 12 + 3 * 12 * 29
    assert more == 2 * S * (layer + 2 * 12 * 12 + 12 * 17)


def test_an_image_is_as_long_as_its_patches() -> None:
    model = replace(
        DENSE,
        causal=False,
        head=False,
        vocab=0,
        max_seq_len=10,
        num_classes=5,
        patches=Patches(image_size=12, patch_size=4),
    )
    layers = 4 * (12 * 50 + 30 * 12 + 3 * 12 * 29)
    assert forward_flops(model, 10).matmul == 2 * (10 * layers + 9 * 48 * 12 + 12 * 5)
    with pytest.raises(ValueError, match=r"^seq_len: 11 must be the 10 tokens of an image"):
        forward_flops(model, 11)


def test_a_second_tower_sees_its_own_tokens() -> None:
    tower = Tower(
        num_layers=3,
        hidden=8,
        num_heads=2,
        head_dim=4,
        ffn_hidden=16,
        projection=6,
        patches=Patches(image_size=12, patch_size=4),
    )
    text = replace(DENSE, head=False)
    both = forward_flops(replace(text, tower=tower), S)
    image = 10 * 3 * (4 * 8 * 8 + 3 * 8 * 16) + 9 * 48 * 8
    assert both.matmul - forward_flops(text, S).matmul == 2 * (image + 12 * 6 + 8 * 6)
    assert both.attention - forward_flops(text, S).attention == 3 * 4 * 8 * 10**2


def test_flops_add_up() -> None:
    one = ModelFlops(matmul=1, attention=2, attention_full=3, scan=4)
    assert one + one == one * 2
    assert (one.total, one.total_full_attention) == (7, 8)
