"""What the recipes of GPT-3 models turn on that those of later models leave out, and how one is laid out."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe

__all__ = ["GPT_RECIPES"]

GPT_RECIPES: tuple[Recipe, ...] = (
    Recipe(
        words=("megatron-core", "gpt"),
        without=("gpt-oss", "gpt_oss"),
        switches={"dropout": True},
        origin="Megatron-LM megatron/training/arguments.py: --attention-dropout and --hidden-dropout 0.1 unless they "
        "are given, which examples/gpt3/train_gpt3_175b_distributed.sh does not",
    ),
    Recipe(
        words=("megatron-core", "strong scaling"),
        columns={"tp": 8, "pp": 12, "vpp": 8},
        origin="assumed from Megatron-LM README, r0.8.0: its weak scaling keeps 48 replicas, on 4,608 GPUs "
        "48 of 96, with which its strong scaling begins; messages between stages pass beside kernels, which takes "
        "interleaving, to single layers as NeMo's 175b_fp8_performance.yaml has it",
    ),
    Recipe(
        words=("nemo 24", "gpt3"),
        switches={"dropout": True},
        origin="NeMo-Framework-Launcher launcher_scripts/conf/training/gpt3, 20b_fp8_performance.yaml and "
        "175b_fp8_performance.yaml: hidden_dropout 0.1; attention_dropout is left to NeMo, whose "
        "megatron_gpt_model.py takes 0.1",
    ),
    *(
        Recipe(
            words=("readme table, january 2021", f"gpt {size}"),
            columns={"micro_batch": micro},
            origin="Megatron-LM examples/academic_paper_scripts/sc21/run_table_1.sh, the same model, GPUs, degrees and "
            "batch three months later; assumed for January",
        )
        for size, micro in (("1.7b", 16), ("18b", 8), ("39b", 4), ("145b", 2))
    ),
)
