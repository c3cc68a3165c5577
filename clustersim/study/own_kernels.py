"""A user's table of measured kernels, checked against the GPUs that it is for."""

from __future__ import annotations

from pathlib import Path

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.kernel import CostModel
from clustersim.library.card import list_cards
from clustersim.readers import kernel_table
from clustersim.topology.topology import Topology

__all__ = ["own_kernels"]


def own_kernels(path: str, topology: Topology | None) -> CostModel:
    """The table of a file before the models of the GPUs.

    Raises
    ------
    BadInput
        where it is no file or no table, is of devices that no card describes, or is faster than the GPU allows
    """
    if not Path(path).is_file():
        raise BadInput([Fault(key="kernel_table", value=path, rule="is not a file")])
    table = kernel_table.read(path)
    faults = []
    here = {gpu.name for gpu in topology.gpus} if topology else set()
    elsewhere = {row.device for row in table.rows} - here
    known = here | ({name for name, _ in list_cards()["gpu"]} if elsewhere else set())
    for number, row in enumerate(table.rows, start=1):
        if row.device not in known:
            key, near = f"row {number}, column device", nearest_name(row.device, known)
            rule = "is no gpu card of the library or of CLUSTERSIM_PATH"
            faults.append(Fault(file=str(Path(path)), key=key, value=row.device, rule=rule, nearest=near))
    for gpu in topology.gpus if topology else ():
        for number, least in table.beating_peak(gpu).items():
            row = table.rows[number]
            rule = f"must be {least * 1e6:.4g} or more: the dense peak of {gpu.name} allows no less"
            if least == float("inf"):
                rule = f"is of {row.kernel.dtype}, for which {gpu.name} has no matrix units"
            key, time = f"row {number + 1}, column time_us", f"{row.seconds * 1e6:.4g}"
            faults.append(Fault(file=str(Path(path)), key=key, value=time, rule=rule))
    if faults:
        raise BadInput(faults)
    return table
