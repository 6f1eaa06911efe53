"""From the user's query to a dataflow: its inputs, its outputs, and its identity.

    a function of collections       its inputs have the columns of the DataFrames
    a function of a dataflow        declares its inputs; the DataFrames must have their columns
    "module:function"               the same, for a function that `@timely.builder` marks
    collections                     built already, over a `timely.Dataflow`; the DataFrames must fit them, too

Queries are written with `differential`, which nothing in `timely` imports: this module loads the functions
that it needs by their names.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from inspect import signature
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
    """A query that fits its inputs: the builder to install, the columns of each input, and of each output.

    `identity` is the same for the same query in every process.
    """

    build: str | Builder
    name: str
    fields: Mapping[str, T.StructType]
    outputs: Mapping[str, pa.Schema]
    identity: str

    def forms(self) -> dict[str, SparkForm]:
        """Return for each output the converter of its tables to types that Spark has."""
        nested = nested_types(self.fields)
        unpack = cast(
            "Callable[[bytes], object]", _of_differential("differential.columns.symbols.packing:unpack")
        )
        return {name: SparkForm(name, nested, unpack) for name in self.outputs}


def query_of(query: object, inputs: Mapping[str, DataFrame], beside: Iterable[str]) -> Query:
    """Return `query` over these inputs, whose columns `beside` determine when and how often rows come.

    Calls the query once, in this process. Raises the error of the query, with its line, and InputFormatError
    or MisuseError if query and inputs do not fit.
    """
    beside = list(beside)
    build: str | Builder
    if isinstance(query, str) or is_marked(query):
        build = query if isinstance(query, str) else cast("Builder", query)
        called = build if isinstance(build, str) else build.__name__
        description = _described(load_builder(build) if isinstance(build, str) else build, called)
        fields = _fitting(description, inputs, beside)
        return Query(build, called, fields, description.outputs, description.identity)
    if callable(query) and not _takes_a_dataflow(query, inputs):
        fields = {name: input_fields(name, frame, beside) for name, frame in inputs.items()}
        build = cast("Builder", _of_differential(f"{_QUERIES}:as_builder")(query, fields))
        with _noting(beside):
            description = _described(build, build.__name__)
        return Query(build, build.__name__, fields, description.outputs, description.identity)
    called = getattr(query, "__name__", "query") if callable(query) else "query"
    build = cast("Builder", query if callable(query) else _of_differential(f"{_QUERIES}:again")(query))
    description = _described(build, called)
    fields = _fitting(description, inputs, beside)
    return Query(build, called, fields, description.outputs, description.identity)


def _takes_a_dataflow(query: Builder, inputs: Mapping[str, DataFrame]) -> bool:
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


def _fitting(
    description: _Described, inputs: Mapping[str, DataFrame], beside: Iterable[str]
) -> dict[str, T.StructType]:
    missing = [name for name in description.inputs if name not in inputs]
    unknown = [name for name in inputs if name not in description.inputs]
    if missing or unknown:
        what = f"no DataFrame for {', '.join(missing)}" if missing else f"no input {', '.join(unknown)}"
        raise MisuseError(f"the query takes {', '.join(description.inputs) or 'nothing'}; there is {what}")
    return {
        name: fitted_fields(name, frame, description.inputs[name], beside) for name, frame in inputs.items()
    }


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


@contextmanager
def installed(query: Query, workers: int | timely.Cluster) -> Iterator[tuple[timely.Cluster, timely.Flow]]:
    """Install the query inside the block: on new workers, which end with the block, or on those of the
    caller, where it is uninstalled at the end.
    """
    if isinstance(workers, int):
        with timely.connect(workers=workers) as cluster:
            yield cluster, cluster.install(query.build)
        return
    flow = workers.install(query.build)
    try:
        yield workers, flow
    except PeerError:
        if isinstance(workers, ScheduledCluster):
            workers.check()  # an executor knows only that a worker is gone; this call raises the reason
        raise
    finally:
        with suppress(TimelyError):  # the flow or its cluster has ended: the error of that is raised already
            flow.uninstall()
