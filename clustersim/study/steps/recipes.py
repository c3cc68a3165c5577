"""The recipes of sources, and what a row is with them."""

from __future__ import annotations

from typing import Any

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.automodel_recipes import AUTOMODEL_RECIPES
from clustersim.study.steps.bridge_recipes import BRIDGE_RECIPES
from clustersim.study.steps.expert_recipes import EXPERT_RECIPES
from clustersim.study.steps.gpt_recipes import GPT_RECIPES
from clustersim.study.steps.graph_recipes import GRAPH_RECIPES
from clustersim.study.steps.nemo_recipes import NEMO_RECIPES
from clustersim.study.steps.offload_recipes import OFFLOAD_RECIPES
from clustersim.study.steps.primus_recipes import PRIMUS_RECIPES
from clustersim.study.steps.recipe import LAYOUT, Recipe
from clustersim.study.steps.titan_recipes import TITAN_RECIPES

__all__ = ["recipe_of"]


def recipe_of(row: StepRow) -> tuple[StepRow, dict[str, Any], tuple[str, ...], bool]:
    """A row with what its source says elsewhere.

    Returns
    -------
    row : StepRow
    switches : dict[str, Any]
        of the plan
    assumptions : tuple[str, ...]
    published : bool
        whether layout and batch are the row's own
    """
    switches: dict[str, Any] = {}
    assumptions = []
    published = True
    for recipe in _RECIPES:
        if not recipe.fits(row):
            continue
        row, given = recipe.filled(row)
        switches = dict(recipe.switches) | switches
        told = ", ".join(f"{name} {value}" for name, value in (given | dict(recipe.switches)).items())
        if told:
            assumptions.append(f"recipe: {told}; from {recipe.origin}")
        published = published and not set(given) & set(LAYOUT)
    return row, switches, tuple(assumptions), published


_RECIPES: tuple[Recipe, ...] = (
    Recipe(
        words=("llm-foundry",),
        switches={"reduce_dtype": "bf16"},
        origin="mosaicml/composer until pull request 2628 of October 2023: DEFAULT mixed precision names no format to "
        "reduce in, so that FSDP takes that of the weights, as PURE does",
    ),
    Recipe(
        words=("llm-foundry", "pure mixed precision"),
        switches={"recompute_early_stop": False},
        origin="mosaicml/llm-foundry scripts/train/benchmarking until pull request 543: PyTorch 1.13.1, whose "
        "checkpoints run to their end",
    ),
    Recipe(
        words=("bigscience tr11", "a100"),
        switches={"wait_kernels": True},
        origin="bigscience-workshop/bigscience train/tr11-176B-ml/tr11-176B-ml.slurm, CUDA_LAUNCH_BLOCKING=1 against "
        "hangs, and chronicles-prequel.md: 320 GPUs always hang without",
    ),
    Recipe(
        words=("the llama 3 herd of models",),
        columns={"vpp": 8, "micro_batch": 1},
        origin="arXiv 2407.21783, section 3.3.2, an interleaved schedule; assumed: chunks of one, 126 layers with "
        "embedding and head are 128 = 16 x 8",
    ),
    Recipe(
        words=("ep overlap on",),
        switches={"schedule": "interleaved-overlapped"},
        origin="Megatron-LM overlap_moe_expert_parallel_comm: exchanges beside another micro-batch",
    ),
    Recipe(
        words=("nanogpt",),
        without=("llm.c",),
        switches={"update_kernels": "fused"},
        origin="karpathy/nanoGPT model.py, configure_optimizers: AdamW with fused=True on CUDA",
    ),
    *BRIDGE_RECIPES,
    *TITAN_RECIPES,
    *PRIMUS_RECIPES,
    *EXPERT_RECIPES,
    *GPT_RECIPES,
    *GRAPH_RECIPES,
    *OFFLOAD_RECIPES,
    *AUTOMODEL_RECIPES,
    *NEMO_RECIPES,
)
"""In the order in which they fill."""
