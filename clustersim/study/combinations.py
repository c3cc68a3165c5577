"""What goes with what: every pair of settings tried on a small model, and the answers as a table.

``python -m clustersim.study.combinations > docs/combinations.md`` writes the page; a test holds it to what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from clustersim.engine.simulate import simulate
from clustersim.faults import BadInput
from clustersim.library.topologies import load_topology
from clustersim.topology.topology import Topology
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.experts import Experts
from clustersim.workload.training_step import training_step

__all__ = ["SETTINGS", "Answer", "page", "pairs"]

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "schedule gpipe": {"pp": 2, "schedule": "gpipe"},
    "schedule 1f1b": {"pp": 2, "schedule": "1f1b"},
    "schedule interleaved": {"pp": 2, "schedule": "interleaved", "vpp": 2},
    "schedule interleaved-zb": {"pp": 2, "schedule": "interleaved-zb", "vpp": 2},
    "schedule breadth-first": {"pp": 2, "schedule": "breadth-first", "vpp": 2},
    "schedule zb-h1": {"pp": 2, "schedule": "zb-h1"},
    "schedule zb-v": {"pp": 2, "schedule": "zb-v"},
    "schedule dualpipe": {"pp": 2, "schedule": "dualpipe"},
    "schedule dualpipev": {"pp": 2, "schedule": "dualpipev"},
    "zero 1": {"zero": 1},
    "zero 2": {"zero": 2},
    "zero 3": {"zero": 3},
    "fsdp": {"fsdp": True},
    "fsdp, reshard false": {"fsdp": True, "reshard": False},
    "fsdp, hsdp 2": {"fsdp": True, "hsdp": 2},
    "zero 3, zeropp": {"zero": 3, "zeropp": ("qwz", "hpz", "qgz"), "zeropp_ranks": 2},
    "sync_every 2": {"sync_every": 2},
    "recompute selective": {"recompute": "selective", "recompute_modules": ("core", "norm", "activation")},
    "recompute full": {"recompute": "full"},
    "tp 2": {"tp": 2},
    "tp 2, sequence_parallel false": {"tp": 2, "sequence_parallel": False},
    "tp 2, tp_overlap ring": {"tp": 2, "tp_overlap": "ring"},
    "cp 2": {"cp": 2},
    "cp 2, context ulysses": {"cp": 2, "context": "ulysses"},
    "ep 2": {"ep": 2},
    "ep 2, overlap_dispatch 2": {"ep": 2, "overlap_dispatch": 2},
    "attention unfused": {"attention": "unfused"},
    "dropout": {"dropout": True},
    "optimizer muon": {"optimizer": "muon"},
    "dtype fp8": {"dtype": "fp8"},
}
"""Settings by the name that the page gives them: words of a plan, and dtype."""

_DENSE = Model(
    name="small",
    num_layers=4,
    hidden=256,
    num_heads=8,
    num_kv_heads=4,
    head_dim=32,
    ffn_hidden=512,
    gated_mlp=True,
    vocab=1024,
    max_seq_len=128,
    norm="rmsnorm",
    positions="rope",
    tied_embeddings=False,
)
_EXPERTS = replace(_DENSE, name="small-experts", experts=Experts(num_experts=4, top_k=2, ffn_hidden=512))
_BATCH: Mapping[str, Any] = {"global_batch": 32, "micro_batch": 1, "seq_len": 128}


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What became of two settings together.

    Parameters
    ----------
    first, second : str
        of :data:`SETTINGS`; the same twice for a setting by itself
    refused : tuple[str, ...]
        ``key rule`` of each fault
    idle : tuple[str, ...]
        what the run said to have no effect
    """

    first: str
    second: str
    refused: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


def pairs(settings: Mapping[str, Mapping[str, Any]] = SETTINGS) -> Iterator[Answer]:
    """Each setting by itself, and each two that do not give one word two values; what is legal is simulated."""
    cluster = load_topology("dgx-h100", nodes=2)
    for name in settings:
        yield _tried(cluster, name, name, settings[name])
    for one, other in combinations(settings, 2):
        both = settings[one].keys() & settings[other].keys()
        if all(settings[one][word] == settings[other][word] for word in both):
            yield _tried(cluster, one, other, {**settings[one], **settings[other]})


def page(answers: Sequence[Answer]) -> str:
    """The answers in Markdown: a triangle of signs, and the rules behind the refusals."""
    names = list(dict.fromkeys(answer.first for answer in answers if answer.first == answer.second))
    found = {(answer.first, answer.second): answer for answer in answers}
    rules = {rules: f"r{n}" for n, rules in enumerate(dict.fromkeys(a.refused for a in answers if a.refused), 1)}
    idle = {said: f"e{n}" for n, said in enumerate(dict.fromkeys(a.idle for a in answers if a.idle), 1)}

    def sign(one: str, other: str) -> str:
        answer = found.get((one, other))
        if answer is None:
            return ""
        return rules.get(answer.refused) or idle.get(answer.idle) or "+"

    head = [f"| | {' | '.join(str(n) for n in range(1, len(names) + 1))} |", "|---" * (len(names) + 1) + "|"]
    rows = [
        f"| {n} {name} | {' | '.join(sign(other, name) for other in names[:n])} |" + " |" * (len(names) - n)
        for n, name in enumerate(names, 1)
    ]
    return "\n".join(
        [
            "# What goes with what",
            "",
            "Written by `python -m clustersim.study.combinations`. Each pair was tried on a small model, one",
            "with experts where a setting is about them, and 16 GPUs; what is legal was simulated. On the diagonal",
            "stands each setting by itself.",
            "",
            "`+` runs; `r` and a number: refused, by the rule below; `e` and a number: runs, and says that a setting",
            "has no effect; empty: the two give one word different values.",
            "",
            *head,
            *rows,
            "",
            "## Refused",
            "",
            *(f"- **{mark}** {'; '.join(text)}" for text, mark in rules.items()),
            "",
            "## Without effect",
            "",
            *(f"- **{mark}** {'; '.join(text)}" for text, mark in idle.items()),
            "",
        ]
    )


def _tried(cluster: Topology, first: str, second: str, words: Mapping[str, Any]) -> Answer:
    plan = {word: value for word, value in words.items() if word != "dtype"}
    model = _EXPERTS if "ep" in plan else _DENSE
    try:
        job = training_step(
            model,
            ParallelPlan(**plan),
            num_devices=cluster.num_devices,
            dtype=words.get("dtype", "bf16"),
            **_BATCH,
        )
    except BadInput as error:
        refused = sorted({f"`{fault.key}` {fault.rule}" for fault in error.faults})
        return Answer(first=first, second=second, refused=tuple(refused))
    run = simulate(cluster, job)
    idle = tuple(note for note in run.warnings if ": no effect" in note)
    return Answer(first=first, second=second, idle=idle)


if __name__ == "__main__":
    print(page(list(pairs())), end="")
