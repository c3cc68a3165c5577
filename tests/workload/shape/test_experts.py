"""Experts against lists of tensors as checkpoints name them."""

from math import prod

import pytest

from clustersim.workload.shape.experts import Experts

MIXTRAL = Experts(num_experts=4, top_k=2, ffn_hidden=7)
DEEPSEEK = Experts(
    num_experts=6, top_k=2, ffn_hidden=5, num_shared=2, shared_ffn_hidden=10, first_dense=1, router_bias=True
)
QWEN = Experts(num_experts=4, top_k=1, ffn_hidden=5, num_shared=1, shared_ffn_hidden=9, shared_gate=True)
GPT_OSS = Experts(num_experts=4, top_k=3, ffn_hidden=5, bias=True, router_bias=True)
PLAIN = Experts(num_experts=4, top_k=3, ffn_hidden=5, gated=False)

H = 3


def mlp(ffn: int) -> list[tuple[int, ...]]:
    return [(H, ffn), (H, ffn), (ffn, H)]


CASES = [
    (MIXTRAL, [(H, 4), *mlp(7) * 4], mlp(7)),
    (DEEPSEEK, [(H, 6), (6,), *mlp(5) * 6, *mlp(10)], mlp(5)),
    (QWEN, [(H, 4), (H, 1), *mlp(5) * 4, *mlp(9)], mlp(5)),
    (GPT_OSS, [(H, 4), (4,), *[(H, 10), (10,), (5, H), (H,)] * 4], [(H, 10), (10,), (5, H), (H,)]),
    (PLAIN, [(H, 4), *[(H, 5), (5, H)] * 4], [(H, 5), (5, H)]),
]


@pytest.mark.parametrize(("experts", "tensors", "one"), CASES)
def test_parameters(experts: Experts, tensors: list[tuple[int, ...]], one: list[tuple[int, ...]]) -> None:
    expert = sum(map(prod, one))
    assert experts.parameters(H) == sum(map(prod, tensors))
    assert experts.expert_parameters(H) == expert
    assert experts.idle_parameters(H) == (experts.num_experts - experts.top_k) * expert


def test_matrices() -> None:
    assert QWEN.matrices(H) == {
        "router": (3, 4),
        "expert_in": (3, 10),
        "expert_out": (5, 3),
        "shared_in": (3, 18),
        "shared_out": (9, 3),
        "shared_gate": (3, 1),
    }


def test_which_layers_have_experts() -> None:
    every_second = Experts(num_experts=4, top_k=2, ffn_hidden=7, every=2)
    assert [every_second.at(i) for i in range(4)] == [False, True, False, True]
    assert [DEEPSEEK.at(i) for i in range(3)] == [False, True, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"top_k": 5}, "top_k: 5 must be at most the 4 experts"),
        ({"top_k": 0}, "top_k: 0 must be a whole number from 1"),
        ({"num_experts": True}, "num_experts: True must be a whole number from 1"),
        ({"num_shared": 1}, "shared_ffn_hidden: 0 must be 0 without shared experts, and positive with them"),
        ({"num_shared": 2, "shared_ffn_hidden": 7}, "shared_ffn_hidden: 7 must divide over 2 experts"),
        ({"shared_gate": True}, "shared_gate: True must be False without shared experts"),
        ({"num_groups": 3}, "num_groups: 3 must divide the 4 experts"),
        ({"num_groups": 2, "top_groups": 3}, "top_groups: 3 must be at most the 2 groups"),
    ],
)
def test_contradictions(change: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        Experts(**({"num_experts": 4, "top_k": 2, "ffn_hidden": 7} | change))
