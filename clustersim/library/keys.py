"""The settings of a run: one table that drives parsing, job cards, ``clustersim show keys`` and the faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from clustersim.library.checkpoint_keys import CHECKPOINT_KEYS
from clustersim.library.host_keys import HOST_KEYS
from clustersim.library.key import MUST, Key
from clustersim.library.offload_keys import OFFLOAD_KEYS
from clustersim.library.values import (
    Bytes,
    Factors,
    Flag,
    Name,
    Names,
    Number,
    Quantity,
    Whole,
    Wholes,
    Word,
)
from clustersim.workload.captured import CAPTURED
from clustersim.workload.context import METHODS
from clustersim.workload.expert_kernels import ExpertKernels
from clustersim.workload.fusion import FUSED, FUSIONS, LOSSES
from clustersim.workload.gradient_passes import GRADIENT_PASSES
from clustersim.workload.host_calls import LAUNCHES
from clustersim.workload.module_dtypes import MODULE_DTYPES, PRODUCTS
from clustersim.workload.optimizer import OPTIMIZERS
from clustersim.workload.optimizers.separate import UPDATE_KERNELS
from clustersim.workload.precision import RECIPES
from clustersim.workload.recompute import MODULES
from clustersim.workload.schedule import SCHEDULES
from clustersim.workload.shard import Attention
from clustersim.workload.unaligned import UnalignedUnits

__all__ = ["KEYS", "Key", "workload_of"]

_DEGREE = Whole(1, 2**20)
KEYS: Mapping[str, Key] = {
    "model": Key(Name("a model card or a Hugging Face config.json"), "what is trained", otherwise=MUST),
    "topology": Key(Name("a topology card or a .toml file"), "what it runs on", otherwise=MUST),
    "nodes": Key(Whole(1, 2**17), "number of nodes", otherwise="the topology's own"),
    "global_batch": Key(Whole(1, 2**24), "sequences of one step", otherwise=MUST, unit="sequence", usual=256),
    "micro_batch": Key(Whole(1, 2**20), "sequences of one pass through a replica", 1, unit="sequence"),
    "seq_len": Key(Whole(1, 2**24), "tokens of a sequence", otherwise=MUST, unit="token", usual=4096),
    "seq_lens": Key(
        Name("fixed, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA or a .csv of lengths"),
        "tokens of the documents that are packed into sequences; fixed: one each",
        "fixed",
    ),
    "seq_seed": Key(Whole(0, 2**32 - 1), "which lengths are drawn", 0),
    "dtype": Key(Word(tuple(RECIPES)), "recipe of number formats", "bf16"),
    "profile": Key(
        Name("a profile card or a .toml file"),
        "framework whose switches the plan takes where it does not set them",
    ),
    "steps": Key(
        Whole(1, 10**5),
        "optimizer steps, back to back; left open, 3 of a job with offloading and two rounds where its steps differ",
        1,
    ),
    "seed": Key(Whole(0, 2**32 - 1), "what all random draws follow from", 0),
    "graph": Key(
        Name("a graph card, or a table of ops as .csv or .parquet"),
        "what is trained instead of a model",
        otherwise=MUST,
    ),
    "graph.batch": Key(Whole(1, 2**24), "samples of one worker in a step", otherwise=MUST, unit="sample", usual=64),
    "graph.devices": Key(_DEGREE, "GPUs of one worker, which its ops are spread over", 1),
    "graph.replicas": Key(_DEGREE, "workers", otherwise="what fills the GPUs"),
    "graph.placement": Key(
        Name("column, list or my_package.module:function"),
        "which GPU of a worker each op sits on: as the table says, or by list scheduling with estimated times",
        "column",
    ),
    "graph.gpu_order": Key(
        Wholes(0, 1023, 1024), "GPUs of a node in the order in which workers take them", otherwise="in order"
    ),
    "graph.bucket_bytes": Key(Bytes(), "a bucket is reduced once gradients fill it", 25 * 2**20, unit="B"),
    "graph.update_bytes": Key(
        Whole(0, 1024), "HBM traffic of the update, for a parameter; 20: SGD with momentum in fp32", 20, unit="B"
    ),
    "plan.tp": Key(_DEGREE, "tensor-parallel ranks a layer", 1),
    "plan.pp": Key(_DEGREE, "pipeline stages", 1),
    "plan.dp": Key(_DEGREE, "replicas", otherwise="what fills the devices"),
    "plan.cp": Key(_DEGREE, "context-parallel ranks, which share each sequence", 1),
    "plan.context": Key(
        Word(tuple(METHODS)),
        "how attention reaches across them: around a ring, with keys and values gathered, or heads exchanged",
        "zigzag",
    ),
    "plan.ulysses": Key(_DEGREE, "ranks of a group that exchange heads, with plan.context hybrid"),
    "plan.ep": Key(_DEGREE, "ranks that the experts of a layer are spread over, of those of dp, cp and tp", 1),
    "plan.etp": Key(_DEGREE, "ranks that share each expert; Megatron-Core's default is tp", otherwise="1"),
    "plan.capacity_factor": Key(
        Number(0, 2**20, above=True),
        "copies of tokens that an expert takes, over its even share; the rest is dropped",
        otherwise="none is dropped",
        usual=1.25,
    ),
    "plan.token_imbalance": Key(
        Name("uniform, zipf:S or a .csv of the experts' popularity"), "which experts tokens go to", "uniform"
    ),
    "plan.token_seed": Key(Whole(0, 2**32 - 1), "which experts are popular under zipf", 0),
    "plan.dispatch": Key(
        Word(("all_to_all", "hierarchical", "deepep", "hybridep")),
        "tokens go by pairs of ranks, first inside nodes, or once to each node and rank",
        "all_to_all",
    ),
    "plan.overlap_dispatch": Key(Whole(1, 1024), "parts in which a micro-batch is sent to its experts", 1),
    "plan.overlap_shared": Key(Flag(), "shared experts work while tokens are on their way", False),
    "plan.fp8_dispatch": Key(Flag(), "tokens are sent to experts as dtype quantises them", False),
    "plan.fp8_activation_input": Key(
        Flag(), "what the activations of experts read is kept as dtype quantises it", False
    ),
    "plan.vpp": Key(_DEGREE, "chunks of the model a stage", otherwise="1, or what the schedule asks for"),
    "plan.zero": Key(Whole(0, 3), "split over replicas: 1 optimizer state, 2 also gradients, 3 also weights", 0),
    "plan.fsdp": Key(Flag(), "weights split over replicas and gathered layer by layer, as plan.zero 3", False),
    "plan.hsdp": Key(
        _DEGREE, "ranks that weights are split over, the splits repeated over the others", otherwise="all"
    ),
    "plan.prefetch": Key(Whole(0, 2**10), "layers gathered ahead of the one in use", 1),
    "plan.limit_gathers": Key(Flag(), "a gathering waits for room: at most plan.prefetch others are held", True),
    "plan.gather_blocks": Key(Flag(), "weights gathered block by block, as ZeRO-3 does; else layer by layer", False),
    "plan.reduce_scatter": Key(Flag(), "split gradients are reduced by reduce-scatter; else by all-reduce", True),
    "plan.per_parameter": Key(Flag(), "weights split parameter by parameter and copied, as FSDP2 does", False),
    "plan.flat_parameters": Key(
        Flag(), "gradients that go together are put together, cast and divided before, as FSDP1 and DeepSpeed do", False
    ),
    "plan.placeholders": Key(
        Word(("none", "passing", "kept")), "what stands for gradients that are added to their buffer at once", "none"
    ),
    "plan.reshard": Key(Flag(), "gathered weights are given back after the forward pass", True),
    "plan.reduce_each": Key(
        Flag(), "gradients of each micro-batch are reduced", otherwise="true with plan.fsdp and plan.zero 2 and 3"
    ),
    "plan.gather_dtype": Key(
        Word(("fp32", "bf16", "fp16")), "format of weights that are gathered for their use", otherwise="that of dtype"
    ),
    "plan.reduce_dtype": Key(
        Word(("fp32", "bf16", "fp16")), "format in which gradients are reduced", otherwise="plan.gradient_dtype"
    ),
    "plan.zeropp": Key(
        Names("some of qwz, hpz, qgz", ("qwz", "hpz", "qgz")),
        "parts of ZeRO++: quantised gathers, weights once more in each node, quantised reductions",
        (),
    ),
    "plan.zeropp_ranks": Key(_DEGREE, "ranks of a node, for hpz and qgz", 8),
    "plan.sync_every": Key(
        Whole(1, 10**4), "steps that workers train by themselves between two exchanges: local SGD, DiLoCo"
    ),
    "plan.sync_ranks": Key(_DEGREE, "ranks of one worker", 1),
    "plan.sync_dtype": Key(Word(("fp32", "bf16", "fp16")), "format of what workers exchange", "fp32"),
    "plan.sync_momentum": Key(Flag(), "an outer Nesterov step (DiLoCo); else weights are averaged", True),
    "plan.sharding": Key(
        Name("my_package.module:function"), "an own way to split weights, gradients and state over replicas"
    ),
    "plan.split": Key(Word(("layers", "flops")), "what stages have equally much of", "layers"),
    "plan.stage_layers": Key(
        Wholes(0, 10_000, 2**12), "layers of each virtual stage, in order", otherwise="even, as plan.split says"
    ),
    "plan.schedule": Key(
        Name(f"{', '.join(SCHEDULES)}, a table as .csv or .toml, or my_package.module:function"),
        "order of the passes of a stage",
        otherwise="1f1b; interleaved with chunks",
        usual="1f1b",
    ),
    "plan.recompute": Key(Word(("none", "selective", "full")), "what the backward pass computes again", "none"),
    "plan.recompute_modules": Key(
        Names(f"some of {', '.join(MODULES)}", tuple(MODULES)),
        "parts of a layer that selective computes again",
        ("core",),
    ),
    "plan.recompute_method": Key(
        Word(("uniform", "block")), "full: layers in groups, or the first of each chunk", "uniform"
    ),
    "plan.recompute_layers": Key(
        Whole(1, 10**4), "full: layers of a group, or of a chunk", otherwise="1 with uniform, all with block"
    ),
    "plan.recompute_early_stop": Key(
        Flag(), "full: layers are computed again only until all that is read is there", False
    ),
    "plan.sequence_parallel": Key(
        Flag(), "norms and residual stream split along the sequence", otherwise="true with tp above 1"
    ),
    "plan.axis_order": Key(
        Names("each of tp, cp, dp, pp once", ("tp", "cp", "dp", "pp")),
        "axes of the rank numbers, innermost first",
        ("tp", "cp", "dp", "pp"),
    ),
    "plan.bucket_bytes": Key(
        Bytes(),
        "gradients reduced together",
        otherwise="40e6 parameters or 1e6 a replica, the larger; 5e8 where each is reduced",
        unit="B",
    ),
    "plan.module_dtypes": Key(
        Names(f"module:dtype, modules {', '.join(PRODUCTS)}", MODULE_DTYPES),
        "modules whose products are in another format than dtype quantises to",
        (),
    ),
    "plan.bf16_layers_at_start": Key(Whole(0, 10_000), "layers whose products dtype does not quantise", 0),
    "plan.bf16_layers_at_end": Key(Whole(0, 10_000), "layers whose products dtype does not quantise", 0),
    "plan.gradient_dtype": Key(
        Word(("fp32", "bf16", "fp16")), "format in which gradients are summed and reduced", otherwise="the recipe's"
    ),
    "plan.optimizer": Key(Word(tuple(OPTIMIZERS)), "rule of the update", "adam"),
    "plan.attention": Key(
        Word(get_args(Attention)),
        "one kernel, the device's usual one (flash) or one by name; or score matrices in memory",
        "flash",
    ),
    "plan.repeat_heads": Key(Flag(), "keys and values are copied for each query head that reads them", False),
    "plan.batch_first": Key(Flag(), "what ranks of tp gather and reduce along the sequence is copied", False),
    "plan.dropout": Key(Flag(), "dropout masks are made and kept, as GPT-2 and GPT-3 train", False),
    "plan.sequence_slices": Key(
        Whole(1, 2**20), "linear attention: parts of a sequence computed one after the other, one in memory", 1
    ),
    "plan.overlap_dp": Key(Flag(), "gradients reduced beside the backward pass", True),
    "plan.overlap_refresh": Key(Flag(), "updated weights are gathered beside the next forward pass", True),
    "plan.overlap_tp": Key(Flag(), "weight gradients computed beside a reduction", True),
    "plan.scatter_gather": Key(Flag(), "messages between stages in tp parts, gathered after", False),
    "plan.tp_overlap": Key(
        Word(("none", "ring", "pipeline", "userbuffers")),
        "products take and give tokens in parts: round the ranks, each by a collective, or gathered so and reduced so",
        "none",
    ),
    "plan.tp_overlap_chunks": Key(Whole(1, 1024), "parts of plan.tp_overlap pipeline", 4),
    "plan.fusion": Key(
        Names(f"some of {', '.join(FUSIONS)}", tuple(FUSIONS)), "element-wise operators that share a kernel", FUSED
    ),
    "plan.loss": Key(
        Word(LOSSES), "cross-entropy over a split vocabulary, operator by operator, or in one kernel", "parallel"
    ),
    "plan.logged_losses": Key(Whole(0, 2**4), "times that cross-entropy is computed once more for a log", 0),
    "plan.unaligned": Key(
        Word(get_args(UnalignedUnits)), "units for 16-bit products whose sides are no multiples of 16 bytes", "matrix"
    ),
    "plan.expert_kernels": Key(
        Word(get_args(ExpertKernels)), "products of a rank's experts: one kernel for all, or one for each", "grouped"
    ),
    "plan.cuda_graphs": Key(
        Names(f"some of {', '.join(CAPTURED)}", CAPTURED),
        "parts of layers that are graphs by themselves, with plan.launch layers or modules",
        (),
    ),
    "plan.launch": Key(
        Word(LAUNCHES),
        "how the host issues kernels: not looked at, as operators, by layers in Python as Megatron-LM's or Transformer "
        "Engine's, compiled, or captured",
        "none",
    ),
    "plan.wait_norm": Key(Flag(), "the host reads the gradient norm before it issues the update", False),
    "plan.wait_layers": Key(Flag(), "the host waits for the device in each forward pass of a layer", False),
    "plan.module_hooks": Key(Flag(), "Python is called around each module, as by DeepSpeed's ZeRO-3", False),
    "plan.wait_messages": Key(Flag(), "the host waits for the messages between stages that it posts", False),
    "plan.wait_kernels": Key(Flag(), "the host waits for each kernel that it issues", False),
    "plan.clip": Key(Flag(), "gradients are clipped by their norm", True),
    "plan.gradient_passes": Key(
        Names(f"some of {', '.join(GRADIENT_PASSES)}", GRADIENT_PASSES),
        "passes over all gradients before they are reduced: divided by the number of replicas, searched for NaN",
        (),
    ),
    **OFFLOAD_KEYS,
    **CHECKPOINT_KEYS,
    "plan.offload_activations": Key(Flag(), "what layers keep for the backward pass waits on the host", False),
    "plan.update_kernels": Key(
        Word(UPDATE_KERNELS),
        "the update as one pass, with copies in fp32 around it, or Adam as operators over lists of tensors or one each",
        "fused",
    ),
    "fabric": Key(
        Name(
            "fat_tree, rail_optimized, dragonfly, dragonfly_plus, torus, mesh, ring, fully_connected, two_sites or "
            "my_package.module:function"
        ),
        "what joins nodes",
        otherwise="the topology's own",
    ),
    "fabric.oversubscription": Key(
        Number(1), "bandwidth into a leaf over bandwidth out of it", otherwise="the topology's own"
    ),
    "fabric.levels": Key(Whole(1, 4), "levels of switches", otherwise="as few as hold the nodes"),
    "fabric.radix": Key(Whole(2, 2**16), "ports of a switch", otherwise="the switch's own"),
    "fabric.ecmp": Key(
        Word(("ideal", "hashed")), "how flows take parallel links: evenly, or each one by hash of its ports", "ideal"
    ),
    "fabric.ecmp_seed": Key(Whole(0, 2**32 - 1), "of the hash", 0),
    "fabric.nic_of": Key(Wholes(0, 1023, 1024), "network port of each GPU of a node", otherwise="in order"),
    **HOST_KEYS,
    "kernel_table": Key(
        Name("a .csv or .parquet of measured kernels"), "own measurements, which stand before the GPU's kernel models"
    ),
    "communication.node": Key(
        Name("a communication card"), "what NCCL costs inside nodes", otherwise="the topology's own"
    ),
    "communication.network": Key(
        Name("a transport card"), "what NCCL costs between nodes", otherwise="the topology's own"
    ),
    **{
        f"algorithms.{kind}": Key(
            Name("an algorithm, or with a protocol: ring, tree/LL128"), f"that {kind} runs as", otherwise="the fastest"
        )
        for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce")
    },
    "node.p2p": Key(
        Flag(), "GPUs on PCIe reach each other's memory; else through the host's", otherwise="the topology's own"
    ),
    "fabric.sharp": Key(Flag(), "network switches add up what passes them", otherwise="the topology's own"),
    "fabric.link": Key(
        Name("a link card"),
        "link between neighbours: torus, mesh, ring, fully_connected",
        otherwise="the topology's own",
    ),
    "fabric.num_links": Key(Whole(1, 2**16), "parallel links between neighbours", otherwise="the topology's own, or 1"),
    "fabric.dims": Key(
        Wholes(1, 2**17, 3), "nodes along each side of a torus or mesh", otherwise="as even as the nodes allow"
    ),
    "fabric.num_dims": Key(
        Whole(1, 3), "sides of a torus or mesh without fabric.dims", otherwise="3 of a torus, 2 of a mesh"
    ),
    "fabric.groups": Key(
        Whole(1, 2**17), "groups that a dragonfly is wired for", otherwise="those that the nodes fill"
    ),
    "fabric.routers_per_group": Key(Whole(1, 2**16), "of a dragonfly", otherwise="half the radix"),
    "fabric.nodes_per_router": Key(Whole(1, 2**16), "of a dragonfly", otherwise="what a quarter of the radix holds"),
    "fabric.leaves_per_group": Key(Whole(1, 2**16), "of a dragonfly_plus", otherwise="half the radix"),
    "fabric.spines_per_group": Key(Whole(1, 2**16), "of a dragonfly_plus", otherwise="half the radix"),
    "fabric.nodes_per_leaf": Key(Whole(1, 2**16), "of a dragonfly_plus", otherwise="what half the radix holds"),
    "fabric.rails": Key(
        Whole(1, 2**10),
        "switches side by side that the ports of a node spread over: rail_optimized, dragonfly",
        otherwise="one for each port",
    ),
    "fabric.global_links": Key(
        Whole(1, 2**16),
        "ports to other groups: of a router of a dragonfly, of a spine of a dragonfly_plus",
        otherwise="a quarter of the radix, half of a spine's",
    ),
    "fabric.local_links": Key(
        Whole(1, 2**10), "links between each two switches inside a group", otherwise="the topology's own, or 1"
    ),
    "fabric.group_links": Key(
        Whole(1, 2**20), "links between each two groups of a dragonfly", otherwise="as many as the ports allow"
    ),
    "fabric.within": Key(
        Word(("fat_tree", "rail_optimized")), "fabric of each of two_sites", otherwise="the topology's own, or fat_tree"
    ),
    "fabric.sites": Key(Whole(2, 2**10), "sites of two_sites", otherwise="the topology's own, or 2"),
    "fabric.wan_bandwidth": Key(
        Quantity("B/s", "800 Gb/s"),
        "payload between two sites, one direction",
        otherwise="the topology's own",
        unit="B/s",
    ),
    "fabric.wan_latency": Key(
        Quantity("s", "103 ms"), "one way between two sites", otherwise="the topology's own", unit="s"
    ),
    "nics_per_node": Key(Whole(1, 1024), "network cards of a node", otherwise="the topology's own"),
    "overlap.sm": Key(
        Number(0, 100), "factor on the SMs that collectives take from kernels beside them; 0: they take none", 1.0
    ),
    "overlap.hbm": Key(
        Number(0, 100), "factor on the bytes in HBM of collectives, which compete with kernels'; 0: they do not", 1.0
    ),
    "perturb.slow_ranks": Key(Factors("rank"), "rank: factor on the time of what it computes"),
    "perturb.slow_links": Key(Factors("link"), "link: factor on its bandwidth"),
    "perturb.failed_links": Key(
        Names("names: [leaf0/up, node3/nic1, leaf2, pod0, rail1]"),
        "links that lose one of their parallel links; ports, switches and rails that fail",
    ),
    "perturb.jitter": Key(Number(0, 1), "spread (standard deviation of the logarithm) of each kernel's time", 0.0),
    "limits.num_events": Key(Whole(1, 2**63 - 1), "instants to simulate at most"),
    "limits.simulated_s": Key(Number(0, above=True), "simulated time at most", unit="s"),
    "limits.wall_s": Key(Number(0, above=True), "real time at most", unit="s"),
}
"""Every setting by its dotted name."""


def workload_of(key: str) -> str:
    """``model`` or ``graph``: what is trained by the jobs that a setting is for; empty where by both."""
    if key in ("model", "global_batch", "micro_batch", "dtype", "profile") or key.startswith(("seq_", "plan.")):
        return "model"
    return "graph" if key == "graph" or key.startswith("graph.") else ""
