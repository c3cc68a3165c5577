"""From what a job says of an exchange of tokens to the algorithm that it runs as."""

from __future__ import annotations

from clustersim.collective.deduplicated import Deduplicated
from clustersim.collective.direct import direct
from clustersim.collective.returned import Returned
from clustersim.collective.select import Option
from clustersim.collective.traffic import Algorithm
from clustersim.collective.uneven import Uneven
from clustersim.workload.exchange import Exchange

__all__ = ["option"]


def option(exchange: Exchange) -> Option:
    """The only algorithm that an exchange runs as."""
    there: Algorithm = direct
    if exchange.experts is not None:
        experts = exchange.experts
        there = Deduplicated(
            num_experts=experts.num_experts,
            top_k=experts.top_k,
            num_groups=experts.num_groups,
            top_groups=experts.top_groups,
        )
    elif exchange.share:
        there = Uneven(exchange.share)
    reason = "the plan says how tokens are sent to experts"
    return Option(algorithm=Returned(there) if exchange.back else there, reason=reason)
