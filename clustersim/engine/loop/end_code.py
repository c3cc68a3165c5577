"""How the end of an op is found where it is not known when the op starts: codes in place of its duration."""

from __future__ import annotations

__all__ = ["COLLECTIVE", "ELASTIC", "LATE", "POOLED", "SLOWED", "STRUNG"]

ELASTIC, COLLECTIVE, POOLED, SLOWED, STRUNG = -1, -2, -3, -4, -5
"""On shared resources, joint, granted by a pool, slowed by the SMs that a collective takes beside it, on a strand."""

LATE = (ELASTIC, SLOWED, STRUNG)
"""Ops that start when the collectives of the instant have taken their SMs: their speed is known then."""
