"""Statements against worker processes: what a second client sees, and what is there after a restart."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import differential as dd
import timely
from timely.sql.command import run_command

VIEWS = """
create table orders (id int primary key, customer string, cents int);
create table late (id int not null);
create view paid as select customer, sum(cents) as cents from orders
  where id not in (select id from late) group by customer;
insert into orders values (1, 'ann', 120), (2, 'bob', 30)
"""


def test_a_second_client_reads_writes_and_drops() -> None:
    with timely.connect(workers=2) as cluster:
        cluster.sql(VIEWS)
        out, errors = io.StringIO(), io.StringIO()
        text = "select * from paid order by cents; insert into late values (1); select * from paid"
        assert run_command([cluster.addresses[0], "-c", text], io.StringIO(), out, errors) == 0, (
            errors.getvalue()
        )
        assert out.getvalue().count("bob") == 2 and out.getvalue().count("ann") == 1
        assert [row["customer"] for row in cluster.sql("select * from paid")] == ["bob"]
        with timely.connect(*cluster.addresses) as other:
            with pytest.raises(dd.SqlError, match="the table orders exists already"):
                other.sql("create table orders (a int)")
            other.sql("drop table late, orders cascade")
        with pytest.raises(dd.SqlError, match="the table paid is not there; there are: none"):
            cluster.sql("select * from paid")


def test_tables_views_and_rows_are_there_after_a_restart(tmp_path: Path) -> None:
    with timely.connect(workers=2, durable=tmp_path / "store") as cluster:
        cluster.sql(VIEWS)
    with timely.connect(workers=1, durable=tmp_path / "store") as cluster:
        assert cluster.sql("select * from paid order by cents").fetchall() == [("bob", 30), ("ann", 120)]
        cluster.sql("insert into late values (2)")
        assert cluster.sql("select * from paid").fetchall() == [("ann", 120)]
        assert "create view paid" in cluster.flow("paid").note
        cluster.sql("alter table orders add column tax int default 5; alter table late add column why string")
        cluster.sql("create or replace view paid as select customer, cents + tax as cents from orders")
    with timely.connect(workers=2, durable=tmp_path / "store") as cluster:
        assert cluster.sql("select * from paid order by cents").fetchall() == [("bob", 35), ("ann", 125)]
        cluster.sql("alter table late drop column id; insert into late values ('slow')")
        assert cluster.sql("select * from late order by why").fetchall() == [(None,), ("slow",)]
