"""Documents that are packed into sequences."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import BadInput, Fault
from clustersim.workload.case import Case
from clustersim.workload.document_lengths import Lengths

__all__ = ["document_faults", "document_notes"]

_SUBLAYERS = frozenset({"attention", "latent_attention", "mlp", "experts"})


def document_faults(case: Case) -> Iterator[Fault]:
    """Lengths that can be read, and a model whose attention can be told where a document ends."""
    seed = case.seq_seed
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        yield Fault(key="seq_seed", value=seed, rule="must be a whole number from 0", nearest=0)
        seed = 0
    if case.seq_lens == "fixed":
        return
    try:
        Lengths(case.seq_lens, seed=seed)
    except BadInput as error:
        yield from error.faults
    model = case.model
    others: list[str] = sorted(set(model.num_sublayers()) - _SUBLAYERS)
    others += [name for name in ("encoder", "patches", "tower", "pooler", "num_classes") if getattr(model, name)]
    if others:
        rule = f"cannot be simulated yet with {', '.join(others)} of {model.name}"
        yield Fault(key="seq_lens", value=case.seq_lens, rule=rule, nearest="fixed")


def document_notes(case: Case) -> Iterator[str]:
    """What packing costs the simulation, and settings without effect."""
    drawn = str(case.seq_lens).startswith(("uniform", "lognormal"))
    if case.seq_seed and not drawn:
        yield "seq_seed: no effect: no lengths of documents are drawn"
    if case.seq_lens == "fixed":
        return
    if case.plan.attention == "unfused":
        yield "seq_lens: no effect on time with plan.attention unfused, which computes whole squares"
    elif case.replicas > 1:
        yield f"seq_lens: no two of the {case.replicas} replicas have the same work, so that each is simulated"
