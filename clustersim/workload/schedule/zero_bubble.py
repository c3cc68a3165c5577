"""ZB-H1 and ZB-H2: 1F1B with the gradients of the weights computed where a stage would otherwise wait."""

from __future__ import annotations

from clustersim.workload.schedule.unit import Unit

__all__ = ["zb_h1", "zb_h2"]


def zb_h1(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    """1F1B whose stage s computes the weights' gradients s micro-batches late.

    So no gradient of an input waits for one of weights on its way up, and late stages have work left for the end. With
    m at least p and W no longer than F the bubble is (p - 1)·(F + I - W); with a longer W it is (p - 1)·I. Stage s
    holds at most p micro-batches from F to W, and p - s from F to I.

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
        3·m units for each of p stages

    Raises
    ------
    ValueError
        when ``num_virtual`` is not 1

    References
    ----------
    Qi et al., Zero Bubble Pipeline Parallelism, 2023 (arXiv 2401.10241), section 2.1, figure 3 top and table 2.
    """
    _one("zb-h1", num_virtual)
    return [_row(num_stages - s, s, num_micro_batches) for s in range(num_stages)]


def zb_h2(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    """ZB-H1 with so many forwards at the start that no stage waits for the first gradient.

    With m at least 2·p - 1 the bubble within each stage's own time is at most (p - 1) times F + I - 2·W, I - F or 0,
    whichever is more; that is (p - 1)·(F + I - 2·W) as published where W is no longer than F nor than the mean of F
    and I. A stage that starts later ends later, so the gain takes an optimizer step that does not wait for all stages.
    Stage s holds at most 2·p - 1 micro-batches from F to W, and 2·(p - s) - 1 from F to I.

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
        3·m units for each of p stages

    Raises
    ------
    ValueError
        when ``num_virtual`` is not 1

    References
    ----------
    Qi et al., Zero Bubble Pipeline Parallelism, 2023 (arXiv 2401.10241), section 2.2, figure 3 bottom and table 2.
    """
    _one("zb-h2", num_virtual)
    return [_row(2 * (num_stages - s) - 1, 2 * s, num_micro_batches) for s in range(num_stages)]


def _one(name: str, num_virtual: int) -> None:
    if num_virtual != 1:
        raise ValueError(f"num_virtual: {num_virtual} must be 1 for {name}")


def _row(warm_up: int, delay: int, num_micro_batches: int) -> list[Unit]:
    """So many forwards; then I, the W of ``delay`` micro-batches before and F in turn; then what is left."""
    units = [Unit("F", j) for j in range(min(warm_up, num_micro_batches))]
    for j in range(num_micro_batches):
        units.append(Unit("I", j))
        if j >= delay:
            units.append(Unit("W", j - delay))
        if j + warm_up < num_micro_batches:
            units.append(Unit("F", j + warm_up))
    return units + [Unit("W", j) for j in range(max(0, num_micro_batches - delay), num_micro_batches)]
