"""A step of a mixture of experts: FLOP, bytes sent and held, by closed forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clustersim.hardware.kernel import Kernel
from clustersim.workload.check import check
from clustersim.workload.exchange import Dispatch, Exchange
from clustersim.workload.job import Job
from clustersim.workload.model import Model
from clustersim.workload.op import Collective, Compute
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.experts import Experts
from clustersim.workload.training_step import training_step

H, S, E, K, F, LAYERS = 256, 128, 8, 2, 512, 4
BATCH = 32
EXPERT = 3 * H * F


@pytest.fixture(scope="module")
def moe(llama: Model) -> Model:
    """Four layers of eight experts, two a token."""
    experts = Experts(num_experts=E, top_k=K, ffn_hidden=F)
    return replace(llama, name="moe-test", num_layers=LAYERS, ffn_hidden=0, vocab=1024, experts=experts)


def step(model: Model, num_devices: int = 8, **plan: Any) -> Job:
    return training_step(
        model,
        ParallelPlan(**plan),
        global_batch=BATCH,
        micro_batch=1,
        seq_len=S,
        num_devices=num_devices,
    )


def kernels(job: Job, program: int = 0) -> Counter[tuple[str, Kernel]]:
    arrays = job.programs[program].arrays()
    counts = np.bincount(arrays.op, minlength=len(arrays.ops)).tolist()
    found: Counter[tuple[str, Kernel]] = Counter()
    for op, count in zip(arrays.ops, counts, strict=True):
        for kernel in op.kernels if isinstance(op, Compute) else ():
            found[op.name, kernel] += count * kernel.count
    return found


PLANS = [
    {},
    {"ep": 8},
    {"ep": 4, "tp": 2},
    {"ep": 2, "tp": 2, "etp": 2},
    {"ep": 4, "pp": 2},
    {"ep": 2, "pp": 2, "schedule": "dualpipe"},
    {"ep": 4, "pp": 2, "schedule": "zb-h1"},
    {"ep": 4, "overlap_dispatch": 3},
    {"ep": 4, "fsdp": True},
    {"ep": 4, "recompute": "full"},
    {"ep": 4, "recompute": "selective", "recompute_modules": ("experts", "activation", "norm")},
    {"ep": 4, "recompute": "selective", "recompute_modules": ("moe", "experts", "activation", "norm")},
    {"ep": 4, "capacity_factor": 1.0},
    {"ep": 4, "token_imbalance": "zipf:1"},
    {"ep": 4, "dispatch": "deepep"},
    {"ep": 4, "dispatch": "hybridep"},
    {"ep": 4, "cp": 2},
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_all_ranks_together_do_what_the_active_parameters_ask_for(
    moe: Model, flops_of: Callable[..., int], plan: dict[str, Any]
) -> None:
    job = step(moe, **plan)
    each = np.array([flops_of(p, lambda op: not op.recomputed) for p in job.programs])
    done = int(each[job.program_of].sum())
    # flash attention computes the scores once more backward: 7 products of s²·d in place of 6, halved by the mask
    attention = BATCH * LAYERS * moe.attention_features * S**2 * 7
    assert done == 6 * moe.matmul_parameters * BATCH * S + attention


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_runs_to_its_end_and_gives_everything_back(
    moe: Model, run_untimed: Callable[[Job], Any], plan: dict[str, Any]
) -> None:
    job = step(moe, **plan)
    assert check(job) == []
    run = run_untimed(job)
    assert run.complete
    assert run.lowest >= 0
    assert not any(run.left.values())


def test_experts_that_are_computed_again_whole_send_their_tokens_again(moe: Model, sent: Callable[..., int]) -> None:
    parts, whole = (
        step(moe, ep=4, recompute="selective", recompute_modules=(module, "activation"))
        for module in ("experts", "moe")
    )
    once = sent(step(moe, ep=4).programs[0], "all_to_all")
    assert sent(parts.programs[0], "all_to_all") == once
    assert sent(whole.programs[0], "all_to_all") == once * 3 // 2


@pytest.mark.parametrize(("ep", "tp", "etp"), [(8, 1, 1), (4, 1, 1), (4, 2, 1), (2, 4, 2), (1, 2, 2)])
def test_experts_are_spread_over_ep_and_etp(moe: Model, ep: int, tp: int, etp: int) -> None:
    job = step(moe, ep=ep, tp=tp, etp=etp)
    held = job.programs[0].resident["gpu/weights"] // 2
    dense = moe.num_parameters - LAYERS * E * EXPERT
    replicated = LAYERS * (2 * H + H * E) + H
    assert held == LAYERS * E * EXPERT // (ep * etp) + (dense - replicated) // tp + replicated


@pytest.mark.parametrize(("ep", "tp"), [(2, 1), (8, 1), (4, 2)])
def test_dispatch_sends_each_tokens_copies(moe: Model, sent: Callable[..., int], ep: int, tp: int) -> None:
    job = step(moe, ep=ep, tp=tp)
    copies = (BATCH * tp // 8) * (S // tp) * K  # of a rank and layer, over all micro-batches
    # there and back, forward and backward
    assert sent(job.programs[0], kind="all_to_all", slot="ep") == 4 * LAYERS * copies * H * 2


def test_the_experts_mesh_is_laid_over_the_same_ranks(moe: Model) -> None:
    families = {f.name: f.members.tolist() for f in step(moe, num_devices=16, tp=2, ep=4, pp=2, zero=1).families}
    # Megatron-Core: etp innermost, then ep, over tp and dp; stages stay what they are
    assert families["ep"] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert families["edp"] == [[0, 4], [1, 5], [2, 6], [3, 7], [8, 12], [9, 13], [10, 14], [11, 15]]
    assert "etp" not in families
    families = {f.name: f.members.tolist() for f in step(moe, tp=2, ep=2, etp=2).families}
    assert families["etp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert families["ep"] == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_gradients_of_experts_are_summed_over_those_that_hold_them(moe: Model, sent: Callable[..., int]) -> None:
    job = step(moe, ep=4, bucket_bytes=2**40)
    assert sent(job.programs[0], slot="edp") == 4 * LAYERS * E * EXPERT // 4
    alone = step(moe, ep=8, bucket_bytes=2**40)
    assert sent(alone.programs[0], slot="edp") == 0


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_capacity_factor_scales_the_rows_of_experts(moe: Model, factor: float) -> None:
    job = step(moe, ep=4, capacity_factor=factor)
    rows = {k.m for (name, k) in kernels(job) if name == "experts forward" and k.kind == "gemm"}
    assert rows == {int(factor * 4 * S * K / E)}
    assert any("dropped" in note for note in job.notes) == (factor < 1)
    assert any("padding" in note for note in job.notes) == (factor > 1)


def test_products_of_all_experts_are_one_launch(moe: Model) -> None:
    launches = kernels(step(moe, ep=2))
    gemms = {k: n for (name, k), n in launches.items() if name == "experts forward" and k.kind == "gemm"}
    assert sorted((k.m, k.n, k.batch) for k in gemms) == [(2 * S * K // E, n, E // 2) for n in (H, 2 * F)]
    assert set(gemms.values()) == {LAYERS * BATCH // 8}


def test_unequal_popularity_keeps_every_token(moe: Model) -> None:
    job = step(moe, ep=4, token_imbalance="zipf:1.2", token_seed=3)
    assert len(job.programs) == 4
    received = []
    for program in range(4):
        gemms = {k: n for (name, k), n in kernels(job, program).items() if name == "experts forward" and k.n == 2 * F}
        received.append(sum(k.flops // (2 * k.n * k.k) * n for k, n in gemms.items()))
    sends = 4 * S * K * LAYERS * BATCH // 8
    assert sum(received) == sends
    assert max(received) > 1.5 * min(received)
    exchange = next(
        op for op in job.programs[0].arrays().ops if isinstance(op, Collective) and op.name == "dispatch tokens"
    )
    assert isinstance(exchange.algorithm, Exchange)
    share = np.array(exchange.algorithm.share)
    assert np.allclose(share.sum(axis=0) * sends / 4, received)


def test_dispatched_tokens_are_kept_for_the_backward_pass(moe: Model, run_untimed: Callable[[Job], Any]) -> None:
    plain = run_untimed(step(moe, ep=4)).peak[0]["gpu/activations"]
    assert moe.experts is not None
    more = replace(moe, experts=replace(moe.experts, top_k=K + 1))
    wider = run_untimed(step(more, ep=4)).peak[0]["gpu/activations"]
    # a copy more of each token: itself, gate and up, their product, a weight of 4 bytes; and its number and weight
    assert wider - plain == LAYERS * S * (2 * (H + 3 * F) + 4 + 8)


def test_quantised_inputs_of_activations_take_half(moe: Model, run_untimed: Callable[[Job], Any]) -> None:
    def peak(**plan: Any) -> int:
        job = training_step(
            moe,
            ParallelPlan(ep=4, **plan),
            global_batch=BATCH,
            micro_batch=1,
            seq_len=S,
            dtype="fp8",
            num_devices=8,
        )
        return int(run_untimed(job).peak[0]["gpu/activations"])

    assert peak() - peak(fp8_activation_input=True) == LAYERS * S * K * 2 * F


def test_experts_computed_again_are_not_kept(moe: Model, run_untimed: Callable[[Job], Any]) -> None:
    def peak(*modules: str) -> int:
        plan = {"recompute": "selective", "recompute_modules": modules} if modules else {}
        return int(run_untimed(step(moe, ep=4, **plan)).peak[0]["gpu/activations"])

    copies = LAYERS * S * K
    assert peak() - peak("activation") == copies * 2 * F
    assert peak() - peak("experts") == copies * 2 * 3 * F
    assert peak("experts") == peak("experts", "activation")


def test_shared_experts_run_beside_the_dispatch(moe: Model) -> None:
    shared = replace(moe, experts=Experts(num_experts=E, top_k=K, ffn_hidden=F, num_shared=1, shared_ffn_hidden=F))

    def waits(overlap: bool) -> bool:
        """Whether the first dispatch waits for the shared experts."""
        arrays = step(shared, ep=4, overlap_shared=overlap).programs[0].arrays()
        names = [arrays.ops[k].name for k in arrays.op]
        first = names.index("all-gather token counts")
        before = {first}
        for a, b in reversed(arrays.edges[arrays.edges[:, 1] <= first].tolist()):
            before |= {a} if b in before else set()
        return "shared experts forward" in {names[k] for k in before}

    assert waits(overlap=False)
    assert not waits(overlap=True)
    assert (
        step(shared, ep=4).programs[0].resident["gpu/weights"] - step(moe, ep=4).programs[0].resident["gpu/weights"]
        == 2 * LAYERS * EXPERT
    )


def test_a_module_that_predicts_a_second_token(moe: Model, flops_of: Callable[..., int], run_untimed: Any) -> None:
    model = replace(moe, mtp=1)
    for plan in ({"ep": 4}, {"ep": 2, "pp": 2}, {"ep": 2, "pp": 2, "schedule": "dualpipe"}):
        job = step(model, **plan)
        assert check(job) == []
        run = run_untimed(job)
        assert run.complete
        assert not any(run.left.values())
        done = sum(flops_of(job.programs[k]) for k in job.program_of)
        flash = BATCH * (LAYERS + 1) * moe.attention_features * S**2
        assert done == job.ledger.model_flops + flash
    embedding = 2 * model.vocab * H
    whole = step(model, ep=4).programs[0].resident["gpu/weights"]
    halves = sum(p.resident["gpu/weights"] for p in step(model, ep=4, pp=2).programs)
    assert halves == whole + embedding  # the last stage has a copy of it


@pytest.mark.parametrize("plan", [{}, {"pp": 2}, {"recompute": "full"}])
def test_a_module_over_tensor_parallel_ranks(
    moe: Model, plan: dict[str, Any], flops_of: Callable[..., int], run_untimed: Any
) -> None:
    model = replace(moe, mtp=1)
    whole, parts = step(model, ep=4, **plan), step(model, ep=4, tp=2, **plan)
    assert check(parts) == []
    run = run_untimed(parts)
    assert run.complete
    assert not any(run.left.values())
    done = [sum(flops_of(job.programs[k]) for k in job.program_of) for job in (whole, parts)]
    assert done[0] == done[1]
    names = {op.name: op.nbytes for p in parts.programs for op in p.arrays().ops if isinstance(op, Collective)}
    stream = 2 * S * H
    assert names["all-gather mtp input"] == names["reduce-scatter mtp input gradient"] == 2 * stream
    assert names["all-gather mtp features"] == names["all-gather mtp output gradient"] == stream


def test_a_repeated_module_is_met_twice_and_held_once(
    moe: Model, flops_of: Callable[..., int], run_untimed: Any
) -> None:
    once, twice = replace(moe, mtp=1, mtp_layout="*E"), replace(moe, mtp=2, mtp_layout="*E", mtp_repeated=True)
    assert once.mtp_parameters == twice.mtp_parameters == replace(twice, mtp_repeated=False).mtp_parameters // 2
    one, two = step(once, ep=4), step(twice, ep=4)
    assert one.programs[0].resident["gpu/weights"] == two.programs[0].resident["gpu/weights"]
    assert 2 * (one.ledger.model_flops - step(moe, ep=4).ledger.model_flops) == (
        two.ledger.model_flops - step(moe, ep=4).ledger.model_flops
    )
    run = run_untimed(two)
    assert run.complete
    assert not any(run.left.values())
    done = sum(flops_of(two.programs[k]) for k in two.program_of)
    assert done == two.ledger.model_flops + BATCH * (LAYERS + 2) * moe.attention_features * S**2


def test_latent_experts_send_and_compute_in_their_own_width(moe: Model, flops_of: Callable[..., int]) -> None:
    assert moe.experts is not None
    latent = replace(moe, experts=replace(moe.experts, latent=H // 4))
    wide, narrow = step(moe, ep=4), step(latent, ep=4)
    arrays = [job.programs[0].arrays() for job in (wide, narrow)]
    sent = [{op.nbytes for op in a.ops if op.name.startswith(("dispatch", "combine"))} for a in arrays]
    assert sent[1] == {nbytes // 4 for nbytes in sent[0]}
    done = sum(flops_of(narrow.programs[k]) for k in narrow.program_of)
    assert done == narrow.ledger.model_flops + BATCH * LAYERS * moe.attention_features * S**2
    assert narrow.programs[0].resident["gpu/weights"] == wide.programs[0].resident["gpu/weights"] - 2 * LAYERS * (
        E // 4 * (EXPERT - EXPERT // 4) - 2 * H * (H // 4)
    )


@pytest.mark.parametrize(
    "plan",
    [{"dispatch": "deepep"}, {"overlap_dispatch": 2}, {"overlap_shared": True}, {"fp8_dispatch": True}],
)
@pytest.mark.parametrize("etp", [1, 2])
def test_how_tokens_are_sent_changes_nothing_where_none_is(moe: Model, plan: dict[str, Any], etp: int) -> None:
    assert moe.experts is not None
    shared = replace(moe, experts=replace(moe.experts, num_shared=1, shared_ffn_hidden=F))
    batch: dict[str, Any] = {"global_batch": 8, "micro_batch": 1, "seq_len": S, "dtype": "fp8"}
    plain, other = (training_step(shared, ParallelPlan(dp=4, etp=etp, **given), **batch) for given in ({}, plan))
    assert any("no effect with ep 1" in note for note in other.notes)
    one, two = plain.programs[0].arrays(), other.programs[0].arrays()
    assert one.ops == two.ops
    for name in ("op", "stream", "edges", "memory"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


def test_hybridep_tells_all_ranks_the_experts_of_every_token(moe: Model) -> None:
    """A byte for each of a rank's tokens, all experts and all ranks, where DeepEP tells counts of 8 bytes an expert."""

    def told(dispatch: Dispatch) -> dict[str, set[float]]:
        arrays = step(moe, ep=4, dispatch=dispatch, launch="modules").programs[0].arrays()
        found: dict[str, set[float]] = {}
        for op in arrays.ops:
            if isinstance(op, Collective) and op.axis == "ep":
                found.setdefault(op.name, set()).add(op.nbytes)
        return found

    one, other = told("deepep"), told("hybridep")
    assert one.pop("all-gather token counts") == {8 * E * 4}
    assert other.pop("all-gather routing maps") == {S * E * 4}
    assert one == other
