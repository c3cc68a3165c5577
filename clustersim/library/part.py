"""A part by name: a GPU, CPU, superchip, link, network card, switch or drive, and what kernels and NCCL cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, overload

from clustersim.faults import BadInput, Fault, collect
from clustersim.hardware.communication import Communication, Transport
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel_models import KernelModels
from clustersim.hardware.link import Link
from clustersim.hardware.nic import NIC
from clustersim.hardware.storage import Drive
from clustersim.hardware.superchip import Superchip
from clustersim.hardware.switch import Switch
from clustersim.library.build import build
from clustersim.library.card import Card, read_card

__all__ = ["Part", "load_part", "load_parts"]

Part = GPU | KernelModels | CPU | Link | NIC | Switch | Drive | Communication | Transport | Superchip

_CLASSES: dict[str, type[GPU | KernelModels | CPU | Link | NIC | Switch | Drive | Communication | Transport]] = {
    "gpu": GPU,
    "kernels": KernelModels,
    "cpu": CPU,
    "link": Link,
    "nic": NIC,
    "switch": Switch,
    "drive": Drive,
    "communication": Communication,
    "transport": Transport,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _SuperchipCard:
    """What a superchip's card says: its dies and their link by name."""

    name: str
    gpu: str
    cpu: str
    link: str
    num_gpus: int = 1
    sources: Mapping[str, str] = field(default_factory=dict)


@overload
def load_part(kind: Literal["gpu"], name: str, *, beside: Path | None = None) -> GPU: ...
@overload
def load_part(kind: Literal["kernels"], name: str, *, beside: Path | None = None) -> KernelModels: ...
@overload
def load_part(kind: Literal["cpu"], name: str, *, beside: Path | None = None) -> CPU: ...
@overload
def load_part(kind: Literal["link"], name: str, *, beside: Path | None = None) -> Link: ...
@overload
def load_part(kind: Literal["nic"], name: str, *, beside: Path | None = None) -> NIC: ...
@overload
def load_part(kind: Literal["switch"], name: str, *, beside: Path | None = None) -> Switch: ...
@overload
def load_part(kind: Literal["drive"], name: str, *, beside: Path | None = None) -> Drive: ...
@overload
def load_part(kind: Literal["communication"], name: str, *, beside: Path | None = None) -> Communication: ...
@overload
def load_part(kind: Literal["transport"], name: str, *, beside: Path | None = None) -> Transport: ...
@overload
def load_part(kind: Literal["superchip"], name: str, *, beside: Path | None = None) -> Superchip: ...
@overload
def load_part(kind: str, name: str, *, beside: Path | None = None) -> Part: ...


def load_part(kind: str, name: str, *, beside: Path | None = None) -> Part:
    """Load the part that a card describes.

    Parameters
    ----------
    kind : {"gpu", "cpu", "link", "nic", "switch", "drive", "communication", "transport", "superchip"}
    name : str
        card name or file, as in :func:`clustersim.library.find_card`
    beside : Path, optional
        the card that names it

    Raises
    ------
    BadInput
        when there is no such card or it has faults
    """
    card = read_card(kind, name, beside=beside)
    if kind == "gpu":
        return _gpu(card)
    if kind in _CLASSES:
        return build(card, _CLASSES[kind])
    if kind != "superchip":
        raise BadInput([Fault(key="kind", value=kind, rule=f"is no part: one of {', '.join(_CLASSES)}, superchip")])
    chip = build(card, _SuperchipCard)
    wanted = {"gpu": ("gpu", chip.gpu), "cpu": ("cpu", chip.cpu), "link": ("link", chip.link)}
    dies = load_parts(wanted, beside=card.path)
    return Superchip(name=chip.name, **dies, num_gpus=chip.num_gpus, sources=chip.sources)


def _gpu(card: Card) -> GPU:
    """A GPU's card names that of its kernel models, which several devices may share."""
    named = card.data.get("kernels")
    if not isinstance(named, str):
        return build(card, GPU)
    sources = dict(card.data.get("sources", {}))
    source = sources.pop("kernels", None)
    data = {key: value for key, value in card.data.items() if key != "kernels"}
    faults: list[Fault] = []
    if source is None:
        rule = "must say whether they are of this device or of one like it"
        faults.append(Fault(file=str(card.path), key="sources.kernels", value=None, rule=rule, nearest="assumed"))
    with collect(faults):
        gpu = build(replace(card, data={**data, "sources": sources}), GPU)
    with collect(faults):
        models = load_part("kernels", named, beside=card.path)
    if faults:
        raise BadInput(faults)
    return replace(gpu, kernels=models, sources={**gpu.sources, "kernels": str(source)})


def load_parts(wanted: Mapping[str, tuple[str, str]], *, beside: Path | None = None) -> dict[str, Any]:
    """Load several parts, and report the faults of all of them together.

    Parameters
    ----------
    wanted : Mapping[str, tuple[str, str]]
        key -> (kind, name); the key is where a fault of the name itself is reported
    beside : Path, optional
        the card that names them

    Returns
    -------
    dict[str, Any]
        key -> part, of the class that its kind has

    Raises
    ------
    BadInput
        with the faults of every part
    """
    parts: dict[str, Any] = {}
    faults: list[Fault] = []
    for key, (kind, name) in wanted.items():
        try:
            parts[key] = load_part(kind, name, beside=beside)
        except BadInput as error:
            named = str(beside or "")
            faults += [replace(f, key=key) if f.file == named and f.key == kind else f for f in error.faults]
    if faults:
        raise BadInput(faults)
    return parts
