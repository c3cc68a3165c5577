"""GPT of 22, 175 and 1,000 billion parameters on Frontier (Dash et al.).

Batches and plans are those of the job cards, which say what of them is only remembered; that of 22B is not known at
all, nor from how many GCDs on strong scaling is counted.

Of peak means 96·B·s·l·h²·(1 + s/(6h) + V/(16·l·h)) FLOP a step, recomputation included (section 2 of the paper), over
191.5 TFLOP/s a GCD. Steps of hundreds of micro-batches are not simulated whole: once every stage is busy each further
micro-batch takes the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from clustersim.library.job import load_job
from clustersim.library.model import load_model
from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System

__all__ = ["FRONTIER", "step", "step_time"]

_PEAK = 191.5e12
_22B, _175B, _1T = "gpt-frontier-22b-8", "gpt-frontier-175b-1024", "gpt-frontier-1t-3072"

_FAST_CARD = (
    "97 % of the time in kernels is bound by the tensor rate of the GPU's card, for products 65 % of peak, assumed "
    "from the best single one and held under any load; RCCL has NCCL's uncalibrated numbers, the host costs nothing. "
    "Measured kernels and collectives of an MI250X would tell which of them is too fast; the time of a step cannot"
)
_ONE_PATH = (
    "with more replicas a stage has more nodes, and what it sends the next fills the one link between their two "
    "switches. Slingshot's adaptive routing takes detours over the others; here all goes the shortest way"
)
_NO_NOISE = (
    "the bubble of fewer micro-batches, the reduction of gradients and, as in weak scaling, full links between "
    "switches are all that it costs here: no noise between ranks, no other jobs on the fabric. From how many GCDs on "
    "the paper counts is not known"
)


def step(
    runs: Runs, card: str, num_micro_batches: int, *, tp: int = 0, nodes: int = 0, dp: int = 0
) -> Mapping[str, Any]:
    """The summary of a card's step with so many micro-batches a replica, and some of its settings changed."""
    dp = dp or load_job(card).value("plan.dp")
    values = {"global_batch": num_micro_batches * dp, "plan.dp": dp}
    values |= {key: value for key, value in (("plan.tp", tp), ("nodes", nodes)) if value}
    return runs.step(card, values)


def step_time(runs: Runs, card: str, num_micro_batches: int, **changes: int) -> float:
    """Step time [s] of many micro-batches, from two steps of few."""
    few = max(16, load_job(card).value("plan.pp"))
    start = step(runs, card, few, **changes)["step_time_s"]
    each = (step(runs, card, few + 8, **changes)["step_time_s"] - start) / 8
    return float(start + (num_micro_batches - few) * each)


def _percent_of_peak(runs: Runs, card: str) -> float:
    setup = load_job(card)
    model, seq_len, batch = load_model(setup.value("model")), setup.value("seq_len"), setup.value("global_batch")
    hidden, layers, vocab = model.hidden, model.num_layers, model.vocab
    of_attention_and_head = seq_len / (6 * hidden) + vocab / (16 * layers * hidden)
    flops = 96 * batch * seq_len * layers * hidden**2 * (1 + of_attention_and_head)
    time = step_time(runs, card, batch // setup.value("plan.dp"))
    return float(100 * flops / time / (8 * setup.value("nodes")) / _PEAK)


def _weak(runs: Runs, card: str, num_micro_batches: int, nodes: int, dp: int) -> float:
    """Efficiency of a card's job against so many nodes with as many micro-batches a replica [%]."""
    few = step_time(runs, card, num_micro_batches, nodes=nodes, dp=dp)
    return 100 * few / step_time(runs, card, num_micro_batches)


def _strong(runs: Runs, card: str, global_batch: int, nodes: int, dp: int) -> float:
    """Efficiency of a card's job against so many nodes with as large a global batch [%]."""
    setup = load_job(card)
    few = step_time(runs, card, global_batch // dp, nodes=nodes, dp=dp)
    many = step_time(runs, card, global_batch // setup.value("plan.dp"))
    return float(100 * few * nodes / (setup.value("nodes") * many))


def _beyond_a_node(runs: Runs) -> float:
    """Step time of tensor parallelism over 16 GCDs over that of 8, on the same two nodes."""
    across, inside = step(runs, _22B, 16, tp=16, nodes=2, dp=1), step(runs, _22B, 8, tp=8, nodes=2, dp=2)
    return float(across["step_time_s"] / inside["step_time_s"])


def _of_peak(size: str, card: str, published: float, reason: str = "") -> Quantity:
    return Quantity(
        name=f"{size}, of peak",
        published=published,
        unit="%",
        grade="S",
        tolerance=0.03,
        job=card,
        simulated=partial(_percent_of_peak, card=card),
        reason=reason,
    )


FRONTIER = System(
    number="11",
    name="frontier",
    paper="Optimizing Distributed Training on Frontier for Large Language Models",
    year=2023,
    arxiv="2312.12705",
    slow=True,
    quantities=(
        _of_peak("22B", _22B, 38.38),
        _of_peak("175B on 1,024 GCDs", _175B, 36.14, _FAST_CARD),
        _of_peak("1T on 3,072 GCDs", _1T, 31.96, _FAST_CARD),
        Quantity(
            name="weak scaling, 175B, from one replica to 1,024 GCDs",
            published=100,
            unit="%",
            grade="S",
            tolerance=0.03,
            job=_175B,
            simulated=partial(_weak, card=_175B, num_micro_batches=640, nodes=8, dp=1),
            reason=_ONE_PATH,
        ),
        Quantity(
            name="weak scaling, 1T, from 1,024 to 3,072 GCDs",
            published=100,
            unit="%",
            grade="S",
            tolerance=0.03,
            job=_1T,
            simulated=partial(_weak, card=_1T, num_micro_batches=1600, nodes=128, dp=2),
            reason=_ONE_PATH,
        ),
        Quantity(
            name="strong scaling, 175B, from one replica to 1,024 GCDs",
            published=89,
            unit="%",
            grade="S",
            tolerance=0.03,
            job=_175B,
            simulated=partial(_strong, card=_175B, global_batch=8000, nodes=8, dp=1),
            reason=_NO_NOISE,
        ),
        Quantity(
            name="strong scaling, 1T, from 1,024 to 3,072 GCDs",
            published=87,
            unit="%",
            grade="S",
            tolerance=0.03,
            job=_1T,
            simulated=partial(_strong, card=_1T, global_batch=8016, nodes=128, dp=2),
        ),
        Quantity(
            name="step time, tensor 16 over two nodes against 8",
            published=1,
            unit="x",
            relation=">",
            grade="M-high",
            job=_22B,
            simulated=_beyond_a_node,
        ),
    ),
)
