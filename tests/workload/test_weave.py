"""Two fragments woven: what one waits for passes beside a span of the other."""

from __future__ import annotations

from clustersim.workload.op import Collective, Compute
from clustersim.workload.program import Program


def fragment(name: str, *spans: tuple[int, bool]) -> Program:
    """Spans of so many kernels, each but the first after a collective of the one before."""
    program, last = Program(name), None
    for number, (kernels, sends) in enumerate(spans):
        for k in range(kernels):
            op = Compute(name=f"{name}{number}.{k}", kind="mlp", kernels=())
            number_of_op = program.add(op, stream="compute", after=() if last is None or k else (last,))
        if sends:
            sent = Collective(name=f"{name}{number} sent", kind="all_to_all", slot="ep", nbytes=1, axis="ep")
            last = program.add(sent, stream="ep", after=(number_of_op,))
    return program


def names(program: Program) -> list[str]:
    arrays = program.arrays()
    return [arrays.ops[k].name for k in arrays.op]


def test_spans_alternate_and_the_last_fragment_goes_first() -> None:
    woven = Program("woven")
    forward = fragment("F", (2, True), (1, True), (2, False))
    backward = fragment("B", (1, True), (2, True), (1, False))
    places = woven.weave([forward, backward], micro_batches=[3, 1])
    expected = ["B0.0", "B0 sent", "F0.0", "F0.1", "F0 sent", "B1.0", "B1.1", "B1 sent", "F1.0", "F1 sent"]
    assert names(woven) == [*expected, "B2.0", "F2.0", "F2.1"]
    for part, place, micro_batch in zip((forward, backward), places, (3, 1), strict=True):
        assert [names(woven)[k] for k in place] == names(part)
        assert {int(woven.arrays().micro_batch[k]) for k in place} == {micro_batch}


def test_spans_of_unequal_number_are_spread_evenly() -> None:
    woven = Program("woven")
    woven.weave([fragment("F", *[(1, True)] * 4), fragment("B", (1, True), (1, False))], micro_batches=[0, 0])
    assert [n for n in names(woven) if "sent" not in n] == ["F0.0", "B0.0", "F1.0", "F2.0", "B1.0", "F3.0"]


def test_one_fragment_is_simply_appended() -> None:
    woven, one = Program("woven"), fragment("F", (2, True), (1, False))
    woven.weave([one], micro_batches=[5])
    assert names(woven) == names(one)


def test_a_fragment_that_grew_is_copied_as_it_now_is() -> None:
    whole, part = Program("whole"), fragment("F", (1, False))
    whole.extend(part, micro_batch=0)
    part.add(Compute(name="more", kind="mlp", kernels=()), stream="compute")
    whole.extend(part, micro_batch=1)
    assert names(whole) == ["F0.0", "F0.0", "more"]
    assert whole.arrays().micro_batch.tolist() == [0, 1, 1]
