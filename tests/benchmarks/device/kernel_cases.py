"""Which kernels are worth measuring: a sweep of usual shapes, or those of one's own jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.job import Job
from clustersim.workload.number_format import FORMATS
from clustersim.workload.op import Compute

__all__ = ["ATTENTION_FORMS", "Case", "cases_of", "usual_cases"]

ATTENTION_FORMS = ("", "flash-2", "cudnn")
"""What PyTorch picks by itself, which stands for the usual kernel, and two of its back ends by name."""

_HIDDEN = (1024, 2048, 4096, 8192)
_ROWS = (128, 512, 2048, 8192)
_EXPERTS = 8
_LENGTHS = (1024, 2048, 4096, 8192, 16384)
_HEAD_DIMS = (64, 128)
_TOKEN_HEADS = 16 * 16384
_PASSES = ("", "norm", "softmax", "activation")
_PASS_NBYTES = tuple(3 * 2**power for power in (18, 20, 22, 24, 26, 28))
_OF_PRODUCTS_ONLY = ("fp8", "mxfp8", "nvfp4", "tf32")
_FULL, _HALF, _NEAR = 1.0, 0.5, 0.01
"""Share of all pairs of queries and keys without a mask and under a causal one, and how near a kernel's must be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A kernel to be measured.

    Parameters
    ----------
    kernel : Kernel
        one launch of it
    causal : bool
        of attention: no query sees a later key
    """

    kernel: Kernel
    causal: bool = False


def usual_cases(dtypes: Sequence[str]) -> Iterator[Case]:
    """Products of layers, attention forward and backward, and passes over memory, of each dtype that has them.

    Products are (rows × h)·(h × h), (h × 4h) and (4h × h) for h from 1,024 to 8,192, and groups of eight for experts.
    Attention has 16 heads and 16,384 tokens, in sequences of 1,024 to 16,384. Passes move 0.8 MB to 0.8 GB.
    """
    for dtype in dtypes:
        for hidden in _HIDDEN:
            for n, k in ((hidden, hidden), (4 * hidden, hidden), (hidden, 4 * hidden)):
                yield from (Case(kernel=_product(dtype, m, n, k)) for m in _ROWS)
        yield from (Case(kernel=_product(dtype, m, 4096, 4096, batch=_EXPERTS)) for m in _ROWS)
    for dtype in (dtype for dtype in dtypes if dtype in ("fp16", "bf16")):
        yield from _attention(dtype)
    for dtype in (dtype for dtype in dtypes if dtype not in _OF_PRODUCTS_ONLY):
        for form in _PASSES:
            for nbytes in _PASS_NBYTES:
                yield Case(kernel=Kernel(kind="memory", dtype=dtype, flops=0, nbytes=nbytes, form=form))


def cases_of(job: Job) -> tuple[list[Case], list[str]]:
    """Each kernel that a job launches, once, and what was left out and why."""
    cases: dict[Case, None] = {}
    left_out: dict[str, None] = {}
    ops = (op for program in job.programs for op in program.arrays().ops if isinstance(op, Compute))
    for kernel in (replace(kernel, count=1) for op in ops for kernel in op.kernels):
        masked = kernel.kind == "attention" and _share(kernel)
        if kernel.kind != "memory" and not (kernel.m and kernel.n and kernel.k):
            left_out[f"{kernel.kind} of {kernel.flops:,} FLOP: it has no shape"] = None
        elif masked and min(abs(masked - share) for share in (_FULL, _HALF)) > _NEAR:
            left_out[f"attention over {kernel.m} x {kernel.n} tokens, heads of {kernel.k}: neither a full nor a causal "
                     f"square, or value heads of another width"] = None  # fmt: skip
        else:
            cases[Case(kernel=kernel, causal=bool(masked) and abs(masked - _HALF) <= _NEAR)] = None
    return list(cases), list(left_out)


def _share(kernel: Kernel) -> float:
    """FLOP of an attention kernel over those of all pairs: four a column and pair forward, ten backward."""
    return kernel.flops / ((10 if kernel.backward else 4) * kernel.batch * kernel.m * kernel.n * kernel.k)


def _product(dtype: str, m: int, n: int, k: int, batch: int = 1) -> Kernel:
    """Operands in ``dtype``, the result in 16 bits or in the operands' where these are wider."""
    form, written = FORMATS[dtype], max(2, FORMATS[dtype].nbytes(64) // 64)
    nbytes = form.nbytes(batch * (m * k + k * n)) + written * batch * m * n
    return Kernel(
        kind="gemm", dtype=dtype, flops=2 * batch * m * n * k, nbytes=nbytes, m=m, n=n, k=k, batch=batch
    )  # fmt: skip


def _attention(dtype: str) -> Iterator[Case]:
    for s in _LENGTHS:
        for d in _HEAD_DIMS:
            for causal, backward, form in (
                (causal, backward, form) for causal in (True, False) for backward in (False, True)
                for form in ATTENTION_FORMS
            ):  # fmt: skip
                batch = _TOKEN_HEADS // s
                kernel = Kernel(
                    kind="attention",
                    dtype=dtype,
                    flops=(10 if backward else 4) * batch * s * s * d // (1 + causal),
                    nbytes=(1 + backward) * 4 * FORMATS[dtype].nbytes(batch * s * d),
                    m=s,
                    n=s,
                    k=d,
                    batch=batch,
                    form=form,
                    backward=backward,
                )
                yield Case(kernel=kernel, causal=causal)
