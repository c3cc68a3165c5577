"""The start of a vision transformer: an image cut into patches."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.shape.counts import require_counts

__all__ = ["Patches"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Patches:
    """A square image as a sequence of square patches.

    Parameters
    ----------
    image_size, patch_size : int
        edge of image and patch [pixel]
    channels : int
        numbers a pixel
    class_token : bool
        one learned token in front
    bias : bool
        of the matrix that embeds a patch

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    image_size: int
    patch_size: int
    channels: int = 3
    class_token: bool = True
    bias: bool = True

    def __post_init__(self) -> None:
        require_counts(self, "image_size", "patch_size", "channels")
        if self.image_size % self.patch_size:
            raise ValueError(f"patch_size: {self.patch_size} must divide the image's edge of {self.image_size}")

    @property
    def num_patches(self) -> int:
        """Patches of an image."""
        return (self.image_size // self.patch_size) ** 2

    @property
    def num_tokens(self) -> int:
        """Tokens of an image."""
        return self.num_patches + self.class_token

    def matrix(self, hidden: int) -> tuple[int, int]:
        """The matrix that embeds a patch, as (features in, features out)."""
        return self.channels * self.patch_size**2, hidden

    def parameters(self, hidden: int) -> int:
        """Parameters of embedding and class token."""
        rows, columns = self.matrix(hidden)
        return (rows + self.bias) * columns + self.class_token * hidden
