"""ALTER TABLE: columns come, go, and take more values, while rows and views stay."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import differential as dd
import timely

SHOP = """
create table orders (id int primary key, customer string not null, note string);
create table prices (x int, y decimal(5, 2) default 1.5);
create view counts as select customer, count(*) as n from orders group by customer;
create view large as select customer from counts where n > 1;
insert into orders values (1, 'ann', 'x'), (2, 'ann', null);
insert into prices values (1, 2.5), (2, 3)
"""


@pytest.fixture
def shop() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2, embedded=True) as cluster:
        cluster.sql(SHOP)
        yield cluster


def rows(cluster: timely.Cluster, text: str) -> list[tuple[object, ...]]:
    result = cluster.sql(text)
    assert isinstance(result, timely.client.statements.results.SqlResult)
    return result.fetchall()


def test_columns_that_come_have_their_default_in_rows_that_are_there(shop: timely.Cluster) -> None:
    day = dt.date(2024, 1, 2)
    altered = shop.sql(
        "alter table orders add column cents int not null default 7, add column day date;"
        "insert into orders (id, customer) values (3, 'bob');"
        "insert into orders (id, customer, day) values (4, 'bob', '2024-01-02');"
        "alter table orders add columns (tax decimal(4, 2) default 0.5)"
    )
    assert repr(altered) == "ALTER TABLE orders"
    half = Decimal("0.50")
    assert rows(shop, "select * from orders order by id") == [
        (1, "ann", "x", 7, None, half), (2, "ann", None, 7, None, half),
        (3, "bob", None, 7, None, half), (4, "bob", None, 7, day, half),
    ]  # fmt: skip
    assert sorted(rows(shop, "select * from counts")) == [("ann", 2), ("bob", 2)]
    shop.sql("delete from orders where id = 1; update orders set cents = cents + 1 where id = 2")
    assert rows(shop, "select customer from large") == [("bob",)]
    assert rows(shop, "show create table orders") == [(
        "CREATE TABLE orders (id INT PRIMARY KEY, customer STRING NOT NULL, note STRING, "
        "cents INT NOT NULL DEFAULT 7, day DATE, tax DECIMAL(4, 2) DEFAULT 0.5)",
    )]  # fmt: skip


def test_python_goes_on_feeding_a_table_that_was_altered(shop: timely.Cluster) -> None:
    before = shop.flow("prices")
    shop.sql("alter table prices add column note string default 'new'")
    before.input("prices").insert({"x": [3], "y": [Decimal(4)]})
    shop.flow("prices").input("prices").insert([(4, None, "last")])
    before.seal()
    assert rows(shop, "select x, y, note from prices order by x")[2:] == [
        (3, Decimal("4.00"), "new"), (4, None, "last")
    ]  # fmt: skip


def test_columns_take_more_values_and_other_defaults(shop: timely.Cluster) -> None:
    shop.sql(
        "alter table prices alter column y type decimal(12, 4); alter table prices alter y set default 9;"
        "insert into prices (x) values (3); alter table prices alter y drop default;"
        "insert into prices (x) values (4); alter table orders alter column customer drop not null;"
        "insert into orders values (3, null, null)"
    )
    values = [Decimal("2.5000"), Decimal("3.0000"), Decimal("9.0000"), None]
    assert rows(shop, "select x, y from prices order by x") == [*enumerate(values, 1)]
    assert sorted(rows(shop, "select * from counts"), key=str) == [("ann", 2), (None, 1)]
    assert rows(shop, "describe counts")[0] == ("customer", "string", "", "")


def test_a_type_that_may_not_hold_the_rows_is_refused_before_views_end(shop: timely.Cluster) -> None:
    there = shop.flows()
    with pytest.raises(dd.SqlError, match="^<sql>:1:13: a value of 'customer' was string, and is int"):
        shop.sql("alter table orders alter column customer type int")
    assert shop.flows() == there


def test_a_key_stays_and_may_have_a_default(shop: timely.Cluster) -> None:
    for wrong, told in (
        ("drop column ID", "32: the column ID is of the PRIMARY KEY, and stays"),
        ("alter column id drop not null", "33: the column id is of the PRIMARY KEY, and never null"),
    ):
        with pytest.raises(dd.SqlError, match=f"^<sql>:1:{told}"):
            shop.sql(f"alter table orders {wrong}")
    shop.sql(
        "alter table orders alter column id set default 5; alter table orders add column z int default 2"
    )
    shop.sql("insert into orders (customer) values ('bob'); insert into orders (customer) values ('cid')")
    assert rows(shop, "select id, customer, z from orders order by id")[1:] == [(2, "ann", 2), (5, "cid", 2)]


def test_columns_go_that_no_view_reads(shop: timely.Cluster) -> None:
    shop.sql("alter table orders drop column note")
    assert rows(shop, "select * from orders order by id") == [(1, "ann"), (2, "ann")]
    for view in (
        "select id from orders where customer > 'a'",
        "select count(*) as n from (select distinct * from orders) as o",
        "select id from orders union select length(customer) from orders",
        "with recursive r as (select id, customer from orders union select * from r) select id from r",
        "select id from orders natural join (select 'ann' as customer) as c",
    ):
        shop.sql(f"create view v as {view}")
        with pytest.raises(dd.SqlError, match="^<sql>:1:13: the column customer is read by the view"):
            shop.sql("alter table orders drop column customer")
        shop.sql("drop view v")
    shop.sql(
        "drop view counts cascade; create view v as select id from (select id, customer as c from orders) o"
    )
    with pytest.raises(dd.SqlError, match="the column customer is read by the view v: drop that view first"):
        shop.sql("alter table orders drop column customer")
    shop.sql("create or replace view v as select id from orders; alter table orders drop column customer")
    assert sorted(rows(shop, "select * from v")) == [(1,), (2,)]


def test_a_column_that_is_dropped_and_added_at_once_would_keep_its_values(shop: timely.Cluster) -> None:
    with pytest.raises(dd.SqlError, match="x is dropped and added in one statement, which would keep"):
        shop.sql("alter table prices drop column X, add column x int default 5", dialect="postgres")
    shop.sql("alter table prices add column z int, drop column z", dialect="postgres")
    assert sorted(rows(shop, "select x from prices")) == [(1,), (2,)]
    shop.sql("alter table prices drop column x; alter table prices add column x int default 5")
    assert rows(shop, "select x from prices") == [(5,), (5,)]


def test_a_star_over_a_table_has_its_new_columns(shop: timely.Cluster) -> None:
    shop.sql("create view every as select * from prices; alter table prices add column z int default 1")
    assert sorted(rows(shop, "select * from every")) == [(1, Decimal("2.50"), 1), (2, Decimal("3.00"), 1)]
    shop.sql("create view joined as select x, cust from prices join (select 1 as cust) as c on true")
    with pytest.raises(dd.SqlError, match="cust"):
        shop.sql("alter table prices add column cust int")
    assert len(rows(shop, "select * from joined")) == 2 == len(rows(shop, "select * from every"))


@pytest.mark.parametrize("dialect", ["spark", "postgres", "duckdb"])
def test_dialects_have_the_same_changes(shop: timely.Cluster, dialect: str) -> None:
    shop.sql("create table n (a bigint, f double precision not null default 0.5)", dialect=dialect)
    shop.sql("insert into n values (1, 2.0)", dialect=dialect)
    shop.sql("alter table n add column s text default 'it''s'", dialect="duckdb")
    shop.sql("alter table n add column t timestamp", dialect=dialect)
    shop.sql("alter table n alter column f drop not null", dialect="postgres")
    shop.sql("alter table if exists n drop column if exists a", dialect=dialect)
    shop.sql("alter table n add column if not exists s int", dialect=dialect)
    shop.sql("insert into n (f) values (null)", dialect=dialect)
    assert sorted(rows(shop, "select * from n"), key=str) == [(2.0, "it's", None), (None, "it's", None)]
    assert repr(shop.sql("alter table if exists other drop a")) == "nothing to do: there is no table other"


def test_a_table_that_cannot_be_altered_has_its_views_again(
    shop: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> timely.Flow:
        raise timely.MisuseError("no disk")

    shop.sql("insert into orders values (3, 'bob', null)")
    with monkeypatch.context() as patched:
        patched.setattr(shop, "replace", refused)
        with pytest.raises(dd.SqlError, match="^<sql>:1:1: no disk"):
            shop.sql("alter table orders add column z int")
    assert rows(shop, "describe orders")[-1][0] == "note"
    assert sorted(rows(shop, "select * from counts")) == [("ann", 2), ("bob", 1)]
    assert rows(shop, "select * from large") == [("ann",)]


def test_what_reads_a_table_in_python_is_not_ended(shop: timely.Cluster) -> None:
    def reader(flow: timely.Dataflow) -> None:
        dd.imported(flow, "prices", "prices", "x: int?, y: decimal(5, 2)?").output("all")

    shop.install(reader)
    with pytest.raises(dd.SqlError, match=r"^<sql>:1:13: the table prices cannot be altered: dataflow \d"):
        shop.sql("alter table prices add column z int")


def test_clients_read_and_write_while_a_table_is_altered(shop: timely.Cluster) -> None:
    other, errors = timely.Cluster(shop._workers), []
    done = threading.Event()

    def reading() -> None:
        while not done.is_set():
            try:
                assert rows(other, "select count(*) from prices where x < 3") == [(2,)]
                other.sql("insert into prices (x) values (10)")
            except dd.SqlError as error:
                if "altered meanwhile" not in str(error):
                    errors.append(error)

    thread = threading.Thread(target=reading)
    thread.start()
    try:
        for number in range(5):
            shop.sql(f"alter table prices add column c{number} int default {number}")
    finally:
        done.set()
        thread.join()
    assert not errors
    assert {each[2:] for each in rows(shop, "select * from prices")} == {(0, 1, 2, 3, 4)}


def test_a_view_that_cannot_be_replaced_in_a_durable_cluster_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster:
        cluster.sql(SHOP)
        install, refusing = cluster.install, [timely.GraphError("no room")]

        def once_refused(build: object, **arguments: object) -> timely.Flow:
            if refusing:
                raise refusing.pop()
            return install(build, **arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(cluster, "install", once_refused)
        with pytest.raises(dd.SqlError, match="no room"):
            cluster.sql("create or replace view counts as select customer, id as n from orders")
        assert rows(cluster, "select * from counts") == [("ann", 2)]
        assert rows(cluster, "select * from large") == [("ann",)]


def test_an_embedded_durable_cluster_begins_again_with_the_tables_as_altered(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with timely.connect(workers=1, embedded=True, durable=folder) as cluster:
        cluster.sql(SHOP)
        cluster.sql("alter table prices add column z int default 1; alter table orders drop column note")
        cluster.sql(
            "create or replace view counts as select customer, count(*) * 10 as n from orders group by 1"
        )
        cluster.sql("alter table prices drop column y; insert into prices values (5, 5)")
        notes = [
            rows(cluster, f"show create {kind} {name}")[0][0]
            for kind, name in (
                ("table", "orders"),
                ("table", "prices"),
                ("view", "counts"),
                ("view", "large"),
            )
        ]
    with timely.connect(workers=1, embedded=True, durable=folder) as cluster:
        cluster.sql(";".join(map(str, notes)))
        assert sorted(rows(cluster, "select * from prices")) == [(1, 1), (2, 1), (5, 5)]
        assert rows(cluster, "select * from counts") == [("ann", 20)] and rows(
            cluster, "select * from large"
        ) == [("ann",)]
