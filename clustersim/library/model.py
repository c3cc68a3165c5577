"""A model by name: a card of the library, a card of the user's own, or a Hugging Face ``config.json``."""

from __future__ import annotations

import warnings
from pathlib import Path

from clustersim.library.build import build
from clustersim.library.card import read_card
from clustersim.readers import hf_config
from clustersim.workload.model import Model

__all__ = ["load_model"]


def load_model(name_or_path: str | Path, *, beside: Path | None = None) -> Model:
    """Load the shape of a model.

    Parameters
    ----------
    name_or_path : str or Path
        a ``.json`` file is a Hugging Face config; anything else a card, as in :func:`clustersim.library.find_card`
    beside : Path, optional
        the card that names it: a relative file is looked up from its folder

    Raises
    ------
    BadInput
        when there is no such card or file or it has faults

    Warns
    -----
    UserWarning
        once for each note of the config's reader: defaults taken and keys that are not modelled
    """
    name = str(name_or_path)
    if not name.endswith(".json"):
        return build(read_card("model", name, beside=beside), Model)
    path = Path(name).expanduser()
    model, notes = hf_config.read(beside.parent / path if beside else path)
    for note in notes:
        warnings.warn(f"{path}: {note}", stacklevel=2)
    return model
