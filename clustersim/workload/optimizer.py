"""Optimizers by name."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.workload.optimizers.adafactor import ADAFACTOR
from clustersim.workload.optimizers.elementwise import (
    ADAGRAD,
    ADAM,
    ADAM_8BIT,
    ADAMW,
    LAMB,
    LION,
    SGD,
    SGD_MOMENTUM,
)
from clustersim.workload.optimizers.muon import MUON
from clustersim.workload.optimizers.rule import Optimizer

__all__ = ["OPTIMIZERS", "find_optimizer"]

OPTIMIZERS: Mapping[str, Optimizer] = {
    "adam": ADAM,
    "adamw": ADAMW,
    "adam_8bit": ADAM_8BIT,
    "adafactor": ADAFACTOR,
    "adagrad": ADAGRAD,
    "lamb": LAMB,
    "lion": LION,
    "muon": MUON,
    "sgd": SGD,
    "sgd_momentum": SGD_MOMENTUM,
}
"""Optimizers by name."""


def find_optimizer(optimizer: str | Optimizer) -> Optimizer:
    """The optimizer that a plan names, or an own one.

    Raises
    ------
    BadInput
        when no optimizer has that name
    """
    if not isinstance(optimizer, str):
        return optimizer
    if optimizer not in OPTIMIZERS:
        rule, nearest = f"must be one of {', '.join(OPTIMIZERS)}", nearest_name(optimizer, OPTIMIZERS) or "adam"
        raise BadInput([Fault(key="plan.optimizer", value=optimizer, rule=rule, nearest=nearest)])
    return OPTIMIZERS[optimizer]
