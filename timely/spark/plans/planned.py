"""From a SQL text, or a marked function of DataFrames, to a function of collections.

The plan is read once, in the driver. The function that comes of it makes collections of the plan wherever it
is called, and needs Spark for the places in its errors alone.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from timely.building.builders import load_function
from timely.errors import MisuseError, TimelyError
from timely.spark.errors import first_line
from timely.user_code.call_site import CallSite, is_users, site_of

from .analysed import PlanSource, java_plan
from .left_out import Fields
from .marking import is_text
from .sites import place_of
from .stand_ins import NO_ROWS, stand_in, under_names

__all__ = ["PlannedQuery", "query_of_frames"]

_ZONE: Final = "spark.sql.session.timeZone"
_COLLECTION: Final = "differential.relational.spark_plans.plan_door:collection_of_plan"
_OF_SPARK: Final = re.compile(r"[/\\](pyspark|py4j)[/\\]")
_ANSI: Final = "spark.sql.ansi.enabled"
_UTC: Final = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00", "Etc/GMT")
_Made: TypeAlias = Callable[
    [list[Fields], Mapping[str, object], tuple[str, int], Callable[[str], str], str], object
]
"""The function of `differential`, which this package does not import."""


@dataclass(frozen=True)
class PlannedQuery:  # type: ignore[explicit-any]  # of collections
    """A function of collections, and for each of its answers the types that columns have in Spark."""

    build: Callable[..., object]  # type: ignore[explicit-any]  # of collections
    types: list[dict[str, pa.DataType]]


def query_of_frames(
    query: object, inputs: Mapping[str, DataFrame], fields: Mapping[str, T.StructType]
) -> PlannedQuery:
    """Return a query of collections that gives what a SQL text, or a function of DataFrames, gives.

    `inputs` are the DataFrames, `fields` the columns that their collections have. Raises MisuseError, or an
    error of the query, for what cannot be read.
    """
    spark = next(iter(inputs.values())).sparkSession
    if not hasattr(spark, "_jsparkSession"):
        raise MisuseError("a query of DataFrames is read in the driver's own Spark, not over Spark Connect")
    if str(spark.conf.get(_ANSI)).lower() != "true":
        raise MisuseError(
            f"{_ANSI} is false: a cast or a division that fails would be null in Spark, and is an error of "
            "its row here. Set it to true, and write try_cast or try_divide for null"
        )
    _check_zone(spark, fields)
    called, site = _called(query)
    stand_ins = {name: stand_in(spark, name, fields[name]) for name in inputs}
    last_rdd = cast("int", spark.sparkContext._jsc.sc().newRddId())
    place = f"{site.file}:{site.line}" if site.line else site.file
    with under_names(spark, stand_ins), _one_error(called, site):
        answer = spark.sql(str(query)) if is_text(query) else _answer(query, stand_ins)
        answers = _by_name(answer, called)
        source = PlanSource(spark, inputs, last_rdd, place)
        java = {name: java_plan(each) for name, each in answers.items()}
        plans = {name: source.nodes(each) for name, each in java.items()}
    make = cast("_Made", load_function(_COLLECTION, "what plans become"))
    zone = str(spark.conf.get(_ZONE))

    def collections_of(**collections: object) -> object:
        built = {
            name: make(plan, collections, site, partial(place_of, java[name], default=place), zone)
            for name, plan in plans.items()
        }
        if isinstance(answer, DataFrame):
            return built[""]
        return built if isinstance(answer, Mapping) else tuple(built.values())

    collections_of.__name__ = collections_of.__qualname__ = called
    return PlannedQuery(collections_of, [_types(each) for each in answers.values()])


def _check_zone(spark: SparkSession, fields: Mapping[str, T.StructType]) -> None:
    """Raise MisuseError for times without a zone in a session of another zone than UTC."""
    zone = str(spark.conf.get(_ZONE))
    for name, columns in fields.items():
        for field in columns.fields:
            if isinstance(field.dataType, T.TimestampNTZType) and zone not in _UTC:
                raise MisuseError(
                    f"input {name!r}: column {field.name!r} is a time without a zone, which is read as UTC, "
                    f"and {_ZONE} is {zone}: cast it to timestamp, or set the zone to UTC"
                )


def _types(frame: DataFrame) -> dict[str, pa.DataType]:
    return {
        field.name: to_arrow_type(field.dataType, timezone="UTC")
        for field in frame.schema.fields
        if not isinstance(field.dataType, T.NullType)
    }


def _called(query: object) -> tuple[str, CallSite]:
    """Return what a query is called, and where it is written."""
    if is_text(query):
        return "query", CallSite("<sql>", 0)
    name = str(getattr(query, "__name__", "query"))
    code = getattr(inspect.unwrap(cast("Callable[[], object]", query)), "__code__", None)
    site = CallSite("", 0) if code is None else CallSite(code.co_filename, code.co_firstlineno)
    return name if name.isidentifier() else "query", site


def _answer(query: object, stand_ins: Mapping[str, DataFrame]) -> object:
    function = cast("Callable[..., object]", query)  # type: ignore[explicit-any]  # of DataFrames
    try:
        inspect.signature(function).bind(**stand_ins)
    except TypeError as error:
        raise MisuseError(
            f"the query {getattr(query, '__name__', 'query')}{inspect.signature(function)} does not fit the "
            f"inputs {', '.join(stand_ins)}: {error}. Its parameters are called as the inputs are"
        ) from None
    return function(**stand_ins)


def _by_name(answer: object, called: str) -> dict[str, DataFrame]:
    if isinstance(answer, DataFrame):
        return {"": answer}
    named: dict[str, object] = {}
    if isinstance(answer, Mapping):
        named = {str(name): each for name, each in answer.items()}
    elif isinstance(answer, tuple | list):
        named = {str(number): each for number, each in enumerate(answer)}
    frames = {name: each for name, each in named.items() if isinstance(each, DataFrame)}
    if not frames or len(frames) < len(named):
        shown = "nothing" if answer is None else f"a {type(answer).__name__}"
        raise MisuseError(
            f"the query {called} returns {shown}: a function of DataFrames returns a DataFrame, a tuple of "
            "them, or a dict of them by the names of outputs"
        )
    return frames


def _users_site(error: BaseException, default: CallSite) -> str:
    """Return the innermost line of the user in a traceback, which is none of PySpark's."""
    place, step = default.file if not default.line else str(default), error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if is_users(step.tb_frame) and not _OF_SPARK.search(file):
            place = f"{file}:{step.tb_lineno}"
        step = step.tb_next
    return place


@contextmanager
def _one_error(called: str, site: CallSite) -> Iterator[None]:
    """Turn an error of Spark, or of the user's function, into one line with its place."""
    try:
        yield
    except TimelyError:
        raise
    except PySparkException as error:
        if NO_ROWS in str(error):
            raise MisuseError(
                f"{_users_site(error, site)}: the query {called} asks for rows while it is read: "
                "count, collect, show, isEmpty, toPandas, or pivot without its values. It may only describe "
                "its answer; write pivot(column, [values])"
            ) from None
        message = first_line(error)
        place = re.search(r"[;,]? *line ([0-9]+),? pos ([0-9]+);?", message)
        if site.line or place is None:
            raise MisuseError(f"{_users_site(error, site)}: {message}") from None
        line, column = int(place[1]), int(place[2]) + 1
        raise MisuseError(f"<sql>:{line}:{column}: {message[: place.start()].strip()}") from None
    except Exception as error:
        message = traceback.format_exception_only(error)[-1].strip()
        raise MisuseError(f"the query {called} failed at {site_of(error)}: {message}") from None
