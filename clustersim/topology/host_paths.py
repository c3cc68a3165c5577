"""Paths of the GPUs' own traffic through their host: copies, host work, drives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from clustersim.topology.host_rows import NANOSECONDS, HostRows
from clustersim.topology.node import Rows, pad
from clustersim.topology.topology import LocalPath

if TYPE_CHECKING:
    from clustersim.topology.host import Host

__all__ = ["local_paths"]


def local_paths(host: Host, rows: HostRows) -> dict[str, LocalPath]:
    """The paths that :class:`~clustersim.topology.topology.Topology` names, for each GPU of the node.

    Memory ``spread`` over the S sockets of a system has 1/S of its pages on each, so (S - 1)/S of the traffic of a GPU
    or a core crosses links between sockets; all of it does where memory is ``far``, on the next socket of the system.
    Near is the memory of the process, which may be on another socket than its GPU: all copies cross then. Half of what
    host work moves is taken to be read and half to be written. Between two sockets an op has the links of that pair.
    """
    gpus = range(len(rows.socket_of))
    near = [rows.dram[s] for s in rows.process_socket_of]
    up = [(rows.up[g], *rows.leave[g], *rows.root_up[rows.socket_of[g]]) for g in gpus]
    down = [(*rows.root_down[rows.socket_of[g]], *rows.enter[g], rows.down[g]) for g in gpus]
    cost = host.link.copy_latency
    local = {
        "hbm": _evenly([(m,) for m in rows.hbm]),
        "dram": _evenly([(m,) for m in near]),
        "cores": _evenly([(rows.cores[s],) for s in rows.process_socket_of]),
        "h2d": _evenly([(*_out(rows, g), near[g], *down[g]) for g in gpus], latency=cost),
        "d2h": _evenly([(*up[g], *_into(rows, g), near[g]) for g in gpus], latency=cost),
    }
    if len(host.system_of(0)) == 1:  # all memory is near
        local |= {f"{name}.spread": local[name] for name in ("dram", "h2d", "d2h")}
    else:
        local |= _across_sockets(host, rows, up, down)
    return local | _drives(host, rows, near, down)


def _out(rows: HostRows, gpu: int) -> Rows:
    """Between sockets, from the memory of a GPU's process to the GPU's socket."""
    process = rows.process_socket_of[gpu]
    return rows.socket_out[process] if process != rows.socket_of[gpu] else ()


def _into(rows: HostRows, gpu: int) -> Rows:
    """The way back."""
    return rows.socket_out[rows.socket_of[gpu]] if rows.process_socket_of[gpu] != rows.socket_of[gpu] else ()


def _across_sockets(host: Host, rows: HostRows, up: Sequence[Rows], down: Sequence[Rows]) -> dict[str, LocalPath]:
    gpus = range(len(rows.socket_of))
    system = [host.system_of(s) for s in rows.socket_of]
    others = [[o for o in system[g] if o != rows.socket_of[g]] for g in gpus]
    process = rows.process_socket_of
    far = [system[g][(system[g].index(process[g]) + 1) % len(system[g])] for g in gpus]
    own_out = [rows.socket_out[s] for s in rows.socket_of]
    far_out = [rows.socket_out[s] for s in far]
    crossed = [far[g] != rows.socket_of[g] for g in gpus]
    other_outs = [tuple(row for o in others[g] for row in rows.socket_out[o]) for g in gpus]
    all_dram = [tuple(rows.dram[s] for s in (rows.socket_of[g], *others[g])) for g in gpus]
    far_dram = [rows.dram[s] for s in far]
    part, cost = 1 / len(system[0]), host.link.copy_latency
    pair = float("inf")
    if host.socket_link is not None and len(system[0]) > 2:  # of two sockets, the pair's links are all there are
        pair = host.socket_link.payload_bandwidth * host.num_socket_links
    local = {
        "dram.spread": _parts([[(all_dram[g], part)] for g in gpus]),
        "dram.far": _evenly([(m,) for m in far_dram]),
        "h2d.spread": _parts(
            [[(other_outs[g], part), (all_dram[g], part), (down[g], 1)] for g in gpus], latency=cost, rate=pair / part
        ),
        "d2h.spread": _parts(
            [[(up[g], 1), (own_out[g], 1 - part), (all_dram[g], part)] for g in gpus], latency=cost, rate=pair / part
        ),
        "h2d.far": _evenly(
            [(*(far_out[g] if crossed[g] else ()), far_dram[g], *down[g]) for g in gpus], latency=cost, rate=pair
        ),
        "d2h.far": _evenly(
            [(*up[g], *(own_out[g] if crossed[g] else ()), far_dram[g]) for g in gpus], latency=cost, rate=pair
        ),
    }
    if own_out[0]:
        home_out = [rows.socket_out[s] for s in process]
        away_outs = [tuple(row for o in system[g] if o != process[g] for row in rows.socket_out[o]) for g in gpus]
        both = [[(home_out[g], (1 - part) / 2), (away_outs[g], part / 2)] for g in gpus]
        local["socket.spread"] = _parts(both, rate=2 * pair / part)
        local["socket.far"] = _parts([[(home_out[g] + far_out[g], 0.5)] for g in gpus], rate=2 * pair)
    return local


def _drives(host: Host, rows: HostRows, near: Sequence[int], down: Sequence[Rows]) -> dict[str, LocalPath]:
    """Of the array: between it and the memory beside the GPU, or the GPU's own (GPUDirect Storage)."""
    drive, array = host.drive, rows.drive
    if drive is None or array is None:
        return {}
    asked = host.request_bytes * host.queue_depth
    rate = asked / drive.latency if drive.latency else float("inf")
    up = [(rows.up[g], *rows.leave[g], *rows.root_up[s]) for g, s in enumerate(rows.socket_of)]
    local = {}
    for way, bandwidth, behind, lanes in (
        ("read", drive.read_bandwidth, rows.drive_up, down),
        ("write", drive.write_bandwidth, rows.drive_down, up),
    ):
        took = NANOSECONDS / (bandwidth * drive.efficiency)
        for name, ends in (
            (f"nvme_{way}", [(m,) for m in near]),
            (f"nvme_{way}.direct", list(lanes)),
        ):
            local[name] = _parts(
                [[((array,), took), (behind, 1), (end, 1)] for end in ends],
                latency=drive.latency,
                rate=rate,
                per_file=drive.latency,
            )
    return local


def _evenly(paths: Sequence[Rows], *, latency: float = 0.0, rate: float = float("inf")) -> LocalPath:
    """A path on which each byte asks one byte of every resource."""
    rows = pad(paths)
    return LocalPath(rows=rows, per_byte=np.ones(rows.shape[1]), latency=latency, bandwidth=rate)


def _parts(
    paths: Sequence[Sequence[tuple[Rows, float]]],
    *,
    latency: float = 0.0,
    rate: float = float("inf"),
    per_file: float = 0.0,
) -> LocalPath:
    """A path of resources with what a byte asks of each: the same sequence for every GPU."""
    rows = pad([tuple(row for rows, _ in path for row in rows) for path in paths])
    per_byte = np.array([share for rows, share in paths[0] for _ in rows])
    return LocalPath(rows=rows, per_byte=per_byte, latency=latency, bandwidth=rate, per_file=per_file)
