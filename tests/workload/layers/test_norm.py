from __future__ import annotations

from collections.abc import Callable

from clustersim.workload.layers.norm import middle_norm, norm, residual
from clustersim.workload.model import Model
from clustersim.workload.shard import Shard

NewShard = Callable[..., Shard]
TOKENS = 2 * 128


def test_sequence_parallel_splits_the_bytes(gpt: Model, new_shard: NewShard) -> None:
    whole, part = new_shard(gpt, tp=4), new_shard(gpt, tp=4, sequence_parallel=True)
    for make in (norm, middle_norm, residual):
        assert make(whole).forward.nbytes == 4 * make(part).forward.nbytes


def test_passes(gpt: Model, new_shard: NewShard) -> None:
    shard, x = new_shard(gpt), 2 * TOKENS * 256
    assert norm(shard).forward.nbytes == 2 * x
    inside, final = norm(shard).backward, norm(shard, kind="final norm").backward
    assert inside is not None
    assert final is not None
    assert [kernel.nbytes for kernel in inside.kernels] == [3 * x, 2 * x, 3 * x]
    assert [kernel.nbytes for kernel in final.kernels] == [3 * x, 2 * x]  # nothing goes around it
    assert residual(shard).forward.nbytes == 3 * x
    assert residual(new_shard(gpt, dropout=True)).forward.nbytes == 3 * x + TOKENS * 256
    assert middle_norm(shard).forward.nbytes == 5 * x
    assert norm(shard).forward.flops == 0
