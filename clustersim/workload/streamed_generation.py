"""Text generation with weights that are on drives: every forward pass reads them all (ZeRO-Inference)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from clustersim.workload.job import Job, Ledger
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.layers.placed import Placed, blocks
from clustersim.workload.model import Model
from clustersim.workload.number_format import WIDTH
from clustersim.workload.op import Compute, Copy, Op, Storage
from clustersim.workload.passes.chain import Chain
from clustersim.workload.passes.forward import forward_block
from clustersim.workload.passes.fragment import Fragment
from clustersim.workload.passes.parameter_group import ParameterGroup, Traffic
from clustersim.workload.precision import find_recipe
from clustersim.workload.program import Program
from clustersim.workload.shard import Attention, Shard
from clustersim.workload.stages import split
from clustersim.workload.tensor_overlap import TensorOverlap

__all__ = ["streamed_generation"]


def streamed_generation(
    model: Model,
    *,
    batch: int,
    prompt: int,
    tokens: int,
    dtype: str = "bf16",
    attention: Attention = "flash-2",
    direct: bool = False,
    prefetch: int = 1,
) -> Job:
    """One batch of sequences on one GPU, from the prompt to the last token, as a job of one step.

    The first pass works on all tokens of the prompt, each further one on one token of each sequence. In all of them a
    layer's weights are read from the drives, ``prefetch`` layers ahead, used and given back. Keys and values stay on
    the GPU; a pass reads those of all tokens so far.

    Parameters
    ----------
    model : Model
        a decoder with attention
    batch : int
        sequences
    prompt, tokens : int
        of each: given, and generated
    dtype : str
        recipe; weights are read in its format
    attention : str
        kernel of the pass over the prompt
    direct : bool
        past the host (GPUDirect Storage); else through a pinned buffer of its
    prefetch : int
        layers

    Returns
    -------
    Job
        its ledger counts the generated tokens, so that a summary's ``tokens_per_s`` is the speed of generation

    References
    ----------
    Aminabadi et al., DeepSpeed-Inference, 2022, section 6 (ZeRO-Inference). DeepSpeedExamples,
    ``inference/huggingface/zero_inference/run_model.py``, and ``deepnvme/zero_inference``.
    """
    recipe = find_recipe(dtype)
    program = Program("generation")
    each = 2 * model.num_kv_heads * model.head_dim * WIDTH[recipe.activations] * batch
    program.resident["gpu/keys and values"] = each * (prompt + tokens) * model.num_layers
    before: Sequence[int] = ()
    for step in range(tokens):
        shard = Shard(model=model, micro_batch=batch, seq_len=1 if step else prompt, dtype=dtype, attention=attention)
        met = each * (prompt + step) if step else 0
        fragment = _forward(shard, met=met, direct=direct, prefetch=prefetch)
        offset = program.extend(fragment.program, after=dict.fromkeys(fragment.entries, before), micro_batch=step)
        before = [offset + number for number in fragment.exits]
    return Job(
        name=f"{model.name}-generation",
        programs=(program,),
        program_of=np.zeros(1, dtype=np.int64),
        ledger=Ledger(tokens=batch * tokens, samples=batch),
    )


def _forward(shard: Shard, *, met: int, direct: bool, prefetch: int) -> Fragment:
    """A pass over all layers; attention reads ``met`` bytes of earlier keys and values in each."""
    chunk = split(shard.model.num_layers, 1)[0]
    placed = [p for p in blocks(shard, chunk, tied_here=shard.model.tied_embeddings) if p.block.kind != "loss"]
    chain = Chain(stage=0, phase="forward")
    groups = tuple(_groups(placed, shard, direct=direct))
    traffic = Traffic(chain, groups, range(len(placed)), prefetch=prefetch, backward=False)
    first: list[int] = []
    for index, p in enumerate(placed):
        start, end = Counter(traffic.open(index)), traffic.freed(index)
        transient = p.block.forward_workspace + p.block.kept
        if met and p.block.kind == "attention":
            cache = memory_pass(met, dtype=shard.recipe.activations)
            chain.add(Compute(name="earlier keys and values", kind="attention", kernels=(cache,)), layer=p.layer)
        first.append(
            forward_block(chain, p, shard, start=start, end=end, transient=transient, products=TensorOverlap())
        )
        traffic.close(index, first)
    return chain.fragment(first)


def _groups(placed: Sequence[Placed], shard: Shard, *, direct: bool) -> list[ParameterGroup]:
    """Layers, embedding and head, each read before its use."""
    width = WIDTH[shard.recipe.weights]
    found = []
    for _, members in groupby(range(len(placed)), key=lambda i: placed[i].layer):
        indices = tuple(members)
        nbytes = width * sum(placed[i].block.parameters for i in indices)
        if not nbytes:
            continue
        reads: list[Op] = [Storage(name="read weights", kind="nvme_read", nbytes=nbytes, direct=direct)]
        if not direct:
            reads.append(Copy(name="fetch weights", kind="h2d", nbytes=nbytes))
        found.append(ParameterGroup(blocks=indices, gather=tuple(reads), gathered_nbytes=nbytes))
    return found
