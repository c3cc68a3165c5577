"""Encoder-decoders: one stage with both stacks, the encoder's output read by every layer of the decoder."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clustersim.faults import BadInput
from clustersim.workload.model import Model
from clustersim.workload.op import Collective, Compute
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.encoder import Encoder
from clustersim.workload.training_step import training_step

LAYERS = 6


@pytest.fixture
def model(llama: Model) -> Model:
    encoder = Encoder(num_layers=4, num_heads=4, head_dim=64, ffn_hidden=512)
    return replace(llama, num_layers=LAYERS, num_kv_heads=8, positions="relative", relative_buckets=32, encoder=encoder)


def step(model: Model, **plan: Any) -> Any:
    return training_step(model, ParallelPlan(**{"dp": 1, **plan}), global_batch=8, micro_batch=2, seq_len=64)


PLANS: tuple[dict[str, Any], ...] = (
    {},
    {"tp": 2},
    {"tp": 2, "sequence_parallel": False},
    {"dp": 2, "zero": 2},
    {"dp": 2, "zero": 3},
    {"recompute": "full"},
    {"recompute": "full", "recompute_layers": 2},
    {"recompute": "selective", "recompute_modules": ("core", "norm", "activation"), "tp": 2},
)


@pytest.mark.parametrize("plan", PLANS)
def test_a_step_ends_and_leaves_nothing(model: Model, plan: dict[str, Any], run_untimed: Callable[..., Any]) -> None:
    run = run_untimed(step(model, **plan))
    assert run.complete
    assert run.lowest >= 0
    assert not any(run.left.values())


def test_the_embedding_is_held_once_and_each_stack_has_its_table_of_positions(model: Model) -> None:
    job = step(model)
    assert job.programs[0].resident["gpu/weights"] == 2 * model.num_parameters
    assert sum("relative" in note or "read 64 tokens each" in note for note in job.notes) == 1


def test_every_layer_of_the_decoder_gathers_the_encoders_output_and_adds_to_its_gradient(
    model: Model, sent: Callable[..., int]
) -> None:
    program = step(model, tp=2).programs[0]
    micro_batches, full = 4, 2 * 2 * 64 * 256
    assert sent(program, kind="all_gather", name="encoder output") == 2 * LAYERS * micro_batches * full
    assert sent(program, kind="reduce_scatter", name="encoder output gradient") == LAYERS * micro_batches * full


def test_the_decoder_waits_for_the_encoder_and_the_encoders_backward_pass_for_the_decoders(model: Model) -> None:
    arrays = step(model).programs[0].arrays()
    names = [(arrays.ops[k].name, int(layer)) for k, layer in zip(arrays.op, arrays.layer, strict=True)]
    first = {name: n for n, name in reversed(list(enumerate(names)))}
    assert first["encoder norm forward", -1] < first["cross attention forward", 4]
    assert first["cross attention backward", 4] < first["encoder norm backward", -1]


def test_the_encoders_output_is_kept_once(model: Model, run_untimed: Callable[..., Any]) -> None:
    """One decoder layer more keeps what that layer keeps, and no second copy of what it reads."""
    peaks = [
        run_untimed(step(replace(model, num_layers=n), recompute="full")).peak[0]["gpu/activations"] for n in (4, 5, 6)
    ]
    residual = 2 * 2 * 64 * 256
    assert peaks[2] - peaks[1] == peaks[1] - peaks[0] == residual


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        ({"pp": 2}, "plan.pp: 2 must be 1: no step is written for an encoder and a decoder on several stages"),
        ({"tp": 8}, "plan.tp: 8 must divide the encoder's heads, 4; nearest: 4"),
        ({"recompute": "full", "recompute_layers": 3}, "must divide the 4 layers of the first of an encoder"),
        (
            {"recompute": "full", "recompute_method": "block", "recompute_layers": 3},
            "plan.recompute_method: 'block' must be uniform",
        ),
    ],
)
def test_what_no_step_is_written_for_is_refused(model: Model, plan: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadInput) as error:
        step(model, **plan)
    assert fault in str(error.value)


def test_ops_are_of_known_kinds(model: Model) -> None:
    kinds = {type(op) for op in step(model, tp=2).programs[0].arrays().ops}
    assert kinds == {Compute, Collective}
