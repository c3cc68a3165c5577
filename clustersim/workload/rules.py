"""What makes a plan legal. Each rule names the values it reads and runs once these are legal by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import get_args

from clustersim.faults import Fault, nearest_name
from clustersim.workload.case import Case
from clustersim.workload.expert_rules import EXPERT_KEYS, expert_faults, expert_values, mtp_faults
from clustersim.workload.precision import RECIPES, find_recipe
from clustersim.workload.recompute import MODULES, Recompute, RecomputeMethod
from clustersim.workload.schedule import SCHEDULES, PlacedSchedule, legal
from clustersim.workload.shard import WIDTH, Attention
from clustersim.workload.sharding.zeropp import PARTS
from clustersim.workload.sharding_rules import SHARDING_KEYS, sharding_faults
from clustersim.workload.unsupported import unsupported_parts

__all__ = ["find_faults"]

_AXES = ("tp", "cp", "dp", "pp")
_SHARDING_FLAGS = ("fsdp", "reshard", "limit_gathers", "sync_momentum")


def find_faults(case: Case) -> tuple[Fault, ...]:
    """Every fault of a case, each value's own first, then those of values against each other."""
    faults = [*_counts(case), *_words(case), *expert_values(case), *_unsupported(case)]
    for reads, rule in _RULES:
        bad = {f.key for f in faults}
        if not bad.intersection(reads):
            faults += rule(case)
    return tuple(faults)


def _counts(case: Case) -> Iterator[Fault]:
    """Whole numbers from 1."""
    plan = case.plan
    values = {f"plan.{n}": getattr(plan, n) for n in ("tp", "pp", "cp", "ep", "sync_ranks", "zeropp_ranks")}
    values |= {n: getattr(case, n) for n in ("global_batch", "micro_batch", "seq_len")}
    names = ("dp", "vpp", "bucket_bytes", "hsdp", "sync_every", "recompute_layers")
    optional = {f"plan.{n}": getattr(plan, n) for n in names}
    optional["num_devices"] = case.num_devices
    values |= {key: value for key, value in optional.items() if value is not None}
    for key, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            nearest = max(1, round(value)) if isinstance(value, int | float) and abs(value) < 2**63 else 1
            yield Fault(key=key, value=value, rule="must be a whole number from 1", nearest=nearest)
    if not isinstance(plan.prefetch, int) or isinstance(plan.prefetch, bool) or plan.prefetch < 0:
        yield Fault(key="plan.prefetch", value=plan.prefetch, rule="must be a whole number from 0", nearest=1)


def _words(case: Case) -> Iterator[Fault]:
    """Names, and settings that are true or false."""
    plan = case.plan
    choices: list[tuple[str, object, Sequence[str]]] = [
        ("plan.recompute", plan.recompute, get_args(Recompute)),
        ("plan.recompute_method", plan.recompute_method, get_args(RecomputeMethod)),
        *(("plan.recompute_modules", name, tuple(MODULES)) for name in plan.recompute_modules),
        ("plan.attention", plan.attention, get_args(Attention)),
        ("plan.gradient_dtype", plan.gradient_dtype, tuple(WIDTH)),
        ("plan.sync_dtype", plan.sync_dtype, tuple(WIDTH)),
        *(("plan.zeropp", name, PARTS) for name in plan.zeropp),
    ]
    optional = {"plan.gather_dtype": plan.gather_dtype, "plan.reduce_dtype": plan.reduce_dtype}
    choices += [(key, given, tuple(WIDTH)) for key, given in optional.items() if given is not None]
    if not (plan.schedule is None or callable(plan.schedule) or _is_path(plan.schedule)):
        choices.append(("plan.schedule", plan.schedule, tuple(SCHEDULES)))
    if isinstance(case.dtype, str):
        choices.append(("dtype", case.dtype, tuple(RECIPES)))
    for key, value, names in choices:
        if value not in names:
            nearest = nearest_name(str(value), names) or names[0]
            yield Fault(key=key, value=value, rule=f"must be one of {', '.join(names)}", nearest=nearest)
    for name in ("dropout", "overlap_dp", "overlap_tp", "sequence_parallel", "reduce_each", *_SHARDING_FLAGS):
        value = getattr(plan, name)
        if not isinstance(value, bool) and not (name in ("sequence_parallel", "reduce_each") and value is None):
            yield Fault(key=f"plan.{name}", value=value, rule="must be true or false", nearest=bool(value))
    order = plan.axis_order if isinstance(plan.axis_order, list | tuple) else ()
    if sorted(map(str, order)) != sorted(_AXES):
        yield Fault(
            key="plan.axis_order",
            value=plan.axis_order,
            rule=f"must name each of {', '.join(_AXES)} once, innermost first",
            nearest=_AXES,
        )


def _is_path(schedule: object) -> bool:
    """A table of the user's own, not a short name."""
    return isinstance(schedule, str) and ("/" in schedule or schedule.endswith((".csv", ".toml")))


def _unsupported(case: Case) -> Iterator[Fault]:
    plan = case.plan
    if missing := unsupported_parts(case.model):
        rule = f"cannot be simulated yet: {', '.join(missing)}"
        yield Fault(key="model", value=case.model.name, rule=rule)
    for name, what in (("cp", "context parallelism"),):
        value = getattr(plan, name)
        if isinstance(value, int) and value > 1:
            yield Fault(key=f"plan.{name}", value=value, rule=f"is not yet supported: {what}; must be 1", nearest=1)
    if plan.zero not in (0, 1, 2, 3) or type(plan.zero) is not int:
        nearest = min(3, max(0, round(plan.zero))) if isinstance(plan.zero, int | float) else 0
        yield Fault(key="plan.zero", value=plan.zero, rule="must be 0, 1, 2 or 3", nearest=nearest)


def _tensor_parallel(case: Case) -> Iterator[Fault]:
    model, tp = case.model, case.plan.tp
    if model.embedding_dim is not None and tp > 1:
        yield Fault(
            key="plan.tp",
            value=tp,
            rule=f"is not yet supported with an embedding narrower than the model ({model.embedding_dim}); must be 1",
            nearest=1,
        )
        return
    shapes = {"attention heads": model.num_heads, "hidden width": model.hidden, "MLP width": model.ffn_hidden}
    legal = [t for t in range(1, model.num_heads + 1) if not _undivided(shapes, t) and _heads_fit(case, t)]
    nearest = min(legal, key=lambda t: (abs(t - tp), t))
    for what, value in _undivided(shapes, tp).items():
        yield Fault(key="plan.tp", value=tp, rule=f"must divide the {what}, {value}", nearest=nearest)
    if not _heads_fit(case, tp):
        rule = f"must divide the {model.num_kv_heads} key and value heads, or be a multiple of them"
        yield Fault(key="plan.tp", value=tp, rule=rule, nearest=nearest)


def _undivided(shapes: dict[str, int], tp: int) -> dict[str, int]:
    return {what: value for what, value in shapes.items() if value % tp}


def _heads_fit(case: Case, tp: int) -> bool:
    kv_heads = case.model.num_kv_heads
    return kv_heads % tp == 0 or tp % kv_heads == 0


def _sequence(case: Case) -> Iterator[Fault]:
    tp, seq_len, model = case.plan.tp, case.seq_len, case.model
    if case.sequence_parallel and seq_len % tp:
        rule = f"must be a multiple of tp {tp} with sequence parallelism"
        yield Fault(key="seq_len", value=seq_len, rule=rule, nearest=max(1, round(seq_len / tp)) * tp)
    if model.window and seq_len > model.window.tokens:
        rule = f"cannot be simulated yet beyond the {model.window.tokens} tokens of the model's sliding window"
        yield Fault(key="seq_len", value=seq_len, rule=rule, nearest=model.window.tokens // tp * tp or None)
    if model.positions == "learned" and seq_len > model.max_seq_len:
        rule = f"must be at most the {model.max_seq_len} positions that the model has learned"
        yield Fault(key="seq_len", value=seq_len, rule=rule, nearest=model.max_seq_len)


def _stages(case: Case) -> Iterator[Fault]:
    plan, places = case.plan, case.model.num_layers + 2
    if case.num_virtual_stages <= places:
        return
    rule = (
        f"leaves a stage empty: pp {plan.pp} x vpp {case.num_virtual} = {case.num_virtual_stages} stages must be at "
        f"most the {case.model.num_layers} layers, embedding and head"
    )
    if plan.pp <= places:
        yield Fault(key="plan.vpp", value=plan.vpp, rule=rule, nearest=places // plan.pp)
    else:
        yield Fault(key="plan.pp", value=plan.pp, rule=rule, nearest=places // case.num_virtual or 1)


def _chunks(case: Case) -> Iterator[Fault]:
    plan, schedule, num_virtual = case.plan, case.schedule, case.num_virtual
    if num_virtual > 1 and plan.pp == 1:
        yield Fault(key="plan.vpp", value=num_virtual, rule="must be 1 with one stage", nearest=1)
    elif num_virtual > 1 and schedule in ("gpipe", "1f1b"):
        rule = f"must be interleaved for {num_virtual} chunks a stage"
        yield Fault(key="plan.schedule", value=schedule, rule=rule, nearest="interleaved")
    elif num_virtual == 1 and schedule == "interleaved":
        rule = "needs vpp above 1; must be 1f1b or gpipe"
        yield Fault(key="plan.schedule", value=schedule, rule=rule, nearest="1f1b")
    elif isinstance(schedule, PlacedSchedule) and schedule.num_virtual not in (None, num_virtual):
        rule = f"must be {schedule.num_virtual} for {schedule.name}"
        yield Fault(key="plan.vpp", value=num_virtual, rule=rule, nearest=schedule.num_virtual)
    elif schedule in SCHEDULES:
        yield from (f for f in legal(str(schedule), plan.pp, num_virtual, 1) if f.key.startswith("plan."))


def _devices(case: Case) -> Iterator[Fault]:
    plan, devices, each = case.plan, case.num_devices, case.ranks_per_replica
    if devices is None:
        if plan.dp is None:
            rule = f"must be given, or the number of devices: tp {plan.tp} x pp {plan.pp} x dp ? has no end"
            yield Fault(key="plan.dp", value=None, rule=rule, nearest=1)
    elif plan.dp is None and devices % each:
        below, above = devices // each * each, (devices // each + 1) * each
        rule = f"is not a multiple of {each}: tp {plan.tp} x pp {plan.pp} x dp ? = {devices} devices"
        nearest = f"{below} or {above}" if below else str(above)
        yield Fault(key="num_devices", value=devices, rule=rule, nearest=nearest)
    elif plan.dp is not None and plan.dp * each != devices:
        ranks = plan.dp * each
        rule = f"does not fill {devices} devices: tp {plan.tp} x pp {plan.pp} x dp {plan.dp} = {ranks}"
        fits = devices % each == 0
        yield Fault(
            key="plan.dp" if fits else "num_devices",
            value=plan.dp if fits else devices,
            rule=rule if fits else f"is not tp {plan.tp} x pp {plan.pp} x dp {plan.dp} = {ranks}",
            nearest=devices // each if fits else ranks,
        )


def _batch(case: Case) -> Iterator[Fault]:
    dp, micro_batch, batch = case.replicas, case.micro_batch, case.global_batch
    each = dp * micro_batch
    by = f"dp {dp} x micro_batch {micro_batch}"
    if batch % each:
        rule = f"must be a multiple of {by} = {each}"
        yield Fault(key="global_batch", value=batch, rule=rule, nearest=max(1, round(batch / each)) * each)
    elif case.schedule in SCHEDULES:
        count = case.num_micro_batches
        for fault in legal(str(case.schedule), case.plan.pp, case.num_virtual, count):
            if fault.key == "num_micro_batches" and isinstance(fault.nearest, int):
                rule = f"gives {count} micro-batches a replica; {fault.rule}, each {by} = {each} sequences"
                yield Fault(key="global_batch", value=batch, rule=rule, nearest=fault.nearest * each)


def _gradients(case: Case) -> Iterator[Fault]:
    given, width = case.plan.gradient_dtype, find_recipe(case.dtype).activations
    if given not in ("fp32", width):
        rule = f"must be fp32 or the training dtype {width}"
        yield Fault(key="plan.gradient_dtype", value=given, rule=rule, nearest=width)


_DEGREES = ("plan.tp", "plan.cp", "plan.pp", "plan.dp", "num_devices")
_RULES: tuple[tuple[tuple[str, ...], Callable[[Case], Iterator[Fault]]], ...] = (
    (("model", "plan.tp"), _tensor_parallel),
    (("plan.tp", "seq_len", "plan.sequence_parallel"), _sequence),
    (("plan.pp", "plan.vpp"), _stages),
    (("plan.pp", "plan.vpp", "plan.schedule"), _chunks),
    (_DEGREES, _devices),
    ((*_DEGREES, "plan.schedule", "global_batch", "micro_batch"), _batch),
    ((*_DEGREES, *SHARDING_KEYS), sharding_faults),
    (("dtype", "plan.gradient_dtype"), _gradients),
    ((*_DEGREES, *EXPERT_KEYS, "model", "dtype", "plan.axis_order", "micro_batch", "seq_len"), expert_faults),
    (("plan.tp", "plan.recompute", "plan.recompute_method", "plan.recompute_layers"), mtp_faults),
)
