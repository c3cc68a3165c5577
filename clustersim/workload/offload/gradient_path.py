"""The way of a gradient from the GPU to where it waits for its update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.place import Tier
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.traffic import cast_pass, copy, host_pass, touch, write
from clustersim.workload.op import Compute, HostWork, Op

__all__ = ["GradientPath", "gradient_path", "gradient_width", "waits_in_flat_buffer"]


_FP64 = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientPath:
    """Ops one after the other.

    Parameters
    ----------
    leave : tuple[Op, ...]
        until the gradient has left the GPU
    arrive : tuple[Op, ...]
        what becomes of it then
    """

    leave: tuple[Op, ...] = ()
    arrive: tuple[Op, ...] = ()


def gradient_width(policy: OffloadPolicy, width: int) -> int:
    """Bytes of a gradient while it waits on the host or a drive [B], ``width`` being those on the GPU."""
    return width if policy.cast in ("late", "update") else WIDTH["fp32"]


def waits_in_flat_buffer(policy: OffloadPolicy, tier: Tier) -> bool:
    """Whether gradients that wait on ``tier`` are where the flat buffer is: on the host, in their own format."""
    return policy.flat_buffer and tier == "host" and policy.cast in ("late", "update")


def gradient_path(
    policy: OffloadPolicy,
    tier: Tier,
    parameters: int,
    *,
    width: int,
    last: bool = True,
    adds: bool = False,
    turns: float = 1.0,
) -> GradientPath:
    """Bring the gradients of some weights of a rank off the GPU.

    Parameters
    ----------
    policy : OffloadPolicy
    tier : {"gpu", "host", "nvme", "file_system"}
        where they wait for the update; on the GPU they stay
    parameters : int
    width : int
        bytes of a gradient on the GPU [B]
    last : bool
        of the last micro-batch: the host has the whole gradient then
    adds : bool
        it is added to that of other micro-batches: two are read and one is written
    turns : float
        in which ranks copy one after the other, see :class:`clustersim.workload.op.Copy`; what the owner of a gradient
        does on its GPU beside that is so much less that it counts once
    """
    if not parameters:
        return GradientPath()
    leave: list[Op] = []
    if policy.flat_buffer:
        leave += _flat_buffer(policy, parameters, width=width, last=last, adds=adds, turns=turns)
    if tier == "gpu" or (policy.flat_buffer and (not last or waits_in_flat_buffer(policy, tier))):
        return GradientPath(leave=tuple(leave))
    sent = WIDTH["fp32"] if policy.cast == "gpu" else width
    if sent != width:
        kernels = (memory_pass((width + sent) * parameters, dtype="fp32"),)
        leave.append(Compute(name="cast gradients", kind="cast", kernels=kernels))
    temporary = policy.temporaries and policy.cast == "cpu" and sent != WIDTH["fp32"]
    if temporary:
        leave.append(touch(policy, sent * parameters, threads=1))
    pinned = False if temporary else None
    leave.append(copy(policy, "offload gradients", "d2h", sent * parameters, pinned=pinned, turns=turns))
    arrive: list[Op] = list(_passes(policy, parameters, sent=sent, last=last, adds=adds and not policy.flat_buffer))
    if last and tier != "host":
        arrive.append(write(tier, "store gradients", gradient_width(policy, width) * parameters))
    return GradientPath(leave=tuple(leave), arrive=tuple(arrive))


def _flat_buffer(
    policy: OffloadPolicy, parameters: int, *, width: int, last: bool, adds: bool, turns: float
) -> Iterator[Op]:
    """To a buffer on the host and back, where the sum and the norm are taken.

    References
    ----------
    DeepSpeed, ``runtime/zero/stage3.py``, ``partition_grads``, ``grad_partitions_flat_buffer``: the first micro-batch's
    gradients are copied there and back, those of others added to what comes back and copied there; and
    ``_constant_buffered_norm2``: ``double().norm(2)``, so that 8 bytes are written and read a parameter.
    """
    there = copy(policy, "buffer gradients", "d2h", width * parameters, turns=turns)
    back = copy(policy, "return gradients", "h2d", width * parameters, turns=turns)
    yield from (back, _kernel("add gradients", 3 * width * parameters), there) if adds else (there, back)
    if last:
        yield _kernel("gradient norm", (width + 2 * _FP64) * parameters)


def _kernel(name: str, nbytes: int) -> Compute:
    return Compute(name=name, kind="gradients", kernels=(memory_pass(nbytes, dtype="fp32"),))


def _passes(policy: OffloadPolicy, parameters: int, *, sent: int, last: bool, adds: bool) -> Iterator[HostWork]:
    """What the CPU does with gradients of ``sent`` bytes."""
    full = WIDTH["fp32"]
    if adds:
        yield host_pass(policy, "add gradients", "cast", 3 * sent * parameters)
    if last and policy.cast == "cpu" and sent != full:
        yield cast_pass(policy, "cast gradients", (sent + full) * parameters)
    if last and policy.norm == "cpu":
        yield host_pass(policy, "gradient norm", "norm", gradient_width(policy, sent) * parameters)
