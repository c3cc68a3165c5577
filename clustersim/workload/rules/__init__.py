"""What makes a plan legal, a file a noun. A rule names the values it reads, and runs once each is legal by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.rules.architecture import ARCHITECTURE_KEYS, architecture_faults
from clustersim.workload.rules.batch import batch_faults, pass_faults
from clustersim.workload.rules.checkpoint import CHECKPOINT_KEYS, checkpoint_faults, checkpoint_values
from clustersim.workload.rules.context import CONTEXT_KEYS, context_faults
from clustersim.workload.rules.counts import count_faults
from clustersim.workload.rules.documents import document_faults
from clustersim.workload.rules.experts import EXPERT_KEYS, expert_faults, expert_values, mtp_faults
from clustersim.workload.rules.host import HOST_KEYS, host_faults
from clustersim.workload.rules.mesh import device_faults
from clustersim.workload.rules.offload import OFFLOAD_KEYS, offload_faults, offload_values
from clustersim.workload.rules.precision import fp8_attention_faults, gradient_faults, module_dtype_faults
from clustersim.workload.rules.schedule import chunk_faults, copy_faults, stage_faults, table_faults
from clustersim.workload.rules.sequence import sequence_faults
from clustersim.workload.rules.sharding import SHARDING_KEYS, sharding_faults
from clustersim.workload.rules.stage_layers import STAGE_LAYERS_KEYS, stage_layers_faults, stage_layers_values
from clustersim.workload.rules.tensor_overlap import (
    TENSOR_OVERLAP_KEYS,
    tensor_overlap_faults,
    tensor_overlap_values,
)
from clustersim.workload.rules.tensor_parallel import tensor_parallel_faults
from clustersim.workload.rules.unsupported import unsupported_faults
from clustersim.workload.rules.words import word_faults

__all__ = ["find_faults"]


def find_faults(case: Case) -> tuple[Fault, ...]:
    """Every fault of a case, each value's own first, then those of values against each other."""
    faults = [
        *count_faults(case),
        *word_faults(case),
        *table_faults(case),
        *expert_values(case),
        *tensor_overlap_values(case),
        *stage_layers_values(case),
        *offload_values(case),
        *checkpoint_values(case),
        *unsupported_faults(case),
        *document_faults(case),
    ]
    for reads, rule in _RULES:
        bad = {"plan.schedule" if f.file and f.file == case.plan.schedule else f.key for f in faults}
        if not bad.intersection(reads):
            faults += rule(case)
    return tuple(faults)


_DEGREES = ("plan.tp", "plan.cp", "plan.pp", "plan.dp", "num_devices")
_RULES: tuple[tuple[tuple[str, ...], Callable[[Case], Iterator[Fault]]], ...] = (
    (("model", "plan.tp"), tensor_parallel_faults),
    (("plan.tp", "seq_len", "plan.sequence_parallel"), sequence_faults),
    (("plan.tp", "plan.cp", "seq_len", "micro_batch", *TENSOR_OVERLAP_KEYS), tensor_overlap_faults),
    ((*CONTEXT_KEYS, "model", "seq_len", "plan.attention"), context_faults),
    ((*ARCHITECTURE_KEYS, "plan.vpp", "plan.schedule"), architecture_faults),
    (STAGE_LAYERS_KEYS, stage_layers_faults),
    (("plan.pp", "plan.vpp", "plan.schedule"), stage_faults),
    (("plan.pp", "plan.vpp", "plan.schedule"), chunk_faults),
    (_DEGREES, device_faults),
    ((*_DEGREES, "plan.schedule", "plan.vpp", "global_batch", "micro_batch"), batch_faults),
    (("model", "seq_len", "micro_batch"), pass_faults),
    ((*_DEGREES, *SHARDING_KEYS, "plan.ep", "plan.etp"), sharding_faults),
    ((*_DEGREES, *SHARDING_KEYS, "plan.schedule", "plan.vpp", "dtype"), copy_faults),
    (("dtype", "plan.attention", "plan.cp"), fp8_attention_faults),
    (("dtype", "plan.gradient_dtype"), gradient_faults),
    (("model", "plan.module_dtypes", "plan.bf16_layers_at_start", "plan.bf16_layers_at_end"), module_dtype_faults),
    (HOST_KEYS, host_faults),
    (OFFLOAD_KEYS, offload_faults),
    (CHECKPOINT_KEYS, checkpoint_faults),
    (
        (*_DEGREES, *EXPERT_KEYS, "plan.hsdp", "model", "dtype", "plan.axis_order", "micro_batch", "seq_len"),
        expert_faults,
    ),
    (("plan.tp", "plan.recompute", "plan.recompute_method", "plan.recompute_layers"), mtp_faults),
)
