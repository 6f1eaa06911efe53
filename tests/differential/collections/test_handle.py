"""handle.py: what collections may be used where.

refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from reference.collection import Collection as Rows
from reference.collection import collection
from strategies_collections import (
    NUMBERS,
)

import differential as dd
from differential import Collection, col
from progress.errors import GraphError
from timely.building.dataflow import Dataflow


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
