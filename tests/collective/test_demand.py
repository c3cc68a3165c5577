"""Bytes in HBM, from the buffers a member touches and the bytes it stages."""

import numpy as np

from clustersim.collective.demand import flows_on_busiest_link, handed_over, memory_traffic
from clustersim.collective.direct import direct
from clustersim.collective.ring import ring
from clustersim.collective.traffic import GroupShape, Phase

NODE = GroupShape(node=np.zeros(4, dtype=np.int64))
BLOCK = 1000
WHOLE = 4 * BLOCK


def hbm(algorithm, kind, shape=NODE):
    return algorithm(kind, WHOLE, shape).memory_nbytes.tolist()


def test_ring_all_reduce_counts_each_step():
    """The textbook count, step by step.

    Of each of 3 + 3 blocks received: written by the sender, read, and read with the own input (reducing) or written
    to the output (gathering). Beside that the first block sent is read and the block reduced last is written.
    """
    assert hbm(ring, "all_reduce") == [(6 * 3 + 2) * BLOCK] * 4


def test_one_pass_costs_half():
    assert hbm(ring, "all_gather") == hbm(ring, "reduce_scatter") == [(3 * 3 + 2) * BLOCK] * 4


def test_the_root_of_a_broadcast_only_reads():
    assert hbm(ring, "broadcast") == [WHOLE] + [3 * WHOLE] * 3


def test_the_first_of_a_reducing_chain_only_reads():
    assert hbm(ring, "reduce") == [4 * WHOLE, WHOLE, 3 * WHOLE, 3 * WHOLE]


def test_what_leaves_the_node_is_staged_at_the_sender_too():
    apart = GroupShape(node=np.arange(4))
    assert hbm(direct, "all_to_all") == [2 * WHOLE + 2 * 3 * BLOCK] * 4
    assert hbm(direct, "all_to_all", apart) == [2 * WHOLE + 4 * 3 * BLOCK] * 4


def test_gather_and_scatter_touch_one_block_but_at_the_root():
    assert hbm(direct, "gather") == [WHOLE + BLOCK + 2 * 3 * BLOCK, BLOCK, BLOCK, BLOCK]
    assert hbm(direct, "scatter") == [WHOLE + BLOCK] + [BLOCK + 2 * BLOCK] * 3


def test_flows_are_counted_where_most_meet():
    def phase(source, destination):
        ends = np.array(source), np.array(destination)
        return Phase(source=ends[0], destination=ends[1], nbytes=np.ones_like(ends[0]), num_steps=1)

    assert flows_on_busiest_link(()) == 1
    assert flows_on_busiest_link([phase([0, 1, 2], [3, 3, 3]), phase([0, 0], [1, 2])]) == 3


def stream(source, destination, tree):
    a, b, number = (np.array(numbers) for numbers in (source, destination, tree))
    return Phase(source=a, destination=b, nbytes=np.full(len(a), BLOCK), num_steps=1, tree=number)


def test_a_sum_is_staged_where_its_parts_come_from_and_a_copy_where_it_arrives():
    """Members 1 to 3 send 1000 B each, added up for member 0, which sends the sum, copied for them."""
    buffers = memory_traffic("all_reduce", 0, NODE, [stream([1, 2, 3], [0, 0, 0], [0, 0, 0])])
    assert buffers.tolist() == [0, 2 * BLOCK, 2 * BLOCK, 2 * BLOCK]
    buffers = memory_traffic("all_reduce", 0, NODE, [stream([0, 0, 0], [1, 2, 3], [0, 0, 0])])
    assert buffers.tolist() == [0, 2 * BLOCK, 2 * BLOCK, 2 * BLOCK]


def test_between_nodes_a_stream_is_staged_for_the_nics_once_at_each_end():
    apart = GroupShape(node=np.arange(4))
    up, down = stream([1, 2, 3], [0, 0, 0], [5, 5, 5]), stream([0, 0, 0], [1, 2, 3], [6, 6, 6])
    assert memory_traffic("all_reduce", 0, apart, [up]).tolist() == [2 * BLOCK] * 4
    assert memory_traffic("all_reduce", 0, apart, [up, down]).tolist() == [4 * BLOCK] * 4


def test_streams_count_once_on_a_link():
    assert flows_on_busiest_link([stream([0, 0, 0], [1, 2, 3], [4, 4, 4])]) == 1
    assert flows_on_busiest_link([stream([0, 0, 0], [1, 2, 3], [4, 4, 5])]) == 2


def test_the_last_step_hands_nothing_over():
    steps = [stream([0, 1], [1, 0], [0, 1]), stream([0], [2], [0])]
    assert handed_over(steps, 3).tolist() == [2 * BLOCK, 2 * BLOCK, 0]
    assert handed_over([], 3).tolist() == [0, 0, 0]
