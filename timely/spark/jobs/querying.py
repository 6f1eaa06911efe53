"""From the user's query to a dataflow: its inputs, its outputs, and its identity.

    a function of collections       its inputs have the columns of the DataFrames
    a function of a dataflow        declares its inputs; the DataFrames must have their columns
    "module:function"               the same, for a function that `@timely.builder` marks
    collections                     built already, over a `timely.Dataflow`; the DataFrames must fit them, too

Queries are written with `differential`, which nothing in `timely` imports: this module loads the functions
that it needs by their names.
"""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

import timely
from timely.building.builders import Builder, build_dataflow, is_marked, load_builder, load_function
from timely.client.tables import InputForm
from timely.errors import InputClosedError, InternalError, MisuseError, PeerError, TimelyError
from timely.failure import add_note
from timely.limits import (
    LOST_SECONDS_MAX,
    RESUMES_COUNT_MAX,
    SILENCE_SECONDS_DEFAULT,
    VERDICT_SECONDS_MAX,
)
from timely.spark.delivering import TargetFactory
from timely.spark.epochs import DIFF
from timely.spark.errors import SparkLostError
from timely.spark.feeds.change_feed import ChangeFeed, PlainFeed
from timely.spark.once.fed import Fed
from timely.spark.plans.marking import is_of_frames
from timely.spark.plans.planned import query_of_frames
from timely.spark.scheduled.starting import ScheduledCluster
from timely.user_code.call_site import site_of
from timely.wire.requests import Progress

from .columns import SparkForm, fitted_fields, input_fields, nested_types

__all__ = ["Hosted", "Query", "Workplace", "installed", "query_of"]

R = TypeVar("R")

_QUERIES = "differential.queries"

_NOTICED_SECONDS: Final = SILENCE_SECONDS_DEFAULT + LOST_SECONDS_MAX + VERDICT_SECONDS_MAX
"""After so long all workers know that one is lost, and have ended."""
_LOOK_SECONDS: Final = 0.1

_CLAIM: Final = "timely.spark.run"
"""The writer of an append without rows, which only the first job can make."""


class _Described(Protocol):
    inputs: dict[str, pa.Schema]
    outputs: dict[str, pa.Schema]
    identity: str


@dataclass(frozen=True)
class Query:
    """A query that fits its inputs: the builder to install, the columns of each input, and of each output.

    `identity` is the same for the same query in every process; `frames` has the rows of each input, and
    `feeds` those whose rows are changes.
    """

    build: str | Builder
    name: str
    fields: Mapping[str, T.StructType]
    outputs: Mapping[str, pa.Schema]
    identity: str
    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    feeds: Mapping[str, PlainFeed] = field(default_factory=dict)
    wanted: Mapping[str, Mapping[str, pa.DataType]] = field(default_factory=dict)
    """For outputs of a query of DataFrames the types of their columns in Spark."""

    def forms(self) -> dict[str, SparkForm]:
        """Return for each output the converter of its tables to types that Spark has."""
        nested, wanted = nested_types(self.fields), dict(self.wanted)
        unpack = cast(
            "Callable[[bytes], object]", _of_differential("differential.columns.symbols.packing:unpack")
        )
        forms = {}
        for name in self.outputs:
            types = wanted.get(name, {})
            lists = {column: kind for column, kind in types.items() if pa.types.is_nested(kind)}
            forms[name] = SparkForm(name, {**nested, **lists}, unpack, types)
        return forms


def query_of(query: object, inputs: Mapping[str, DataFrame | ChangeFeed], beside: Iterable[str]) -> Query:
    """Return `query` over these inputs, whose columns `beside` determine when and how often rows come.

    Calls the query once, in this process. Raises the error of the query, with its line, and InputFormatError
    or MisuseError if query and inputs do not fit.
    """
    beside = list(beside)
    build: str | Builder
    types: Sequence[Mapping[str, pa.DataType]] = ()
    if is_of_frames(query):
        query, types = _of_frames(query, inputs, beside)
    if callable(query) and not is_marked(query) and not _takes_a_dataflow(query, inputs):
        frames, feeds = _plain(inputs, beside, {})
        fields = {
            name: input_fields(name, frame, _left_out(name, beside, feeds)) for name, frame in frames.items()
        }
        keys = {name: feed.key for name, feed in feeds.items() if feed.key}
        build = cast("Builder", _of_differential(f"{_QUERIES}:as_builder")(query, fields, keys))
        with _noting(beside):
            description = _described(build, build.__name__)
        wanted = dict(zip(description.outputs, types, strict=False))
        return Query(
            build, build.__name__, fields, description.outputs, description.identity, frames, feeds, wanted
        )
    if isinstance(query, str) or is_marked(query):
        build = query if isinstance(query, str) else cast("Builder", query)
        called = build if isinstance(build, str) else build.__name__
        description = _described(load_builder(build) if isinstance(build, str) else build, called)
    else:
        called = getattr(query, "__name__", "query") if callable(query) else "query"
        build = cast("Builder", query if callable(query) else _of_differential(f"{_QUERIES}:again")(query))
        description = _described(build, called)
    _check_names(description, inputs)
    frames, feeds = _plain(inputs, beside, description.inputs)
    fields = {
        name: fitted_fields(name, frame, description.inputs[name], _left_out(name, beside, feeds))
        for name, frame in frames.items()
    }
    return Query(build, called, fields, description.outputs, description.identity, frames, feeds)


def _of_frames(
    query: object, inputs: Mapping[str, DataFrame | ChangeFeed], beside: Sequence[str]
) -> tuple[object, Sequence[Mapping[str, pa.DataType]]]:
    """Return the function of collections that a SQL text, or a function of DataFrames, stands for, and the
    types of the columns of each answer.
    """
    frames, feeds = _plain(inputs, beside, {})
    fields = {
        name: input_fields(name, frame, _left_out(name, beside, feeds)) for name, frame in frames.items()
    }
    planned = query_of_frames(query, frames, fields)
    return planned.build, planned.types


def _left_out(name: str, beside: Sequence[str], feeds: Mapping[str, PlainFeed]) -> list[str]:
    return [*beside, feeds[name].change] if name in feeds else list(beside)


def _plain(
    inputs: Mapping[str, DataFrame | ChangeFeed], beside: Sequence[str], declared: Mapping[str, pa.Schema]
) -> tuple[dict[str, DataFrame], dict[str, PlainFeed]]:
    """Return the rows of each input, and how to read those of change feeds. `declared` has the inputs that
    the query declares itself, which then know their keys.
    """
    frames: dict[str, DataFrame] = {}
    feeds: dict[str, PlainFeed] = {}
    for name, each in inputs.items():
        if isinstance(each, ChangeFeed):
            keys = InputForm(name, "", declared[name]).keys if name in declared else ()
            if name in declared and each.key and set(each.key) != set(keys):
                has = f"keeps the last value by {', '.join(keys)}" if keys else "knows no key"
                raise MisuseError(
                    f"input {name!r} {has} in the query, and its change feed names the key "
                    f"{', '.join(each.key)}. Leave key= out, or declare the input by dd.input(flow, "
                    f"{name!r}, …, key={each.key[0]!r}, mode='upsert')"
                )
            feeds[name] = each.plain(name, beside, keys)
            frames[name] = feeds[name].frame
        else:
            frames[name] = each
    return frames, feeds


def _takes_a_dataflow(query: Builder, inputs: Iterable[str]) -> bool:
    """Return True for a builder that is not marked: `def query(dataflow)`, as `Cluster.install` takes it.

    Its one parameter is called dataflow or flow, or is annotated so, and is no input.
    """
    try:
        (parameter,) = signature(query).parameters.values()
    except (TypeError, ValueError):  # another number of parameters, or a function of C without a signature
        return False
    if parameter.name in inputs:
        return False
    annotation = str(getattr(parameter.annotation, "__name__", parameter.annotation))
    return parameter.name in ("dataflow", "flow") or annotation.rpartition(".")[2] == "Dataflow"


@contextmanager
def _noting(beside: Sequence[str]) -> Iterator[None]:
    """Add a note to an error about a missing column if that is one of `beside`, which a query cannot use."""
    try:
        yield
    except TimelyError as error:
        for name in beside:
            if f"no column {name!r}" in str(error):
                add_note(
                    error,
                    f"{name!r} says when rows come, or whether (epochs=, window=, diff=), and is no column "
                    f"of the collection. Give the query a copy: df.withColumn('{name}_', df[{name!r}])",
                )
        raise


def _check_names(description: _Described, inputs: Iterable[str]) -> None:
    names = list(inputs)
    missing = [name for name in description.inputs if name not in names]
    unknown = [name for name in names if name not in description.inputs]
    if missing or unknown:
        what = f"no DataFrame for {', '.join(missing)}" if missing else f"no input {', '.join(unknown)}"
        raise MisuseError(f"the query takes {', '.join(description.inputs) or 'nothing'}; there is {what}")


def _described(build: Builder, called: str) -> _Described:
    """Call the query and return its description; turn an error of the user's code into one line that names
    the line of the code.
    """

    def plainly(dataflow: timely.Dataflow) -> object:
        try:
            return build(dataflow)
        except TimelyError:
            raise
        except Exception as error:  # the user's own
            message = traceback.format_exception_only(error)[-1].strip()
            which = "the query" if called == "query" else f"the query {called}"  # a lambda has no name
            raise MisuseError(f"{which} failed at {site_of(error)}: {message}") from None

    dataflow = build_dataflow(plainly, called, {})
    describe = cast("Callable[[timely.Dataflow], _Described]", _of_differential(f"{_QUERIES}:described"))
    description = describe(dataflow)
    if not description.outputs:
        raise MisuseError(f"the query {called} puts nothing out: end it with collection.output('name')")
    return description


def _of_differential(spec: str) -> Builder:
    return load_function(spec, "what queries are written with")


class Hosted:
    """A query that runs on the workers of `cluster`, as the dataflow `flow`.

    `stays`: the dataflow is left for the next run, which can go on with it. `is_new`: no rows have come, and
    this job alone feeds it.
    """

    def __init__(self, cluster: timely.Cluster, query: Query, stays: bool) -> None:
        self.cluster = cluster
        self._query = query
        self._stays = stays
        self.flow = cluster.install(query.build)
        self.is_new = not cluster.is_durable or _is_empty(cluster, self.flow)
        if cluster.is_durable and self.is_new:
            self._claim()

    def _claim(self) -> None:
        """Make sure that no other job feeds the dataflow: a durable cluster returns the same one to all that
        install a query. If another job has claimed it, and fed nothing, install it anew: most often that job
        has ended. If not, its next call raises that its dataflow is gone.
        """
        if self._has_claimed() or not self.is_new:
            return
        self.flow.uninstall()
        self.flow = self.cluster.install(self._query.build)
        if not self._has_claimed():
            raise MisuseError(
                f"another job begins with the query {self._query.name} in this durable cluster, which has "
                "one dataflow of that name: wait until that job has ended, or give this query another name"
            )

    def _has_claimed(self) -> bool:
        """Return True if this is the first job that claims the dataflow; its rows are only of that one."""
        first = self.flow.input(self.flow.inputs[0])
        if first.form.schema is None:
            return True  # Spark cannot feed it
        nothing = first.form.schema.append(pa.field(DIFF, pa.int64())).empty_table()
        try:
            return first.append(nothing, epoch=0, writer=_CLAIM, sequence=0)
        except InputClosedError:  # another job has fed it meanwhile
            self.is_new = False
            return False

    def _extent(self) -> tuple[str, int]:
        """Return what only this dataflow has, also after a restart, and the first epoch whose changes all
        outputs still have.
        """
        replies = [
            reply
            for name in self.flow.outputs
            for reply in self.flow.ask_all(Progress(self.flow.index, name, keep_from=0, extent=True))
        ]
        return replies[0].text("origin"), max(reply.integer("kept") for reply in replies)

    def begin_anew(self, fed: Fed | None) -> None:
        """Replace the dataflow by one that has no rows, unless it has none. Raise `MisuseError` if it was not
        fed by a job with these outputs: others may need it.
        """
        if self.is_new:
            return
        if fed is None or fed.origin != self._extent()[0]:
            raise MisuseError(
                f"the durable cluster has the dataflow {self.flow.index} ({self.flow.name}) with rows that "
                "no job with these outputs has fed. Give another folder as durable=, or uninstall that "
                f"dataflow: timely.connect(…, durable=…).flow({self.flow.index}).uninstall()"
            )
        self.flow.uninstall()
        self.flow = self.cluster.install(self._query.build)
        self.is_new = True

    def feed(self, send: Callable[[TargetFactory], R]) -> R:
        """Return what `send` returns for the dataflow; call it again if a durable cluster has started again
        meanwhile. What it sends has names, and counts once.
        """
        for repeats in itertools.count():
            before = self.flow.incarnation
            try:
                return send(self.cluster.append_target(self.flow.index))
            except SparkLostError:
                raise
            except PeerError as error:
                # An error of Spark itself tells of no worker.
                seconds = 0.0 if error.__cause__ is not None else _NOTICED_SECONDS
                if not self.cluster.is_durable or repeats >= RESUMES_COUNT_MAX:
                    raise
                if not self._is_another(before, seconds):
                    raise
        raise InternalError("nothing ends the calls")

    def _is_another(self, incarnation: int, seconds: float) -> bool:
        """Wait until a durable cluster that has lost a worker is back; return False if it has lost none. The
        other workers go on answering until they have noticed the loss, for `seconds` at most.
        """
        until = time.monotonic() + seconds
        while True:
            self.cluster.flows()  # this waits while the cluster starts again, or raises
            if self.flow.incarnation != incarnation:
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK_SECONDS)

    def goes_on(self, fed: Fed | None, facts: str, wants: int, opened: range) -> bool:
        """Return True if this run may go on with the rows that the dataflow has: a job with these outputs has
        fed it, under the same `facts`; the open epoch is one of `opened`; and the changes from epoch `wants`
        on are still there.
        """
        if fed is None or self.is_new or self.flow.epoch not in opened or fed.facts != facts:
            return False
        origin, first = self._extent()
        return fed.origin == origin and first <= wants

    def note_begin(self, fed: Fed | None, facts: str) -> None:
        """Note that the dataflow will be fed by this job, and later by others with these outputs."""
        if fed is not None:
            fed.begin(self._extent()[0], facts)

    def end(self) -> None:
        """Uninstall the dataflow, unless it stays, or is that of others."""
        if self.is_new and not self._stays:
            with suppress(TimelyError):  # the flow or its cluster has ended: that error is raised already
                self.flow.uninstall()


def _is_empty(cluster: timely.Cluster, flow: timely.Flow) -> bool:
    """Return True if a dataflow is in its first epoch, and no rows have come."""
    if flow.epoch > 0:
        return False
    for worker in cluster.stats():
        match worker.get("dataflows"):
            case {flow.index: {"inputs": list(inputs)}}:
                if any(not isinstance(one, dict) or one.get("rows_waiting") for one in inputs):
                    return False
    return True


@dataclass(frozen=True)
class Workplace:
    """Where a query runs: on so many new workers, which keep what comes in if `durable` names a folder; or in
    a cluster.
    """

    workers: int | timely.Cluster
    durable: Path | str | None = None

    @property
    def is_durable(self) -> bool:
        """True if the workers go on after a restart, with all dataflows."""
        if isinstance(self.workers, int):
            return self.durable is not None
        return self.workers.is_durable


@contextmanager
def installed(query: Query, place: Workplace, *, stays: bool = False) -> Iterator[Hosted]:
    """Install the query inside the block: on new workers, which end with the block, or in the cluster of the
    caller. At the end it is uninstalled, unless it `stays`, or its workers end for good.
    """
    workers = place.workers
    if isinstance(workers, int):
        with timely.connect(workers=workers, durable=place.durable) as cluster:
            hosted = Hosted(cluster, query, stays or not place.is_durable)
            try:
                yield hosted
            finally:
                hosted.end()
        return
    hosted = Hosted(workers, query, stays)
    try:
        yield hosted
    except PeerError:
        if isinstance(workers, ScheduledCluster):
            workers.check()  # an executor knows only that a worker is gone; this call raises the reason
        raise
    finally:
        hosted.end()
