"""What a row of measured attention is counted as: its passes, values narrower than keys, and windows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clustersim.hardware.kernel import Kernel
from clustersim.library import load_part
from clustersim.readers import kernel_rows
from clustersim.study.kernels.calibration import errors
from clustersim.study.kernels.launches import launches_of
from clustersim.study.kernels.measured import place

MEASUREMENTS = Path(__file__).parents[3] / "workloads" / "measurements" / "kernels.csv"

SHAPE = "batch,seq_len,heads,kv_heads,head_dim,causal,pass,value_dim,window"
HEADER = f"id,hardware,op,dtype,m,n,k,{SHAPE},metric,value,unit,notes"


def launches(folder: Path, shape: str) -> tuple[Kernel, ...]:
    """Of one row: its columns as in SHAPE."""
    path = folder / "kernels.csv"
    path.write_text(f"{HEADER}\none,B200,attention,bf16,,,,{shape},time,1,ms,cuDNN\n")
    found = launches_of(kernel_rows.read(path)[0][0], "attention", "bf16")
    assert not isinstance(found, str)
    return found


def test_both_passes_are_the_forward_and_the_backward(tmp_path: Path) -> None:
    forward = launches(tmp_path, "2,4096,64,8,128,1,fwd,,")
    backward = launches(tmp_path, "2,4096,64,8,128,1,bwd,,")
    assert launches(tmp_path, "2,4096,64,8,128,1,fwd+bwd,,") == (*forward, *backward)
    assert [one.backward for one in (*forward, *backward)] == [False, True]
    assert backward[0].flops / forward[0].flops == 2.5


def test_two_products_read_keys_and_values_forward_and_three_of_five_keys_backward(tmp_path: Path) -> None:
    pairs = 4096 * 4096 // 2
    (forward,) = launches(tmp_path, "1,4096,128,128,192,1,fwd,128,")
    (backward,) = launches(tmp_path, "1,4096,128,128,192,1,bwd,128,")
    assert forward.flops == 128 * pairs * 2 * (192 + 128)
    assert backward.flops == 128 * pairs * 2 * (3 * 192 + 2 * 128)
    rows = 2 * 4096 * 128 * (2 * 192 + 2 * 128)
    assert forward.nbytes == rows + 4 * 4096 * 128


def test_queries_meet_the_keys_of_their_window(tmp_path: Path) -> None:
    (whole,) = launches(tmp_path, "1,4096,64,8,64,1,fwd,,")
    (window,) = launches(tmp_path, "1,4096,64,8,64,1,fwd,,1024")
    (wider,) = launches(tmp_path, "1,4096,64,8,64,1,fwd,,8192")
    pairs = sum(min(query, 1024) for query in range(4096))
    assert window.flops / (2 * 64 * 2 * 64) == pytest.approx(pairs, rel=1e-3)
    assert wider == whole


def test_in_fp8_gradients_are_of_the_whole_triangle(tmp_path: Path) -> None:
    """Measured: on GB200 a window of 1,024 takes 43.9 ms with 32,768 tokens and 11.3 with 16,384."""
    rows = {row.id: row for row in kernel_rows.read(MEASUREMENTS)[0]}
    placed, _ = place([rows[f"cudnnfe-fp8-GB200-gpt-oss-{one}"] for one in ("bwd-c1-32768", "bwd-c1-16384")])
    long, short = placed
    assert long.seconds / short.seconds > 3.8
    assert long.kernel.flops == 4 * short.kernel.flops
    assert (long.kernel.dtype, long.kernel.form, long.kernel.n) == ("fp8", "cudnn-fp8", 32768)
    (forward,), _ = place([rows["cudnnfe-fp8-GB200-gpt-oss-fwd-c1-32768"]])
    assert forward.kernel.n == 1024


@pytest.mark.parametrize("hardware", ["GB200", "GB300"])
@pytest.mark.parametrize(("units", "num_rows"), [("fp8", 40), ("mxfp8", 50)])
def test_cards_say_what_cudnn_takes_in_fp8(hardware: str, units: str, num_rows: int) -> None:
    """Dense and latent attention and windows of 128 and 1,024: half within 9 %, all within 35 %."""
    rows = [row for row in kernel_rows.read(MEASUREMENTS)[0] if row.id.startswith(f"cudnnfe-{units}-{hardware}-")]
    placed, unused = place(rows)
    assert (len(placed), unused) == (num_rows, [])
    assert {(row.kernel.dtype, row.kernel.form) for row in placed} == {(units, f"cudnn-{units}")}
    wrong = np.abs(errors(placed))
    assert np.median(wrong) < 0.09
    assert wrong.max() < 0.35


@pytest.mark.parametrize("hardware", ["GB200", "GB300"])
def test_cards_say_what_cudnn_takes_on_them(hardware: str) -> None:
    """Dense and latent attention and a window, forward and backward: half within 8 %, all within 25 %."""
    rows = [row for row in kernel_rows.read(MEASUREMENTS)[0] if row.id.startswith(f"cudnnfe-{hardware}-")]
    placed, unused = place(rows)
    assert (len(placed), unused) == (40, [])
    assert all(row.gpu.kernels == load_part("kernels", hardware.lower()) for row in placed)
    wrong = np.abs(errors(placed))
    assert np.median(wrong) < 0.08
    assert wrong.max() < 0.25
