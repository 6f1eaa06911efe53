"""operators/inspect.py: a function that looks at updates as they pass."""

from __future__ import annotations

import datetime as dt

import pytest
from reference.collection import Row
from reference.dataflow import Cluster

import differential as dd


def test_it_sees_values_times_and_multiplicities_and_lets_all_pass() -> None:
    seen: list[tuple[Row, tuple[int, ...], int]] = []
    cluster = Cluster(
        lambda flow: (
            dd.input(flow, "in", "name: string?, at: timestamp, x: float")
            .inspect(lambda *update: seen.append(update))
            .output("out")
        )
    )
    moment = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
    cluster.change("in", [(("a", moment, 0.5), 2), ((None, moment, -1.0), -1)], epoch=3)
    cluster.seal(3)
    cluster.run()
    assert sorted(seen, key=repr) == [(("a", moment, 0.5), (3,), 2), ((None, moment, -1.0), (3,), -1)]
    assert cluster.snapshot("out") == {("a", moment, 0.5): 2, (None, moment, -1.0): -1}


def test_what_the_function_raises_names_the_line_that_put_it_there() -> None:
    def fail(row: Row, time: tuple[int, ...], diff: int) -> None:
        raise KeyError("no such thing")

    cluster = Cluster(lambda flow: dd.input(flow, "in", "k: int").inspect(fail).output("out"))
    cluster.change("in", [((1,), 1)])
    cluster.seal()
    with pytest.raises(KeyError) as caught:
        cluster.run()
    (note,) = caught.value.__notes__
    assert "'inspect' (stage" in note and "test_inspect.py" in note
