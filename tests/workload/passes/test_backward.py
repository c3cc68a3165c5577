from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from clustersim.library.model import load_model
from clustersim.workload.layers.placed import blocks
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.passes.backward import backward
from clustersim.workload.passes.fragment import Fragment
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard
from clustersim.workload.stages import Chunk
from clustersim.workload.training_step import training_step

NewShard = Callable[..., Shard]


def one_layer(shard: Shard, **changes: Any) -> Fragment:
    placed = blocks(shard, Chunk(first_layer=2, num_layers=1), tied_here=False)
    options: dict[str, Any] = {"recompute": "none", "overlap": True, "receives": True, "sends": True} | changes
    options["recompute"] = Recomputation.of(options["recompute"], early_stop=options.pop("early_stop", False))
    return backward(placed, shard, stage=1, **options)


def names(fragment: Fragment) -> list[str]:
    arrays = fragment.program.arrays()
    return [arrays.ops[k].name for k in arrays.op]


def before(fragment: Fragment, name: str) -> set[str]:
    """Everything that must have ended before the op called ``name``."""
    arrays, found = fragment.program.arrays(), set()
    todo = [names(fragment).index(name)]
    while todo:
        for n in arrays.edges[arrays.edges[:, 1] == todo.pop(), 0].tolist():
            if n not in found:
                found.add(n)
                todo.append(n)
    return {names(fragment)[n] for n in found}


PLAIN = ["mlp backward", "norm backward", "attention backward", "norm backward"]


def test_without_tensor_parallelism(gpt: Model, new_shard: NewShard) -> None:
    assert names(one_layer(new_shard(gpt))) == PLAIN


def test_an_all_reduce_a_block(gpt: Model, new_shard: NewShard) -> None:
    assert names(one_layer(new_shard(gpt, tp=2))) == [
        "mlp backward",
        "all-reduce mlp input gradient",
        "mlp weight gradient",
        "norm backward",
        "attention backward",
        "all-reduce attention input gradient",
        "attention weight gradient",
        "norm backward",
    ]


def test_sequence_parallel_gathers_gradient_and_input(gpt: Model, new_shard: NewShard) -> None:
    assert names(one_layer(new_shard(gpt, tp=2, sequence_parallel=True)))[:6] == [
        "all-gather mlp output gradient",
        "all-gather mlp input again",
        "mlp backward",
        "reduce-scatter mlp input gradient",
        "mlp weight gradient",
        "norm backward",
    ]


@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_weight_gradients_run_beside_the_reduction(gpt: Model, new_shard: NewShard, sequence_parallel: bool) -> None:
    shard = new_shard(gpt, tp=2, sequence_parallel=sequence_parallel)
    reduction = "reduce-scatter mlp input gradient" if sequence_parallel else "all-reduce mlp input gradient"
    beside, after = (one_layer(shard, overlap=overlap) for overlap in (True, False))
    assert reduction not in before(beside, "mlp weight gradient")
    assert reduction in before(after, "mlp weight gradient")
    for fragment in (beside, after):
        assert reduction in before(fragment, "norm backward")
        assert ("all-gather mlp input again" in before(fragment, "mlp weight gradient")) == sequence_parallel


def test_selective_runs_the_core_again(gpt: Model, new_shard: NewShard) -> None:
    fragment = one_layer(new_shard(gpt, attention="unfused"), recompute="selective")
    assert names(fragment) == [*PLAIN[:2], "attention core recompute", *PLAIN[2:]]


def test_full_runs_the_layer_again(gpt: Model, new_shard: NewShard) -> None:
    fragment = one_layer(new_shard(gpt), recompute="full")
    forward_again = [
        "norm recompute",
        "attention recompute",
        "residual and norm recompute",
        "mlp recompute",
        "residual recompute",
    ]
    assert names(fragment) == [*forward_again, *PLAIN]
    arrays = fragment.program.arrays()
    recomputed = [isinstance(op, Compute) and op.recomputed for op in arrays.ops]
    assert np.array(recomputed)[arrays.op].tolist() == [True] * 5 + [False] * 4


@pytest.mark.parametrize("tp", [1, 2])
def test_an_early_stop_leaves_out_the_last_product_and_its_sum(gpt: Model, new_shard: NewShard, tp: int) -> None:
    """What is kept and given back stays the same; without it 8 of 24 h² FLOP a token and layer are for nothing."""
    whole, early = (
        one_layer(new_shard(gpt, tp=tp), recompute="full", early_stop=early_stop) for early_stop in (False, True)
    )
    stopped = names(early)[: names(early).index("mlp backward")]
    assert stopped == names(whole)[: len(stopped)]
    assert stopped[-1] == "mlp recompute"
    assert not {"residual recompute", "all-reduce mlp output"} & set(stopped)
    down = 2 * gpt.hidden * 4 * gpt.hidden // tp
    assert recomputed_flops(whole) - recomputed_flops(early) == pytest.approx(down * new_shard(gpt).tokens)
    assert held(early) == held(whole)


@pytest.mark.parametrize(("name", "combined"), [("mixtral-8x7b", False), ("nemotron-3-super", True)])
def test_an_early_stop_brings_no_results_of_experts_back(name: str, combined: bool) -> None:
    """They are not kept, but for those of latent experts, which the way out of their width reads."""
    model = load_model(name)
    assert model.experts is not None
    back, there = "combine expert outputs", "dispatch tokens"
    counted = []
    for early in (False, True):
        plan = ParallelPlan(ep=8, dp=8, recompute="full", recompute_early_stop=early)
        arrays = training_step(model, plan, global_batch=8, micro_batch=1, seq_len=512).programs[0].arrays()
        found = [arrays.ops[k].name for k in arrays.op]
        counted.append((found.count(there), found.count(back)))
    (sent, brought), (sent_early, brought_early) = counted
    assert sent_early == sent == brought
    assert brought_early == (brought if combined else brought // 2)


def recomputed_flops(fragment: Fragment) -> float:
    arrays = fragment.program.arrays()
    again = [op.flops if isinstance(op, Compute) and op.recomputed else 0 for op in arrays.ops]
    return float(np.array(again, dtype=float)[arrays.op].sum())


def held(fragment: Fragment) -> dict[str, int]:
    """What a pass takes and does not give back [B]."""
    arrays = fragment.program.arrays()
    total = np.zeros(len(arrays.memory_keys), np.int64)
    np.add.at(total, arrays.memory[:, 2], arrays.memory[:, 3])
    return dict(zip(arrays.memory_keys, total.tolist(), strict=True))


def test_the_op_that_completes_each_block(gpt: Model, new_shard: NewShard) -> None:
    fragment = one_layer(new_shard(gpt, tp=2))
    completed = [names(fragment)[n] if n >= 0 else "" for n in fragment.op_of_block]
    assert completed == ["norm backward", "attention weight gradient", "norm backward", "mlp weight gradient", ""]


def test_entries_wait_for_the_gradient(gpt: Model, new_shard: NewShard) -> None:
    assert one_layer(new_shard(gpt, tp=2, sequence_parallel=True)).entries == (0,)
    shard = new_shard(gpt, tp=2, sequence_parallel=True)
    placed = blocks(shard, Chunk(first_layer=8, num_layers=0, has_head=True), tied_here=False)
    head = backward(placed, shard, stage=3, recompute=Recomputation(), overlap=True, receives=False, sends=True)
    assert [names(head)[n] for n in head.entries] == ["loss backward"]


def workspace(fragment: Fragment) -> dict[str, int]:
    """Change at the start of each op that takes workspace."""
    arrays = fragment.program.arrays()
    key = arrays.memory_keys.index("gpu/workspace")
    return {names(fragment)[op]: n for op, end, k, n in arrays.memory.tolist() if k == key and not end}


def test_workspace_counts_what_is_gathered_and_computed_again(gpt: Model, new_shard: NewShard) -> None:
    plain, split = (
        new_shard(gpt, tp=2, attention="unfused"),
        new_shard(gpt, tp=2, attention="unfused", sequence_parallel=True),
    )
    base = workspace(one_layer(plain))
    x, core = 2 * 2 * 128 * 256, 2 * 4 * 128 * 128 * 2
    for name in ("mlp backward", "attention backward"):
        assert workspace(one_layer(split))[name] - base[name] == 2 * x
    selective = workspace(one_layer(plain, recompute="selective"))
    assert selective["attention backward"] - base["attention backward"] == core
