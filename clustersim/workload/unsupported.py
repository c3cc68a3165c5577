"""Parts of a model that no training step is written for yet: they are counted, and a run of them is refused."""

from __future__ import annotations

from clustersim.workload.model import Model

__all__ = ["unsupported_parts"]


def unsupported_parts(model: Model) -> tuple[str, ...]:
    """What a training step would lack, at any length of the sequence.

    Parameters
    ----------
    model : Model

    Returns
    -------
    tuple[str, ...]
        empty where a step is written for all of it
    """
    return () if model.head or model.num_classes or model.tower else ("head = false",)
