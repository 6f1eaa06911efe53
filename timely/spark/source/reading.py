"""An output as a DataFrame: as of one fixed epoch, or its changes from an epoch on.

    driver      asks which epoch is sealed, and keeps it readable by a *hold* on all workers
    driver      plans a partition for each worker
    executor    reads its partition from its worker, piece by piece

A worker has the rows of an output that it has computed. A row that one worker has once another may have -1
times, since a row and its removal may enter an input on different workers. If some worker has rows a negative
number of times, partitions are therefore shares and not workers: each task reads, from all workers, the rows
whose hash is its own, and sums them up. Otherwise, which is nearly always, no sums are needed.

In a durable cluster partitions are shares, too, since a row may be on another worker after a restart; and
each task asks whether to sum up. So a task that Spark runs again reads the same, whatever other tasks have
read before. A restart in the middle of a task lets the task begin again by itself, unless it has passed on
too many rows: then Spark runs it again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceReader, InputPartition

from timely.client.installed import Workers
from timely.client.pieces import Held, OutputSlice, extent_of, hold_everywhere, pieces_of_all
from timely.client.reading import FlowOutput
from timely.client.remote.workers import RemoteWorkers
from timely.client.session import Flow
from timely.client.tables import summed
from timely.errors import MisuseError, RestartedError
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.source.columns import arrow_form, as_batches, check_requested, repeated, spark_form
from timely.spark.source.connecting import Whereabouts, flow_of, workers_at
from timely.spark.source.options import COLLECTION, EARLIEST, LATEST, SEALED, SNAPSHOT, SourceOptions
from timely.spark.source.plainly import plainly
from timely.spark.source.where import Conditions
from timely.wire.arrow import int64_array, int64s_of
from timely.wire.requests import Progress

__all__ = [
    "OutputPartition",
    "OutputReader",
    "ReadPlan",
    "partitions_of",
    "plan_of",
    "position_name",
    "read_partition",
    "split",
]

_WAITING_BYTES_MAX = 64 << 20
"""How many bytes a task holds back, so that it can begin again if a durable cluster starts again."""


@dataclass(frozen=True)
class ReadPlan:
    """The definition of a DataFrame over an output: the output, its workers, the epoch.

    `epoch` -1: before the first one. `starting`: for changes, the epoch from which on to read, as a number or
    a word; for the collection, `COLLECTION`.
    """

    at: Whereabouts
    dataflow: int
    output: str
    reader: str
    starting: int | str
    epoch: int
    form: T.StructType
    hold_seconds: float
    timeout_seconds: float
    filters: Conditions = field(default_factory=list)
    """The conditions that rows have to fulfil."""
    origin: str = ""
    """The origin of the output when this was made: `epoch` is an epoch of that output."""

    @property
    def are_changes(self) -> bool:
        """True for the changes, False for the collection."""
        return self.starting != COLLECTION


class OutputPartition(InputPartition):
    """The rows that one task reads: those of a slice of an output on some workers. With `epoch`, the rows of
    a collection are read as changes in that epoch. `has_sums`: equal rows of several workers are summed up.
    """

    def __init__(
        self, at: Whereabouts, output_slice: OutputSlice, epoch: int | None = None, has_sums: bool = False
    ) -> None:
        super().__init__((at.addresses, output_slice.part))
        self.at = at
        self.output_slice = output_slice
        self.epoch = epoch
        self.has_sums = has_sums


def plan_of(options: SourceOptions) -> ReadPlan:
    """Return the plan for the options as of now, and hold its epoch on the workers. Raises errors in the
    options.
    """
    with flow_of(options) as (at, workers, flow):
        output = flow.output(options.text("output", "components"))
        if output.schema is None:
            raise MisuseError(
                f"output {output.name!r} carries Python records, which have no columns: make it a collection"
            )
        starting = options.epoch("startingEpoch", COLLECTION, (COLLECTION, EARLIEST, LATEST, SNAPSHOT))
        chosen = options.epoch("epoch", SEALED, (SEALED,))
        plan = ReadPlan(
            at,
            flow.index,
            output.name,
            position_name(options),
            starting,
            chosen if isinstance(chosen, int) else _sealed(flow, output),
            spark_form(output.schema, options.columns, starting != COLLECTION),
            options.hold_seconds,
            options.timeout_seconds,
            options.conditions(output.schema),
        )
        if plan.are_changes:  # hold nothing yet: a stream begins where its checkpoint says
            there = hold_everywhere(workers, Progress(plan.dataflow, plan.output, keep_from=0, extent=True))
        else:
            there = _hold(workers, plan, plan.epoch + 1)
        return replace(plan, origin=there.origin)


def position_name(options: SourceOptions) -> str:
    """Return the name of a reader's position on the workers: that of its query, or a unique one."""
    return f"spark/{options.query or uuid.uuid4().hex}"


def _sealed(flow: Flow, output: FlowOutput) -> int:
    """Return the last epoch that a client has sealed, or that is complete anyway."""
    return max(flow.epoch, output.complete_before_capped()) - 1


def _hold(workers: Workers, plan: ReadPlan, first: int) -> Held:
    """Hold changes from `first` on; raises `ForgottenError` if some are gone."""
    return hold_everywhere(
        workers,
        Progress(
            plan.dataflow,
            plan.output,
            reader=plan.reader,
            keep_from=first,
            keep_seconds=plan.hold_seconds,
            extent=True,
        ),
    )


def _check_same(plan: ReadPlan, there: Held) -> None:
    """Raise `MisuseError` if the output belongs to another dataflow than when the DataFrame was made: the
    epoch with the same number is another one there.
    """
    if there.origin != plan.origin:
        raise MisuseError(
            f"output {plan.output!r} of dataflow {plan.dataflow} was installed anew since this DataFrame was "
            f"made as of epoch {plan.epoch}, which is not that epoch of the new one: make the DataFrame, or "
            "the view, anew"
        )


class OutputReader(DataSourceReader):
    """Plans the partitions of one query, on the driver, and reads them, in tasks."""

    def __init__(self, plan: ReadPlan, requested: T.StructType) -> None:
        check_requested(plan.form, requested)
        if plan.starting in (LATEST, SNAPSHOT):
            raise MisuseError(
                f"the option 'startingEpoch' is {plan.starting!r}, which is for streams: give a number, or "
                "'earliest'"
            )
        self.plan = plan
        self.form = requested

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each worker (or share), all as of the same epoch, once that is complete."""
        plan = self.plan
        with plainly(), workers_at(plan.at) as workers:
            start = plan.starting if isinstance(plan.starting, int) else -1
            # Check before holding anything: on another dataflow the hold would be useless, or refused for a
            # misleading reason.
            there = hold_everywhere(workers, Progress(plan.dataflow, plan.output, keep_from=0, extent=True))
            _check_same(plan, there)
            if plan.starting == EARLIEST:
                start = there.kept
            _hold(workers, plan, start if plan.are_changes else plan.epoch + 1)
            return partitions_of(workers, plan.at, self._slice(start, there.origins))

    def _slice(self, start: int, origins: tuple[str, ...]) -> OutputSlice:
        plan = self.plan
        names = list(self.form.names)
        # A DataFrame of a collection has no column of multiplicities, but repeats rows by them.
        columns = names if plan.are_changes else [*names, DIFF]
        return OutputSlice(
            plan.dataflow,
            plan.output,
            plan.reader,
            start,
            plan.epoch + 1,
            tuple(columns),
            plan.filters,
            timeout_seconds=plan.timeout_seconds,
            origins=origins,
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the batches of one partition."""
        assert isinstance(partition, OutputPartition)
        return read_partition(partition, self.form)


def partitions_of(workers: Workers, at: Whereabouts, output_slice: OutputSlice) -> list[InputPartition]:
    """Return a partition for each worker, once the epochs are complete there; or, if rows of several workers
    have to be summed up, or may come to lie elsewhere, for each share.
    """
    extents = extent_of(workers, output_slice)
    return split(at, output_slice, has_sums=any(extent.is_negative for extent in extents))


def split(
    at: Whereabouts, output_slice: OutputSlice, epoch: int | None = None, *, has_sums: bool = False
) -> list[InputPartition]:
    """Return a partition for each worker; for each share if it has to sum up rows of several workers, or if
    the cluster is durable. With `epoch`, see `OutputPartition`.
    """
    if has_sums or at.incarnation:
        parts = len(at.addresses)
        shares = (replace(output_slice, part=part, parts=parts) for part in range(parts))
        return [OutputPartition(at, share, epoch, has_sums) for share in shares]
    return [
        OutputPartition(at.only(address), output_slice.only(worker), epoch)
        for worker, address in enumerate(at.addresses)
    ]


def read_partition(partition: OutputPartition, form: T.StructType) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one partition, with the columns `form`."""
    exact = arrow_form(form)
    with plainly(), workers_at(partition.at) as workers:
        for table in _from_one_incarnation(workers, partition):
            for rows in _shown(table, partition, form.names):
                yield from as_batches(rows, exact)


def _from_one_incarnation(workers: RemoteWorkers, partition: OutputPartition) -> Iterator[pa.Table]:
    """Yield the pieces of all workers, summed up if that is needed. If a durable cluster starts again
    meanwhile, begin again; raise `RestartedError` if pieces have left already: of a durable cluster, none do
    before there are `_WAITING_BYTES_MAX`, or all.
    """
    is_durable = workers.incarnation > 0
    while True:
        waiting: list[pa.Table] = []
        size_bytes = 0
        has_begun = not is_durable
        try:
            for table in _tables(workers, partition):
                waiting.append(table)
                size_bytes += table.nbytes
                if has_begun or size_bytes > _WAITING_BYTES_MAX:
                    has_begun = True
                    yield from waiting
                    waiting.clear()
        except RestartedError:
            if has_begun:
                raise
        else:
            yield from waiting
            return


def _tables(workers: RemoteWorkers, partition: OutputPartition) -> Iterator[pa.Table]:
    """Return the pieces of all workers; or their sum, if rows of several workers have to be summed up. Where
    rows lie may have changed since the partitions were planned, if the cluster is durable.
    """
    output_slice, has_sums, members = partition.output_slice, partition.has_sums, workers.members
    if members.incarnation and partition.epoch is None and output_slice.start < 0:
        has_sums = any(extent.is_negative for extent in extent_of(workers, output_slice))
    tables = pieces_of_all(workers, output_slice)
    if workers.members != members:
        raise RestartedError("the cluster has started again before the first piece was read")
    return iter([summed(pa.concat_tables(tables))]) if has_sums else tables


def _shown(table: pa.Table, partition: OutputPartition, names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield changes as they are; rows of a collection repeated by their multiplicity, or as changes of
    one epoch.
    """
    if partition.output_slice.start >= 0:
        return iter([table])
    if partition.epoch is None:
        return repeated(table.drop_columns([DIFF]), int64s_of(table.column(DIFF)))
    epochs = np.full(table.num_rows, partition.epoch, dtype=np.int64)
    return iter([table.append_column(EPOCH, int64_array(epochs)).select(list(names))])
