"""Every model card: a step does the model's work, holds its parameters, ends, and leaves nothing behind."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.workload.job import Job
from clustersim.workload.model import Model
from clustersim.workload.model_flops import forward_flops, training_flops
from clustersim.workload.op import Compute
from clustersim.workload.unsupported import unsupported_parts

CARDS = [name for name, _ in cs.list_cards()["model"]]
SEQUENCES = 2


def length(model: Model) -> int:
    """Tokens of a short sequence that the model can read, and that go evenly to its experts."""
    if model.patches is not None:
        return model.patches.num_tokens
    return min(model.max_seq_len, 256 if model.experts is None else 2 * model.experts.num_experts)


def step(model: Model, **plan: Any) -> Job:
    whole = cs.ParallelPlan(**{"dp": 1, **plan})
    return cs.training_step(model, whole, global_batch=SEQUENCES, micro_batch=1, seq_len=length(model))


def work(job: Job) -> int:
    """FLOP over all ranks, without what is computed again."""
    total = 0
    ranks = np.bincount(job.program_of, minlength=len(job.programs)).tolist()
    for program, count in zip(job.programs, ranks, strict=True):
        arrays = program.arrays()
        times = np.bincount(arrays.op, minlength=len(arrays.ops)).tolist()
        pairs = zip(arrays.ops, times, strict=True)
        total += count * sum(op.flops * n for op, n in pairs if isinstance(op, Compute) and not op.recomputed)
    return total


def beyond_the_convention(model: Model) -> Iterator[int]:
    """FLOP of one sequence that kernels do more, or less, than two products backward for each one forward."""
    tokens, kinds = length(model), model.num_sublayers()
    for stack in (model, model.tower_stack):
        if stack is not None and stack.patches is not None:
            rows, columns = stack.patches.matrix(stack.hidden)
            yield -2 * rows * columns * stack.patches.num_patches  # images need no gradient
    if model.tower is not None:
        yield 3 * 2 * 2 * model.tower.projection  # the loss of a micro-batch of one pair, either way
    if model.linear is not None:
        product = 2 * model.num_heads * model.linear.features * model.head_dim * tokens
        yield -product * kinds["linear_attention"]  # nor do random features, of q and of k; the state is added up again
    if model.mamba is not None:
        scan = model.mamba.scan_flops * tokens
        done = 4 * scan  # forward, again, and two backward
        if model.mamba.version == 2:
            chunk = min(model.mamba.chunk, tokens)
            groups, state, inner = model.mamba.groups, model.mamba.state, model.mamba.inner
            again = 2 * tokens * (chunk * state * groups + state * inner)
            done = 3 * (again + 2 * tokens * (chunk * inner + state * inner)) + again
        yield (done - 3 * scan) * kinds["mamba"]


@pytest.fixture(params=CARDS)
def model(request: pytest.FixtureRequest) -> Model:
    return cs.load_model(request.param)


def test_a_step_does_the_models_work(model: Model) -> None:
    """Over the whole square of attention, as kernels that write the scores do it."""
    flops = training_flops(model, length(model)).total_full_attention + sum(beyond_the_convention(model))
    assert work(step(model, attention="unfused")) == SEQUENCES * flops


def test_fused_attention_works_under_its_mask(model: Model) -> None:
    """It leaves out what the mask hides, and computes scores once more backward."""
    tokens = length(model)
    scores = forward_flops(model, tokens).attention // 2
    if model.latent is not None:
        query, value = model.latent.query_dim, model.latent.value_dim
        scores = 2 * scores * query // (query + value)
    if model.linear is not None:
        scores = 0
    flops = training_flops(model, tokens).total + sum(beyond_the_convention(model)) + scores
    assert work(step(model)) == SEQUENCES * flops


def test_a_step_holds_the_models_parameters(model: Model) -> None:
    """Each once, but for an embedding whose head stands on another stage."""
    (program,) = step(model).programs
    assert program.resident["gpu/weights"] == 2 * (model.num_parameters + model.mtp_parameters)


def test_a_step_ends_and_leaves_nothing(model: Model, run_untimed: Callable[..., Any]) -> None:
    """On several stages or ranks where the model's kind allows it."""
    jobs = [step(model, dp=2, zero=1, recompute="full")]
    plans: tuple[dict[str, Any], ...] = ({"tp": 2}, {"pp": 2}, {"dp": 2, "zero": 3, "recompute": "full"})
    for plan in plans:
        with suppress(BadInput):
            jobs.append(step(model, **plan))
    for job in jobs:
        run = run_untimed(job)
        assert run.complete
        assert run.lowest >= 0
        assert not any(run.left.values())


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("deepseek-v2-lite", {"tp": 2, "dp": 4, "ep": 4}),
        ("gemma-2-2b", {"tp": 2, "pp": 2, "dp": 2}),
        ("falcon-7b", {"pp": 2, "dp": 4, "zero": 1}),
        ("gpt-neox-20b", {"tp": 4, "pp": 2}),
        ("mt5-base", {"tp": 2, "dp": 4, "zero": 2}),
        ("bert-large-pretraining", {"tp": 2, "pp": 2, "dp": 2}),
        ("vit-b-16", {"pp": 2, "dp": 4}),
        ("mamba-2.8b", {"tp": 2, "dp": 4}),
        ("nemotron-h-8b", {"tp": 2, "pp": 2, "dp": 2}),
        ("performer-125m", {"tp": 2, "dp": 4, "sequence_slices": 4}),
        ("clip-vit-l-14", {"dp": 8}),
    ],
)
def test_a_step_of_each_kind_runs_and_folds_exactly(name: str, plan: dict[str, Any]) -> None:
    cluster = cs.load_topology("dgx-h100", nodes=1)
    model = cs.load_model(name)
    whole = cs.ParallelPlan(**{"dp": 1, **plan})
    job = cs.training_step(model, whole, global_batch=8, micro_batch=1, seq_len=length(model))
    folded, full = (cs.summary(cs.simulate(cluster, job, fold=fold)) for fold in (True, False))
    assert folded["step_time_s"] == full["step_time_s"] > 0
    assert folded["peak_memory_bytes"] == full["peak_memory_bytes"]


def test_a_step_is_written_for_every_card() -> None:
    assert not [name for name in CARDS if unsupported_parts(cs.load_model(name))]
