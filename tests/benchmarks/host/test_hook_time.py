"""What ZeRO-3 takes its host around a layer is measured where DeepSpeed is there."""

from __future__ import annotations

import pytest

pytest.importorskip("deepspeed", reason="DeepSpeed is not installed")

from hook_time import GptLayer, LlamaLayer, hook_time


def test_more_modules_take_their_host_longer() -> None:
    gpt, llama = (hook_time(layer, layers=2, repeats=10) for layer in (GptLayer, LlamaLayer))
    assert 0 < gpt.forward < llama.forward < 2e-2
    assert 0 < gpt.backward < llama.backward < 2e-2
