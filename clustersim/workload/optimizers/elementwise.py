"""Optimizers that update each parameter from its own gradient and averages: a table of passes over memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.matrix import Matrix
from clustersim.workload.number_format import FORMATS, WIDTH, Format
from clustersim.workload.precision import Recipe

__all__ = ["ADAGRAD", "ADAM", "ADAMW", "ADAM_8BIT", "LAMB", "LION", "SGD", "SGD_MOMENTUM", "Elementwise"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Elementwise:
    """One row of the table.

    With g bytes of gradient, w of the weight that is updated (the fp32 master copy, or the weight itself), m of each
    average and c of the 16-bit weight where there is a master copy, an update moves, a parameter::

        gradient_passes · g  +  weight_passes · w  +  2 · moments · m  +  c

    Parameters
    ----------
    name : str
    moments : int
        averages that it keeps, one element a parameter each
    gradient_passes, weight_passes : int
        times that gradient and weight are read or written
    moment : Format, optional
        of the averages; None: the recipe's
    """

    name: str
    moments: int
    gradient_passes: int = 1
    weight_passes: int = 2
    moment: Format | None = None

    def state_nbytes(self, parameters: int, *, recipe: Recipe, matrices: Sequence[Matrix] = (), shards: int = 1) -> int:
        """The averages of a shard [B]."""
        form = FORMATS[recipe.moments] if self.moment is None else self.moment
        return self.moments * form.nbytes(-(-parameters // shards))

    def kernels(
        self, parameters: int, *, recipe: Recipe, gradient_width: int, matrices: Sequence[Matrix] = (), shards: int = 1
    ) -> tuple[Kernel, ...]:
        """One pass over all tensors of the shard at once (multi-tensor kernels)."""
        copy = WIDTH[recipe.weights] if recipe.master else 0
        each = self.gradient_passes * gradient_width + self.weight_passes * recipe.updated_width + copy
        state = self.state_nbytes(parameters, recipe=recipe, shards=shards)
        return (memory_pass(each * -(-parameters // shards) + 2 * state, dtype="fp32"),)

    def gathered_nbytes(self, matrices: Sequence[Matrix], shards: int) -> int:
        """Nothing: a shard is updated from itself."""
        return 0


SGD = Elementwise(name="sgd", moments=0)
"""w ← w − η·g."""

SGD_MOMENTUM = Elementwise(name="sgd_momentum", moments=1)
"""One average of the gradient; Nesterov's form moves the same bytes."""

ADAM = Elementwise(name="adam", moments=2)
"""Averages of the gradient and of its square (Kingma and Ba, 2014): 8 bytes a parameter in fp32."""

ADAMW = Elementwise(name="adamw", moments=2)
"""Weight decay apart from the gradient (Loshchilov and Hutter, 2017): the bytes of Adam."""

ADAGRAD = Elementwise(name="adagrad", moments=1)
"""The sum of squared gradients (Duchi et al., 2011)."""

LION = Elementwise(name="lion", moments=1)
"""The sign of an average (Chen et al., Symbolic Discovery of Optimization Algorithms, 2023): half the state of Adam."""

LAMB = Elementwise(name="lamb", moments=2, gradient_passes=4, weight_passes=4)
"""Adam scaled by the norms of weight and update, tensor by tensor (You et al., 2019, algorithm 2).

Three kernels, as in Apex's FusedLAMB: the update from gradient, weight and averages, written over the gradient; the
norms of weight and update; the step. So the gradient is read and its place written, read and read, the weight read,
read, read and written. The sums of norms over shards are left out: a few numbers a tensor.
"""

ADAM_8BIT = Elementwise(name="adam_8bit", moments=2, moment=Format(dtype="uint8", bits=8, block=2048, scale_bytes=4))
"""Adam with averages of 8 bits and one fp32 scale for each 2048 (Dettmers et al., 2021, section 2.1).

bitsandbytes keeps tensors of fewer than 4096 elements in fp32, and its stable embedding too; both are left out.
"""
