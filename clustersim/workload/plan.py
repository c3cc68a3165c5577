"""The parallel plan: how a training job is spread over ranks, as its user writes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Annotated, Literal

from clustersim.units import Unit
from clustersim.workload.checkpoint.policy import Checkpoint
from clustersim.workload.context import Method
from clustersim.workload.exchange import Dispatch
from clustersim.workload.expert_kernels import ExpertKernels
from clustersim.workload.fusion import FUSED, Loss
from clustersim.workload.gradient_passes import GradientPass
from clustersim.workload.host_calls import Launching
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.optimizers.rule import Optimizer
from clustersim.workload.optimizers.separate import UpdateKernels
from clustersim.workload.placeholders import Placeholders
from clustersim.workload.recompute import Recompute, RecomputeMethod
from clustersim.workload.schedule import Schedule
from clustersim.workload.shard import Attention, Dtype
from clustersim.workload.sharding import Strategy
from clustersim.workload.tensor_overlap import TpOverlap
from clustersim.workload.token_load import Imbalance
from clustersim.workload.unaligned import UnalignedUnits

__all__ = ["ParallelPlan"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelPlan:
    """Degrees of parallelism and the choices that go with them.

    A plan alone is not checked: whether it is legal depends on the model, the batch and the number of devices, and
    :func:`clustersim.workload.resolve.resolve` reports all of that at once.

    Parameters
    ----------
    tp, pp : int
        tensor-parallel ranks a layer; pipeline stages
    dp : int, optional
        replicas; derived from the number of devices when None
    cp : int
        context-parallel ranks, which share each sequence
    context : {"zigzag", "ring", "all_gather", "gathered_ring", "ulysses", "hybrid"}
        how attention reaches across them, of :data:`clustersim.workload.context.METHODS`
    ulysses : int, optional
        of ``hybrid``: ranks of a group that exchange heads
    ep : int
        ranks over which the experts of a layer are spread; they are among the ranks of dp, cp and tp
    etp : int, optional
        ranks that share each expert; None: 1. Megatron-Core's default is tp
    capacity_factor : float, optional
        every expert takes so many times its even share of each rank's tokens, drops the rest and pads what is missing;
        None: none is dropped
    token_imbalance : str or Sequence[Sequence[float]]
        popularity of the experts: ``uniform``; ``zipf:S`` with an exponent; a table, or the path of one
    token_seed : int
        which experts are popular under ``zipf``
    dispatch : {"all_to_all", "hierarchical", "deepep", "hybridep"}
        how tokens are sent, of :data:`clustersim.workload.routing.DISPATCHES`
    overlap_dispatch : int
        parts of a micro-batch that are sent one after the other, each while experts work on the one before
    overlap_shared : bool
        shared experts work while tokens are on their way; else before
    fp8_dispatch : bool
        tokens are sent as the recipe quantises them, results as activations
    fp8_activation_input : bool
        what the activations of experts read is kept as the recipe quantises it
    vpp : int, optional
        chunks of the model a stage; None: 1, or what the schedule asks for
    zero : {0, 1, 2, 3}
        0: gradients are summed by all-reduce, every replica holds the optimizer state (DDP);
        1: reduce-scatter, a shard of the state a replica, all-gather of the weights; 2: also a shard of the gradients;
        3: also a shard of the weights, gathered layer by layer before their use
    fsdp : bool
        PyTorch's fully sharded data parallelism: as ``zero`` 3
    hsdp : int, optional
        ranks over which weights are split under ``fsdp`` or ``zero`` 3, the splits repeated over the others; None: all
    prefetch : int
        layers whose weights are gathered ahead of the one in use
    reshard : bool
        give gathered weights back after the forward pass and gather them again for the backward pass
    limit_gathers : bool
        a gathering waits until no more than ``prefetch`` others are held, as PyTorch's FSDP2 and FSDP1 with
        ``limit_all_gathers`` do; else only for its turn on its stream
    gather_blocks : bool
        weights are gathered block by block, attention and MLP apart, as DeepSpeed's ZeRO-3 does module by module; else
        layer by layer
    reduce_scatter : bool
        what is split over replicas is reduced by reduce-scatter; else gradients are summed by all-reduce and a rank
        keeps its part of them, as DeepSpeed does with ``reduce_scatter`` false
    per_parameter : bool
        weights are split parameter by parameter, as PyTorch's FSDP2 does, and copied out of the buffer that they arrive
        in, gradients into the one that is reduced; else layer by layer, as one flat parameter (FSDP1)
    flat_parameters : bool
        gradients of a layer under ``fsdp`` and ``zero`` 3, or of a bucket under ``zero`` 2, are put together, cast to
        the format that they are reduced in and divided before they go, as FSDP1 does with the gradient of its flat
        parameter and DeepSpeed with ``contiguous_gradients``; nothing with ``per_parameter`` and ``zeropp``
    reduce_each : bool, optional
        reduce the gradients of each micro-batch; else after the last one, and hold them whole until then. None: with
        ``zero`` 2 and 3 and ``fsdp``
    gather_dtype : {"fp32", "bf16", "fp16"}, optional
        of weights that are gathered for their use; None: what the recipe says
    reduce_dtype : {"fp32", "bf16", "fp16"}, optional
        in which gradients are reduced over replicas; None: ``gradient_dtype``
    zeropp : tuple[str, ...]
        parts of ZeRO++ on top of ``zero`` 3: ``qwz``, ``hpz``, ``qgz``
    zeropp_ranks : int
        ranks of a node among those that weights are split over
    sync_every : int, optional
        local SGD, DiLoCo: workers train by themselves and exchange after so many steps, which then are one step of the
        result; None: every gradient is reduced over all ranks
    sync_ranks : int
        ranks of one worker, which do each step as ``zero`` or ``fsdp`` says
    sync_dtype : {"fp32", "bf16", "fp16"}
        of what is exchanged
    sync_momentum : bool
        DiLoCo: an outer Nesterov step, 8 bytes a parameter; else weights are averaged
    sharding : callable, optional
        an own strategy instead of the above: number of ranks that hold the same weights ->
        :class:`clustersim.workload.sharding.Sharding`
    split : {"layers", "flops"}
        what virtual stages have equally much of, as near as can be
    stage_layers : tuple[int, ...], optional
        layers of each virtual stage, in order, instead
    schedule : str or callable, optional
        a name in :data:`clustersim.workload.schedule.SCHEDULES`, the path of a table, or an own
        (num_stages, num_virtual, num_micro_batches) -> table; None: ``interleaved`` with chunks, else ``1f1b``
    recompute : {"none", "selective", "full"}
        nothing, parts of each layer, or whole layers from their input are computed again in the backward pass
    recompute_modules : tuple[str, ...]
        the parts of ``selective``, of :data:`clustersim.workload.recompute.MODULES`
    recompute_method : {"uniform", "block"}
        ``full``: groups of ``recompute_layers`` layers, or the first so many of each chunk
    recompute_layers : int, optional
        None: 1 with ``uniform``, all with ``block``
    recompute_early_stop : bool
        ``full``: the second forward pass of a layer ends when all that its backward pass reads is there, before its
        last product, as PyTorch's checkpoints that are not reentrant do from 2.1 on; else it runs to its end
    sequence_parallel : bool, optional
        split norms and residual stream along the sequence; None: with tp > 1
    axis_order : tuple[str, ...]
        axes from the innermost outwards; ranks next to each other on the first are next to each other in number
    bucket_bytes : int, optional
        gradients reduced together [B]; None: 40·10⁶ parameters or 10⁶ a replica, whichever is more (Megatron-LM), and
        5·10⁸ where whole weights see each micro-batch reduced (DeepSpeed). Split weights go layer by layer
    module_dtypes : tuple[str, ...]
        under a dtype that quantises: modules whose products have the operands of another recipe, as ``module:dtype``,
        see :data:`clustersim.workload.module_dtypes.MODULE_DTYPES`
    bf16_layers_at_start, bf16_layers_at_end : int
        under a dtype that quantises: layers whose products are not (Megatron-LM's ``first_last_layers_bf16``)
    gradient_dtype : {"fp32", "bf16", "fp16"}, optional
        in which weight gradients are summed over micro-batches and reduced; None: the recipe's. Megatron-LM takes fp32
        for bf16 (``accumulate_allreduce_grads_in_fp32``, unless ``--grad-reduce-in-bf16``) and fp16 for fp16;
        DeepSpeed's ``BF16_Optimizer`` sums in fp32; FSDP2's ``reduce_dtype`` follows ``param_dtype``; torchtitan sets
        fp32
    optimizer : str or Optimizer
        a name in :data:`clustersim.workload.optimizer.OPTIMIZERS`, or an own one
    attention : {"flash", "flash-1", "triton", "flash-2", "flash-3", "cudnn", "cudnn-fp8", "trtllm", "unfused"}
    repeat_heads : bool
        keys and values are copied for each query head that reads them, as eager models of grouped queries do; the
        attention kernel, what is kept for its backward pass and what ranks of cp exchange are then as large as without
        groups
    split_projections : bool
        queries, keys and values are products of their own, and so are gate and up, as models of Hugging Face and
        torchtitan have them; the gradients of what they read are added. Megatron-LM has one matrix each
    gather_cast : bool
        tokens that ranks of tp gather for quantised products are cast before, where a tensor has one scale, as
        torchao's ``Float8ColwiseParallel`` does; else they are gathered in 16 bits. That ranks first agree on the
        largest value is left out
    batch_first : bool
        the residual stream has its sequences one after the other, so that what ranks of tp gather and reduce along the
        sequence is copied: PyTorch's DTensor, whose collectives work on the outermost dimension. Megatron-LM has the
        sequence outermost
    sequence_slices : int
        linear attention: parts of a sequence that are computed one after the other, so that only one is in memory; the
        backward pass runs the forward pass of each again
    placeholders : {"none", "passing", "kept"}
        what stands for gradients that products add to buffers of all gradients: nothing; a tensor of the weight's shape
        while each product runs (Megatron-Core); one of each shape that stays (Transformer Engine from 2.4 on)
    dropout : bool
        as GPT-2 and GPT-3 train; later models do not
    overlap_dp : bool
        reduce gradients beside the backward pass, gather weights beside the next forward pass; else in one bucket
        a chunk between the passes, or, where each micro-batch is reduced, in buckets that the backward pass waits for
    overlap_refresh : bool
        of ``overlap_dp``: weights whose update is split are gathered beside the next forward pass; else before it, as
        Megatron-LM without ``overlap_param_gather`` does
    overlap_tp : bool
        compute weight gradients beside the reduction of the input's gradient (Transformer Engine's ``bulk``)
    scatter_gather : bool
        without sequence parallelism every rank of tp has the same activations: each sends its own part of them to the
        next stage, where they are gathered (Narayanan et al., 2021, section 4.1; DeepSpeed's pipeline); else all of
        them each. Megatron-Core sends them whole
    tp_overlap : {"none", "ring", "pipeline", "userbuffers"}
        products take gathered tokens, and give those to be reduced, in parts: as these go round the ranks; each with a
        collective of its own; the former by ring, the latter by pipeline, as Transformer Engine does by default. Under
        sequence parallelism; in the backward pass a reduction that ``overlap_tp`` hides stays whole
    tp_overlap_chunks : int
        parts of ``pipeline``
    fusion : tuple[str, ...]
        of :data:`clustersim.workload.fusion.FUSIONS`: element-wise operators that share a kernel
    loss : {"parallel", "operators", "fused"}
        how cross-entropy is computed, see :mod:`clustersim.workload.layers.loss`; ``parallel`` with tp above 1
    logged_losses : int
        times that cross-entropy of each micro-batch is computed once more for a log, operator by operator
    unaligned : {"matrix", "vector"}
        which units compute products of 16-bit operands whose sides are no multiples of 16 bytes, heads of 225 columns
        say: matrix units, slower, or vector units as cuBLAS before CUDA 11.7
    launch : {"none", "eager", "layers", "modules", "compiled", "cuda_graphs"}
        how the host issues kernels, see :func:`clustersim.workload.issue.issue`; ``none``: they are there in time
    cuda_graphs : tuple[str, ...]
        with ``launch`` layers or modules: what is captured by itself as a CUDA graph and launched at once, of
        :data:`clustersim.workload.captured.CAPTURED`
    expert_kernels : {"grouped", "each"}
        how the products of a rank's experts are launched, see :mod:`clustersim.workload.expert_kernels`
    wait_norm : bool
        with ``launch``: the host reads the norm of the gradients, or whether they are finite, before it issues the
        update
    wait_layers : bool
        with ``launch``: the host waits for the device in each forward pass of a layer, before its MLP, as
        Megatron-DeepSpeed's does, which makes tensors of a number there
    module_hooks : bool
        with ``launch``: Python is called before and after each module, as by DeepSpeed's ZeRO-3, which gathers and
        releases weights there
    time_steps : bool
        with several chunks a stage: stages work by time steps, at whose end each waits for what it sent and for what
        its neighbours made, as PyTorch's ``PipelineScheduleMulti``; so a forward pass beside a backward one takes as
        long
    wait_messages : bool
        with ``launch``: the host waits for the messages between stages that it posts, as Megatron-LM without
        ``overlap_p2p_comm``
    wait_kernels : bool
        with ``launch``: the host waits for each kernel, collective and message before it issues the next, as under
        ``CUDA_LAUNCH_BLOCKING``
    memory_breakdown : bool
        with ``launch``: the host collects Python's garbage six times a micro-batch (fewer in a pipeline's warm-up), as
        rank 0 does under DeepSpeed's ``memory_breakdown`` while others wait for it
    clip : bool
        gradients are clipped by their norm
    gradient_passes : tuple[str, ...]
        over all gradients of a rank before they are reduced, once a step: they are divided by the number of replicas
        (``average``), or searched for what is no number (``check``)
    offload : OffloadPolicy, optional
        what of weights, gradients and optimizer state is on the host, on drives or on a file system, and who updates it
    checkpoint : Checkpoint, optional
        how weights and optimizer state are saved, and when
    offload_activations : bool
        what a layer keeps for its backward pass is on the host in between, but for the last layer of a chunk: it leaves
        behind the layer's forward pass and comes back while the layer behind it runs backward
    update_kernels : {"fused", "copied", "foreach", "loop"}
        one pass over all tensors; one with passes that copy, check and scale in fp32 around it; or Adam as operators
        over lists of tensors or over one tensor each
    """

    tp: int = 1
    pp: int = 1
    dp: int | None = None
    cp: int = 1
    context: Method = "zigzag"
    ulysses: int | None = None
    ep: int = 1
    etp: int | None = None
    capacity_factor: float | None = None
    token_imbalance: Imbalance = "uniform"
    token_seed: int = 0
    dispatch: Dispatch = "all_to_all"
    overlap_dispatch: int = 1
    overlap_shared: bool = False
    fp8_dispatch: bool = False
    fp8_activation_input: bool = False
    vpp: int | None = None
    zero: int = 0
    fsdp: bool = False
    hsdp: int | None = None
    prefetch: int = 1
    reshard: bool = True
    limit_gathers: bool = True
    gather_blocks: bool = False
    reduce_scatter: bool = True
    per_parameter: bool = False
    flat_parameters: bool = False
    reduce_each: bool | None = None
    gather_dtype: Dtype | None = None
    reduce_dtype: Dtype | None = None
    zeropp: tuple[str, ...] = ()
    zeropp_ranks: int = 8
    sync_every: int | None = None
    sync_ranks: int = 1
    sync_dtype: Dtype = "fp32"
    sync_momentum: bool = True
    sharding: Strategy | None = None
    split: Literal["layers", "flops"] = "layers"
    stage_layers: tuple[int, ...] | None = None
    schedule: str | Schedule | None = None
    recompute: Recompute = "none"
    recompute_modules: tuple[str, ...] = ("core",)
    recompute_method: RecomputeMethod = "uniform"
    recompute_layers: int | None = None
    recompute_early_stop: bool = False
    sequence_parallel: bool | None = None
    axis_order: tuple[str, ...] = ("tp", "cp", "dp", "pp")
    bucket_bytes: Annotated[int | None, Unit("B")] = None
    module_dtypes: tuple[str, ...] = ()
    bf16_layers_at_start: int = 0
    bf16_layers_at_end: int = 0
    gradient_dtype: Dtype | None = None
    optimizer: str | Optimizer = "adam"
    attention: Attention = "flash"
    repeat_heads: bool = False
    split_projections: bool = False
    gather_cast: bool = False
    batch_first: bool = False
    sequence_slices: int = 1
    placeholders: Placeholders = "none"
    dropout: bool = False
    overlap_dp: bool = True
    overlap_refresh: bool = True
    overlap_tp: bool = True
    scatter_gather: bool = False
    tp_overlap: TpOverlap = "none"
    tp_overlap_chunks: int = 4
    fusion: tuple[str, ...] = FUSED
    loss: Loss = "parallel"
    logged_losses: int = 0
    unaligned: UnalignedUnits = "matrix"
    launch: Launching = "none"
    cuda_graphs: tuple[str, ...] = ()
    expert_kernels: ExpertKernels = "grouped"
    wait_norm: bool = False
    wait_layers: bool = False
    module_hooks: bool = False
    time_steps: bool = False
    wait_messages: bool = False
    wait_kernels: bool = False
    memory_breakdown: bool = False
    clip: bool = True
    gradient_passes: tuple[GradientPass, ...] = ()
    offload: OffloadPolicy | None = None
    checkpoint: Checkpoint | None = None
    offload_activations: bool = False
    update_kernels: UpdateKernels = "fused"

    @property
    def period(self) -> int:
        """Steps after which what differs between them repeats: orders, caches, saves."""
        each = (
            1 if self.offload is None else self.offload.period,
            1 if self.checkpoint is None else self.checkpoint.every,
        )
        return lcm(*each)
