"""The weights of one kind on a rank: the bytes held of them throughout a step, and the kernels of their update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustersim.hardware.kernel import Kernel
from clustersim.workload.gradient_passes import GradientPass, gradient_passes
from clustersim.workload.layers.kernels import memory_pass, weight_cast
from clustersim.workload.matrix import Matrix
from clustersim.workload.module_dtypes import by_quantisation
from clustersim.workload.op import Compute
from clustersim.workload.optimizer import find_optimizer
from clustersim.workload.optimizers.copied import copied_adam, copied_checks
from clustersim.workload.optimizers.rule import Optimizer
from clustersim.workload.optimizers.separate import UpdateKernels, separate_adam
from clustersim.workload.precision import WIDTH, Dtype, Recipe, find_recipe

__all__ = ["Weights"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """Weights with their gradients and the optimizer's state.

    Parameters
    ----------
    parameters : int
        weights on this rank, before any of the splits below
    recipe : str or Recipe
    optimizer : str or Optimizer
    gradient_dtype : {"bf16", "fp16", "fp32"}
    weight_shards, gradient_shards, state_shards : int
        ranks over which each is split: state, and the update with it, by ZeRO-1, gradients too by ZeRO-2, weights too
        by ZeRO-3. The quantised copies of split weights are made of what is gathered and dropped with it
    matrices : Sequence[Matrix]
        those of the parameters that are matrices
    clip : bool
        gradients are clipped by their norm
    kernels_of : {"fused", "copied", "foreach", "loop"}
        how the update is cut into kernels, of
        :data:`clustersim.workload.optimizers.separate.UPDATE_KERNELS`; apart from ``fused`` for Adam only
    num_tensors : int
        that the parameters stand in, for kernels of one tensor each
    passes : tuple[GradientPass, ...]
        over all gradients before they are reduced
    replicas : int
        that gradients are averaged over
    """

    parameters: int
    recipe: str | Recipe
    gradient_dtype: Dtype
    optimizer: str | Optimizer = "adam"
    weight_shards: int = 1
    gradient_shards: int = 1
    state_shards: int = 1
    matrices: Sequence[Matrix] = ()
    clip: bool = True
    kernels_of: UpdateKernels = "fused"
    num_tensors: int = 1
    passes: tuple[GradientPass, ...] = ()
    replicas: int = 1

    def resident_bytes(self) -> Mapping[str, int]:
        """What the rank holds throughout a step, by memory key [B].

        Under bf16 and Adam 2 bytes of weight, 4 of gradient in fp32 and 12 of optimizer: a master copy and two
        averages; in fp32 4 + 4 + 8. A quantised recipe adds the copies of the hidden matrices that its products read.
        Buckets are views of the gradients and are reduced in place.

        Raises
        ------
        BadInput
            when recipe or optimizer is a name that there is not

        References
        ----------
        Rajbhandari et al., ZeRO, 2020, section 3.1 (12 bytes of state a parameter); Megatron-LM, distributed optimizer,
        table of bytes a parameter: 18 with fp32 gradients, 6 + 12/d sharded over d.
        """
        recipe, shards = find_recipe(self.recipe), self.state_shards
        weights = WIDTH[recipe.weights] * self._part(self.weight_shards)
        if self.weight_shards == 1:
            weights += sum(own.weight_copies_nbytes(n) for own, n in by_quantisation(recipe, self.matrices).items())
        master = WIDTH[recipe.master] * self._part(shards) if recipe.master else 0
        rule = find_optimizer(self.optimizer)
        state = rule.state_nbytes(self.parameters, recipe=recipe, matrices=self.matrices, shards=shards)
        return {
            "gpu/weights": weights,
            "gpu/gradients": WIDTH[self.gradient_dtype] * self._part(self.gradient_shards),
            "gpu/optimizer": master + state,
        }

    def update(self) -> Compute:
        """One update of the rank's weights or of its shard: the checks of :meth:`checks`, then :meth:`step`.

        Raises
        ------
        BadInput
            when recipe or optimizer is a name that there is not
        """
        return Compute(
            name=find_optimizer(self.optimizer).name,
            kind="optimizer",
            kernels=(*self.checks(), *self.step()),
            category="optimizer",
        )

    def checks(self) -> tuple[Kernel, ...]:
        """Passes before the update, each over all tensors at once (multi-tensor kernels): all gradients, then a shard.

        With loss scaling the gradients are checked for infinities and unscaled (read, write); where they are clipped
        their norm is taken (read).
        """
        gradient, shard = WIDTH[self.gradient_dtype], self._part(self.state_shards)
        whole = gradient_passes(self.passes, gradient * self.parameters, replicas=self.replicas)
        if self.kernels_of == "copied":
            recipe = find_recipe(self.recipe)
            return whole + copied_checks(shard, recipe=recipe, gradient_width=gradient, clip=self.clip)
        if find_recipe(self.recipe).loss_scaling:
            whole += (memory_pass(2 * gradient * shard, dtype="fp32"),)
        return (*whole, memory_pass(gradient * shard, dtype="fp32")) if self.clip else whole

    def step(self) -> tuple[Kernel, ...]:
        """The optimizer's own passes; then the gradients that the rank holds are zeroed for the next step.

        Where the rank holds whole weights, a quantised recipe casts the hidden matrices for the next step.
        """
        recipe, rule = find_recipe(self.recipe), find_optimizer(self.optimizer)
        gradient = WIDTH[self.gradient_dtype]
        if self.kernels_of == "fused":
            own = rule.kernels(
                self.parameters,
                recipe=recipe,
                gradient_width=gradient,
                matrices=self.matrices,
                shards=self.state_shards,
            )
        elif self.kernels_of == "copied":
            own = copied_adam(self._part(self.state_shards), recipe=recipe)
        else:
            own = separate_adam(
                self._part(self.state_shards),
                recipe=recipe,
                gradient_width=gradient,
                kernels_of=self.kernels_of,
                num_tensors=self.num_tensors,
            )
        return (
            *own,
            memory_pass(gradient * self._part(self.gradient_shards), dtype="fp32"),
            *(weight_cast(recipe, self.matrices) if self.weight_shards == 1 else ()),
        )

    def update_workspace(self) -> int:
        """What is held only during the update: an fp32 copy of 16-bit gradients, where there are fp32 weights [B].

        References
        ----------
        Megatron-Core, ``optimizer/optimizer.py``, ``_copy_model_grads_to_main_grads``; DeepSpeed,
        ``runtime/zero/stage_1_and_2.py``, ``step``: of a rank's part.
        """
        copied = find_recipe(self.recipe).master is not None and self.gradient_dtype != "fp32"
        return copied * WIDTH["fp32"] * self._part(self.state_shards)

    def gathered_nbytes(self) -> int:
        """What the ranks of an update gather for it of matrices that are split [B]."""
        return find_optimizer(self.optimizer).gathered_nbytes(self.matrices, self.state_shards)

    def _part(self, shards: int) -> int:
        return -(-self.parameters // shards)
