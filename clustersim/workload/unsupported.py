"""Parts of a model that no training step is written for yet: they are counted, and a run of them is refused."""

from __future__ import annotations

from clustersim.workload.model import Model

__all__ = ["unsupported_parts"]

_SUBLAYERS = frozenset({"attention", "latent_attention", "mlp", "experts"})
_FIELDS = (
    "token_types",
    "head_bias",
    "head_transform",
    "pooler",
    "num_classes",
    "layout",
    "encoder",
    "patches",
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
    differing = [name for name, off in (("causal", not model.causal), ("head", not model.head)) if off]
    return (*sublayers, *fields, *(f"{name} = false" for name in differing))
