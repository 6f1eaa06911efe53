"""What a client reads of a dataflow that imports: at once the state as of which it began, and no less.

begins_*   right after it was installed, whatever the client asks first
closed_*   whose owner is complete, from before or since
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import differential as dd
import timely

ORDERS = "customer: int, cents: int"


@timely.builder
def shop(dataflow: timely.Dataflow) -> None:
    dd.input(dataflow, "orders", ORDERS).export("orders", by="customer")


@timely.builder
def totals(dataflow: timely.Dataflow) -> None:
    orders = dd.imported(dataflow, "shop", "orders", ORDERS)
    orders.group_by("customer").agg(total=dd.sum("cents")).output("totals")


Shop = tuple[timely.Cluster, timely.Flow]


@pytest.fixture(params=[2, 1], ids=["two processes", "embedded"])
def shops(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with timely.connect(workers=request.param, embedded=request.param == 1) as cluster:
        owner = cluster.install(shop)
        for _ in range(3):
            owner.input("orders").insert([(number % 50, number) for number in range(200)])
            owner.wait(owner.seal())
        yield cluster, owner


def _customers(flow: timely.Flow) -> int:
    return int(flow.output("totals").snapshot(timeout=20).num_rows)


def test_begins_with_a_snapshot(shops: Shop) -> None:
    cluster, owner = shops
    importer = cluster.install(totals)
    assert importer.epoch == owner.epoch and _customers(importer) == 50


def test_begins_with_a_wait(shops: Shop) -> None:
    cluster, _ = shops
    importer = cluster.install(totals)
    importer.wait()
    assert _customers(importer) == 50


def test_begins_for_who_follows(shops: Shop) -> None:
    cluster, owner = shops
    output = cluster.install(totals).output("totals")
    epoch, table = next(output.follow(snapshot=True, timeout=20))
    assert (epoch, table.num_rows) == (owner.epoch - 1, 50)


def test_begins_for_another_client(shops: Shop) -> None:
    cluster, _ = shops
    assert _customers(cluster.flow(cluster.install(totals).index)) == 50


def test_begins_with_nothing_where_nothing_was_sealed() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        owner = cluster.install(shop)
        importer = cluster.install(totals)
        assert importer.epoch == 0 and _customers(importer) == 0
        owner.input("orders").insert([(1, 1)])
        owner.seal()
        assert _customers(importer) == 1


def test_closed_since(shops: Shop) -> None:
    cluster, owner = shops
    importer = cluster.install(totals)
    owner.input("orders").insert([(777, 1)])
    owner.input("orders").close()
    importer.wait(owner.epoch)
    assert _customers(importer) == 51


def test_closed_before(shops: Shop) -> None:
    cluster, owner = shops
    owner.input("orders").insert([(777, 1)])
    last = owner.epoch
    owner.input("orders").close()
    owner.wait(last)
    importer = cluster.install(totals)
    assert _customers(importer) == 51
    assert importer.output("totals").changes(timeout=20).num_rows == 51
