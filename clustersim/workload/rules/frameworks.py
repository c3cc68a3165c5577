"""Combinations that make sense and are simulated, but that a framework refuses, or that move more than one expects."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.units import show
from clustersim.workload.case import Case
from clustersim.workload.precision import WIDTH, find_recipe

__all__ = ["framework_notes"]


def framework_notes(case: Case) -> Iterator[str]:
    """What to know before a plan is taken to a framework.

    References
    ----------
    DeepSpeed, ``deepspeed/runtime/pipe/engine.py``: the pipeline engine asserts a ZeRO stage below 2. Megatron-LM,
    ``megatron/training/arguments.py``, ``validate_args``: ``use_torch_fsdp2`` with pipeline and expert parallelism and
    with fp16, expert parallelism with fp16, Muon with the distributed optimizer. torchtitan pull request 318: FSDP in a
    pipeline keeps gathered weights until the backward pass, unless told otherwise.
    """
    plan, dtype = case.plan, find_recipe(case.dtype).activations
    splits = plan.sharding is None and (plan.fsdp or plan.zero == 3)
    if case.replicas * plan.cp > 1:
        if plan.pp > 1 and plan.zero >= 2 and not plan.fsdp and plan.sharding is None:
            yield f"plan.zero: DeepSpeed refuses {plan.zero} with pp above 1"
        if plan.pp > 1 and splits and not plan.zeropp:
            yield _gathered(case)
        if plan.fsdp and (plan.pp > 1 or plan.ep > 1 or dtype == "fp16"):
            yield "plan.fsdp: Megatron-LM refuses torch's FSDP2 with pp or ep above 1 and with fp16"
        if plan.optimizer == "muon" and (plan.zero or splits):
            yield "plan.optimizer: Megatron-LM refuses muon with an optimizer state that is split over replicas"
    if plan.ep > 1 and dtype == "fp16":
        yield "plan.ep: Megatron-LM refuses it above 1 with fp16"


def _gathered(case: Case) -> str:
    """The traffic of weights that each micro-batch of a stage gathers anew, experts over those that hold the same."""
    plan, m, model = case.plan, case.num_micro_batches, case.model
    each = plan.ep * (plan.etp or 1)
    experts = 0
    if model.experts is not None:
        one = model.experts.num_experts * model.experts.expert_parameters(model.hidden)
        experts = one * model.num_sublayers()["experts"]
    dense = case.replicas * plan.cp
    ranks, holders = (n if plan.hsdp is None else min(n, plan.hsdp) for n in (dense, dense * plan.tp // each))
    passes = 2 if plan.reshard else 1
    width = WIDTH[plan.gather_dtype] if plan.gather_dtype else find_recipe(case.dtype).gathered_width
    received = (model.num_parameters - experts) // (plan.tp * plan.pp) * (ranks - 1) // ranks
    if experts:
        received += experts // (each * plan.pp) * (holders - 1) // holders
    total = passes * m * width * received
    word = "plan.fsdp" if plan.fsdp else "plan.zero"
    return (
        f"{word}: the weights of a stage are gathered {passes} x {m} times a step, "
        f"for each micro-batch {'forward and backward' if passes == 2 else 'once'}: a rank of {ranks}"
        f"{f', of {holders} for experts,' if experts else ''} receives about "
        f"{show(total, 'B')}"
    )
