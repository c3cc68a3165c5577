"""One combination of model, plan and batch, with what follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.context import Context
from clustersim.workload.document_lengths import SeqLens
from clustersim.workload.model import Model
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import Dtype, Recipe, find_recipe
from clustersim.workload.schedule import PlacedSchedule, Schedule, is_path, read_table
from clustersim.workload.schedule.limits import LIMITS

__all__ = ["Case"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """What a user asked for, not yet known to be legal.

    Parameters
    ----------
    model : Model
    plan : ParallelPlan
    global_batch, micro_batch : int
        sequences of a step; of one pass through a replica
    seq_len : int
        tokens of a sequence
    dtype : str
        name of a recipe of number formats
    num_devices : int, optional
        GPUs that the plan should fill
    seq_lens : str or Sequence[int]
        how long the documents of a sequence are
    seq_seed : int
        of their drawing
    """

    model: Model
    plan: ParallelPlan
    global_batch: int
    micro_batch: int
    seq_len: int
    dtype: str | Recipe
    num_devices: int | None = None
    seq_lens: SeqLens = "fixed"
    seq_seed: int = 0

    @property
    def ranks_per_replica(self) -> int:
        """tp · cp · pp."""
        return self.plan.tp * self.plan.cp * self.plan.pp

    @property
    def context(self) -> Context:
        """How a sequence is spread over the ranks of cp, for the first of them."""
        plan = self.plan
        ulysses = {"ulysses": plan.cp, "hybrid": plan.ulysses or 1}.get(plan.context, 1)
        return Context(ranks=plan.cp, method=plan.context, ulysses=ulysses)

    @property
    def in_time_steps(self) -> bool:
        """Stages wait for each other's messages at the end of each time step."""
        plan = self.plan
        return plan.time_steps and plan.pp > 1 and self.num_virtual > 1 and plan.schedule in (None, "interleaved")

    @property
    def num_virtual(self) -> int:
        """Chunks a stage: vpp as given, else the only number that the schedule takes, else 1."""
        if self.plan.vpp is not None:
            return self.plan.vpp
        schedule = self.plan.schedule
        if isinstance(schedule, PlacedSchedule):
            return schedule.num_virtual or 1
        if not isinstance(schedule, str):
            return 1
        if schedule not in LIMITS:
            return read_table(schedule).num_virtual or 1 if is_path(schedule) else 1
        least, most = LIMITS[schedule].num_virtual
        return least if most == least else 1

    @property
    def gradient_dtype(self) -> Dtype:
        """As asked for; else the recipe's, or that of the weights where offloaded gradients become fp32 on the way."""
        recipe = find_recipe(self.dtype)
        return self.plan.gradient_dtype or (recipe.gradients if self.plan.offload is None else recipe.weights)

    @property
    def offload(self) -> OffloadPolicy | None:
        """The policy as it works here."""
        if self.plan.offload is None:
            return None
        tokens = self.micro_batch * self.seq_len // self.plan.cp
        return self.plan.offload.fitted(clip=self.plan.clip, tokens=tokens)

    @property
    def num_virtual_stages(self) -> int:
        """pp · vpp."""
        return self.plan.pp * self.num_virtual

    @property
    def sequence_parallel(self) -> bool:
        """As asked for, else with tp > 1; of no effect without."""
        return self.plan.tp > 1 and self.plan.sequence_parallel is not False

    @property
    def schedule(self) -> str | Schedule:
        """As asked for, else by the number of chunks."""
        if self.plan.schedule is not None:
            return self.plan.schedule
        return "interleaved" if self.num_virtual > 1 else "1f1b"

    @property
    def replicas(self) -> int:
        """dp as given, else what fills the devices; 1 when neither is known."""
        if self.plan.dp is not None:
            return self.plan.dp
        return 1 if self.num_devices is None else self.num_devices // self.ranks_per_replica

    @property
    def holders(self) -> tuple[int, ...]:
        """Ranks that hold the same dense weights, dp · cp, and those that hold the same experts where that is another
        number, dp · cp · tp / (ep · etp)."""
        dense, each = self.replicas * self.plan.cp, self.plan.ep * (self.plan.etp or 1)
        ranks = dense * self.plan.tp
        other = self.model.experts is not None and ranks % each == 0 and ranks // each != dense
        return (dense, ranks // each) if other else (dense,)

    @property
    def num_micro_batches(self) -> int:
        """Of one replica and step, rounded down."""
        return self.global_batch // (self.replicas * self.micro_batch)
