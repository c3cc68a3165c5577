"""Numbers for the distinct rows of some columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["factorize"]


def factorize(*columns: NDArray[np.generic]) -> NDArray[np.int64]:
    """Number the distinct rows of some columns of equal length; columns that are constant cost nothing."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if len(column) and (column != column[0]).any():
            inverse = np.unique(column, return_inverse=True)[1].reshape(-1)
            if code.any():
                inverse = np.unique(code * (int(inverse.max()) + 1) + inverse, return_inverse=True)[1].reshape(-1)
            code = inverse.astype(np.int64)
    return code
