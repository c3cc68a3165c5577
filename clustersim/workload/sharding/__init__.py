"""Data parallelism: strategies for weights, gradients and optimizer state. A user's own is any such callable."""

from __future__ import annotations

from clustersim.workload.sharding.ddp import ddp
from clustersim.workload.sharding.hsdp import hsdp
from clustersim.workload.sharding.local_sgd import local_sgd
from clustersim.workload.sharding.movement import Movement
from clustersim.workload.sharding.sharding import Sharding, Strategy
from clustersim.workload.sharding.zero import zero
from clustersim.workload.sharding.zero_within import ZeroWithin
from clustersim.workload.sharding.zeropp import zeropp

__all__ = ["Movement", "Sharding", "Strategy", "ZeroWithin", "ddp", "hsdp", "local_sgd", "zero", "zeropp"]
