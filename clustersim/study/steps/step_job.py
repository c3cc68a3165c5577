"""A measured step as a job that can be simulated; equal jobs are equal objects."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clustersim.readers.step_rows import StepRow
from clustersim.study.profile import Profile
from clustersim.study.steps.job_card import CardJob, card_job
from clustersim.study.steps.layout import LAYER_TIME, layout_of
from clustersim.study.steps.machine import Machine, attention_kernels, machine_of
from clustersim.study.steps.number_format import dtype_of
from clustersim.study.steps.packed import documents_of
from clustersim.study.steps.possible import check_numbers
from clustersim.study.steps.recipes import recipe_of
from clustersim.study.steps.refusal import REASONS, RefusedError
from clustersim.study.steps.shape import model_of
from clustersim.study.steps.software import profile_of
from clustersim.workload.job import Job
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.training_step import training_step

__all__ = ["MeasuredStep", "StepJob", "place"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepJob:
    """What is simulated.

    Parameters
    ----------
    machine : Machine
    model : Model
    plan : ParallelPlan
        with dp
    global_batch, micro_batch, seq_len : int
    dtype : str
    seq_lens : str or tuple[int, ...]
        of the documents that sequences are packed with
    one_layer : bool
        only the passes of one layer are timed
    """

    machine: Machine
    model: Model
    plan: ParallelPlan
    global_batch: int
    micro_batch: int
    seq_len: int
    dtype: str
    seq_lens: str | tuple[int, ...] = "fixed"
    one_layer: bool = False

    @property
    def num_ranks(self) -> int:
        """dp · tp · cp · pp."""
        return (self.plan.dp or 1) * self.plan.tp * self.plan.cp * self.plan.pp

    @property
    def num_micro_batches(self) -> int:
        """Of a replica and step."""
        return self.global_batch // (self.micro_batch * (self.plan.dp or 1))

    def with_micro_batches(self, number: int) -> StepJob:
        """The same job with another batch."""
        return replace(self, global_batch=number * self.micro_batch * (self.plan.dp or 1))

    def job(self) -> Job:
        """Programs and groups.

        Raises
        ------
        BadInput
            when the plan is not legal
        """
        return training_step(
            self.model,
            self.plan,
            global_batch=self.global_batch,
            micro_batch=self.micro_batch,
            seq_len=self.seq_len,
            dtype=self.dtype,
            num_devices=self.num_ranks,
            devices=self.machine.devices(self.num_ranks),
            seq_lens=self.seq_lens,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredStep:
    """A row and the job that stands for it.

    Parameters
    ----------
    row : StepRow
    job : StepJob
    profile : Profile
    assumptions : tuple[str, ...]
        as ``kind: text``
    known_network : bool
        whether the network between nodes is known, or not used
    published : bool
        whether degrees and batch are the row's own
    """

    row: StepRow
    job: StepJob
    profile: Profile
    assumptions: tuple[str, ...]
    known_network: bool
    published: bool = True


def place(row: StepRow) -> MeasuredStep:
    """The job of a row.

    Raises
    ------
    RefusedError
        with a reason of the closed list
    """
    profile, by_profile = profile_of(row)
    told = card_job(row)
    if told is not None:
        return _of_card(row, told, profile)
    check_numbers(row)
    own = row
    row, switches, by_recipe, published = recipe_of(row)
    try:
        layout = layout_of(row, profile, switches, attention_kernels(row))
    except RefusedError as refusal:
        if refusal.reason in (REASONS["layout"], REASONS["batch"]):
            model_of(row, row.seq_len or 1)  # a shape that is not known is told before a layout that is not
        raise
    machine, by_machine, known = machine_of(row, layout.num_ranks)
    dtype, by_dtype = dtype_of(row, profile)
    model, by_model = model_of(row, layout.seq_len)
    seq_lens, by_documents = documents_of(row)
    job = StepJob(
        machine=machine,
        model=model,
        plan=layout.plan,
        global_batch=layout.global_batch,
        micro_batch=layout.micro_batch,
        seq_len=layout.seq_len,
        dtype=dtype,
        seq_lens=seq_lens,
        one_layer=row.metric == LAYER_TIME,
    )
    return MeasuredStep(
        row=own,
        job=job,
        profile=profile,
        assumptions=(*by_machine, *by_profile, *by_recipe, *by_model, *by_dtype, *by_documents, *layout.assumptions),
        known_network=known,
        published=published and layout.published,
    )


def _of_card(row: StepRow, told: CardJob, profile: Profile) -> MeasuredStep:
    """The job of a card, which says all: no profile gives anything."""
    case = told.case
    machine = Machine(card=told.topology, nodes=told.nodes, ranks_per_node=told.num_ranks // told.nodes)
    job = StepJob(
        machine=machine,
        model=case.model,
        plan=case.plan,
        global_batch=case.global_batch,
        micro_batch=case.micro_batch,
        seq_len=case.seq_len,
        dtype=str(case.dtype),
    )
    return MeasuredStep(
        row=row,
        job=job,
        profile=profile,
        assumptions=(f"card: {told.topology} stands for {row.hardware}", *told.assumptions),
        known_network=told.nodes == 1,
    )
