"""meeting.py: where rows of an output are sent, so that what cancels meets.

keys_*     by which columns
kept_*     what workers keep and readers are sent, on several workers
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import differential as dd
import timely
from differential import Collection, col
from differential.plan.stages.meeting import meeting_keys
from timely.building.dataflow import Dataflow
from timely.wire.requests import Read

Query = Callable[[Collection, Collection], Collection]

ORDERS = "order: int, item: int, customer: int"
LINES = "order: int, line: int"

BY_KEY: dict[str, Query] = {
    "anti": lambda orders, lines: orders.join(lines, on="order", how="anti"),
    "left": lambda orders, lines: orders.join(lines, on="order", how="left"),
    "right": lambda orders, lines: orders.join(lines, on="order", how="right"),
    "outer": lambda orders, lines: orders.join(lines, on="order", how="outer"),
    "filtered": lambda orders, lines: (
        orders.join(lines, on="order", how="left").filter(col.line.is_null()).rename(order="number")
    ),
}
BY_ALL: dict[str, Query] = {
    "key behind": lambda orders, lines: orders.join(lines, on=[("item", "order")], how="anti"),
    "key gone": lambda orders, lines: orders.join(lines, on="order", how="anti").select("customer"),
    "key computed": lambda orders, lines: orders.join(lines, on="order", how="anti").select(
        order=col.order + 1, item=col.item
    ),
    "subtract": lambda orders, lines: orders.select("order").subtract(lines.select("order")),
    "by hand": lambda orders, lines: orders.select("order").concat(lines.select("order").negate()),
}


def keys(query: Query) -> tuple[str, ...] | None:
    flow = Dataflow("tested")
    found = query(dd.input(flow, "orders", ORDERS), dd.input(flow, "lines", LINES))
    return meeting_keys(found.node)


@pytest.mark.parametrize("name", BY_KEY)
def test_keys_those_of_the_join_if_they_come_first(name: str) -> None:
    assert keys(BY_KEY[name]) == ("number" if name == "filtered" else "order",)


@pytest.mark.parametrize("name", BY_ALL)
def test_keys_all_columns_where_those_of_the_join_are_gone_or_come_later(name: str) -> None:
    flow = Dataflow("tested")
    found = BY_ALL[name](dd.input(flow, "orders", ORDERS), dd.input(flow, "lines", LINES))
    assert meeting_keys(found.node) == tuple(found.schema.names)


def test_keys_of_a_semi_join_on_nothing_are_all_columns_and_not_one_worker() -> None:
    flow = Dataflow("tested")
    orders, lines = dd.input(flow, "orders", ORDERS), dd.input(flow, "lines", LINES)
    gone = orders.cross_join(lines.select(other=dd.lit("line"))).select("order", "item", "customer")
    assert meeting_keys(orders.concat(gone.negate()).node) == ("order", "item", "customer")


def test_keys_of_rows_of_which_some_are_taken_back_are_all_columns() -> None:
    rows = keys(lambda orders, _: orders.concat(orders.filter(col.item > 1).negate()))
    assert rows == ("order", "item", "customer")


def test_keys_none_where_nothing_is_taken_back_or_all_of_it() -> None:
    assert keys(lambda orders, lines: orders.select("order").concat(lines.select("order"))) is None
    assert keys(lambda orders, lines: orders.join(lines, on="order")) is None
    assert keys(lambda orders, _: orders.negate()) is None
    assert keys(lambda orders, _: orders.concat(orders.negate().negate())) is None


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("name", [*BY_KEY, *BY_ALL])
def test_kept_is_what_is_there_and_nothing_that_cancels(name: str, workers: int) -> None:
    query = {**BY_KEY, **BY_ALL}[name]

    def build(flow: Dataflow) -> None:
        query(dd.input(flow, "orders", ORDERS), dd.input(flow, "lines", LINES)).output("out")

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("orders").insert([(n, n, n) for n in range(300)])
        flow.input("lines").insert([(n, n) for n in range(297)])
        flow.wait(flow.seal())
        out = flow.output("out")
        assert sum(reply.columns().num_rows for reply in flow.ask_all(Read(0, "out", -1, 1, 5.0))) == len(
            set(map(str, out.changes().to_pylist()))
        )


def test_keys_of_sums_of_sums_are_found_without_going_through_each_part_twice() -> None:
    flow = Dataflow("tested")
    orders, lines = dd.input(flow, "orders", ORDERS), dd.input(flow, "lines", LINES)
    rows = orders.join(lines, on="order", how="anti")
    for _ in range(200):
        rows = rows.concat(rows)
    assert meeting_keys(rows.node) == ("order",)
