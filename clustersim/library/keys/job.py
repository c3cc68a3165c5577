"""The settings of every job: what is trained, on what, in which batches and for how long."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.key import MUST, TOPOLOGY, Key
from clustersim.library.values import Name, Whole, Word
from clustersim.workload.precision import RECIPES

__all__ = ["JOB_KEYS"]

JOB_KEYS: Mapping[str, Key] = {
    "model": Key(Name("a model card or a Hugging Face config.json"), "what is trained", otherwise=MUST),
    "topology": Key(Name("a topology card or a .toml file"), "what it runs on", otherwise=MUST),
    "nodes": Key(Whole(1, 2**17), "number of nodes", otherwise=TOPOLOGY),
    "global_batch": Key(Whole(1, 2**24), "sequences of one step", otherwise=MUST, unit="sequence", usual=256),
    "micro_batch": Key(Whole(1, 2**20), "sequences of one pass through a replica", 1, unit="sequence"),
    "seq_len": Key(Whole(1, 2**24), "tokens of a sequence", otherwise=MUST, unit="token", usual=4096),
    "seq_lens": Key(
        Name("fixed, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA or a .csv of lengths"),
        "tokens of the documents that are packed into sequences; fixed: one each",
        "fixed",
    ),
    "seq_seed": Key(Whole(0, 2**32 - 1), "which lengths are drawn", 0),
    "dtype": Key(Word(tuple(RECIPES)), "recipe of number formats", "bf16"),
    "profile": Key(
        Name("a profile card or a .toml file"), "framework whose switches the plan takes where it does not set them"
    ),
    "steps": Key(
        Whole(1, 10**5),
        "optimizer steps, back to back; left open, 3 of a job with offloading and two rounds where its steps differ",
        1,
    ),
    "seed": Key(Whole(0, 2**32 - 1), "what all random draws follow from", 0),
}
"""By dotted name."""
