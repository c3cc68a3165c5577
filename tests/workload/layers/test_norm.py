from __future__ import annotations

from collections.abc import Callable

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.norm import middle_norm, norm, residual
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

NewShard = Callable[..., Shard]
Computed = Callable[[Block], tuple[Compute, Compute | None, Compute | None]]
TOKENS = 2 * 128


def test_sequence_parallel_splits_the_bytes(gpt: Model, new_shard: NewShard, computed: Computed) -> None:
    whole, part = new_shard(gpt, tp=4), new_shard(gpt, tp=4, sequence_parallel=True)
    for make in (norm, middle_norm, residual):
        assert computed(make(whole))[0].nbytes == 4 * computed(make(part))[0].nbytes


def test_passes(gpt: Model, new_shard: NewShard, computed: Computed) -> None:
    shard, x = new_shard(gpt), 2 * TOKENS * 256
    assert computed(norm(shard))[0].nbytes == 2 * x
    inside, final = (computed(norm(shard, kind=kind))[1] for kind in ("norm", "final norm"))
    assert inside is not None
    assert final is not None
    assert [kernel.nbytes for kernel in inside.kernels] == [3 * x, 2 * x, 3 * x]
    assert [kernel.nbytes for kernel in final.kernels] == [3 * x, 2 * x]  # nothing goes around it
    assert computed(residual(shard))[0].nbytes == 3 * x
    assert computed(residual(new_shard(gpt, dropout=True)))[0].nbytes == 3 * x + TOKENS * 256
    assert computed(middle_norm(shard))[0].nbytes == 5 * x
    assert computed(norm(shard))[0].flops == 0
