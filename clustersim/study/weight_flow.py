"""Whether weights should live on the GPU or come from the host for each pass: what the flow costs."""

from __future__ import annotations

__all__ = ["flow_efficiency", "tokens_for_efficiency"]


def flow_efficiency(tokens: float, *, bandwidth: float, flop_per_s: float) -> float:
    """Fraction of a GPU's rate that a pass reaches whose weights come over a link, one after the other.

    A weight of 2 bytes has 2 FLOP a token, so a pass has an intensity of a = tokens FLOP a byte:

        efficiency = a·B / (a·B + F)

    Where copies run beside kernels it reaches twice that, up to 1.

    Parameters
    ----------
    tokens : float
        of a micro-batch on one GPU
    bandwidth : float
        B, of the link towards the GPU [B/s]
    flop_per_s : float
        F, that the GPU reaches with weights at hand [FLOP/s]

    References
    ----------
    Lian et al., 2025, arXiv 2509.21271, section 4.2; Rajbhandari et al., ZeRO-Infinity, 2021, section 4.1.

    Examples
    --------
    >>> round(flow_efficiency(2200, bandwidth=450e9, flop_per_s=990e12), 3)
    0.5
    """
    return tokens * bandwidth / (tokens * bandwidth + flop_per_s)


def tokens_for_efficiency(efficiency: float, *, bandwidth: float, flop_per_s: float) -> float:
    """Tokens of a micro-batch at which :func:`flow_efficiency` is that.

    Examples
    --------
    >>> round(tokens_for_efficiency(0.6, bandwidth=450e9, flop_per_s=990e12))
    3300
    """
    return efficiency / (1 - efficiency) * flop_per_s / bandwidth
