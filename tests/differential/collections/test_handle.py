"""handle.py: what collections may be used where.

refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import pytest
from reference.collection import Collection as Rows
from reference.collection import collection
from strategies_collections import (
    NUMBERS,
)

import differential as dd
import timely
from differential import Collection, col
from differential.errors import SchemaError
from progress.errors import GraphError
from timely.building.dataflow import Dataflow

_Two = Callable[[Collection, Collection], Collection]
_SIDES = "id: int, k: string, at: timestamp, tags: any"
_HOUR = dt.timedelta(hours=1)
_CLOCK = dd.clock(dt.datetime(2024, 1, 1, tzinfo=dt.UTC), minutes=1)


def _refused(build: Callable[[Collection], object], error: type[Exception]) -> str:
    """What a user is told who writes `build` over a collection (k: int, v: int, name: string)."""
    with pytest.raises(error) as caught:
        build(dd.input(Dataflow("queries"), "numbers", "k: int, v: int, name: string"))
    return str(caught.value)


def test_refused_collections_of_two_dataflows() -> None:
    other = dd.input(Dataflow("other"), "numbers", "k: int, v: int, name: string")
    assert "two dataflows" in _refused(lambda c: c.concat(other), GraphError)
    assert "two dataflows" in _refused(lambda c: c.join(other, on="k"), GraphError)


def test_refused_something_that_is_no_collection() -> None:
    said = _refused(lambda c: c.concat([1, 2]), GraphError)  # type: ignore[arg-type]  # that is the point
    assert "collection" in said and "list" in said


def _kept(where: list[Collection], x: Collection) -> Collection:
    where.append(x)
    return x


def test_refused_an_inner_collection_outside_its_loop() -> None:
    def leaked(numbers: Collection) -> tuple[Collection, Collection]:
        inner: list[Collection] = []
        closed = numbers.iterate(lambda x: _kept(inner, x).distinct(), name="closing")
        return closed, inner[0]

    uses: list[Callable[[Collection, Collection], Collection]] = [
        lambda closed, inner: inner,
        lambda closed, inner: closed.concat(inner.distinct()),
        lambda closed, inner: closed.join(inner.select(k=col.k, w=col.v), on="k"),
    ]
    for use in uses:
        with pytest.raises(GraphError) as caught:
            use(*leaked(dd.input(Dataflow("queries"), "numbers", NUMBERS))).output("x")
        said = str(caught.value)
        assert "output 'x'" in said and "queries / closing" in said
        assert "only what `iterate` returns leaves a loop" in said


def test_refused_an_inner_collection_in_another_loop() -> None:
    def mix(numbers: Collection) -> None:
        inner: list[Collection] = []
        numbers.iterate(lambda x: _kept(inner, x).distinct(), name="one")
        numbers.iterate(lambda x: x.concat(inner[0]).distinct(), name="two")

    with pytest.raises(GraphError, match="is not inside it"):
        mix(dd.input(Dataflow("queries"), "numbers", NUMBERS))


def test_repr_shows_the_columns() -> None:
    assert repr(dd.input(Dataflow("queries"), "numbers", NUMBERS)) == "Collection(k: int, v: int)"
    assert collection([(1, 2)]) == Rows({(1, 2): 1})


@pytest.mark.parametrize(
    ("by_name", "by_column"),
    [
        (
            lambda c, o: c.window("at", dd.tumbling(minutes=1)),
            lambda c, o: c.window(col.at, dd.tumbling(minutes=1)),
        ),
        (
            lambda c, o: c.window("at", dd.session(minutes=1, by=["k", "id"])),
            lambda c, o: c.window(col.at, dd.session(minutes=1, by=[col.k, "id"])),
        ),
        (
            lambda c, o: c.window("at", dd.session(minutes=1, by="k")),
            lambda c, o: c.window("at", dd.session(minutes=1, by=col.k)),
        ),
        (lambda c, o: c.last("at", _HOUR, clock=_CLOCK), lambda c, o: c.last(col.at, "1 hour", clock=_CLOCK)),
        (
            lambda c, o: c.split_late("at", _HOUR, clock=_CLOCK)[1],
            lambda c, o: c.split_late(col.at, "1 hour", clock=_CLOCK)[1],
        ),
        (
            lambda c, o: c.asof_join(o, on="k", left_time="at", right_time="at", tolerance=_HOUR),
            lambda c, o: c.asof_join(o, on=col.k, left_time=col.at, right_time=col.at, tolerance="1 hour"),
        ),
        (
            lambda c, o: c.asof_join(o, on={"k": "k"}, left_time="at"),
            lambda c, o: c.asof_join(o, on={col.k: col.k}, left_time=col.at),
        ),
        (lambda c, o: c.during(col.id), lambda c, o: c.during("id")),
        (
            lambda c, o: c.explode("tags", "int", position="n"),
            lambda c, o: c.explode(col.tags, "int", position=col.n),
        ),
        (lambda c, o: c.drop_duplicates("k"), lambda c, o: c.drop_duplicates(col.k)),
        (lambda c, o: c.unique(["k", "id"]), lambda c, o: c.dropDuplicates([col.k, "id"])),
        (lambda c, o: c.arrange("k"), lambda c, o: c.arrange(col.k)),
        (lambda c, o: c.top_k(1, by="id", keys="k"), lambda c, o: c.top_k(1, by=col.id, keys=col.k)),
        (lambda c, o: c.rename({"k": "name"}, id="n"), lambda c, o: c.rename({col.k: col.name}, id=col.n)),
        (lambda c, o: c.withColumnRenamed("k", "n"), lambda c, o: c.withColumnRenamed(col.k, col.n)),
        (lambda c, o: c.withColumn("n", col.id), lambda c, o: c.withColumn(col.n, col.id)),
        (
            lambda c, o: c.with_columns(n=col.id + 1, m=col.id),
            lambda c, o: c.with_columns([(col.id + 1).alias("n"), col.id.alias("m")]),
        ),
    ],
)
def test_column_objects_are_taken_wherever_names_are(by_name: _Two, by_column: _Two) -> None:
    """As PySpark writes them; `explode` makes a function each time, so its columns are compared."""
    dataflow = Dataflow()
    one, other = (dd.input(dataflow, name, _SIDES) for name in ("one", "other"))
    named, meant = by_name(one, other), by_column(one, other)
    assert named.schema == meant.schema
    assert named.node.describe() == meant.node.describe()
    assert named.node.digest == meant.node.digest or "flat_map" in named.node.describe()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            lambda c: c.window(col.id + 1, dd.tumbling(5)),
            "window (*): col.id + 1 is no column: write 'x' or col.x",
        ),
        (lambda c: c.arrange([col.k, 3]), "arrange (*): 3 is no column"),
        (lambda c: c.concat([c, c]), "not list; of several write concat(a, b), not a list"),
        (lambda c: c.select("k", dd.sum("id")), "dd.sum('id') is of a group"),
        (lambda c: c.select("k", dd.max("id").alias("n")), "dd.max('id') is of a group"),
        (
            lambda c: c.last("at", "1 blink", clock=_CLOCK),
            "last (*) takes one length: a timedelta, '5 minutes'; or",
        ),
        (lambda c: c.last("at", 5, clock=_CLOCK), "lengths are timedeltas, or texts as '5 minutes', not 5"),
    ],
)
def test_what_is_no_column_is_told_what_to_write(
    written: Callable[[dd.Collection], object], said: str
) -> None:
    with pytest.raises(timely.TimelyError, match=re.escape(said).replace(r"\*", r"\S+")):
        written(dd.input(Dataflow(), "one", _SIDES))


def test_inputs_have_columns_as_keys() -> None:
    schemas = [
        dd.input(Dataflow(), "last", "k: int, v: int", key=key, mode="upsert").node.describe()
        for key in ("k", col.k, [col.k])
    ]
    assert schemas[0] == schemas[1] == schemas[2]


def test_loops_of_several_begin_with_names() -> None:
    numbers = dd.input(Dataflow(), "numbers", "k: int")
    with pytest.raises(GraphError, match=r"begins with collections by name: write iterate\({'a': …, 'b': …}"):
        dd.iterate([numbers], lambda x: [x])  # type: ignore[arg-type, dict-item]


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda a, b: a + b, r"no \+. Write a.concat\(b\)"),
        (lambda a, b: a - b, "Write a.subtract"),
        (lambda a, b: a | b, r"concat\(b\).distinct"),
        (lambda a, b: a & b, "Write a.intersect"),
        (lambda a, b: len(a), r"no len\(\). Write agg\(n=dd.count"),
    ],
)
def test_operators_of_collections_say_what_to_write(
    use: Callable[[Collection, Collection], object], words: str
) -> None:
    flow = Dataflow()
    a, b = (dd.input(flow, name, "x: int") for name in "ab")
    with pytest.raises((SchemaError, TypeError), match=words) as caught:
        use(a, b)
    assert "test_handle.py" in str(caught.value)
    assert a, "a collection is true, with or without rows"
