"""An output as a DataFrame: as of one fixed epoch, or its changes from an epoch on.

    driver      asks which epoch is sealed, and keeps it readable: a *hold*, on all workers
    driver      a partition for each worker
    executor    takes its partition from its worker, piece by piece

A worker has those rows of an output that came out on it. What one has once, another may have -1 times: an
input lets a row and its removal come in wherever they arrive. Where some worker has rows less than 0 times,
partitions are therefore shares instead of workers: each task takes, from all workers, those rows whose hash
is its own, and adds up. Otherwise, and that is nearly always, nothing needs to be added up.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceReader, InputPartition

from timely.client.installed import Workers
from timely.client.pieces import Held, OutputSlice, extent_of, hold_everywhere, pieces
from timely.client.reading import FlowOutput
from timely.client.session import Flow
from timely.client.tables import summed
from timely.errors import MisuseError
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.source.columns import arrow_form, as_batches, check_asked, repeated, spark_form
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
    "place_name",
    "plan_of",
    "read_partition",
]


@dataclass(frozen=True)
class ReadPlan:
    """What a DataFrame over an output is: which output, where, as of which epoch.

    `epoch` -1: before the first one. `starting` says of changes from where on, by a number or a word, and of
    the collection that it is meant.
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
    """What rows have to fulfil."""
    origin: str = ""
    """Where the output began that was there when this was made: an epoch is one of that."""

    @property
    def are_changes(self) -> bool:
        """Whether it is the changes, and not the collection."""
        return self.starting != COLLECTION


class OutputPartition(InputPartition):
    """What one task reads: everything that some workers have, or their share of it. With `epoch`, the rows of
    a collection are shown as changes that come in that one.
    """

    def __init__(self, at: Whereabouts, wanted: OutputSlice, epoch: int | None = None) -> None:
        super().__init__((at.addresses, wanted.part))
        self.at = at
        self.wanted = wanted
        self.epoch = epoch


def plan_of(options: SourceOptions) -> ReadPlan:
    """What the options ask for, as it is now; from now on it is kept. Raises what is wrong with them."""
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
            place_name(options),
            starting,
            chosen if isinstance(chosen, int) else _sealed(flow, output),
            spark_form(output.schema, options.columns, starting != COLLECTION),
            options.hold_seconds,
            options.timeout_seconds,
            options.conditions(output.schema),
        )
        if plan.are_changes:  # of a stream it is its checkpoint that says from where
            there = hold_everywhere(workers, Progress(plan.dataflow, plan.output, keep_from=0, extent=True))
        else:
            there = _hold(workers, plan, plan.epoch + 1)
        return replace(plan, origin=there.origin)


def place_name(options: SourceOptions) -> str:
    """By which name workers know the place of a reader: that of its query, or one that nobody else has."""
    return f"spark/{options.query or uuid.uuid4().hex}"


def _sealed(flow: Flow, output: FlowOutput) -> int:
    """The last epoch that somebody has sealed, or that is complete anyway."""
    return max(flow.epoch, output.complete_before_capped()) - 1


def _hold(workers: Workers, plan: ReadPlan, first: int) -> Held:
    """Keep changes from `first` on; `ForgottenError` if some are gone."""
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
    """Raise `MisuseError` if the output is of another dataflow than when the DataFrame was made: it would be
    read as of the epoch with the same number, which is another one.
    """
    if there.origin != plan.origin:
        raise MisuseError(
            f"output {plan.output!r} of dataflow {plan.dataflow} was installed anew since this DataFrame was "
            f"made as of epoch {plan.epoch}, which is not that epoch of the new one: make the DataFrame, or "
            "the view, anew"
        )


class OutputReader(DataSourceReader):
    """Plans the partitions of one query, on the driver, and reads them, in tasks."""

    def __init__(self, plan: ReadPlan, asked: T.StructType) -> None:
        check_asked(plan.form, asked)
        if plan.starting in (LATEST, SNAPSHOT):
            raise MisuseError(
                f"the option 'startingEpoch' is {plan.starting!r}, which is for streams: give a number, or "
                "'earliest'"
            )
        self.plan = plan
        self.form = asked

    def partitions(self) -> Sequence[InputPartition]:
        """One for each worker; all as of the same epoch, once that is complete."""
        plan = self.plan
        with plainly(), workers_at(plan.at) as workers:
            start = plan.starting if isinstance(plan.starting, int) else -1
            # Before anything is held there: of another dataflow that would be for nobody, or be refused for
            # a reason that is none.
            there = hold_everywhere(workers, Progress(plan.dataflow, plan.output, keep_from=0, extent=True))
            _check_same(plan, there)
            if plan.starting == EARLIEST:
                start = there.kept
            _hold(workers, plan, start if plan.are_changes else plan.epoch + 1)
            return partitions_of(workers, plan.at, self._slice(start, there.origins))

    def _slice(self, start: int, origins: tuple[str, ...]) -> OutputSlice:
        plan = self.plan
        names = list(self.form.names)
        # A collection's multiplicities are not shown, but rows come as often as they say.
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
        """The batches of one partition."""
        assert isinstance(partition, OutputPartition)
        return read_partition(partition, self.form)


def partitions_of(workers: Workers, at: Whereabouts, wanted: OutputSlice) -> list[InputPartition]:
    """A partition for each worker, once the epochs are complete there; or, where rows of one have to be added
    up with those of others, for each share.
    """
    extents = extent_of(workers, wanted)
    if any(extent.is_negative for extent in extents):
        return [
            OutputPartition(at, replace(wanted, part=part, parts=workers.count))
            for part in range(workers.count)
        ]
    return [
        OutputPartition(at.only(address), wanted.only(worker)) for worker, address in enumerate(at.addresses)
    ]


def read_partition(partition: OutputPartition, form: T.StructType) -> Iterator[pa.RecordBatch]:
    """All batches of one partition, in the columns `form`."""
    wanted, exact = partition.wanted, arrow_form(form)
    with plainly(), workers_at(partition.at) as workers:
        tables: Iterator[pa.Table] = itertools.chain.from_iterable(
            pieces(workers, worker, wanted) for worker in range(workers.count)
        )
        if wanted.parts > 1:
            tables = iter([summed(pa.concat_tables(tables))])
        for table in tables:
            for rows in _shown(table, partition, form.names):
                yield from as_batches(rows, exact)


def _shown(table: pa.Table, partition: OutputPartition, names: Sequence[str]) -> Iterator[pa.Table]:
    """Changes as they are; rows of a collection as often as they are there, or as changes of one epoch."""
    if partition.wanted.start >= 0:
        return iter([table])
    if partition.epoch is None:
        return repeated(table.drop_columns([DIFF]), int64s_of(table.column(DIFF)))
    epochs = np.full(table.num_rows, partition.epoch, dtype=np.int64)
    return iter([table.append_column(EPOCH, int64_array(epochs)).select(list(names))])
