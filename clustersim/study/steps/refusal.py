"""Why a measured step is not predicted: a short closed list."""

from __future__ import annotations

__all__ = ["REASONS", "RefusedError"]

REASONS = {
    "hardware": "no card stands for the hardware",
    "model": "the shape of the model is not published",
    "layout": "the layout over GPUs is not published",
    "batch": "the batch is not published",
    "numbers": "its numbers disagree",
    "offload": "offload is not simulated",
    "metric": "the metric is not predicted",
    "precision": "the number format is not known",
    "method": "its method is not simulated",
    "plan": "the plan is not legal here",
    "network": "does not run on its cluster",
}
"""Word -> reason as it is told."""


class RefusedError(Exception):
    """A row that is not predicted.

    Parameters
    ----------
    word : str
        of :data:`REASONS`
    detail : str
        with the row's own values
    """

    def __init__(self, word: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = REASONS[word]
        self.detail = detail
