import pytest

from clustersim.workload.optimizer import optimizer_step, resident_bytes
from clustersim.workload.shard import Dtype


@pytest.mark.parametrize(
    ("dtype", "gradient_dtype", "per_parameter"),
    [
        ("bf16", "fp32", (2, 4, 12)),
        ("bf16", "bf16", (2, 2, 12)),
        ("fp16", "fp32", (2, 4, 12)),
        ("fp32", "fp32", (4, 4, 8)),
    ],
)
def test_bytes_a_parameter(dtype: Dtype, gradient_dtype: Dtype, per_parameter: tuple[int, int, int]) -> None:
    held = resident_bytes(1000, dtype=dtype, gradient_dtype=gradient_dtype)
    assert tuple(held[f"gpu/{k}"] for k in ("weights", "gradients", "optimizer")) == tuple(
        1000 * n for n in per_parameter
    )


def test_zero_1_splits_the_optimizer_state_alone() -> None:
    held = resident_bytes(1001, dtype="bf16", gradient_dtype="fp32", shards=4)
    assert held == {"gpu/weights": 2002, "gpu/gradients": 4004, "gpu/optimizer": 12 * 251}


def test_175b_on_64_gpus() -> None:
    # Korthikanti et al. 2022, figure 1: parameters and optimizer of GPT-3 on t = p = 8, first stage, 45.6 GiB.
    first_stage = 12 * (12 * 12288**2 + 13 * 12288) // 8 + (51200 // 8 + 2048) * 12288
    held = sum(resident_bytes(first_stage, dtype="fp16", gradient_dtype="fp32").values())
    assert held / 2**30 == pytest.approx(45.5625, rel=0.05)


def test_passes_of_adam() -> None:
    bf16 = optimizer_step(1000, dtype="bf16", gradient_dtype="fp32")
    assert bf16.nbytes == 1000 * (4 + (4 + 12 + 12 + 2) + 4)
    fp32 = optimizer_step(1000, dtype="fp32", gradient_dtype="fp32")
    assert fp32.nbytes == 1000 * (4 + (4 + 12 + 12) + 4)
    fp16 = optimizer_step(1000, dtype="fp16", gradient_dtype="fp32")
    assert fp16.nbytes == bf16.nbytes + 1000 * 8
    assert bf16.flops == 0
    assert bf16.category == "optimizer"


def test_a_shard_is_updated_but_all_gradients_are_zeroed() -> None:
    assert optimizer_step(1000, dtype="bf16", gradient_dtype="fp32", shards=4).nbytes == 250 * 34 + 1000 * 4
