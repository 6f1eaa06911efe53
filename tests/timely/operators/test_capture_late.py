"""What an output has not been told, since it had nothing to do, it knows when many rows come later."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import differential as dd
import timely


@pytest.mark.parametrize("many", [3, 64, 65, 3000])
@pytest.mark.parametrize("through", ["directly", "a reduce", "a loop"])
def test_an_epoch_stays_complete_when_many_rows_of_a_later_one_come(through: str, many: int) -> None:
    def both(flow: timely.Dataflow) -> None:
        rows = dd.imported(flow, "ahead", "numbers", "k: int")
        more = dd.imported(flow, "behind", "numbers", "k: int")
        if through == "a reduce":
            rows, more = rows.distinct(), more.distinct()
        together = rows.concat(more)
        if through == "a loop":
            together = together.iterate(lambda inner: inner.concat(together).distinct())
        together.output("both")

    with timely.connect(workers=1, embedded=True) as cluster:
        ahead = cluster.install(named("ahead"))
        behind = cluster.install(named("behind"))
        flow = cluster.install(both)
        ahead.input("numbers").insert([(0,)])
        behind.input("numbers").insert([(-1,)])
        behind.wait(behind.seal())
        ahead.wait(ahead.seal())  # epoch 0 is complete everywhere
        for count in (1, many):
            ahead.input("numbers").insert(pa.table({"k": range(count * 10_000, count * 10_000 + count)}))
            ahead.wait(ahead.seal())
        assert flow.output("both").complete_before() == 1
        flow.wait(0)
        assert flow.output("both").changes(0, 1).num_rows == 2


def named(name: str) -> Callable[[timely.Dataflow], None]:
    def build(flow: timely.Dataflow) -> None:
        dd.input(flow, "numbers", "k: int").export("numbers")

    build.__name__ = build.__qualname__ = name
    return build
