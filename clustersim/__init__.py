"""clustersim: a discrete-event simulator of multi-GPU training clusters.

The public names load on first use, so that importing the package costs nothing and has no effects.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clustersim import analysis, collective, plot, study
    from clustersim.analysis.summary import summary
    from clustersim.collective.explanations import explain
    from clustersim.collective.overlap import Overlap
    from clustersim.engine.deadlock import Deadlock
    from clustersim.engine.limits import Limits
    from clustersim.engine.simulate import simulate
    from clustersim.faults import BadInput, Fault
    from clustersim.hardware.kernel import Kernel
    from clustersim.library.card import list_cards
    from clustersim.library.graph import load_convergence, load_graph
    from clustersim.library.job import load_job
    from clustersim.library.model import load_model
    from clustersim.library.part import load_part
    from clustersim.library.topologies import load_topology
    from clustersim.study.validate import validate
    from clustersim.topology.topology import Topology
    from clustersim.trace.result import Result
    from clustersim.workload.check import check
    from clustersim.workload.convergence import Convergence
    from clustersim.workload.graph import Estimate, Graph, GraphOp, graph_step
    from clustersim.workload.job import GroupFamily, Job, Pool
    from clustersim.workload.model import Model
    from clustersim.workload.op import Collective, Compute, Copy, Delay, HostLaunch, HostWork, Storage
    from clustersim.workload.plan import ParallelPlan
    from clustersim.workload.program import Program
    from clustersim.workload.training_step import training_step

__version__ = "0.1.0"

_HOME = {
    "BadInput": "clustersim.faults",
    "Collective": "clustersim.workload.op",
    "Compute": "clustersim.workload.op",
    "Convergence": "clustersim.workload.convergence",
    "Copy": "clustersim.workload.op",
    "Deadlock": "clustersim.engine.deadlock",
    "Delay": "clustersim.workload.op",
    "Estimate": "clustersim.workload.graph",
    "Fault": "clustersim.faults",
    "Graph": "clustersim.workload.graph",
    "GraphOp": "clustersim.workload.graph",
    "GroupFamily": "clustersim.workload.job",
    "HostLaunch": "clustersim.workload.op",
    "HostWork": "clustersim.workload.op",
    "Job": "clustersim.workload.job",
    "Kernel": "clustersim.hardware.kernel",
    "Limits": "clustersim.engine.limits",
    "Model": "clustersim.workload.model",
    "Overlap": "clustersim.collective.overlap",
    "ParallelPlan": "clustersim.workload.plan",
    "Pool": "clustersim.workload.job",
    "Program": "clustersim.workload.program",
    "Result": "clustersim.trace.result",
    "Storage": "clustersim.workload.op",
    "Topology": "clustersim.topology.topology",
    "analysis": "",
    "check": "clustersim.workload.check",
    "collective": "",
    "explain": "clustersim.collective.explanations",
    "graph_step": "clustersim.workload.graph",
    "list_cards": "clustersim.library.card",
    "load_convergence": "clustersim.library.graph",
    "load_graph": "clustersim.library.graph",
    "load_job": "clustersim.library.job",
    "load_model": "clustersim.library.model",
    "load_part": "clustersim.library.part",
    "load_topology": "clustersim.library.topologies",
    "plot": "",
    "simulate": "clustersim.engine.simulate",
    "study": "",
    "summary": "clustersim.analysis.summary",
    "training_step": "clustersim.workload.training_step",
    "validate": "clustersim.study.validate",
}

__all__ = [
    "BadInput",
    "Collective",
    "Compute",
    "Convergence",
    "Copy",
    "Deadlock",
    "Delay",
    "Estimate",
    "Fault",
    "Graph",
    "GraphOp",
    "GroupFamily",
    "HostLaunch",
    "HostWork",
    "Job",
    "Kernel",
    "Limits",
    "Model",
    "Overlap",
    "ParallelPlan",
    "Pool",
    "Program",
    "Result",
    "Storage",
    "Topology",
    "analysis",
    "check",
    "collective",
    "explain",
    "graph_step",
    "list_cards",
    "load_convergence",
    "load_graph",
    "load_job",
    "load_model",
    "load_part",
    "load_topology",
    "plot",
    "simulate",
    "study",
    "summary",
    "training_step",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'clustersim' has no attribute {name!r}")
    home = _HOME[name]
    value = getattr(import_module(home), name) if home else import_module(f"clustersim.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
