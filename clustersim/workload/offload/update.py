"""The updates of a step, subgroup by subgroup: read, update, cast, write, as a policy wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.coherent import require_coherent
from clustersim.workload.offload.gradient_path import gradient_width
from clustersim.workload.offload.policy import OffloadPolicy, Tier
from clustersim.workload.offload.pools import BUFFERS, STAGING, STATES
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.traffic import cast_pass, copy, host_pass, read, touch, write
from clustersim.workload.offload.updater import cpu_update, gpu_update, separate
from clustersim.workload.op import Compute, Delay, HostWork, Op, Storage
from clustersim.workload.optimizers.rule import Optimizer
from clustersim.workload.optimizers.separate import UpdateKernels
from clustersim.workload.passes.fragment import stream_of
from clustersim.workload.precision import Recipe
from clustersim.workload.program import Program

__all__ = ["Updated", "write_updates"]

_FULL = WIDTH["fp32"]
_STATE = _FULL * len(STATES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Updated:
    """Where the updates of one step stand in a program.

    Parameters
    ----------
    first, last : Mapping[int, Sequence[int]]
        by subgroup: its first ops, and those after which it is where it lives
    arrived : Mapping[int, int]
        by subgroup: the op after which its new weights are there
    validated : int, optional
        the op that says whether updates were right to go on before all gradients were there
    """

    first: Mapping[int, Sequence[int]]
    last: Mapping[int, Sequence[int]]
    arrived: Mapping[int, int]
    validated: int | None = None


def write_updates(
    program: Program,
    policy: OffloadPolicy,
    subgroups: Sequence[Subgroup],
    gathered: Mapping[int, Sequence[int]],
    *,
    recipe: Recipe,
    optimizer: str | Optimizer,
    kernels_of: UpdateKernels,
    width: int,
    clip: bool,
    step: int,
    exits: Sequence[int],
) -> Updated:
    """Append the updates of a stage in the policy's order.

    The CPU's updates stand on the stream ``cpu``, its casts beside them on ``cast`` unless one thread does both; copies
    and accesses of drives have a stream for each way, so that they pass beside each other and never overtake. Where
    validation fails, every update that it is about is taken back and done again, one subgroup after the other; a
    forward pass that would have begun in vain is left out, since nothing else could run in its time.

    Parameters
    ----------
    program : Program
    policy : OffloadPolicy
    subgroups : Sequence[Subgroup]
        of the stage
    gathered : Mapping[int, Sequence[int]]
        by subgroup: ops after which its gradients are where they wait
    recipe : Recipe
    optimizer : str or Optimizer
        of what the GPU updates
    kernels_of : {"fused", "copied", "foreach", "loop"}
        of such an update
    width : int
        bytes of a gradient on the GPU [B]
    clip : bool
        gradients are clipped by their norm
    step : int
        of the policy's period
    exits : Sequence[int]
        last ops of the passes, and sums of gradients behind them

    Raises
    ------
    BadInput
        when the policy contradicts itself
    """
    turns = _Turns(
        program=program,
        policy=policy,
        recipe=recipe,
        optimizer=optimizer,
        kernels_of=kernels_of,
        width=width,
        exits=exits,
    )
    everything = sorted({*exits, *(op for ops in gathered.values() for op in ops)})
    barrier: list[int] = []
    ahead: list[int] = []
    warm, stays = policy.kept(subgroups, (step - 1) % policy.period), policy.kept(subgroups, step)
    order = policy.order(subgroups, step)
    closing = _closing(policy, [subgroups[index] for index in order])
    for index in order:
        subgroup = subgroups[index]
        require_coherent(policy, subgroup)
        release = policy.depends(subgroup)
        turns.begin(policy.window(subgroup))
        if release == "norm" and not barrier:
            barrier = [turns.barrier(everything, sum(s.parameters for s in subgroups) if clip else 0)]
        after = {"norm": barrier, "gradient": gathered[index], "previous step": ()}[release]
        late = release == "previous step"
        turns.write(subgroup, after, warm=index in warm, stays=index in stays, late=late)
        if index in closing:
            turns.send()
        if release == "gradient":
            ahead.append(index)
    if policy.collects:
        turns.collect(subgroups)
    validated = None
    if policy.validates and ahead:
        validated = turns.validate(everything, sum(s.parameters for s in subgroups))
        for index in ahead if policy.rolls_back else ():
            turns.write(subgroups[index], [validated], warm=index in stays, stays=index in stays, late=False, undo=True)
    return Updated(first=turns.first, last=turns.last, arrived=turns.arrived, validated=validated)


def _closing(policy: OffloadPolicy, ordered: Sequence[Subgroup]) -> frozenset[int]:
    """Indices of the subgroups that the CPU updates last in their windows."""
    last: dict[int, int] = {}
    for subgroup in ordered:
        window = policy.window(subgroup)
        if window is not None and policy.tier(subgroup) == "cpu":
            last[window] = subgroup.index
    return frozenset(last.values())


@dataclass(kw_only=True, slots=True)
class _Turns:
    """Writes one subgroup after the other.

    Attributes
    ----------
    window : int, optional
        of the subgroup that is written
    first, last, arrived
        as of :class:`Updated`
    """

    program: Program
    policy: OffloadPolicy
    recipe: Recipe
    optimizer: str | Optimizer
    width: int
    kernels_of: UpdateKernels
    exits: Sequence[int]
    window: int | None = None
    first: dict[int, Sequence[int]] = field(default_factory=dict)
    last: dict[int, Sequence[int]] = field(default_factory=dict)
    arrived: dict[int, int] = field(default_factory=dict)
    _before: list[int] = field(default_factory=list)
    _written: list[int] = field(default_factory=list)
    _turn: list[int] = field(default_factory=list)
    _held: list[tuple[Subgroup, int]] = field(default_factory=list)
    _sent: list[int] = field(default_factory=list)
    _opened: list[int] = field(default_factory=list)

    def barrier(self, after: Sequence[int], parameters: int) -> int:
        """Every gradient is there, and the norm of so many parameters is known."""
        if parameters and self.policy.norm == "gpu" and not self.policy.flat_buffer:
            kernels = (memory_pass(self.width * parameters, dtype="fp32"),)
            norm = Compute(name="gradient norm", kind="optimizer", kernels=kernels, category="optimizer")
            return self._add(norm, after)
        marker = Delay(name="all gradients", kind="barrier", measured_ns=0, category="host")
        return self._add(marker, after, stream="cpu")

    def validate(self, after: Sequence[int], parameters: int) -> int:
        """The CPU looks at gradients of so many parameters for what is not finite, and takes their norm."""
        nbytes = gradient_width(self.policy, self.width) * parameters
        return self._add(host_pass(self.policy, "validate", "norm", nbytes), after, stream="validation")

    def _update(self, subgroup: Subgroup) -> HostWork | Compute:
        """The update itself, by who does it."""
        if self.policy.tier(subgroup) == "cpu":
            return cpu_update(self.policy, subgroup.parameters)
        return gpu_update(
            self.policy,
            subgroup.parameters,
            recipe=self.recipe,
            optimizer=self.optimizer,
            kernels_of=self.kernels_of,
            width=self.width,
        )

    def begin(self, window: int | None) -> None:
        """The next update is of this window, which waits for the weights of the one before."""
        if window != self.window:
            self._turn, self._opened, self._sent = [*self._turn, *self._sent], self._sent, []
        self.window = window

    def send(self) -> None:
        """Bring new weights of the window: all are updated by the CPU, or by the GPU."""
        done = [self._held[-1][1]]
        for subgroup, _ in self._held:
            arrived = self._weights(subgroup, done, late=False)
            self.arrived[subgroup.index] = arrived
            self.last[subgroup.index] = sorted({*self.last[subgroup.index], arrived})
            self._sent.append(arrived)
        self._held = []

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
        place, number = self.policy.place(subgroup), len(self.program)
        drive = place.states if place.states in ("nvme", "file_system") else None
        loads: dict[Tier, int] = {}
        if drive and not warm:
            loads[drive] = _STATE
        if place.gradients in ("nvme", "file_system"):
            loads[place.gradients] = loads.get(place.gradients, 0) + gradient_width(self.policy, self.width)
        there = self._load(subgroup, loads, after)
        held = {f"{next(iter(loads))} {BUFFERS}": 1} if loads else {}
        leaves = drive is not None and not stays
        on_gpu = self.policy.tier(subgroup) == "gpu"
        ready = [*there, *after, *self._written]
        write_update = self._on_gpu if on_gpu else self._on_cpu
        update, ends = write_update(subgroup, ready, gives={} if leaves else held, undo=undo)
        weights = update
        if on_gpu:
            weights = self._leave(subgroup, update)
        elif self.window is not None:
            self._held.append((subgroup, update))
        elif not self.policy.collects:
            weights = self._weights(subgroup, [update], late=late)
        ends = [*ends, weights]
        if leaves and drive:
            op = write(drive, "write optimizer state", _STATE * subgroup.parameters)
            ends.append(self._store(op, drive, ends[:-1], gives=held))
            self._written = [] if self.policy.write_behind else ends[-1:]
        if place.weights in ("nvme", "file_system"):
            op = write(place.weights, "write weights", WIDTH[self.recipe.weights] * subgroup.parameters)
            ends.append(self._store(op, place.weights, [weights]))
        self._before = [] if self.policy.read_ahead else [weights]
        self.first.setdefault(subgroup.index, there or [number])
        self.last[subgroup.index] = sorted(set(ends))
        self.arrived[subgroup.index] = weights
        asked = weights if self.policy.serial else update
        self._turn = [asked] if self.policy.in_turn else self._opened

    def _leave(self, subgroup: Subgroup, update: int) -> int:
        """Take new weights that are on the GPU to where they live."""
        if self.policy.place(subgroup).weights == "gpu":
            return update
        nbytes = WIDTH[self.recipe.weights] * subgroup.parameters
        return self._add(copy(self.policy, "return weights", "d2h", nbytes), [update])

    def collect(self, subgroups: Sequence[Subgroup]) -> None:
        """In forward order, when every update is through: scale gradients that are used by then, bring weights."""
        done = sorted({op for ops in self.last.values() for op in ops})
        for subgroup in subgroups:
            if self.policy.tier(subgroup) == "gpu":
                continue
            before = done
            if self.policy.scales:
                before = [self._add(self._scale(subgroup), done, stream="cast")]
            arrived = self._weights(subgroup, before, late=False)
            self.arrived[subgroup.index] = arrived
            self.last[subgroup.index] = sorted({*self.last[subgroup.index], arrived})

    def _load(self, subgroup: Subgroup, loads: Mapping[Tier, int], after: Sequence[int]) -> list[int]:
        """Read what is on drives, as far ahead of the updates as there are buffers."""
        numbers: list[int] = []
        for n, (tier, each) in enumerate(loads.items()):
            op = read(tier, "read optimizer state", each * subgroup.parameters)
            takes = {**({f"{tier} {BUFFERS}": 1} if n == 0 else {}), **self._lock(tier, "read")}
            waits = [*after, *self._before, *([] if self.policy.read_ahead else self._written)]
            numbers.append(self._add(op, waits, takes=takes, gives=self._lock(tier, "read")))
        return numbers

    def _on_cpu(
        self, subgroup: Subgroup, after: Sequence[int], *, gives: Mapping[str, int], undo: bool
    ) -> tuple[int, list[int]]:
        """The CPU's update; its number, and the ops that end it."""
        policy, n = self.policy, subgroup.parameters
        last = [*after, *self._turn]
        if undo:
            last = [self._add(replace(self._update(subgroup), name="roll back"), last, stream="cpu")]
        if policy.cast == "late" and self.width != _FULL:
            last = [self._add(cast_pass(policy, "cast gradients", (_FULL + self.width) * n), last, stream="cpu")]
        if policy.scales and not policy.collects:
            last = [self._add(self._scale(subgroup), last, stream="cpu")]
        update = self._add(self._update(subgroup), last, stream="cpu", gives=gives)
        return update, [update]

    def _weights(self, subgroup: Subgroup, updated: Sequence[int], *, late: bool) -> int:
        """Bring what the CPU has updated to where the passes read it, in their format; the last op of that."""
        policy, n = self.policy, subgroup.parameters
        width = WIDTH[self.recipe.weights]
        waits, sent, cast = [*updated], width, policy.cast_weights or policy.cast
        thread = "cast" if policy.collects or not policy.serial else "cpu"
        pinned = policy.pinned_weights
        if cast in ("cpu", "late") and width != _FULL:
            if policy.temporaries:
                pinned = False
                waits = [self._add(touch(policy, width * n), waits, stream=thread)]
            waits = [self._add(cast_pass(policy, "cast weights", (_FULL + width) * n), waits, stream=thread)]
        elif cast == "gpu":
            sent = _FULL
        if policy.place(subgroup).weights != "gpu":
            return max(waits)
        waits += self.exits if late else ()
        bring = copy(policy, "bring weights", "h2d", sent * n, pinned=pinned)
        last = self._add(bring, waits, stream=thread if policy.serial else "h2d")
        if sent != width:
            kernels = (memory_pass((sent + width) * n, dtype="fp32"),)
            back = Compute(name="cast weights", kind="cast", kernels=kernels, category="optimizer")
            last = self._add(back, [last], stream="cast weights")
        return last

    def _on_gpu(
        self, subgroup: Subgroup, after: Sequence[int], *, gives: Mapping[str, int], undo: bool
    ) -> tuple[int, list[int]]:
        """The GPU's update, through staging buffers where its state is not there; number, and the ops that end it."""
        policy, n, place = self.policy, subgroup.parameters, self.policy.place(subgroup)
        here = [*after, *self._turn]
        away = place.states != "gpu"
        cast = _FULL if separate(self.kernels_of) and self.width != _FULL else 0
        if place.gradients != "gpu":
            nbytes = gradient_width(policy, self.width) * n
            here.append(self._add(copy(policy, "bring gradients", "h2d", nbytes), after))
        for what in STATES if away else ():
            bring = copy(policy, f"bring fp32 {what}", "h2d", _FULL * n)
            staged = {f"{STAGING} {what}": 1}
            held = {"gpu/staging": (_FULL + (cast if what == STATES[0] else 0)) * n}
            here.append(self._add(bring, after, stream=self._copier("in"), takes=staged, start_bytes=held))
        if undo:
            here = [self._add(replace(self._update(subgroup), name="roll back"), here)]
        update = self._add(self._update(subgroup), here, gives={} if away else gives)
        ends = [update]
        for what in STATES if away else ():
            back = copy(policy, f"return fp32 {what}", "d2h", _FULL * n)
            given = {f"{STAGING} {what}": 1, **(gives if what == STATES[-1] else {})}
            left = {"gpu/staging": -(_FULL + (cast if what == STATES[-1] else 0)) * n}
            ends.append(self._add(back, [update], stream=self._copier("out"), gives=given, end_bytes=left))
        return update, ends[1:] or ends

    def _copier(self, way: str) -> str:
        """The stream of staged states, apart from that of weights, which their coming does not wait for."""
        return f"{STAGING} {way}" if self.policy.duplex else STAGING

    def _store(self, op: Storage, tier: Tier, after: Sequence[int], *, gives: Mapping[str, int] | None = None) -> int:
        lock = self._lock(tier, "write")
        return self._add(op, after, takes=lock, gives={**lock, **(gives or {})})

    def _scale(self, subgroup: Subgroup) -> HostWork:
        return host_pass(self.policy, "scale gradients", "cast", 2 * _FULL * subgroup.parameters)

    def _lock(self, tier: Tier, way: str) -> dict[str, int]:
        return {f"{tier} {way} lock": 1} if self.policy.lock else {}

    def _add(
        self,
        op: Op,
        after: Sequence[int],
        *,
        stream: str | None = None,
        takes: Mapping[str, int] | None = None,
        gives: Mapping[str, int] | None = None,
        start_bytes: Mapping[str, int] | None = None,
        end_bytes: Mapping[str, int] | None = None,
    ) -> int:
        return self.program.add(
            op,
            stream=stream or stream_of(op),
            after=sorted(set(after)),
            phase="optimizer",
            takes=takes,
            gives=gives,
            start_bytes=start_bytes,
            end_bytes=end_bytes,
        )
