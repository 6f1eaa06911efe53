"""Tab completion: what `dir()` offers of each thing that users hold is public, and documented.

dir_*     every name is in docs/reference.md, or docs/timely_reference.md
hints_*   annotations of what is offered mean what they say: `typing.get_type_hints`
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from types import FunctionType

import pytest
import test_reference_page as reference
import test_timely_reference_page as timely_reference

import differential as dd
import timely
from differential import col

DOCUMENTED_BELOW_IT: dict[str, set[str]] = {
    "when": {"then"},
    "aggregate": {"alias"},
    "aliased": set(),
    "ordering": set(),
    "balance": {"groups", "scheme", "shares", "units"},
    "column": {"name", "type"},
    "schema": {"columns", "describe", "names", "of", "to_arrow"},
    "routed": {"announcements", "balance", "lead"},
    "na": {"drop", "fill"},
}
"""What such things have: the page names them where it says what makes them."""


def rows() -> dd.Collection:
    """A collection of a dataflow of its own."""
    return dd.input(timely.Dataflow("offered"), "rows", "k: int, v: int?, s: string")


OF_COLLECTIONS: dict[str, Callable[[], object]] = {
    "c": rows,
    "g": lambda: rows().group_by("k"),
    "o": lambda: rows().order_by("k"),
    "x": lambda: col.k,
    "x.str": lambda: col.s.str,
    "x.dt": lambda: col.s.dt,
    "x.list": lambda: col.s.list,
    "when": lambda: dd.when(col.k > 1),
    "aggregate": lambda: dd.sum("k"),
    "aliased": lambda: col.k.alias("a"),
    "ordering": lambda: col.k.desc(),
    "balance": lambda: dd.Balance("hash", units=4),
    "column": lambda: dd.Schema.of("k: int").columns[0],
    "schema": lambda: rows().schema,
    "routed": lambda: dd.Routed(dd.Balance("hash"), rows()),
    "na": lambda: rows().na,
}


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[str, object]]:
    """What a client holds."""
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(lambda dataflow: dd.input(dataflow, "rows", "k: int").output("out"))
        yield {
            "cluster": cluster,
            "flow": flow,
            "i": flow.input("rows"),
            "out": flow.output("out"),
        }


def documented(prefix: str) -> set[str]:
    """The names that the two pages of reference have behind `prefix`."""
    return {name for of, name, _ in [*reference.NAMES, *timely_reference.NAMES] if of == prefix}


@pytest.mark.parametrize("kind", OF_COLLECTIONS)
def test_dir_of_what_queries_are_made_of(kind: str) -> None:
    thing = OF_COLLECTIONS[kind]()
    offered = set(dir(thing))
    assert offered <= (DOCUMENTED_BELOW_IT[kind] if kind in DOCUMENTED_BELOW_IT else documented(kind))
    assert all(hasattr(thing, name) for name in offered)
    of_class = {name for name in dir(type(thing)) if not name.startswith("__")}
    assert of_class <= offered, "the class has nothing more but special names"


@pytest.mark.parametrize("prefix", ["cluster", "flow", "i", "out"])
def test_dir_of_what_clients_hold(prefix: str, clients: dict[str, object]) -> None:
    thing = clients[prefix]
    assert set(dir(thing)) == documented(prefix)
    assert {name for name in dir(type(thing)) if not name.startswith("__")} <= set(dir(thing))


def test_dir_of_a_branch_adds_what_follows_it() -> None:
    assert set(dir(dd.when(col.k > 1).then(1))) - set(dir(col.k)) == {"otherwise", "when"}


def test_dir_of_what_vertices_are_written_with() -> None:
    dataflow = timely.Dataflow("offered")
    stream = dataflow.input("records")
    with dataflow.loop("loop") as loop:
        inside = loop.enter(stream)
    things = {"dataflow": dataflow, "stream": inside, "loop": loop, "vertex": timely.Vertex()}
    for kind, thing in things.items():
        assert set(dir(thing)) == documented(kind), kind
    assert dir(stream.feed()) == []


def test_dir_of_the_modules() -> None:
    assert set(dir(dd)) == {*dd.__all__, "algorithms", "errors", "functions", "testing"}
    assert set(dir(timely)) == {*timely.__all__, "errors"}


def functions() -> Iterator[tuple[str, FunctionType]]:
    """The functions that are offered, and the methods of what queries are made of."""
    for name in dd.__all__:
        if inspect.isfunction(function := getattr(dd, name)):
            yield name, function
    for kind, made in OF_COLLECTIONS.items():
        cls = type(made())
        for name in dir(cls):
            if inspect.isfunction(function := inspect.getattr_static(cls, name)):
                yield f"{kind}.{name}", function


def test_hints_can_be_read_of_all_that_is_offered() -> None:
    wrong = []
    for name, function in functions():
        try:
            typing.get_type_hints(function)
        except NameError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong
