"""One subgroup's update after the other, with what each waits for of those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.cpu_turn import bring_weights, scale_gradients, update_on_cpu
from clustersim.workload.offload.drive_access import STATE, read_states, to_read, write_away
from clustersim.workload.offload.gpu_turn import return_weights, update_on_gpu
from clustersim.workload.offload.gradient_path import gradient_width
from clustersim.workload.offload.place import DRIVES
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.pools import BUFFERS
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.traffic import host_pass, write
from clustersim.workload.offload.update_phase import UpdatePhase
from clustersim.workload.op import Compute, Delay

__all__ = ["Turns"]


@dataclass(kw_only=True, slots=True)
class Turns:
    """Writes the updates of a phase.

    Parameters
    ----------
    phase : UpdatePhase

    Attributes
    ----------
    first, last, arrived
        as of :class:`clustersim.workload.offload.update.Updated`
    window : int, optional
        of the subgroup that is written
    """

    phase: UpdatePhase
    first: dict[int, Sequence[int]] = field(default_factory=dict)
    last: dict[int, Sequence[int]] = field(default_factory=dict)
    arrived: dict[int, int] = field(default_factory=dict)
    window: int | None = None
    _before: list[int] = field(default_factory=list)
    """What reads wait for: where they do not run ahead, the update before them."""
    _written: list[int] = field(default_factory=list)
    """Writes that the next update waits for."""
    _turn: list[int] = field(default_factory=list)
    """What the next update waits for of those that were asked for before it."""
    _held: list[tuple[Subgroup, int]] = field(default_factory=list)
    """Updates of the window whose weights are still on the host."""
    _sent: list[int] = field(default_factory=list)
    """Weights of the window on their way, which the next window waits for."""
    _opened: list[int] = field(default_factory=list)
    """Those of the window before, which every update of this one waits for."""

    @property
    def policy(self) -> OffloadPolicy:
        """That says what waits for what."""
        return self.phase.policy

    def barrier(self, after: Sequence[int], parameters: int) -> int:
        """Every gradient is there, and the norm of so many parameters is known."""
        if parameters and self.policy.norm == "gpu" and not self.policy.flat_buffer:
            kernels = (memory_pass(self.phase.width * parameters, dtype="fp32"),)
            norm = Compute(name="gradient norm", kind="optimizer", kernels=kernels, category="optimizer")
            return self.phase.add(norm, after)
        marker = Delay(name="all gradients", kind="barrier", measured_ns=0, category="host")
        return self.phase.add(marker, after, stream="cpu")

    def validate(self, after: Sequence[int], parameters: int) -> int:
        """The CPU looks at gradients of so many parameters for what is not finite, and takes their norm."""
        nbytes = gradient_width(self.policy, self.phase.width) * parameters
        return self.phase.add(host_pass(self.policy, "validate", "norm", nbytes), after, stream="validation")

    def begin(self, window: int | None) -> None:
        """The next update is of this window, which waits for the weights of the one before."""
        if window != self.window:
            self._turn, self._opened, self._sent = [*self._turn, *self._sent], self._sent, []
        self.window = window

    def send(self) -> None:
        """Bring new weights of the window: all are updated by the CPU, or by the GPU."""
        done = [self._held[-1][1]]
        for subgroup, _ in self._held:
            arrived = bring_weights(self.phase, subgroup, done, late=False)
            self._arrives(subgroup, arrived)
            self._sent.append(arrived)
        self._held = []

    def collect(self, subgroups: Sequence[Subgroup]) -> None:
        """In forward order, when every update is through: scale gradients that are used by then, bring weights."""
        done = sorted({op for ops in self.last.values() for op in ops})
        for subgroup in subgroups:
            if self.policy.tier(subgroup) == "gpu":
                continue
            before = done
            if self.policy.scales:
                before = [scale_gradients(self.phase, subgroup, done, stream="cast")]
            self._arrives(subgroup, bring_weights(self.phase, subgroup, before, late=False))

    def _arrives(self, subgroup: Subgroup, arrived: int) -> None:
        self.arrived[subgroup.index] = arrived
        self.last[subgroup.index] = sorted({*self.last[subgroup.index], arrived})

    def write(
        self, subgroup: Subgroup, after: Sequence[int], *, warm: bool, stays: bool, late: bool, undo: bool = False
    ) -> None:
        """One subgroup.

        Parameters
        ----------
        subgroup : Subgroup
        after : Sequence[int]
            what its update waits for
        warm, stays : bool
            its state is on the host already, and remains there
        late : bool
            its weights go to the GPU when the passes are through
        undo : bool
            it has been updated in this step; the inverse of that comes first and reads and writes as much

        References
        ----------
        DeepSpeed, ``csrc/adam/cpu_adam_impl.cpp``, ``adamw_rollback_inplace``: in place, no copy of the state is held.
        """
        phase, policy = self.phase, self.policy
        place, number = policy.place(subgroup), len(phase.program)
        loads = to_read(phase, subgroup, warm=warm)
        waits = [*after, *self._before, *([] if policy.read_ahead else self._written)]
        there = read_states(phase, subgroup, loads, waits)
        held = {f"{next(iter(loads))} {BUFFERS}": 1} if loads else {}
        leaves = place.states in DRIVES and not stays
        gives = {} if leaves else held
        ready = [*there, *after, *self._written]
        if policy.tier(subgroup) == "gpu":
            update, ends = update_on_gpu(phase, subgroup, ready, turn=self._turn, gives=gives, undo=undo)
            weights = return_weights(phase, subgroup, update)
        else:
            weights = update = update_on_cpu(phase, subgroup, [*ready, *self._turn], gives=gives, undo=undo)
            ends = [update]
            if self.window is not None:
                self._held.append((subgroup, update))
            elif not policy.collects:
                weights = bring_weights(phase, subgroup, [update], late=late)
        ends = [*ends, weights]
        if leaves:
            op = write(place.states, "write optimizer state", STATE * subgroup.parameters)
            ends.append(write_away(phase, op, place.states, ends[:-1], gives=held))
            self._written = [] if policy.write_behind else ends[-1:]
        if place.weights in DRIVES:
            op = write(place.weights, "write weights", WIDTH[phase.recipe.weights] * subgroup.parameters)
            ends.append(write_away(phase, op, place.weights, [weights]))
        self._before = [] if policy.read_ahead else [weights]
        self.first.setdefault(subgroup.index, there or [number])
        self.last[subgroup.index] = sorted(set(ends))
        self.arrived[subgroup.index] = weights
        asked = weights if policy.serial else update
        self._turn = [asked] if policy.in_turn else self._opened
