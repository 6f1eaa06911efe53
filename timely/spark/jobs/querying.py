"""From the user's query to a dataflow: what it takes, what it puts out, and which query it is.

    a function of collections       its inputs have the columns of the DataFrames
    a builder, "module:function"    declares its inputs; the DataFrames must have their columns
    collections                     that are written already, over a `timely.Dataflow`; the same

`differential` writes queries, and nothing of `timely` imports it: what is needed of it is loaded by its name.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

import timely
from timely.building.builders import Builder, build_dataflow, is_marked, load_builder, load_function
from timely.errors import MisuseError, PeerError, TimelyError
from timely.failure import add_note
from timely.spark.scheduled.starting import ScheduledCluster
from timely.user_code.call_site import site_of

from .columns import SparkForm, fitted_fields, input_fields, nested_types

__all__ = ["Query", "installed", "query_of"]

_QUERIES = "differential.queries"


class _Described(Protocol):
    inputs: dict[str, pa.Schema]
    outputs: dict[str, pa.Schema]
    identity: str


@dataclass(frozen=True)
class Query:
    """A query that fits its inputs: what to install, the columns of each input, and of each output.

    `identity` is the same for the same query, in every process.
    """

    build: str | Builder
    name: str
    fields: Mapping[str, T.StructType]
    outputs: Mapping[str, pa.Schema]
    identity: str

    def forms(self) -> dict[str, SparkForm]:
        """How each output's tables become what Spark can hold."""
        nested = nested_types(self.fields)
        unpack = cast(
            "Callable[[bytes], object]", _of_differential("differential.columns.symbols.packing:unpack")
        )
        return {name: SparkForm(name, nested, unpack) for name in self.outputs}


def query_of(query: object, inputs: Mapping[str, DataFrame], beside: Iterable[str]) -> Query:
    """`query` over these inputs, whose columns `beside` say when rows come.

    Calls it once, here. Raises what the query raises, with its line, and InputFormatError or MisuseError if
    it and the inputs do not fit.
    """
    beside = list(beside)
    build: str | Builder
    if isinstance(query, str) or is_marked(query):
        build = query if isinstance(query, str) else cast("Builder", query)
        called = build if isinstance(build, str) else build.__name__
        told = _described(load_builder(build) if isinstance(build, str) else build, called)
        fields = _fitting(told, inputs, beside)
        return Query(build, called, fields, told.outputs, told.identity)
    if callable(query):
        fields = {name: input_fields(name, frame, beside) for name, frame in inputs.items()}
        build = cast("Builder", _of_differential(f"{_QUERIES}:as_builder")(query, fields))
        with _telling_of(beside):
            told = _described(build, build.__name__)
        return Query(build, build.__name__, fields, told.outputs, told.identity)
    build = cast("Builder", _of_differential(f"{_QUERIES}:again")(query))
    told = _described(build, "query")
    return Query(build, "query", _fitting(told, inputs, beside), told.outputs, told.identity)


@contextmanager
def _telling_of(beside: Sequence[str]) -> Iterator[None]:
    """A column that is missed in the query may be one that says when rows come: then that is said, too."""
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


def _fitting(
    told: _Described, inputs: Mapping[str, DataFrame], beside: Iterable[str]
) -> dict[str, T.StructType]:
    missing = [name for name in told.inputs if name not in inputs]
    unknown = [name for name in inputs if name not in told.inputs]
    if missing or unknown:
        what = f"no DataFrame for {', '.join(missing)}" if missing else f"no input {', '.join(unknown)}"
        raise MisuseError(f"the query takes {', '.join(told.inputs) or 'nothing'}; there is {what}")
    return {name: fitted_fields(name, frame, told.inputs[name], beside) for name, frame in inputs.items()}


def _described(build: Builder, called: str) -> _Described:
    """What the query says when it is called; an error that is not ours is told with its line, in one line."""

    def plainly(dataflow: timely.Dataflow) -> None:
        try:
            build(dataflow)
        except TimelyError:
            raise
        except Exception as error:  # the user's own
            said = traceback.format_exception_only(error)[-1].strip()
            which = "the query" if called == "query" else f"the query {called}"  # a lambda has no name
            raise MisuseError(f"{which} failed at {site_of(error)}: {said}") from None

    dataflow = build_dataflow(plainly, called, {})
    told = cast("Callable[[timely.Dataflow], _Described]", _of_differential(f"{_QUERIES}:described"))(
        dataflow
    )
    if not told.outputs:
        raise MisuseError(f"the query {called} puts nothing out: end it with collection.output('name')")
    return told


def _of_differential(spec: str) -> Builder:
    return load_function(spec, "what queries are written with")


@contextmanager
def installed(query: Query, workers: int | timely.Cluster) -> Iterator[tuple[timely.Cluster, timely.Flow]]:
    """The query on workers that end with the block, or on those of the caller, where it ends."""
    if isinstance(workers, int):
        with timely.connect(workers=workers) as cluster:
            yield cluster, cluster.install(query.build)
        return
    flow = workers.install(query.build)
    try:
        yield workers, flow
    except PeerError:
        if isinstance(workers, ScheduledCluster):
            workers.check()  # an executor that fed it knows only that a worker is gone, and this one why
        raise
    finally:
        with suppress(TimelyError):  # it has ended, or its cluster has: that is what is told
            flow.uninstall()
