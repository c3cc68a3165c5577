"""The inside of a node as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from clustersim.plot.palette import colour_of
from clustersim.plot.shapes import CABLE, box, cable, label, tie_text, width_of
from clustersim.topology.node_outline import NodeOutline
from clustersim.units import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Frame", "draw_node"]

_MOST_GPUS, _FIRST, _LAST = 16, 6, 2
"""GPUs that are all drawn; of more, the first six and the last two."""

_GPU, _SWITCH, _NIC, _CPU, _PCIE = "compute", "tp", "dp", "host", "bubble"
"""Parts in the colours of what runs on them: kernels, collectives inside nodes and between them, the host."""

_NAMES = {
    "pcie": "PCIe",
    "c2c": "C2C",
    "infinity_fabric": "Infinity Fabric",
    "nvlink": "NVLink",
    "xgmi": "Infinity Fabric",
}

_DIRECT = ("#E69F00", "#D23A00", "#602A00", "#440450")
"""Direct links by capacity, the slowest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """Part of a picture.

    Parameters
    ----------
    left, bottom, width, height : float
        in the units of the axes
    """

    left: float
    bottom: float
    width: float
    height: float

    def x(self, fraction: float) -> float:
        """From 0 at the left to 1."""
        return self.left + fraction * self.width

    def y(self, fraction: float) -> float:
        """From 0 at the bottom to 1."""
        return self.bottom + fraction * self.height


def draw_node(ax: Axes, node: NodeOutline, frame: Frame) -> None:
    """Draw GPUs with what joins them above, and their host and network ports below."""
    _Picture(ax=ax, node=node, frame=frame, shown=_shown(node)).draw()


def _shown(node: NodeOutline) -> list[int | None]:
    """GPUs from left to right; None is a gap for those left out."""
    n = node.num_gpus
    if n <= _MOST_GPUS:
        return list(range(n))
    return [*range(_FIRST), None, *range(n - _LAST, n)]


@dataclass(kw_only=True, slots=True)
class _Picture:
    ax: Axes
    node: NodeOutline
    frame: Frame
    shown: list[int | None]
    at: dict[int, float] = field(default_factory=dict)

    GPU_Y = 0.60
    PCIE_Y = 0.36
    PORT_Y = 0.25
    CPU_Y = 0.10

    def draw(self) -> None:
        f = self.frame
        self.at = {g: self._column(k) for k, g in enumerate(self.shown) if g is not None}
        self._title()
        if self.node.switched:
            self._switch()
        elif self.node.direct:
            self._arcs()
        elif self.node.num_gpus > 1:
            label(self.ax, f.x(0.5), f.y(0.78), "no link between GPUs but through the host", fontsize=self._font(10))
        if self.node.host:
            self._host()
        self._gpus()

    def _font(self, points: float) -> float:
        """Smaller in a smaller frame."""
        return points * min(1.0, 0.35 + 0.65 * self.frame.height / 8.0)

    @property
    def _step(self) -> float:
        """From one GPU to the next."""
        return min(2.0, self.frame.width * 0.96 / len(self.shown))

    def _column(self, k: int) -> float:
        return self.frame.x(0.5) + (k + 0.5 - len(self.shown) / 2) * self._step

    def _title(self) -> None:
        node, f = self.node, self.frame
        last = node.first + node.count - 1
        which = f"node {node.first}" if node.count == 1 else f"each of {node.count:,} nodes, {node.first} to {last:,}"
        cards = ", ".join(f"{node.gpus.count(name)} x {name}" for name in dict.fromkeys(node.gpus))
        self.ax.text(
            f.x(0.02), f.y(0.98), f"{which}: {cards}", ha="left", va="top", fontsize=self._font(12), weight="bold"
        )
        details = [f"memory {show(node.gpu_memory.capacity, 'B/s')} a GPU"]
        if node.drive:
            details.append(f"{node.drive.num_links} NVMe drive{'s' * (node.drive.num_links > 1)}")
        if len(self.at) < node.num_gpus:
            details.append(f"{len(self.at)} of {node.num_gpus} GPUs drawn")
        self.ax.text(f.x(0.02), f.y(0.935), "; ".join(details), ha="left", va="top", fontsize=self._font(9))

    def _gpus(self) -> None:
        f = self.frame
        extent = (min(0.86 * self._step, 1.1), 0.085 * f.height)
        wide = extent[0] > 0.7
        for g, x in self.at.items():
            text = f"GPU {g}" if wide else f"{g}"
            box(self.ax, (x, f.y(self.GPU_Y)), extent, text, colour_of(_GPU), self._font(10 if wide else 9))
        for k, shown in enumerate(self.shown):
            if shown is None:
                hidden = self.node.num_gpus - len(self.at)
                text = f"…\n{hidden} more\nalike"
                self.ax.text(self._column(k), f.y(self.GPU_Y), text, ha="center", va="center", fontsize=self._font(9))

    def _switch(self) -> None:
        tie = self.node.switched
        if tie is None:
            return
        f, y = self.frame, self.frame.y(0.83)
        for x in self.at.values():
            cable(self.ax, [x, x], [f.y(self.GPU_Y), y], tie.capacity)
        name = "NVSwitch" if tie.kind == "nvlink" else f"{tie.kind} switch"
        text = f"{name}: any pair at full rate"
        box(self.ax, (f.x(0.5), y), (0.94 * f.width, 0.065 * f.height), text, colour_of(_SWITCH), self._font(10))
        label(self.ax, f.x(0.5), f.y(0.725), f"{tie_text(tie)} a GPU, each way", fontsize=self._font(9))

    def _arcs(self) -> None:
        """Direct links as arcs above the GPUs, the longer the higher."""
        f = self.frame
        capacities = sorted({(link.tie.capacity, link.tie.num_links) for link in self.node.direct})
        colour = {c: _DIRECT[min(k, len(_DIRECT) - 1)] for k, (c, _) in enumerate(capacities)}
        longest = max(link.b - link.a for link in self.node.direct)
        angle = np.linspace(0, np.pi, 40)
        foot = f.y(self.GPU_Y) + 0.04 * f.height
        for link in sorted(self.node.direct, key=lambda link: link.tie.capacity):
            if link.a not in self.at or link.b not in self.at:
                continue
            a, b = self.at[link.a], self.at[link.b]
            height = 0.235 * f.height * ((link.b - link.a) / longest) ** 0.8
            x = (a + b) / 2 - (b - a) / 2 * np.cos(angle)
            cable(
                self.ax,
                x.tolist(),
                (foot + height * np.sin(angle)).tolist(),
                link.tie.capacity,
                colour[link.tie.capacity],
            )
        kind = _NAMES.get(self.node.direct[0].tie.kind, self.node.direct[0].tie.kind)
        for k, (capacity, num_links) in enumerate(capacities):
            y = f.y(0.975 - 0.03 * k)
            left = f.x(0.66)
            self.ax.plot([left, left + 0.35], [y, y], color=colour[capacity], linewidth=width_of(capacity))
            links = f", {num_links} links" if num_links > 1 else ""
            text = f"{kind} {show(capacity, 'B/s')} each way{links}"
            self.ax.text(left + 0.45, y, text, va="center", fontsize=self._font(9))

    def _host(self) -> None:
        node, f = self.node, self.frame
        host = node.host
        if host is None:
            return
        sockets = self._spans(node.socket_of)
        switches = self._spans(node.pcie_switch_of) if node.pcie_switch_of else {}
        for x in self.at.values():
            if switches:
                cable(self.ax, [x, x], [f.y(self.GPU_Y), f.y(self.PCIE_Y)], host.capacity)
            else:
                cable(self.ax, [x, x], [f.y(self.GPU_Y), f.y(self.CPU_Y)], host.capacity)
        text = f"{_NAMES.get(host.kind, host.kind)} {tie_text(host)} a GPU, each way"
        label(self.ax, f.x(0.5), f.y(0.48), text, fontsize=self._font(9))
        self._ports(switches)
        for number, (left, right) in switches.items():
            if node.uplink:
                middle = (left + right) / 2
                cable(self.ax, [middle, middle], [f.y(self.PCIE_Y), f.y(self.CPU_Y)], node.uplink.capacity)
            extent = (right - left + 0.8 * self._step, 0.055 * f.height)
            text = f"PCIe switch {number}"
            box(self.ax, ((left + right) / 2, f.y(self.PCIE_Y)), extent, text, colour_of(_PCIE), self._font(9))
        if switches and node.uplink:
            label(self.ax, f.x(0.5), f.y(0.172), f"uplink {tie_text(node.uplink)} each way", fontsize=self._font(9))
        for number, (left, right) in sockets.items():
            memory = f"\nDRAM {show(node.dram.capacity, 'B/s')}" if node.dram else ""
            extent = (right - left + 0.86 * self._step, 0.10 * f.height)
            wide = extent[0] > 1.3
            text = f"CPU {number}{f', {node.cpu}' if wide else ''}{memory if wide else ''}"
            box(self.ax, ((left + right) / 2, f.y(self.CPU_Y)), extent, text, colour_of(_CPU), self._font(9))
        self._between_sockets(list(sockets.values()))

    def _between_sockets(self, spans: Sequence[tuple[float, float]]) -> None:
        tie, f = self.node.between_sockets, self.frame
        for (_, right), (left, _) in pairwise(spans):
            if tie is not None:
                cable(self.ax, [right, left], [f.y(self.CPU_Y)] * 2, tie.capacity)
        if tie is not None and len(spans) > 1:
            text = f"between sockets {tie_text(tie)} each way"
            label(self.ax, f.x(0.5), f.y(0.025), text, fontsize=self._font(9))

    def _ports(self, switches: dict[int, tuple[float, float]]) -> None:
        """Network ports, each on the way of the GPU that it hangs beside."""
        node, f = self.node, self.frame
        if node.port is None:
            return
        joint, y = f.y(self.PCIE_Y if switches else 0.37), f.y(self.PORT_Y if switches else 0.285)
        extent = (min(0.62, 0.42 * self._step), 0.05 * f.height)
        for port, place in self._port_places(switches):
            beside = self.at[node.port_beside[port]]
            if not switches:
                self.ax.plot(
                    beside,
                    joint,
                    "o",
                    color=CABLE,
                    markersize=2 + width_of(node.host.capacity if node.host else 0),
                    zorder=2,
                )
                cable(self.ax, [beside, place, place], [joint, joint, y], node.port.capacity)
            else:
                cable(self.ax, [place, place], [joint, y], node.port.capacity)
            text = f"NIC {port}" if extent[0] > 0.42 else f"{port}"
            box(self.ax, (place, y), extent, text, colour_of(_NIC), self._font(8))
        count = len(node.port_beside)
        text = f"{count} NIC{'s' * (count != 1)}, {tie_text(node.port)} each way"
        label(self.ax, f.x(0.5), f.y(0.208 if switches else 0.215), text, fontsize=self._font(9))

    def _port_places(self, switches: dict[int, tuple[float, float]]) -> Iterator[tuple[int, float]]:
        """(port, x) of the ports that hang beside GPUs that are drawn."""
        node = self.node
        drawn = [(port, gpu) for port, gpu in enumerate(node.port_beside) if gpu in self.at]
        for port, gpu in drawn:
            yield port, self.at[gpu] + (min(0.27 * self._step, 0.5) if not switches else 0.0)

    def _spans(self, home: Sequence[int]) -> dict[int, tuple[float, float]]:
        """Where what several GPUs hang on begins and ends: x of the first and the last of its GPUs that are drawn."""
        spans: dict[int, tuple[float, float]] = {}
        for g, x in self.at.items():
            number = home[g]
            left, right = spans.get(number, (x, x))
            spans[number] = min(left, x), max(right, x)
        return spans
