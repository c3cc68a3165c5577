"""Small models of every architecture against lists of tensors, named as the checkpoints name them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Any

import pytest

from clustersim.workload.layer_run import LayerRun
from clustersim.workload.model import Model
from clustersim.workload.shape.encoder import Encoder
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shape.latent_attention import LatentAttention
from clustersim.workload.shape.linear_attention import LinearAttention
from clustersim.workload.shape.lora import LoRA
from clustersim.workload.shape.mamba import Mamba
from clustersim.workload.shape.patches import Patches
from clustersim.workload.shape.sliding_window import SlidingWindow
from clustersim.workload.shape.tower import Tower
from clustersim.workload.sublayer import Sublayer

LLAMA = Model(
    name="tiny-llama",
    num_layers=4,
    hidden=12,
    num_heads=6,
    num_kv_heads=2,
    head_dim=5,
    ffn_hidden=29,
    gated_mlp=True,
    vocab=17,
    max_seq_len=11,
    norm="rmsnorm",
    positions="rope",
    tied_embeddings=False,
)
BERT = Model(
    name="tiny-bert",
    num_layers=2,
    hidden=12,
    num_heads=4,
    num_kv_heads=4,
    head_dim=3,
    ffn_hidden=40,
    gated_mlp=False,
    vocab=17,
    max_seq_len=11,
    norm="layernorm",
    positions="learned",
    tied_embeddings=True,
    qkv_bias=True,
    attention_output_bias=True,
    mlp_bias=True,
    norm_bias=True,
    embedding_norm=True,
    final_norm=False,
    causal=False,
    token_types=2,
    head_bias=True,
    head_transform=True,
)
EXPERTS = Experts(num_experts=4, top_k=2, ffn_hidden=7)
MIXTRAL = replace(LLAMA, name="tiny-mixtral", ffn_hidden=0, experts=EXPERTS)
DEEPSEEK = replace(
    LLAMA,
    name="tiny-deepseek",
    num_kv_heads=6,
    head_dim=6,
    latent=LatentAttention(kv_rank=6, nope_dim=4, rope_dim=2, value_dim=3, q_rank=7),
    experts=replace(EXPERTS, first_dense=1, num_shared=1, shared_ffn_hidden=8, router_bias=True),
    mtp=1,
)
GEMMA = replace(LLAMA, name="tiny-gemma", post_norms=True, window=SlidingWindow(tokens=4, full_every=2))
FALCON = replace(LLAMA, name="tiny-falcon", parallel_residual=True, shared_norm=True)
SINKS = replace(LLAMA, name="tiny-sinks", attention_sinks=True)
T5 = replace(
    LLAMA,
    name="tiny-t5",
    num_kv_heads=6,
    positions="relative",
    relative_buckets=8,
    encoder=Encoder(num_layers=3, num_heads=6, head_dim=5, ffn_hidden=29),
)
MAMBA = replace(
    LLAMA,
    name="tiny-mamba",
    num_heads=0,
    num_kv_heads=0,
    head_dim=0,
    ffn_hidden=0,
    positions="none",
    mamba=Mamba(version=1, inner=24, state=3, dt_rank=2),
)
HYBRID = replace(
    LLAMA,
    name="tiny-hybrid",
    gated_mlp=False,
    positions="none",
    layout="M-*-",
    mamba=Mamba(version=2, inner=24, state=3, head_dim=4, groups=2),
)
VIT = replace(
    BERT,
    name="tiny-vit",
    vocab=0,
    max_seq_len=10,
    embedding_norm=False,
    final_norm=True,
    token_types=0,
    head=False,
    head_bias=False,
    head_transform=False,
    num_classes=5,
    patches=Patches(image_size=12, patch_size=4),
)
CLIP = replace(
    BERT,
    name="tiny-clip",
    tied_embeddings=False,
    embedding_norm=False,
    final_norm=True,
    causal=True,
    token_types=0,
    head=False,
    head_bias=False,
    head_transform=False,
    tower=Tower(
        num_layers=3,
        hidden=8,
        num_heads=2,
        head_dim=4,
        ffn_hidden=16,
        projection=6,
        patches=Patches(image_size=12, patch_size=4, bias=False),
    ),
)
PERFORMER = replace(LLAMA, name="tiny-performer", linear=LinearAttention(features=9))
LORA = replace(LLAMA, name="tiny-lora", adapters=LoRA(rank=2, targets=("q", "v", "up", "down")))

Shapes = Iterator[tuple[int, ...]]


def attention(hidden: int, q: int, kv: int, *, bias: bool = False) -> Shapes:
    yield from ((hidden, q), (hidden, kv), (hidden, kv), (q, hidden))
    if bias:
        yield from ((q,), (kv,), (kv,), (hidden,))


def mlp(hidden: int, ffn: int, *, gated: bool = True, bias: bool = False) -> Shapes:
    yield from [(hidden, ffn)] * (2 if gated else 1)
    yield (ffn, hidden)
    if bias:
        yield from ((ffn,), (hidden,))


def norm(width: int, *, bias: bool = False) -> Shapes:
    yield from [(width,)] * (2 if bias else 1)


def outside(positions: int = 0) -> Shapes:
    """Embedding, final norm and an untied head of the tiny Llama."""
    yield from ((17, 12), (12,), (17, 12))
    if positions:
        yield (positions,)


def llama_layers(num: int, *, norms: int = 2, extra: int = 0) -> Shapes:
    for _ in range(num):
        yield from attention(12, 30, 10)
        yield from mlp(12, 29)
        yield from [(12,)] * norms
        yield (extra,)


def mixtral() -> Shapes:
    yield from outside()
    for _ in range(4):
        yield from attention(12, 30, 10)
        yield (12, 4)
        for _ in range(4):
            yield from mlp(12, 7)
        yield from ((12,), (12,))


def deepseek() -> Shapes:
    yield from outside()
    for layer in range(4):
        yield from ((12, 7), (7,), (7, 36), (12, 8), (6,), (6, 6 * 7), (18, 12), (12,), (12,))
        if layer == 0:
            yield from mlp(12, 29)
        else:
            yield from ((12, 4), (4,))
            for _ in range(4):
                yield from mlp(12, 7)
            yield from mlp(12, 8)


def t5() -> Shapes:
    yield from outside()
    yield from ((8, 6), (8, 6), (12,))
    for _ in range(3):
        yield from attention(12, 30, 30)
        yield from mlp(12, 29)
        yield from [(12,)] * 2
    for _ in range(4):
        yield from attention(12, 30, 30)
        yield from attention(12, 30, 30)
        yield from mlp(12, 29)
        yield from [(12,)] * 3


def mamba() -> Shapes:
    yield from outside()
    for _ in range(4):
        yield from ((48, 12), (24, 4), (24,), (8, 24), (24, 2), (24,), (24, 3), (24,), (12, 24), (12,))


def hybrid() -> Shapes:
    yield from outside()
    yield from [(12,)] * 4
    yield from ((48 + 12 + 6, 12), (36, 4), (36,), (6,), (6,), (6,), (24,), (12, 24))
    yield from attention(12, 30, 10)
    for _ in range(2):
        yield from mlp(12, 29, gated=False)


def bert_layers(num: int, hidden: int, ffn: int) -> Shapes:
    for _ in range(num):
        yield from attention(hidden, hidden, hidden, bias=True)
        yield from mlp(hidden, ffn, gated=False, bias=True)
        yield from norm(hidden, bias=True)
        yield from norm(hidden, bias=True)


def bert() -> Shapes:
    yield from ((17, 12), (11, 12), (2, 12))
    yield from norm(12, bias=True)
    yield from bert_layers(2, 12, 40)
    yield from ((12, 12), (12,), (17,))
    yield from norm(12, bias=True)


def vit() -> Shapes:
    yield from ((48, 12), (12,), (12,), (10, 12), (12, 5), (5,))
    yield from bert_layers(2, 12, 40)
    yield from norm(12, bias=True)


def clip() -> Shapes:
    yield from ((17, 12), (11, 12))
    yield from bert_layers(2, 12, 40)
    yield from norm(12, bias=True)
    yield from ((48, 8), (8,), (10, 8))
    yield from bert_layers(3, 8, 16)
    yield from norm(8, bias=True)
    yield from norm(8, bias=True)
    yield from ((12, 6), (8, 6), ())


def lora() -> Shapes:
    yield from outside()
    yield from llama_layers(4)
    for _ in range(4):
        yield from ((12, 2), (2, 30), (12, 2), (2, 10), (12, 2), (2, 29), (29, 2), (2, 12))


CASES = [
    (MIXTRAL, mixtral),
    (DEEPSEEK, deepseek),
    (GEMMA, lambda: (*outside(), *llama_layers(4, norms=4))),
    (FALCON, lambda: (*outside(), *llama_layers(4, norms=1))),
    (SINKS, lambda: (*outside(), *llama_layers(4, extra=6))),
    (T5, t5),
    (MAMBA, mamba),
    (HYBRID, hybrid),
    (BERT, bert),
    (VIT, vit),
    (CLIP, clip),
    (PERFORMER, lambda: (*outside(), *llama_layers(4))),
    (LORA, lora),
]


@pytest.mark.parametrize(("model", "tensors"), CASES, ids=[model.name for model, _ in CASES])
def test_num_parameters(model: Model, tensors: Callable[[], Shapes]) -> None:
    assert model.num_parameters == sum(prod(shape) for shape in tensors())
    assert sum(model.parameters_by_part.values()) == model.num_parameters


def test_active_parameters() -> None:
    assert MIXTRAL.num_parameters - MIXTRAL.num_active_parameters == 4 * 2 * 3 * 12 * 7
    assert DEEPSEEK.num_parameters - DEEPSEEK.num_active_parameters == 3 * 2 * 3 * 12 * 7
    assert GEMMA.num_active_parameters == GEMMA.num_parameters


def test_a_module_that_predicts_further_tokens() -> None:
    one_layer_less = replace(DEEPSEEK, num_layers=3)
    layer = DEEPSEEK.num_parameters - one_layer_less.num_parameters
    assert DEEPSEEK.mtp_parameters == layer + 24 * 12 + 3 * 12
    assert DEEPSEEK.num_trainable_parameters == DEEPSEEK.num_parameters + DEEPSEEK.mtp_parameters


def test_only_adapters_are_trained() -> None:
    assert LORA.num_trainable_parameters == LORA.num_parameters - LLAMA.num_parameters == LORA.adapter_parameters


def test_matmul_parameters_are_of_the_experts_a_token_meets() -> None:
    per_layer = 12 * 50 + 30 * 12 + 12 * 4 + 2 * 3 * 12 * 7
    assert MIXTRAL.matmul_parameters == 4 * per_layer + 17 * 12


@pytest.mark.parametrize(
    ("model", "runs"),
    [
        (LLAMA, [(0, 4, ("attention", "mlp"), None)]),
        (MIXTRAL, [(0, 4, ("attention", "experts"), None)]),
        (DEEPSEEK, [(0, 1, ("latent_attention", "mlp"), None), (1, 3, ("latent_attention", "experts"), None)]),
        (
            GEMMA,
            [
                (0, 1, ("attention", "mlp"), 4),
                (1, 1, ("attention", "mlp"), None),
                (2, 1, ("attention", "mlp"), 4),
                (3, 1, ("attention", "mlp"), None),
            ],
        ),
        (T5, [(0, 4, ("attention", "cross_attention", "mlp"), None)]),
        (MAMBA, [(0, 4, ("mamba",), None)]),
        (
            HYBRID,
            [(0, 1, ("mamba",), None), (1, 1, ("mlp",), None), (2, 1, ("attention",), None), (3, 1, ("mlp",), None)],
        ),
        (PERFORMER, [(0, 4, ("linear_attention", "mlp"), None)]),
    ],
    ids=lambda value: value.name if isinstance(value, Model) else "",
)
def test_layer_runs(model: Model, runs: list[tuple[int, int, tuple[Sublayer, ...], int | None]]) -> None:
    assert model.layer_runs() == tuple(
        LayerRun(first=first, count=count, sublayers=sublayers, window=window)
        for first, count, sublayers, window in runs
    )
    assert sum(run.count for run in model.layer_runs()) == model.num_layers


def test_stacks_of_their_own() -> None:
    assert T5.encoder_stack is not None
    assert CLIP.tower_stack is not None
    assert T5.encoder_stack.layer(0) == ("attention", "mlp")
    assert not T5.encoder_stack.causal
    assert (CLIP.tower_stack.max_seq_len, CLIP.tower_stack.hidden) == (10, 8)
    assert LLAMA.encoder_stack is LLAMA.tower_stack is None


@pytest.mark.parametrize(
    ("model", "architecture"),
    [
        (LLAMA, "dense decoder"),
        (MIXTRAL, "mixture-of-experts decoder"),
        (T5, "encoder-decoder"),
        (MAMBA, "state-space decoder"),
        (HYBRID, "hybrid decoder"),
        (BERT, "dense encoder"),
        (VIT, "dense image encoder"),
        (CLIP, "two towers"),
        (PERFORMER, "linear-attention decoder"),
    ],
    ids=lambda value: value.name if isinstance(value, Model) else "",
)
def test_architecture(model: Model, architecture: str) -> None:
    assert model.architecture == architecture


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (MIXTRAL, {"experts": None}, "ffn_hidden: 0 must be a whole number from 1"),
        (MAMBA, {"mamba": None}, "num_heads: 0 must be a whole number from 1"),
        (LLAMA, {"vocab": 0}, "vocab: 0 must be a whole number from 1"),
        (HYBRID, {"layout": "M-*"}, "layout: 3 letters must be one for each of the 4 layers"),
        (HYBRID, {"layout": "M-*x"}, "layout: 'x' must be one of M "),
        (HYBRID, {"layout": "M-*E"}, "layout: E must not appear without experts"),
        (DEEPSEEK, {"head_dim": 5}, "head_dim: 5 must be the 6 of a latent query head"),
        (DEEPSEEK, {"num_kv_heads": 2}, "num_kv_heads: 2 must be the 6 query heads of latent attention"),
        (GEMMA, {"causal": False}, "window: SlidingWindow must be absent without causal attention"),
        (PERFORMER, {"latent": DEEPSEEK.latent}, "linear: LinearAttention must be absent where attention is latent"),
        (LLAMA, {"shared_norm": True}, "shared_norm: True must be False without a parallel residual"),
        (LLAMA, {"relative_buckets": 8}, "relative_buckets: 8 must be positive with relative positions, and 0 without"),
        (LLAMA, {"rotary_fraction": 1.5}, "rotary_fraction: 1.5 must be from 0 to 1"),
        (LLAMA, {"head": False, "head_bias": True}, "head_bias: True must be False without a head"),
        (LLAMA, {"mtp": -1}, "mtp: -1 must be a whole number from 0"),
        (VIT, {"max_seq_len": 11}, "max_seq_len: 11 must be 10, and vocab 0, for an image"),
        (MAMBA, {"experts": EXPERTS}, "mamba: Mamba must have a layout beside other sublayers"),
        (T5, {"mtp": 1}, "mtp: 1 must be 0 but for a decoder with a head"),
        (LLAMA, {"mtp_layout": "*"}, "mtp_layout: \\* must be left out without mtp"),
        (LLAMA, {"mtp": 1, "mtp_layout": "E"}, "mtp_layout: E must not appear without experts"),
        (LLAMA, {"mtp_repeated": True}, "mtp_repeated: True must be left out without mtp"),
        (MIXTRAL, {"adapters": LoRA(rank=2, targets=("up",))}, "adapters.targets: up must be one of k, o, q, v"),
    ],
)
def test_fields_that_contradict_each_other(model: Model, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        replace(model, **change)


def test_matrices_of_a_sublayer_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"^name: 'experts' must be a sublayer of tiny-llama"):
        LLAMA.matrices("experts")
