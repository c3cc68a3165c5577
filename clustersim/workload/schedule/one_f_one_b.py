"""1F1B: each stage alternates one forward and one backward as soon as it can."""

from __future__ import annotations

from clustersim.workload.schedule.unit import Unit

__all__ = ["one_f_one_b"]


def one_f_one_b(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    """Warm up with p - 1 - s forwards, alternate, then drain.

    Stage s of p holds the activations of at most min(m, p - s) micro-batches; the bubble is GPipe's.

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
    Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training (PipeDream-Flush), 2021; Narayanan et al.,
    Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021, figure 4.
    """
    if num_virtual != 1:
        raise ValueError(f"num_virtual: {num_virtual} must be 1 for 1f1b")
    table = []
    for stage in range(num_stages):
        warm_up = min(num_stages - 1 - stage, num_micro_batches)
        units = [Unit("F", j) for j in range(warm_up)]
        for j in range(num_micro_batches - warm_up):
            units += [Unit("F", warm_up + j), Unit("B", j)]
        units += [Unit("B", j) for j in range(num_micro_batches - warm_up, num_micro_batches)]
        table.append(units)
    return table
