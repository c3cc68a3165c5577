"""Activation bytes against the formulas of Korthikanti et al. (2022) and against counts by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clustersim.library.model import load_model
from clustersim.workload.activations import kept_by_layer, kept_tensors
from clustersim.workload.kept import kept_nbytes
from clustersim.workload.layers.layer import Layers
from clustersim.workload.model import Model
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard


@pytest.fixture(params=[(256, 8, 128), (6144, 64, 2048), (12288, 96, 2048)], ids=["small", "22B", "175B"])
def paper(request: pytest.FixtureRequest, gpt: Model, new_shard: Callable[..., Shard]) -> Callable[..., Shard]:
    """A GPT layer as the paper has it: dropout, and attention that keeps its probabilities."""
    hidden, heads, seq_len = request.param
    model = replace(
        gpt, hidden=hidden, num_heads=heads, num_kv_heads=heads, head_dim=hidden // heads, ffn_hidden=4 * hidden
    )
    return lambda **changes: new_shard(
        model, micro_batch=4, seq_len=seq_len, attention="unfused", dropout=True, dtype="fp16", **changes
    )


class TestPaper:
    @pytest.mark.parametrize("t", [1, 2, 8])
    def test_tensor_parallel(self, paper: Callable[..., Shard], t: int) -> None:
        shard = paper(tp=t)
        s, b, h, a = shard.seq_len, shard.micro_batch, shard.model.hidden, shard.model.num_heads
        assert kept_by_layer(shard, Recomputation.of("none")) == pytest.approx(
            s * b * h * (10 + 24 / t + 5 * a * s / (h * t)), rel=1e-2
        )
        assert kept_by_layer(shard, Recomputation.of("selective")) == pytest.approx(s * b * h * (10 + 24 / t), rel=1e-2)
        assert kept_by_layer(shard, Recomputation.of("full")) == 2 * s * b * h

    @pytest.mark.parametrize("t", [2, 8])
    def test_sequence_parallel(self, paper: Callable[..., Shard], t: int) -> None:
        shard = paper(tp=t, sequence_parallel=True)
        s, b, h, a = shard.seq_len, shard.micro_batch, shard.model.hidden, shard.model.num_heads
        assert kept_by_layer(shard, Recomputation.of("none")) == pytest.approx(
            s * b * h / t * (34 + 5 * a * s / h), rel=1e-2
        )
        assert kept_by_layer(shard, Recomputation.of("selective")) == pytest.approx(34 * s * b * h / t, rel=1e-2)
        assert kept_by_layer(shard, Recomputation.of("full")) == 2 * s * b * h // t


def test_llama_layer_by_hand(llama: Model, new_shard: Callable[..., Shard]) -> None:
    shard = new_shard(llama)
    tokens = 2 * 128
    by_hand = {
        "layer input": 2 * tokens * 256,
        "attention input": 2 * tokens * 256,
        "queries, values": 2 * tokens * (8 + 4) * 32,
        "keys": 2 * tokens * 4 * 32,
        "log-sum-exp": 4 * tokens * 8,
        "attention output": 2 * tokens * 8 * 32,
        "residual between the blocks": 2 * tokens * 256,
        "mlp input": 2 * tokens * 256,
        "mlp before its activation": 2 * tokens * 688,
        "mlp before its gate": 2 * tokens * 688,
        "mlp after its activation": 2 * tokens * 688,
    }
    assert {t.name: t.nbytes for t in kept_tensors(shard)} == by_hand
    assert (
        kept_by_layer(shard, Recomputation.of("none")) - kept_by_layer(shard, Recomputation.of("selective"))
        == by_hand["log-sum-exp"]
    )


def test_norms_of_queries_and_keys_keep_their_inputs(llama: Model, new_shard: Callable[..., Shard]) -> None:
    with_norm, without = new_shard(replace(llama, qk_norm=True)), new_shard(llama)
    assert (
        kept_by_layer(with_norm, Recomputation.of("none")) - kept_by_layer(without, Recomputation.of("none"))
        == 2 * 256 * (8 + 4) * 32
    )


def test_blocks_and_input_make_up_the_layer(gpt: Model, new_shard: Callable[..., Shard]) -> None:
    shard = new_shard(gpt, attention="unfused", dropout=True, tp=2)
    tensors = kept_tensors(shard)
    parts = [kept_nbytes(t for t in tensors if t.block == block) for block in ("input", "norm", "attention", "mlp")]
    assert sum(parts) == kept_by_layer(shard, Recomputation.of("none"))
    dropped = kept_nbytes((t for t in tensors if t.block == "attention"), "core")
    assert sum(parts) - dropped == kept_by_layer(shard, Recomputation.of("selective"))


def test_fp32_doubles_all_but_masks_and_statistics(gpt: Model, new_shard: Callable[..., Shard]) -> None:
    half = kept_by_layer(new_shard(gpt), Recomputation.of("selective"))
    assert kept_by_layer(new_shard(gpt, dtype="fp32"), Recomputation.of("selective")) == 2 * half


@pytest.mark.parametrize(("recipe", "operand"), [("fp8", 1), ("mxfp8", 33 / 32), ("nvfp4", 9 / 16)])
@pytest.mark.parametrize("attention", ["flash", "unfused"])
def test_quantised_layers_keep_their_inputs_quantised(
    llama: Model, new_shard: Callable[..., Shard], recipe: str, operand: float, attention: str
) -> None:
    tokens = 2 * 128
    plain = {t.name: t.nbytes for t in kept_tensors(new_shard(llama, attention=attention))}
    kept = {t.name: t.nbytes for t in kept_tensors(new_shard(llama, attention=attention, dtype=recipe))}
    changed = {name: nbytes for name, nbytes in kept.items() if plain.get(name) != nbytes}
    inputs = {"attention input": 256, "attention output": 8 * 32, "mlp input": 256, "mlp after its activation": 688}
    expected = {name: operand * tokens * features for name, features in inputs.items()}
    if attention == "flash":  # its backward pass reads what it wrote
        expected["attention output of the kernel"] = 2 * tokens * 8 * 32
    assert changed == expected


CARDS = ["llama-3-8b", "gpt-neox-20b", "falcon-7b", "gemma-2-2b", "deepseek-v2-lite", "performer-125m", "mamba2-2.7b"]


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("recipe", ["bf16", "fp8"])
@pytest.mark.parametrize("modules", [(), ("core",), ("norm",), ("activation",), ("mla_up", "norm")], ids="-".join)
def test_the_lists_of_sublayers_make_up_what_blocks_hold(
    name: str, recipe: str, modules: tuple[str, ...], new_shard: Callable[..., Shard]
) -> None:
    """Parallel residuals, norms after sublayers, and every sublayer that needs no share of experts or encoder.

    A part that is computed again frees what was kept of it, quantised where it was kept so.
    """
    shard = new_shard(load_model(name), dtype=recipe)
    recompute = Recomputation.of("selective", modules=modules) if modules else Recomputation.of("none")
    held = sum(block.held(recompute) for block in Layers(shard)[0])
    assert held + shard.residual_nbytes == kept_by_layer(shard, recompute)
