"""GPipe: all micro-batches forward, then all backward."""

from __future__ import annotations

from clustersim.workload.schedule.unit import Unit

__all__ = ["gpipe"]


def gpipe(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    """Every forward before the first backward, and the backwards in reverse order.

    A stage holds the activations of all m micro-batches; the bubble is (p - 1) / (m + p - 1) of the step when
    all stages are equal.

    Parameters
    ----------
    num_stages : int
        p
    num_virtual : int
        chunks a stage; this schedule has 1
    num_micro_batches : int
        m

    Returns
    -------
    list[list[Unit]]
        2·m units for each of p stages

    Raises
    ------
    ValueError
        when ``num_virtual`` is not 1

    References
    ----------
    Huang et al., GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism, 2019, figure 2c.
    """
    if num_virtual != 1:
        raise ValueError(f"num_virtual: {num_virtual} must be 1 for gpipe")
    forward = [Unit("F", j) for j in range(num_micro_batches)]
    backward = [Unit("B", j) for j in reversed(range(num_micro_batches))]
    return [forward + backward for _ in range(num_stages)]
