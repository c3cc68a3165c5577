"""Documents: where their lengths come from, how they fill sequences, what they change in a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.workload.documents import documents
from clustersim.workload.model import Model
from clustersim.workload.op import Compute

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=8)


@given(LENGTHS, st.integers(1, 6), st.integers(1, 60))
def test_sequences_are_full_and_documents_follow_one_another(lengths: list[int], count: int, seq_len: int) -> None:
    packed = documents(lengths, num_sequences=count, seq_len=seq_len)
    assert packed is not None
    assert [sum(sequence) for sequence in packed.sequences] == [seq_len] * count
    ends: set[int] = set()
    upto = 0
    while upto < count * seq_len:
        upto += lengths[len(ends) % len(lengths)]
        ends.add(upto)
    cuts = ends | {n * seq_len for n in range(1, count + 1)}
    found: set[int] = set()
    upto = 0
    for length in (length for sequence in packed.sequences for length in sequence):
        upto += length
        found.add(upto)
    assert found == {n for n in cuts if n <= count * seq_len}


def test_draws_follow_from_the_seed() -> None:
    def drawn(word: str, seed: int) -> tuple[tuple[int, ...], ...]:
        packed = documents(word, num_sequences=64, seq_len=4096, seed=seed)
        assert packed is not None
        return packed.sequences

    assert drawn("lognormal:500:1", 1) == drawn("lognormal:500:1", 1) != drawn("lognormal:500:1", 2)
    inside = [n for sequence in drawn("uniform:100:200", 0) for n in sequence[1:-1]]
    assert (min(inside), max(inside)) == (100, 200)
    inside = sorted(n for sequence in drawn("lognormal:200:0.5", 0) for n in sequence[1:-1])
    assert inside[len(inside) // 2] == pytest.approx(200, rel=0.1)
    assert documents("fixed", num_sequences=1, seq_len=8) is None


def test_replicas_take_turns() -> None:
    packed = documents([4, 3, 1], num_sequences=8, seq_len=4)
    assert packed is not None
    taken = [packed.of(replica=r, replicas=2, micro_batch=j, size=2) for j in range(2) for r in range(2)]
    assert [sequence for batch in taken for sequence in batch] == list(packed.sequences)


@pytest.mark.parametrize(
    "bad",
    ["uniform:5", "uniform:9:5", "uniform:0:5", "lognormal:100", "lognormal:0:1", "lognormal:100:-1", "normal:1:2"],
)
def test_words_that_mean_nothing_are_refused(bad: str) -> None:
    with pytest.raises(BadInput) as error:
        documents(bad, num_sequences=1, seq_len=8)
    (fault,) = error.value.faults
    assert (fault.key, fault.value) == ("seq_lens", bad)
    assert documents(str(fault.nearest), num_sequences=1, seq_len=8) is None or fault.nearest != "fixed"


@pytest.mark.parametrize("bad", [None, 5, 1.5, [0], [64, "64"], [True], []])
def test_what_is_no_length_is_refused(llama: Model, bad: Any) -> None:
    with pytest.raises(BadInput) as error:
        step(llama, seq_lens=bad)
    assert all(fault.key.startswith("seq_lens") for fault in error.value.faults)


def test_lengths_as_an_array(llama: Model) -> None:
    array, plain = (step(llama, seq_lens=lens) for lens in (np.array([64, 32, 32]), [64, 32, 32]))
    assert [attention(array, rank) for rank in range(2)] == [attention(plain, rank) for rank in range(2)]
    assert attention(array, 0) < attention(step(llama, seq_lens="fixed"), 0)


def test_a_file_of_lengths(tmp_path: Path) -> None:
    path = tmp_path / "lengths.csv"
    path.write_text("5\n3\n")
    packed = documents(str(path), num_sequences=2, seq_len=8)
    assert packed is not None
    assert packed.sequences == ((5, 3), (5, 3))
    path.write_text("5\n0\n-1\n")
    with pytest.raises(BadInput) as error:
        documents(str(path), num_sequences=2, seq_len=8)
    assert [fault.key for fault in error.value.faults] == ["seq_lens[1]", "seq_lens[2]"]
    for text in ("five\n", ""):
        path.write_text(text)
        with pytest.raises(BadInput):
            documents(str(path), num_sequences=2, seq_len=8)
    with pytest.raises(BadInput):
        documents(str(tmp_path / "none.csv"), num_sequences=2, seq_len=8)


def step(model: Model, *, seq_lens: Any, **plan: Any) -> cs.Job:
    return cs.training_step(
        model, cs.ParallelPlan(**plan), global_batch=4, micro_batch=1, seq_len=128, num_devices=2, seq_lens=seq_lens
    )


def attention(job: cs.Job, rank: int) -> int:
    """FLOP of the attention kernels of a rank."""
    arrays = job.programs[job.program_of[rank]].arrays()
    ops = [arrays.ops[index] for index in arrays.op.tolist()]
    kernels = [kernel for op in ops if isinstance(op, Compute) for kernel in op.kernels]
    return sum(kernel.flops for kernel in kernels if kernel.kind == "attention")


def test_attention_costs_the_squares_of_documents(llama: Model) -> None:
    """Sequences of 128; 64 + 64; 32 + 32 + 64; 128: replica 0 has the first and the third."""
    lengths = [128, 64, 64, 32, 32, 64, 128]
    whole, packed = (step(llama, seq_lens=lens) for lens in ("fixed", lengths))
    one = attention(whole, 0) // 2
    assert attention(packed, 0) * 128**2 == one * (128**2 + 32**2 + 32**2 + 64**2)
    assert attention(packed, 1) * 128**2 == one * (64**2 + 64**2 + 128**2)
    matmul = whole.ledger.model_flops - 4 * one * 6 // 7
    assert packed.ledger.model_flops == matmul + (attention(packed, 0) + attention(packed, 1)) * 6 // 7


def test_documents_as_long_as_sequences_change_nothing(llama: Model) -> None:
    fixed, packed = (step(llama, seq_lens=lens, pp=2) for lens in ("fixed", [128]))
    assert [p.arrays().digest for p in packed.programs] == [p.arrays().digest for p in fixed.programs]
    assert packed.ledger == fixed.ledger


def test_each_micro_batch_has_its_own_work(llama: Model) -> None:
    job = step(llama, seq_lens=[128, 64, 64, 32, 96, 128], pp=2)
    arrays = job.programs[0].arrays()
    flops = [0] * 4
    for index, micro_batch, phase in zip(arrays.op, arrays.micro_batch, arrays.phase, strict=True):
        op = arrays.ops[index]
        if isinstance(op, Compute) and micro_batch >= 0 and arrays.phases[phase] == "forward":
            flops[micro_batch] += sum(kernel.flops for kernel in op.kernels if kernel.kind == "attention")
    squares = [128**2, 2 * 64**2, 32**2 + 96**2, 128**2]
    assert [f * squares[0] for f in flops] == [flops[0] * s for s in squares]


def test_what_documents_cannot_be_told_to_is_refused(llama: Model) -> None:
    with pytest.raises(BadInput, match="mamba"):
        cs.training_step(
            cs.load_model("mamba2-2.7b"),
            cs.ParallelPlan(),
            global_batch=1,
            micro_batch=1,
            seq_len=128,
            num_devices=1,
            seq_lens=[64],
        )
    with pytest.raises(BadInput, match="seq_lens"):
        step(llama, seq_lens="uniform:1")


def test_notes_tell_what_unfolds(llama: Model) -> None:
    assert any("each is simulated" in note for note in step(llama, seq_lens=[64]).notes)
    assert any("no effect" in note for note in step(llama, seq_lens=[64], attention="unfused").notes)
