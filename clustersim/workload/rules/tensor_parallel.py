"""Ranks that share every layer."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.model import Model

__all__ = ["tensor_parallel_faults"]


def tensor_parallel_faults(case: Case) -> Iterator[Fault]:
    model, tp = case.model, case.plan.tp
    if model.embedding_dim is not None and tp > 1:
        yield Fault(
            key="plan.tp",
            value=tp,
            rule=f"is not yet supported with an embedding narrower than the model ({model.embedding_dim}); must be 1",
            nearest=1,
        )
        return
    shapes = _shapes(model)
    most = min(value for value in shapes.values() if value)
    legal = [t for t in range(1, most + 1) if not _undivided(shapes, t) and _heads_fit(case, t)]
    nearest = min(legal, key=lambda t: (abs(t - tp), t))
    undivided = _undivided(shapes, tp)
    for what, value in undivided.items():
        yield Fault(key="plan.tp", value=tp, rule=f"must divide the {what}, {value}", nearest=nearest)
    told = "attention heads" in undivided and model.num_kv_heads == model.num_heads  # each has its own: the same fault
    if not _heads_fit(case, tp) and not told:
        rule = f"must divide the {model.num_kv_heads} key and value heads, or be a multiple of them"
        yield Fault(key="plan.tp", value=tp, rule=rule, nearest=nearest)


def _shapes(model: Model) -> dict[str, int]:
    """What ranks divide among themselves; 0 where the model has none."""
    shapes = {"attention heads": model.num_heads, "hidden width": model.hidden, "MLP width": model.ffn_hidden}
    if model.encoder is not None:
        shapes |= {"encoder's heads": model.encoder.num_heads, "encoder's MLP width": model.encoder.ffn_hidden}
    if model.mamba is not None:
        heads = {"heads of the state space": model.mamba.num_heads, "groups of the state space": model.mamba.groups}
        shapes |= heads if model.mamba.version == 2 else {"channels of the state space": model.mamba.inner}
    return shapes


def _undivided(shapes: dict[str, int], tp: int) -> dict[str, int]:
    return {what: value for what, value in shapes.items() if value % tp}


def _heads_fit(case: Case, tp: int) -> bool:
    kv_heads = case.model.num_kv_heads
    return kv_heads % tp == 0 or tp % kv_heads == 0  # 0 where no layer attends
