"""A card: one TOML file found by name, with its place and content hash for the result."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput, Fault, nearest_name

__all__ = ["KINDS", "Card", "broken_cards", "find_card", "is_file", "library_folder", "list_cards", "read_card"]

KINDS = {
    "topology": "topologies",
    "gpu": "topologies/parts/gpu",
    "kernels": "topologies/parts/kernels",
    "cpu": "topologies/parts/cpu",
    "superchip": "topologies/parts/superchip",
    "link": "topologies/parts/link",
    "nic": "topologies/parts/nic",
    "switch": "topologies/parts/switch",
    "drive": "topologies/parts/drive",
    "communication": "topologies/parts/communication",
    "transport": "topologies/parts/transport",
    "model": "workloads/models",
    "job": "workloads/jobs",
    "graph": "workloads/graphs",
    "profile": "workloads/profiles",
    "residual": "workloads/residuals",
}
"""Kind of card -> its folder, in the library and in a folder of the user's own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """What one file says.

    Parameters
    ----------
    kind : str
        one of :data:`KINDS`
    name : str
        the file's name without its suffix
    path : Path
        where it was found
    sha256 : str
        hash of its bytes, in hexadecimal
    data : dict[str, Any]
        its tables as TOML gives them: texts with units, not yet checked
    """

    kind: str
    name: str
    path: Path
    sha256: str
    data: dict[str, Any]

    @property
    def description(self) -> str:
        """The line that ``clustersim list`` prints; empty when the card has none."""
        return str(self.data.get("description", ""))


def find_card(kind: str, name: str, *, beside: Path | None = None) -> Path:
    """Where the card called ``name`` is.

    A name with a slash or a ``.toml`` suffix is a file. Any other name is looked up in the folders of the environment
    variable ``CLUSTERSIM_PATH`` and then in the library; the first match wins. Each folder is laid out as the library
    (``topologies/parts/gpu/mine.toml``) or simply holds the card (``mine.toml``).

    Parameters
    ----------
    kind : str
        one of :data:`KINDS`
    name : str
        card name or file
    beside : Path, optional
        the card that names it: a relative file is looked up from its folder

    Raises
    ------
    BadInput
        when there is no such card; names the closest one there is
    """
    file = str(beside or "")
    if kind not in KINDS:
        raise BadInput([Fault(key="kind", value=kind, rule="is no kind of card", nearest=nearest_name(kind, KINDS))])
    if "/" in name or os.sep in name or is_file(name):
        path = (beside.parent if beside else Path()) / Path(name).expanduser()
        if path.is_file():
            return path
        near = nearest_name(path.name, (p.name for p in path.parent.glob("*.toml"))) if path.parent.is_dir() else None
        nearest = str(Path(name).with_name(near)) if near else None
        raise BadInput([Fault(file=file, key=kind, value=name, rule="is not a file", nearest=nearest)])
    for root in _roots():
        for path in (root / KINDS[kind] / f"{name}.toml", root / f"{name}.toml"):
            if path.is_file():
                return path
    rule = f"is no {kind} card of the library or of CLUSTERSIM_PATH"
    others = [other for other in KINDS if other != kind and name in {path.stem for path in _paths(other)}]
    if others:
        rule += f"; there is a {' and a '.join(others)} card of that name"
    known = [path.stem for path in _paths(kind)]
    raise BadInput([Fault(file=file, key=kind, value=name, rule=rule, nearest=nearest_name(name, known))])


def is_file(name: str) -> bool:
    """Whether a setting names a card by its file; a slash alone does not tell: ``50 GB/s``."""
    return name.endswith(".toml")


def read_card(kind: str, name: str, *, beside: Path | None = None) -> Card:
    """Find a card and read its tables; the parameters are those of :func:`find_card`.

    Raises
    ------
    BadInput
        when there is no such card, it is not TOML, or it says that it is of another kind
    """
    return _read(kind, find_card(kind, name, beside=beside))


def list_cards() -> dict[str, list[tuple[str, str]]]:
    """All cards that can be named, by kind: (name, one-line description), in order of name.

    Cards that cannot be read are left out: :func:`broken_cards` tells of them.
    """
    listing = {}
    for kind in KINDS:
        first: dict[str, str | None] = {}
        for path in _paths(kind):
            if path.stem not in first:
                try:
                    first[path.stem] = _read(kind, path).description
                except (BadInput, OSError):
                    first[path.stem] = None
        listing[kind] = sorted((name, about) for name, about in first.items() if about is not None)
    return listing


def broken_cards() -> list[Fault]:
    """What is wrong with cards of ``CLUSTERSIM_PATH`` that cannot be read; each hides those of its name behind it."""
    *own, _ = _roots()
    flat = [("", path) for root in own for path in sorted(root.glob("*.toml"))]
    inside = [(kind, path) for root in own for kind in KINDS for path in sorted((root / KINDS[kind]).glob("*.toml"))]
    return [fault for kind, path in (*flat, *inside) for fault in _faults(kind, path)]


def library_folder() -> Path:
    """Where the library's own cards and measurements are: in the wheel or in a checkout."""
    package = Path(__file__).parent.parent
    shipped = package / "_cards"
    return shipped if shipped.is_dir() else package.parent


def _read(kind: str, path: Path) -> Card:
    content = path.read_bytes()
    data = _of_kind(kind, path, _tables(path, content))
    return Card(kind=kind, name=path.stem, path=path, sha256=hashlib.sha256(content).hexdigest(), data=data)


def _of_kind(kind: str, path: Path, data: dict[str, Any]) -> dict[str, Any]:
    if data.get("kind", kind) != kind:
        raise BadInput([Fault(file=str(path), key="kind", value=data["kind"], rule="is another kind", nearest=kind)])
    return data


def _tables(path: Path, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        at = re.search(r"at line (\d+)", str(error))
        line = content.decode(errors="replace").splitlines()[int(at[1]) - 1] if at else path.name
        key = f"line {at[1]}" if at else "file"
        raise BadInput([Fault(file=str(path), key=key, value=line, rule=f"is not TOML: {error}")]) from None


def _faults(kind: str, path: Path) -> tuple[Fault, ...]:
    """Why a card cannot be read; of any kind that it names where ``kind`` is empty."""
    try:
        content = path.read_bytes()
        _of_kind(kind, path, _tables(path, content)) if kind else _tables(path, content)
    except BadInput as error:
        return error.faults
    except OSError as error:
        return (Fault(file=str(path), key="file", value=path.name, rule=f"cannot be read: {error.strerror}"),)
    return ()


def _roots() -> list[Path]:
    """Folders searched, first to last: the user's, then the library in the wheel or in a checkout."""
    own = [Path(folder).expanduser() for folder in os.environ.get("CLUSTERSIM_PATH", "").split(os.pathsep) if folder]
    return [*own, library_folder()]


def _paths(kind: str) -> Iterator[Path]:
    """Cards of a kind over the search path; one that lies flat in a folder counts when it names its kind."""
    *own, library = _roots()
    for root in own:
        yield from sorted((root / KINDS[kind]).glob("*.toml"))
        whole = (path for path in sorted(root.glob("*.toml")) if not _faults("", path))
        yield from (path for path in whole if _tables(path, path.read_bytes()).get("kind") == kind)
    yield from sorted((library / KINDS[kind]).glob("*.toml"))
