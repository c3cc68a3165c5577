"""Statistical efficiency: how many epochs a training needs at a global batch size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clustersim.faults import BadInput, Fault

__all__ = ["Convergence"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Convergence:
    """Epochs to a given accuracy, as a table over the global batch.

    Parameters
    ----------
    samples : int
        of the data set, one epoch
    batches : tuple[int, ...]
        global batches, rising
    epochs : tuple[float, ...]
        needed at each
    source : str
        where the table comes from, or ``assumed``

    Raises
    ------
    BadInput
        with every number that is not positive, a table that does not rise, or lists of different lengths
    """

    samples: int
    batches: tuple[int, ...]
    epochs: tuple[float, ...]
    source: str = ""

    def __post_init__(self) -> None:
        faults = []
        if self.samples < 1:
            faults.append(Fault(key="samples", value=self.samples, rule="must be at least 1", nearest=1))
        if not self.batches or len(self.batches) != len(self.epochs):
            rule = f"numbers: there must be one for each of the {len(self.batches)} batches, and at least one"
            faults.append(Fault(key="epochs", value=len(self.epochs), rule=rule, nearest=len(self.batches) or 1))
        for key, values in (("batches", self.batches), ("epochs", self.epochs)):
            faults += [
                Fault(key=f"{key}.{k}", value=value, rule="must be positive and finite")
                for k, value in enumerate(values)
                if not 0 < value < math.inf
            ]
        faults += [
            Fault(key=f"batches.{k}", value=after, rule=f"must be above the one before, {before}", nearest=before + 1)
            for k, (before, after) in enumerate(zip(self.batches, self.batches[1:], strict=False), 1)
            if after <= before
        ]
        if faults:
            raise BadInput(faults)

    @classmethod
    def critical_batch(
        cls, *, samples: int, least_epochs: float, critical_batch: float, batches: Sequence[int], source: str = ""
    ) -> Convergence:
        """A table from E(B) = E_min · (1 + B / B_crit).

        Parameters
        ----------
        samples : int
        least_epochs : float
            E_min, at small batches
        critical_batch : float
            B_crit, the global batch that needs twice as many
        batches : Sequence[int]
            B, those to tabulate
        source : str

        References
        ----------
        McCandlish, Kaplan, Amodei: An Empirical Model of Large-Batch Training, 2018, equation 2.11 with
        E = steps · B / samples.
        """
        epochs = tuple(least_epochs * (1 + batch / critical_batch) for batch in batches)
        return cls(samples=samples, batches=tuple(batches), epochs=epochs, source=source)

    def covers(self, global_batch: int) -> bool:
        """Whether the table reaches this batch."""
        return self.batches[0] <= global_batch <= self.batches[-1]

    def epochs_at(self, global_batch: int) -> float:
        """Epochs at a global batch, linear in its logarithm between the table's rows.

        Raises
        ------
        BadInput
            outside the table: nothing is extrapolated
        """
        if not self.covers(global_batch):
            rule = f"must be from {self.batches[0]} to {self.batches[-1]}, which the table of epochs covers"
            nearest = min(max(global_batch, self.batches[0]), self.batches[-1])
            raise BadInput([Fault(key="global_batch", value=global_batch, rule=rule, nearest=nearest)])
        return float(np.interp(math.log(global_batch), np.log(self.batches), self.epochs))
