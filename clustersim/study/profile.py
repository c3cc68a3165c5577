"""A software profile: what a training framework of some year fuses, overlaps and splits where a job does not say."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from clustersim.faults import BadInput, Fault
from clustersim.library.build import build
from clustersim.library.card import read_card
from clustersim.library.keys import KEYS
from clustersim.library.values import Refused
from clustersim.workload.context import Method
from clustersim.workload.exchange import Dispatch
from clustersim.workload.expert_kernels import ExpertKernels
from clustersim.workload.fusion import FUSED, Loss
from clustersim.workload.gradient_passes import GradientPass
from clustersim.workload.host_calls import Launching
from clustersim.workload.optimizers.separate import UpdateKernels
from clustersim.workload.placeholders import Placeholders
from clustersim.workload.precision import find_recipe
from clustersim.workload.shard import Attention, Dtype
from clustersim.workload.tensor_overlap import TpOverlap
from clustersim.workload.unaligned import UnalignedUnits

__all__ = ["Profile", "load_profile"]

_AS = {
    "zero": "plan.zero",
    "fusion": "plan.fusion",
    "logged_losses": "plan.logged_losses",
    "gradient_passes": "plan.gradient_passes",
    "recompute_modules": "plan.recompute_modules",
    "repeats": "plan.recompute_modules",
    "fp8": "dtype",
}
"""Fields whose types alone do not say what is legal -> the setting of a job that does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Switches of a framework, never efficiencies. Fields without a comment mean what they mean in a plan.

    Parameters
    ----------
    name, description : str
    attention, dropout, overlap_dp, overlap_tp, scatter_gather, tp_overlap, dispatch, context, per_parameter,
    placeholders, recompute_modules
        as in :class:`clustersim.workload.plan.ParallelPlan`
    sequence_parallel : bool
        with tp above 1
    zero : int
        where nothing is said about sharding
    fp8 : str
        the recipe that a bare ``fp8`` means, of :data:`clustersim.workload.precision.RECIPES`
    counts_recompute : bool
        whether its TFLOP/s count the passes that run again, where their unit does not say
    counts_full_attention : bool
        whether its TFLOP/s count attention over the full square, where their unit does not say; else the causal half
    fsdp : bool
        weights are split, where nothing is said about sharding
    gradient_passes
        as in a plan, where gradients are whole
    fusion, loss, launch, wait_norm, wait_layers, clip, update_kernels
        as in a plan
    reduce_scatter : bool
        as in a plan, where state or gradients are split by ``zero`` 1 or 2
    module_hooks : bool
        as in a plan, where weights are split by ``zero`` 3
    repeat_heads, split_projections, gather_cast, batch_first, flat_parameters, logged_losses, unaligned, expert_kernels
        as in a plan
    time_steps : bool
        as in a plan
    recompute_early_stop : bool
        as in a plan
    gradient_dtype : {"fp32", "bf16", "fp16"}, optional
        as in a plan
    repeats : tuple[str, ...]
        parts that are computed again in any case, where a job says nothing of recomputation or that there is none
    overlap_refresh : bool
        as in a plan
    overlap_p2p : bool
        messages between stages pass beside kernels with one chunk a stage, too; else ``wait_messages`` of a plan
    sources : Mapping[str, str]
        where each switch is from, or ``assumed``
    """

    name: str
    description: str = ""
    attention: Attention
    dropout: bool
    sequence_parallel: bool
    overlap_dp: bool
    overlap_tp: bool
    zero: int
    counts_recompute: bool
    counts_full_attention: bool = False
    scatter_gather: bool = False
    tp_overlap: TpOverlap = "none"
    dispatch: Dispatch = "all_to_all"
    context: Method = "zigzag"
    per_parameter: bool = False
    placeholders: Placeholders = "none"
    recompute_modules: tuple[str, ...] = ("core",)
    recompute_early_stop: bool = False
    gradient_dtype: Dtype | None = None
    fp8: str = "fp8"
    fsdp: bool = False
    fusion: tuple[str, ...] = FUSED
    loss: Loss = "parallel"
    launch: Launching = "none"
    wait_norm: bool = False
    wait_layers: bool = False
    module_hooks: bool = False
    reduce_scatter: bool = True
    clip: bool = True
    update_kernels: UpdateKernels = "fused"
    repeat_heads: bool = False
    split_projections: bool = False
    gather_cast: bool = False
    time_steps: bool = False
    batch_first: bool = False
    flat_parameters: bool = False
    logged_losses: int = 0
    unaligned: UnalignedUnits = "matrix"
    gradient_passes: tuple[GradientPass, ...] = ()
    expert_kernels: ExpertKernels = "grouped"
    repeats: tuple[str, ...] = ()
    overlap_refresh: bool = True
    overlap_p2p: bool = True
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        faults = []
        for name, key in _AS.items():
            value = getattr(self, name)
            given = list(value) if isinstance(value, tuple) else value
            try:
                KEYS[key].value.read(given)
            except Refused as refused:
                faults.append(Fault(key=name, value=given, rule=refused.rule, nearest=refused.nearest))
        if faults:
            raise BadInput(faults)

    def switches(
        self, job: Mapping[str, Any], *, replicas: int, kernels: Collection[str], dtype: str = "bf16"
    ) -> dict[str, Any]:
        """What a job takes of it: fields of its plan, those left out that would do nothing there.

        Parameters
        ----------
        job : Mapping[str, Any]
            fields of the job's plan that are known: degrees, schedule, sharding, recompute and ``sequence_parallel``
        replicas : int
            ranks that hold the same weights
        kernels : Collection[str]
            attention kernels whose times are known on the device; the device's usual one stands for any other
        dtype : str
            the job's recipe; gradients in 16 bits are in its format, whichever of the two the profile's users had

        Returns
        -------
        dict[str, Any]
            also those that the job sets itself, whose own values go first
        """
        tp, pp = job.get("tp", 1), job.get("pp", 1)
        known = self.attention in ("flash", "unfused", *kernels)
        found: dict[str, Any] = {
            "attention": self.attention if known else "flash",
            "dropout": self.dropout,
            "fusion": self.fusion,
            "loss": "parallel" if tp > 1 else self.loss,
            "launch": self.launch,
            "clip": self.clip,
            "repeat_heads": self.repeat_heads,
            "split_projections": self.split_projections,
            "logged_losses": self.logged_losses,
            "unaligned": self.unaligned,
            "expert_kernels": self.expert_kernels,
        }
        if self.gradient_dtype is not None:
            found["gradient_dtype"] = "fp32" if self.gradient_dtype == "fp32" else find_recipe(dtype).activations
        if job.get("optimizer", "adam") in ("adam", "adamw"):
            found["update_kernels"] = self.update_kernels
        if job.get("launch", self.launch) != "none":
            found["wait_norm"] = self.wait_norm
            in_turn = job.get("schedule") in (None, "1f1b") and (job.get("vpp") or 1) == 1
            found["wait_layers"] = self.wait_layers and (pp == 1 or in_turn)
            waits = pp > 1 and in_turn
            found["wait_messages"] = waits and not self.overlap_p2p
        sequence_parallel = tp > 1 and job.get("sequence_parallel", self.sequence_parallel)
        if tp > 1:
            found |= {"overlap_tp": self.overlap_tp, "sequence_parallel": sequence_parallel}
        if sequence_parallel:
            found |= {"tp_overlap": self.tp_overlap, "batch_first": self.batch_first}
            quantisation = find_recipe(dtype).quantisation
            if quantisation is not None and quantisation.one_scale:
                found["gather_cast"] = self.gather_cast
        elif tp > 1 and pp > 1:
            found["scatter_gather"] = self.scatter_gather
        if pp > 1 and (job.get("vpp") or 1) > 1 and job.get("schedule") in (None, "interleaved"):
            found["time_steps"] = self.time_steps
        if job.get("cp", 1) > 1:
            found["context"] = self.context
        if job.get("ep", 1) > 1:
            found["dispatch"] = self.dispatch
        if job.get("recompute") == "selective":
            found["recompute_modules"] = self.recompute_modules
        elif job.get("recompute") == "full":
            found["recompute_early_stop"] = self.recompute_early_stop
        elif self.repeats and job.get("recompute", "none") == "none":
            found |= {"recompute": "selective", "recompute_modules": self.repeats}
        if replicas > 1:
            found |= self._sharding(job, pipeline=pp > 1)
        if not job.get("fsdp", found.get("fsdp")) and job.get("zero", found.get("zero", 0)) < 2:
            found["placeholders"] = self.placeholders
            if not job.get("offload") and not job.get("sync_every"):
                found["gradient_passes"] = tuple(p for p in self.gradient_passes if p != "average" or replicas > 1)
        return found

    def _sharding(self, job: Mapping[str, Any], *, pipeline: bool) -> dict[str, Any]:
        """Of a job with replicas; under a pipeline DeepSpeed does not split weights, nor gradients then."""
        told = {name: job[name] for name in ("fsdp", "zero") if name in job}
        if not any(job.get(name) for name in ("fsdp", "zero", "sharding", "sync_every")):
            found: dict[str, Any] = (
                {"fsdp": True} if self.fsdp else {"zero": 1 if pipeline and self.zero == 3 else self.zero}
            )
        else:
            found = {}
        merged = {**found, **told}
        if merged.get("fsdp"):
            found |= {"per_parameter": self.per_parameter, "flat_parameters": self.flat_parameters}
        elif merged.get("zero") == 3:
            found["flat_parameters"] = self.flat_parameters and not job.get("zeropp")
            if job.get("launch", self.launch) != "none":
                found["module_hooks"] = self.module_hooks
        elif not job.get("sync_every"):
            found["overlap_dp"] = self.overlap_dp
            if (merged.get("zero") or job.get("sharding")) and self.overlap_dp:
                found["overlap_refresh"] = self.overlap_refresh
            if merged.get("zero"):
                found["reduce_scatter"] = self.reduce_scatter
            if merged.get("zero") == 2:
                found["flat_parameters"] = self.flat_parameters
        return found


def load_profile(name: str) -> Profile:
    """Load a profile by its card's name, or a card of the user's own by its path.

    Raises
    ------
    BadInput
        when there is no such card, or with every fault of it
    """
    return build(read_card("profile", name), Profile)
