"""Point to point: one member sends to another; what pipeline stages use."""

from __future__ import annotations

import numpy as np

from clustersim.collective.channels import point_to_point_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import memory_traffic
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.faults import BadInput, Fault

__all__ = ["point_to_point"]


def point_to_point(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """The flow of one message: position 0 sends ``nbytes`` to position 1, in one step.

    Parameters
    ----------
    kind : {"send_recv"}
    nbytes : int
        message [B]
    shape : GroupShape
        of two members

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, or the group has not two members
    """
    require_call("point_to_point", kind, nbytes, ("send_recv",))
    if shape.num_members != 2:
        rule = "members: a send_recv is between the 2 members of its group"
        raise BadInput([Fault(key="group", value=shape.num_members, rule=rule, nearest=2)])
    phase = Phase(source=np.array([0]), destination=np.array([1]), nbytes=np.array([nbytes]), num_steps=1)
    return Traffic(
        algorithm="point_to_point",
        phases=(phase,),
        pipelined=True,
        memory_nbytes=memory_traffic(kind, nbytes, shape, (phase,)),
        num_sms=point_to_point_sms(num_nodes=len(shape.nodes), num_peers=1),
    )
