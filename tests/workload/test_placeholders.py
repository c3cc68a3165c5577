"""Stand-ins for gradients that products add to their buffers themselves, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan


def held(model: Model, setting: str, **plan: Any) -> cs.Result:
    wanted = ParallelPlan(placeholders=setting, dp=2 // plan.get("tp", 1), **plan)  # type: ignore[arg-type]
    step = cs.training_step(model, wanted, global_batch=4, micro_batch=1, seq_len=128)
    return cs.simulate(cs.load_topology("dgx-h100"), step)


def resident(run: cs.Result) -> int:
    return run.record.lanes[0].arrays.resident.get("gpu/workspace", 0)


@pytest.mark.parametrize("tp", [1, 2])
def test_of_each_shape_of_the_layers_one_stays(llama: Model, tp: int) -> None:
    h, f, wide = llama.hidden, llama.ffn_hidden // tp, (llama.num_heads + 2 * llama.num_kv_heads) * llama.head_dim // tp
    shapes = {(h, wide), (llama.num_heads * llama.head_dim // tp, h), (h, 2 * f), (f, h)}
    assert resident(held(llama, "kept", tp=tp)) == 2 * sum(rows * columns for rows, columns in shapes)
    assert resident(held(llama, "passing", tp=tp)) == resident(held(llama, "none", tp=tp)) == 0


def taken(run: cs.Result, op: str) -> int:
    """Workspace that an op takes at its start."""
    arrays = run.record.lanes[0].arrays
    key = arrays.memory_keys.index("gpu/workspace")
    found = {
        n
        for k, at, which, n in arrays.memory.tolist()
        if which == key and not at and arrays.ops[arrays.op[k]].name == op
    }
    (nbytes,) = found
    return int(nbytes)


def test_others_are_there_while_their_product_runs(llama: Model) -> None:
    plain, passing, kept = (held(llama, setting) for setting in ("none", "passing", "kept"))
    head, largest = 2 * llama.vocab * llama.hidden, 2 * llama.hidden * 2 * llama.ffn_hidden
    assert taken(passing, "head backward") - taken(plain, "head backward") == head
    assert taken(kept, "head backward") - taken(plain, "head backward") == head
    assert taken(passing, "mlp backward") - taken(plain, "mlp backward") == largest
    assert taken(kept, "mlp backward") == taken(plain, "mlp backward")


def test_none_where_gradients_travel_with_the_passes(llama: Model) -> None:
    run = held(llama, "kept", fsdp=True)
    assert resident(run) == 0
    assert any("plan.placeholders: no effect" in note for note in run.record.jobs[0].notes)


def test_an_unknown_word(llama: Model) -> None:
    with pytest.raises(cs.BadInput, match=r"plan\.placeholders"):
        held(llama, "cached")
