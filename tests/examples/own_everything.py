"""A topology, a collective, a schedule and a program of one's own, each passed where one of the library's would be."""

import networkx as nx
import numpy as np

import clustersim as cs
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.workload.layers.kernels import gemm, memory_pass
from clustersim.workload.schedule import Unit


def ring_of_switches(num_switches: int, num_gpus: int) -> cs.Topology:
    """Any graph is a cluster; GPUs of one ``node`` reach each other without the network."""
    graph: nx.Graph[str] = nx.Graph()
    for s in range(num_switches):
        graph.add_node(f"switch{s}", role="switch")
        graph.add_edge(f"switch{s}", f"switch{(s + 1) % num_switches}", bandwidth="400 Gb/s", latency="2 us")
        for g in range(num_gpus):
            graph.add_node(f"gpu{s}.{g}", role="gpu", node=s)
            graph.add_edge(f"gpu{s}.{g}", f"switch{s}", bandwidth="100 GB/s", latency="1 us")
    return cs.Topology.from_networkx(graph, gpu=cs.load_part("gpu", "gh200"), cpu=cs.load_part("cpu", "grace"))


def recursive_doubling(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """All-reduce of 2^k members in k rounds: two whose numbers differ in one bit swap their sums and add them up."""
    me, whole = np.arange(shape.num_members), np.full(shape.num_members, nbytes)
    bits = [1 << k for k in range(len(me).bit_length() - 1)]
    swaps = tuple(Phase(source=me, destination=me ^ bit, nbytes=whole, num_steps=1) for bit in bits)
    return Traffic(algorithm="doubling", phases=swaps, pipelined=False, memory_nbytes=3 * len(swaps) * whole)


def one_at_a_time(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    """A micro-batch goes all the way before the next one starts: the least memory and the largest bubble."""
    order = [unit for j in range(num_micro_batches) for unit in (Unit("F", j), Unit("B", j))]
    return [order] * num_stages


def parameter_server(num_ranks: int, nbytes: int) -> cs.Job:
    """All compute gradients, rank 0 sums them, updates the weights and hands them out: one program a role."""
    work = cs.Compute(name="gradients", kind="mlp", kernels=(gemm(8192, 8192, 8192, dtype="bf16"),))
    push = cs.Collective(name="push", kind="reduce", slot="all", nbytes=nbytes, axis="dp")
    update = memory_pass(7 * nbytes, dtype="fp32")  # gradient, weight and two moments in, all but the first out
    adam = cs.Compute(name="adam", kind="adam", category="optimizer", kernels=(update,))
    pull = cs.Collective(name="pull", kind="broadcast", slot="all", nbytes=nbytes, axis="dp")
    server, worker = cs.Program("server"), cs.Program("worker")
    for role in (server, worker):
        first = role.add(work, stream="compute")
        summed = role.add(push, stream="network", after=[first])
        updated = role.add(adam, stream="compute", after=[summed]) if role is server else summed
        role.carry(role.add(pull, stream="network", after=[updated]), first)  # the next step needs the new weights
    ranks = np.arange(num_ranks)
    group = cs.GroupFamily(name="all", members=ranks[None], slots=("all",))
    return cs.Job(name="parameter server", programs=(server, worker), program_of=ranks.clip(max=1), families=(group,))


if __name__ == "__main__":
    cluster, plan = ring_of_switches(4, 4), cs.ParallelPlan(tp=2, pp=2, dp=4, schedule=one_at_a_time)
    step = cs.training_step(cs.load_model("gpt2"), plan, global_batch=32, micro_batch=1, seq_len=1024)
    print(cs.summary(cs.simulate(cluster, step, algorithms={"all_reduce": recursive_doubling})))
    print(cs.summary(cs.simulate(cluster, parameter_server(16, nbytes=2**28), steps=2)))
