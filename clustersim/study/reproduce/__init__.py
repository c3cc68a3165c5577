"""Published systems simulated: what their papers report beside what comes out.

A system is a frozen :class:`System` in a file of its own, named after it, and a name in :data:`SYSTEMS`. Its page of
the documentation, the table of ``clustersim reproduce``, its JSON and its tests follow from it. To add one:

1. Ship what it ran on: a topology card, a model card, a job card, each number with its source. Where the source leaves
   a setting out, the card says ``assumed``. Nothing on a card is fitted to a number below.

2. Write ``clustersim/study/reproduce/my_system.py``::

       _JOB = "my-system-7b"

       def _iteration(runs: Runs, policy: str) -> float:
           return float(runs.step(_JOB, {"plan.offload.policy": policy, "steps": 3})["step_time_s"])

       def _gain(runs: Runs) -> float:
           return _iteration(runs, "zero_offload") / _iteration(runs, "my_policy")

       MY_SYSTEM = System(
           number="21",
           name="my-system",
           paper="The Title of Its Paper",
           year=2025,
           arxiv="2501.00001",
           quantities=(
               Quantity(
                   name="iteration, 7B on one H100",
                   published=6.8,
                   unit="s",
                   grade="S",
                   tolerance=0.15,
                   job=_JOB,
                   simulated=partial(_iteration, policy="my_policy"),
               ),
               Quantity(name="gain", published=1.4, unit="x", grade="M-med", job=_JOB, simulated=_gain),
           ),
       )

   ``runs.step`` gives the fields of ``run --json`` and makes each run once, however many quantities ask for it.
   ``runs.once(function, ...)`` does the same for what a summary does not tell: the function calls the library's public
   functions and returns the numbers. Functions stand in the module, since other processes may be given them.

3. Name it in :data:`SYSTEMS` and take it out of ``not_yet.py``.

4. Run ``clustersim reproduce my-system``. A number that is off by more than its tolerance stays, with ``reason`` saying
   why: its test then expects the miss, and fails when the miss is gone. A tolerance is what the evidence allows, and is
   set before the number is seen. Grades M-med and M-low have none: they are reported.

5. Write its section of ``docs/systems.md`` and run ``python -m clustersim.study.reproduce``, which writes the table.
"""

from __future__ import annotations

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.study.reproduce.charllm_ppt import CHARLLM_PPT
from clustersim.study.reproduce.datastates_llm import DATASTATES_LLM
from clustersim.study.reproduce.deep_optimizer_states import DEEP_OPTIMIZER_STATES
from clustersim.study.reproduce.frontier import FRONTIER
from clustersim.study.reproduce.hardware_scaling import HARDWARE_SCALING
from clustersim.study.reproduce.hybrid_parallelism import HYBRID_PARALLELISM
from clustersim.study.reproduce.mlp_offload import MLP_OFFLOAD
from clustersim.study.reproduce.mt5_zero_stages import MT5_ZERO_STAGES
from clustersim.study.reproduce.not_yet import NOT_YET_SIMULATED
from clustersim.study.reproduce.reproduction import Outcome, Reproduction, reproduce
from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.slim_performers import SLIM_PERFORMERS
from clustersim.study.reproduce.superoffload import SUPEROFFLOAD
from clustersim.study.reproduce.system import Quantity, System
from clustersim.study.reproduce.twinflow import TWINFLOW
from clustersim.study.reproduce.two_sites import TWO_SITES
from clustersim.study.reproduce.zero_infinity import ZERO_INFINITY
from clustersim.study.reproduce.zero_offload import ZERO_OFFLOAD

__all__ = ["SYSTEMS", "Outcome", "Quantity", "Reproduction", "Runs", "System", "find_system", "reproduce"]


def _order(system: System) -> tuple[bool, int]:
    """By number, baselines last."""
    return system.number.startswith("B"), int(system.number.removeprefix("B"))


SYSTEMS: tuple[System, ...] = tuple(
    sorted(
        (
            DEEP_OPTIMIZER_STATES,
            HARDWARE_SCALING,
            FRONTIER,
            HYBRID_PARALLELISM,
            MT5_ZERO_STAGES,
            SLIM_PERFORMERS,
            CHARLLM_PPT,
            DATASTATES_LLM,
            TWO_SITES,
            TWINFLOW,
            MLP_OFFLOAD,
            SUPEROFFLOAD,
            ZERO_OFFLOAD,
            ZERO_INFINITY,
            *NOT_YET_SIMULATED,
        ),
        key=_order,
    )
)
"""All systems, by number."""


def find_system(number_or_name: str) -> System:
    """A system by its number or its name.

    Raises
    ------
    BadInput
        when there is none, with the name that looks most like it

    Examples
    --------
    >>> find_system("11").name, find_system("frontier").number
    ('frontier', '11')
    """
    wanted = number_or_name.lower()
    for system in SYSTEMS:
        if wanted in (system.number.lower(), system.name):
            return system
    known = [label for system in SYSTEMS for label in (system.number, system.name)]
    rule = "must be a number from 1 to 20 or B1 to B5, or the name of a system"
    raise BadInput([Fault(key="SYSTEM", value=number_or_name, rule=rule, nearest=nearest_name(wanted, known))])
