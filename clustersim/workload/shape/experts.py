"""A mixture of experts in place of the MLP: a router sends each token to a few of many small MLPs."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.shape.counts import require_counts

__all__ = ["Experts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Experts:
    """The experts of a layer, and which layers have them.

    Layer i, counted from 0, has experts where i ≥ ``first_dense`` and ``every`` divides i + 1; the others keep the MLP.

    Parameters
    ----------
    num_experts : int
        routed experts of a layer, E
    top_k : int
        of them that each token meets
    ffn_hidden : int
        width inside one expert
    shared_ffn_hidden : int
        width inside all experts that every token meets, together; 0: none
    num_shared : int
        how many these are; several of equal width cost as much as one that is as wide as all
    every, first_dense : int
        which layers, as above
    gated : bool
        three matrices an expert instead of two
    bias : bool
        bias vectors in the experts (gpt-oss)
    clamped : bool
        what the activation reads is kept within bounds (gpt-oss)
    router_bias : bool
        a learned number an expert, added to its scores (DeepSeek-V3, gpt-oss)
    shared_gate : bool
        the output of the shared experts is scaled by a number that a vector of h weights gives (Qwen2-MoE)
    latent : int
        width in which the routed experts work: one matrix leads there before tokens are sent, one back after their
        experts' results are summed (LatentMoE of Nemotron 3 Super); 0: they work in h
    num_groups, top_groups : int
        a token's experts are picked from the best ``top_groups`` of ``num_groups`` equal groups, so that it goes to few
        devices (DeepSeek-V2 and -V3); 1 and 1: from all

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    num_experts: int
    top_k: int
    ffn_hidden: int
    shared_ffn_hidden: int = 0
    num_shared: int = 0
    every: int = 1
    first_dense: int = 0
    gated: bool = True
    bias: bool = False
    clamped: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    latent: int = 0
    num_groups: int = 1
    top_groups: int = 1

    def __post_init__(self) -> None:
        require_counts(self, "num_experts", "top_k", "ffn_hidden", "every")
        require_counts(self, "shared_ffn_hidden", "num_shared", "first_dense", "latent", least=0)
        if self.top_k > self.num_experts:
            raise ValueError(f"top_k: {self.top_k} must be at most the {self.num_experts} experts")
        if (self.num_shared == 0) != (self.shared_ffn_hidden == 0):
            rule = "must be 0 without shared experts, and positive with them"
            raise ValueError(f"shared_ffn_hidden: {self.shared_ffn_hidden} {rule}")
        if self.num_shared and self.shared_ffn_hidden % self.num_shared:
            raise ValueError(f"shared_ffn_hidden: {self.shared_ffn_hidden} must divide over {self.num_shared} experts")
        if self.clamped and not self.gated:
            raise ValueError("clamped: True must be False for experts without a gate")
        require_counts(self, "num_groups", "top_groups")
        if self.num_experts % self.num_groups:
            raise ValueError(f"num_groups: {self.num_groups} must divide the {self.num_experts} experts")
        if self.top_groups > self.num_groups:
            raise ValueError(f"top_groups: {self.top_groups} must be at most the {self.num_groups} groups")
        if self.shared_gate and not self.num_shared:
            raise ValueError("shared_gate: True must be False without shared experts")

    def at(self, layer: int) -> bool:
        """Whether layer ``layer``, counted from 0, has experts."""
        return layer >= self.first_dense and (layer + 1) % self.every == 0

    def width(self, hidden: int) -> int:
        """Width of the tokens that routed experts meet."""
        return self.latent or hidden

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """Matrices as (features in, features out): the router's, those of one routed expert, those of the shared ones.

        Those of one expert are named ``expert_…``; a token meets them ``top_k`` times.
        """
        wide, width = 2 if self.gated else 1, self.width(hidden)
        found = {
            "router": (hidden, self.num_experts),
            "expert_in": (width, wide * self.ffn_hidden),
            "expert_out": (self.ffn_hidden, width),
        }
        if self.latent:
            found |= {"latent_in": (hidden, self.latent), "latent_out": (self.latent, hidden)}
        if self.num_shared:
            found["shared_in"] = (hidden, wide * self.shared_ffn_hidden)
            found["shared_out"] = (self.shared_ffn_hidden, hidden)
        if self.shared_gate:
            found["shared_gate"] = (hidden, 1)
        return found

    def expert_parameters(self, hidden: int) -> int:
        """Parameters of one routed expert."""
        wide, width = (2 if self.gated else 1) * self.ffn_hidden, self.width(hidden)
        return width * wide + self.ffn_hidden * width + self.bias * (wide + width)

    def parameters(self, hidden: int) -> int:
        """Parameters of a layer's router and experts, all of them."""
        outside = sum(
            rows * columns for name, (rows, columns) in self.matrices(hidden).items() if "expert_" not in name
        )
        return outside + self.router_bias * self.num_experts + self.num_experts * self.expert_parameters(hidden)

    def idle_parameters(self, hidden: int) -> int:
        """Parameters of a layer that one token does not meet."""
        return (self.num_experts - self.top_k) * self.expert_parameters(hidden)
