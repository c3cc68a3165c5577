"""The update of some weights as an op: of the CPU, or of the GPU."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.op import Compute, HostWork
from clustersim.workload.optimizer import find_optimizer
from clustersim.workload.optimizers.rule import Optimizer
from clustersim.workload.optimizers.separate import UpdateKernels, separate_adam
from clustersim.workload.precision import Recipe

__all__ = ["ADAM", "cpu_update", "gpu_update", "separate"]

ADAM = 28
"""DRAM traffic of a CPU's Adam a parameter: weight, both averages and gradient read, the first three written [B]."""


def cpu_update(policy: OffloadPolicy, parameters: int) -> HostWork:
    """Adam on the host."""
    part, _ = policy.parts
    return HostWork(
        name="cpu adam",
        kind=policy.adam,
        nbytes=ADAM * parameters,
        threads=policy.update_threads,
        part=part,
        memory=policy.memory,
    )


def gpu_update(
    policy: OffloadPolicy,
    parameters: int,
    *,
    recipe: Recipe,
    optimizer: str | Optimizer = "adam",
    kernels_of: UpdateKernels = "fused",
    width: int,
) -> Compute:
    """The optimizer's rule on the GPU.

    Parameters
    ----------
    policy : OffloadPolicy
    parameters : int
    recipe : Recipe
    optimizer : str or Optimizer
    kernels_of : {"fused", "copied", "foreach", "loop"}
    width : int
        bytes of a gradient on the GPU [B]
    """
    rule = find_optimizer(optimizer)
    if separate(kernels_of):
        kernels = _separate(policy, parameters, recipe=recipe, kernels_of=kernels_of, width=width)
    else:
        kernels = rule.kernels(parameters, recipe=recipe, gradient_width=width, matrices=(), shards=1)
    return Compute(name=rule.name, kind="optimizer", kernels=kernels, category="optimizer")


def separate(kernels_of: UpdateKernels) -> bool:
    """Whether an update is many kernels, which read gradients in fp32."""
    return kernels_of in ("foreach", "loop")


def _separate(
    policy: OffloadPolicy, parameters: int, *, recipe: Recipe, kernels_of: UpdateKernels, width: int
) -> tuple[Kernel, ...]:
    """One kernel makes the gradient in fp32 and one scales it; then Adam, operator by operator."""
    full = WIDTH["fp32"]
    before = [width + full] if width != full else []
    before += [2 * full] if policy.scales else []
    return tuple(memory_pass(each * parameters, dtype="fp32") for each in before) + separate_adam(
        parameters, recipe=recipe, gradient_width=full, kernels_of=kernels_of, num_tensors=1
    )
