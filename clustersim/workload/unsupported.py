"""Parts of a model that no training step is written for yet: they are counted, and a run of them is refused."""

from __future__ import annotations

from clustersim.workload.model import Model

__all__ = ["unsupported_parts"]

_SUBLAYERS = frozenset({"attention", "cross_attention", "latent_attention", "linear_attention", "mlp", "experts"})
_FIELDS = (
    "layout",
    "tower",
    "adapters",
)


def unsupported_parts(model: Model) -> tuple[str, ...]:
    """Sublayers and fields of the model that a training step would leave out, at any length of the sequence.

    Parameters
    ----------
    model : Model

    Returns
    -------
    tuple[str, ...]
        empty where a step is written for all of it
    """
    sublayers = sorted(set(model.num_sublayers()) - _SUBLAYERS)
    fields = [name for name in _FIELDS if getattr(model, name)]
    without_loss = ("head = false",) if not (model.head or model.num_classes or model.tower) else ()
    return (*sublayers, *fields, *without_loss)
