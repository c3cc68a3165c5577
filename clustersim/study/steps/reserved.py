"""What PyTorch's allocator holds beside the tensors of the peak, where a loss of single operators makes it."""

from __future__ import annotations

from clustersim.study.steps.step_job import StepJob
from clustersim.workload.precision import find_recipe
from clustersim.workload.shard import padded_vocab

__all__ = ["cached_nbytes"]


def cached_nbytes(job: StepJob) -> int:
    """The segment of the logits, which are given back before the backward pass, on GPUs that hold all of a model [B].

    The allocator keeps segments, and gives a tensor one that is large enough. Backward, the loss asks for fp32 tensors,
    twice as large as the logits of 16 bits were, so their segment stays unused. ``max_memory_reserved`` counts it,
    ``max_memory_allocated`` does not. In a pipeline the peak may stand on another stage: nothing is added.

    References
    ----------
    PyTorch, ``c10/cuda/CUDACachingAllocator.cpp``, ``get_free_block``; torchtitan, ``metrics.py``: the memory that it
    logs is ``max_reserved``.
    """
    plan = job.plan
    if plan.loss != "operators" or plan.pp > 1:
        return 0
    tokens = job.micro_batch * job.seq_len // plan.cp
    return find_recipe(job.dtype).width * tokens * padded_vocab(job.model.vocab, plan.tp) // plan.tp
