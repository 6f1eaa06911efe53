"""INSERT, DELETE and UPDATE that fail on a row say which statement, which column and which line it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import differential as dd
import timely


@pytest.fixture
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2, embedded=True) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "insert into t (id,\n n) values (1, cast('x' as int))",
            "2:21: INSERT INTO t: the column n: CAST('x' AS",
        ),
        (
            "insert into t (id) values (1), (1 /\n 0)",
            "1:33: INSERT INTO t: the column id: 1 / 0 divides by zero",
        ),
        (
            "insert into t (id, n) select id,\n cast(name as int) from s",
            "2:7: INSERT INTO t: the column n: col.",
        ),
        (
            "insert into t (id, n) select b, a from (select cast(name as int) as a, id as b from s) as q",
            "1:53: INSERT INTO t: the column n: col.name",
        ),
        (
            "insert into t (id) select b from (select 1 + cast(name as int) as b, id as a from s) as q",
            "1:51: INSERT INTO t: the column id: col.name",
        ),
        (
            "insert into t (id) select id from s",
            "1:1: INSERT INTO t: the column id is NOT NULL, and the query",
        ),
        ("insert into t (id) select id from bad", "1:1: INSERT INTO t: col.name.cast('int') (in "),
        ("update t set n = 1 / (id - 1)", "1:18: UPDATE t: the column n: "),
        (
            "delete from s where\n cast(name as int) = 1",
            "2:7: DELETE FROM s: col.name.cast('int') is no int in",
        ),
        (
            "create table z as select cast(name as int) as n from s",
            "1:31: CREATE TABLE z: the column n: col.name",
        ),
    ],
)
def test_fails_with_the_statement_the_column_and_the_line(
    cluster: timely.Cluster, text: str, message: str
) -> None:
    cluster.sql("""
        create table t (id int not null, n int); create table s (id int, name string);
        create view bad as select id from s where cast(name as int) > 0;
        insert into s values (1, 'x'), (null, '7'); insert into t values (1, 1)
    """)
    with pytest.raises(dd.SqlError, match="^<sql>:" + re.escape(message)) as caught:
        cluster.sql(text)
    assert "\n" not in str(caught.value)
    assert cluster.sql("select * from t").fetchall() == [(1, 1)]
    assert len(cluster.sql("select * from s").fetchall()) == 2
