"""Files of measured collectives -> calibrated cards: what ``clustersim calibrate`` does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault, collect
from clustersim.hardware.communication import Communication, Transport
from clustersim.library.part import load_part
from clustersim.readers import collective_rows, nccl_tests
from clustersim.readers.nccl_log import NcclLog
from clustersim.study.calibration import Calibration, calibrate, errors
from clustersim.study.card_text import card_text, evidence, residuals
from clustersim.study.log_rows import place_logs
from clustersim.study.measured import Measured, locate
from clustersim.study.starts import network_start, node_start

__all__ = ["CalibratedFiles", "calibrate_files"]

_NAME = re.compile(r"\w[\w.+-]*", re.ASCII)

_POOR = 0.25
"""Median error from which on the fit itself is doubted."""

_ABOUT = {
    "communication": "What NCCL costs inside the nodes of {}",
    "transport": "What NCCL costs over the network of {}",
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CalibratedFiles:
    """The outcome.

    Parameters
    ----------
    rows : tuple[Measured, ...]
        those that were used
    before, after : NDArray[float64], shape (num_rows,)
        predicted / measured - 1 under the cards at the start and as calibrated
    cards : Mapping[str, Communication | Transport]
        by kind and name, ``communication/mine``, those that some row bears on: both kinds may have one name
    start : Mapping[str, Communication | Transport]
        by the same, where they began
    texts : Mapping[str, str]
        path below the folder of parts -> content of the card
    notes : tuple[str, ...]
        what was left out, and why
    """

    rows: tuple[Measured, ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    cards: Mapping[str, Communication | Transport]
    start: Mapping[str, Communication | Transport]
    texts: Mapping[str, str]
    notes: tuple[str, ...]


def calibrate_files(
    paths: Sequence[Path], *, topology: str | None = None, settings: Mapping[str, Any] | None = None, name: str = ""
) -> CalibratedFiles:
    """Calibrate a communication library's cards.

    Parameters
    ----------
    paths : sequence of Path
        logs of nccl-tests or rccl-tests, all of one cluster; or CSV files of published collectives, whose rows name
        their hardware
    topology : str, optional
        the logs' cluster; the search starts from its own cards. Published rows name theirs, and start from cards of
        nothing measured
    settings : Mapping[str, Any], optional
        values of the topology's keys
    name : str
        of the new cards; that of the topology when left out

    Raises
    ------
    BadInput
        with every fault of the files: what is neither a log nor a CSV, logs without a link (one rank, no rows, wrong
        results), logs without a topology, and no row at all; for a name that is no file's, and a number of nodes
    """
    wrong = list(_call_faults(name, settings or {}))
    try:
        tables, logs = _sorted(paths, topology)
    except BadInput as error:
        raise BadInput([*wrong, *error.faults]) from None
    if wrong:
        raise BadInput(wrong)
    notes: list[str] = []
    rows: list[Measured] = []
    faults: list[Fault] = []
    read: list[tuple[Path, NcclLog]] = []
    for path in tables:
        with collect(faults):
            told, aside, said = collective_rows.read(path)
            placed, refused = locate(row for row in told if row.confidence != "low")
            rows += placed
            reasons = Counter([row.reasons[0] for row in aside] + [item.reasons[0] for item in refused])
            reasons["low confidence"] = sum(row.confidence == "low" for row in told)
            notes += [*said, *(f"rows left out: {count}, {reason}" for reason, count in reasons.items() if count)]
    for path in logs:
        with collect(faults):
            found, said = nccl_tests.read(path)
            read += [(path, log) for log in found]
            notes += said
    if faults:
        raise BadInput(faults)
    if read and topology is not None:
        rows += place_logs(read, topology, settings or {})
        notes += _other_hardware(rows)
    if not rows:
        rule = "; ".join(["hold no row to calibrate from", *notes])
        raise BadInput([Fault(key="files", value=[path.name for path in paths], rule=rule)])
    return _calibrated(rows, name or Path(topology or "").name.removesuffix(".toml"), topology is None, notes)


def _other_hardware(rows: Sequence[Measured]) -> list[str]:
    """Logs that name other GPUs than the topology has, by the model's first word: ``h100`` of ``h100-sxm``."""
    told = {
        f"{row.row.source} names {row.row.hardware}, {row.card} has {', '.join(gpu.name for gpu in row.topology.gpus)}"
        for row in rows
        if row.row.hardware and not any(gpu.name.split("-")[0] in row.row.hardware.lower() for gpu in row.topology.gpus)
    }
    return sorted(told)


def _call_faults(name: str, settings: Mapping[str, Any]) -> Iterator[Fault]:
    if name and not _NAME.fullmatch(name):
        nearest = re.sub(r"[^\w.+-]+", "-", name).strip(".+-") or "mine"
        yield Fault(
            key="name", value=name, rule="must be letters, digits, -, _, . or +: it names a file", nearest=nearest
        )
    if "nodes" in settings:
        yield Fault(
            key="nodes", value=settings["nodes"], rule="must be left out: it follows from the hosts of each log"
        )


def _sorted(paths: Sequence[Path], topology: str | None) -> tuple[list[Path], list[Path]]:
    """Tables and logs."""
    tables, logs, faults = [], [], []
    for path in paths:
        if collective_rows.detect(path):
            tables.append(path)
        elif nccl_tests.detect(path):
            logs.append(path)
        else:
            rule = "is neither output of nccl-tests nor a CSV of collectives" if path.is_file() else "is not a file"
            faults.append(Fault(file=str(path), key="file", value=path.name, rule=rule))
    if logs and topology is None:
        faults.append(Fault(key="topology", value=None, rule="must be given: logs do not say what they ran on"))
    if tables and topology is not None:
        faults.append(
            Fault(key="topology", value=topology, rule="must be left out: the rows of a CSV name their hardware")
        )
    if faults:
        raise BadInput(faults)
    return tables, logs


def _calibrated(rows: list[Measured], name: str, published: bool, notes: list[str]) -> CalibratedFiles:
    nodes = {row.node: node_start(row.node) if published else load_part("communication", row.node) for row in rows}
    networks = {
        row.network: network_start(row.network) if published else load_part("transport", row.network) for row in rows
    }
    start = Calibration(nodes=nodes, networks=networks)
    best = calibrate(rows, start)
    before, after = errors(rows, start), errors(rows, best)
    texts, cards, began = {}, {}, {}
    for kind, new, old, key in (
        ("communication", best.nodes, nodes, "node"),
        ("transport", best.networks, networks, "network"),
    ):
        for of, card in new.items():
            if of not in best.determined:
                continue
            title = of if published else name
            used = np.array([getattr(row, key) == of and _calibrates(row, key) for row in rows])
            where = sorted({row.card for row in rows if getattr(row, key) == of})
            texts[f"{kind}/{title}.toml"] = card_text(
                card,
                description=_ABOUT[kind].format(", ".join(where)),
                evidence=evidence([row for row, on in zip(rows, used, strict=True) if on], after[used]),
                residual=residuals([row for row, on in zip(rows, used, strict=True) if on], after[used]),
                determined=best.determined[of],
                start=old[of],
            )
            cards[f"{kind}/{title}"], began[f"{kind}/{title}"] = replace(card, name=title), old[of]
    if (middle := float(np.median(np.abs(after)))) > _POOR:
        doubt = f"a poor fit: a median error of {middle:.0%} is left; is this the cluster of the measurements?"
        notes = [*notes, doubt]
    return CalibratedFiles(
        rows=tuple(rows), before=before, after=after, cards=cards, start=began, texts=texts, notes=tuple(notes)
    )


def _calibrates(row: Measured, key: str) -> bool:
    """Whether a row bears on its card of this kind."""
    if row.topology.num_nodes == 1:
        return key == "node"
    return key == "network" and row.between.known
