"""The kernels as PyTorch calls, run where there is PyTorch: on the CPU, which takes all that is not of a GPU alone."""

from __future__ import annotations

import pytest
from kernel_cases import Case
from torch_device import NotMeasuredError, TorchDevice

from clustersim.hardware.kernel import Kernel

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def device() -> TorchDevice:
    return TorchDevice("cpu")


def product(dtype: str, batch: int = 1) -> Case:
    return Case(kernel=Kernel(kind="gemm", dtype=dtype, flops=1, nbytes=1, m=64, n=48, k=32, batch=batch))


def attention(keys: int = 32, form: str = "", *, causal: bool = False, backward: bool = False) -> Case:
    shape = {"m": 32, "n": keys, "k": 16, "batch": 4}
    kernel = Kernel(kind="attention", dtype="bf16", flops=1, nbytes=1, form=form, backward=backward, **shape)
    return Case(kernel=kernel, causal=causal)


def a_pass(form: str, nbytes: int = 3 * 2**20) -> Case:
    return Case(kernel=Kernel(kind="memory", dtype="bf16", flops=0, nbytes=nbytes, form=form))


@pytest.mark.parametrize("dtype", ["fp32", "tf32", "fp16", "bf16"])
@pytest.mark.parametrize("batch", [1, 3])
def test_products_have_their_shape(device: TorchDevice, dtype: str, batch: int) -> None:
    found = device.work(product(dtype, batch))()
    assert found.shape == ((64, 48) if batch == 1 else (batch, 64, 48))
    assert found.abs().max() > 0


def test_fp8_is_scaled(device: TorchDevice) -> None:
    found = device.work(product("fp8"))()
    assert (found.shape, found.dtype) == ((64, 48), torch.bfloat16)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_gives_three_gradients(device: TorchDevice, causal: bool) -> None:
    assert device.work(attention(causal=causal))().shape == (1, 4, 32, 16)
    gradients = device.work(attention(causal=causal, backward=True))()
    assert [gradient.shape for gradient in gradients] == [(1, 4, 32, 16)] * 3


@pytest.mark.parametrize("form", ["", "elementwise", "norm", "softmax", "activation"])
def test_passes_move_their_bytes(device: TorchDevice, form: str) -> None:
    found = device.work(a_pass(form))()
    arrays = 3 if form in ("", "elementwise") else 2
    assert found.numel() * 2 * arrays == 3 * 2**20


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (product("fp8", batch=2), "no batched product of fp8"),
        (attention(form="flash-3"), "no attention kernel flash-3"),
        (attention(keys=64, causal=True), "other queries than keys"),
        (a_pass("rope"), "no single kernel for a pass of form rope"),
        (a_pass("norm", nbytes=50_000), "no whole rows"),
    ],
)
def test_what_pytorch_has_no_kernel_for_is_told(device: TorchDevice, case: Case, reason: str) -> None:
    with pytest.raises(NotMeasuredError, match=reason):
        device.work(case)


def test_copies_copy(device: TorchDevice) -> None:
    assert device.copy("pageable", "device", 4096)().numel() == 4096
