"""How the products of a rank's experts are launched."""

from __future__ import annotations

from typing import Literal

__all__ = ["ExpertKernels"]

ExpertKernels = Literal["grouped", "each"]
"""``grouped``: one kernel for all experts of a rank. ``each``: a kernel for each, from a loop, on several streams; what
is quantised is quantised expert by expert.

Transformer Engine, ``transformer_engine/pytorch/csrc/extensions/cast.cpp`` (``split_quantize`` has a kernel for all of
them with delayed scaling and, with its transforms, NVFP4) and ``common/gemm/cublaslt_gemm.cu``
(``nvte_multi_tensor_gemm``: a product an expert on four streams of cuBLAS).
"""
