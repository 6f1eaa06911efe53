"""Wrong texts: an error in one line, with line and column, and nothing has changed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from sql.wrong_texts import WRONG_TEXTS

import differential as dd
import timely

_NOT_OURS = re.compile(r"class '|Token|sqlglot|SENTINEL|Error|\bcol[.(]|\.py:")
"""What an error must not have: names of classes, and our expressions instead of the text's."""

WRONG = {
    **WRONG_TEXTS,
    "select 1 +": "1:10: ",
    "select nope from t": "1:8: there is no column nope; there are: a, b",
    "select x.a from t": "1:8: ",
    "select a from t, u": "1:8: ",
    "select a, b from t group by a": "1:11: the column b is neither in GROUP BY nor in an aggregate",
    "select a from t where sum(a) > 1": "1:23: ",
    "select sum(a, b) from t": "1:16: ",
    "select a + 'x' from t": "1:8: ",
    "select nofunction(a) from t": "1:8: ",
    "select * from t for update": "1:",
    "select * from t tablesample (10 percent)": "1:",
    "select * from nowhere": "1:15: the table nowhere is not there",
    "select * from x.t": "1:15: no dataflow exports x.t; there are: none",
    "select :p from t": "1:8: there is no value for the parameter :p; there are none: pass p=…",
    "select ? from t": "1:8: parameters have names: write :name, and pass name=…",
    "vacuum t": "1:1: there is no statement vacuum. There are SELECT, WITH",
    "merge into t using u on t.a = u.a when matched then delete": "1:1: there is no statement merge: upsert",
    "alter table t": "1:1: write ALTER TABLE name ADD COLUMN …",
    "alter table nowhere add column c int": "1:13: there is no table nowhere; there are: t, u, k",
    "alter table v add column c int": "1:13: the view v takes no rows: it is no table",
    "alter view v rename to w": "1:1: ALTER VIEW is not supported: write CREATE OR REPLACE VIEW",
    "alter table t rename to w": "1:25: a table and its columns keep their names: write CREATE TABLE … AS",
    "alter table t rename column b to c": "1:29: a table and its columns keep their names",
    "alter table t add column c int not null": "1:26: the column c is NOT NULL: give it a DEFAULT",
    "alter table t add column c int default 'x'": "1:40: the column c: 'x' is no int",
    "alter table t add column c int default 1 + 1": "1:40: DEFAULT of the column c is a constant",
    "alter table t add column c nonsense": "1:",
    "alter table t add column B int": "1:26: two columns are called B",
    "alter table t add column c int primary key": "1:26: the PRIMARY KEY of a table is that of its CREATE",
    "alter table t add column c int first": "1:26: c INT first: position of ColumnDef is not supported",
    "alter table t add primary key (a)": "1:32: ADD PRIMARY KEY (a) is no change of a table",
    "alter table t drop column a": "1:13: the column a is read by the view v: drop that view first",
    "alter table t drop column nope": "1:27: there is no column nope; there are a, b",
    "alter table t drop column b cascade": "1:27: DROP COLUMN b CASCADE: cascade of Drop is not supported",
    "alter table t drop a, drop b": "1:",
    "alter table k drop column id": "1:27: the column id is of the PRIMARY KEY, and stays",
    "alter table k alter column id drop not null": "1:28: the column id is of the PRIMARY KEY",
    "alter table u alter column c type string": "1:13: a value of 'c' was int?, and is string?",
    "alter table u alter column c set not null": "1:28: SET NOT NULL: rows that are there may have nulls",
    "alter table u alter column c set default 'x'": "1:42: the column c: 'x' is no int",
    "drop table t; select * from v": "1:12: the table t is read by v",
    "drop table u; select * from u": "1:29: the table u is not there",
    "create view w as select * from v; create or replace view v as select * from w": "1:",
    "create view w as select * from v; drop view v": "1:45: the view v is read by w",
    "select a from t where b = 'it''s' and nope": "1:39: there is no column nope",
    "create table t (a int)": "1:14: the table t exists already",
    "create table v (a int)": "1:14: the view v exists already",
    "create or replace table t (a int)": "1:",
    "create table n (a nonsense)": "1:19: ",
    "create table n (a int, A string)": "1:24: two columns are called A",
    "create table n (a int, primary key (b))": "1:",
    "create table n (diff int)": "1:",
    "create table n (a int default 'x')": "1:31: the column a: 'x' is no int",
    "create table n (a decimal(5, 2) default 1.255)": "1:41: DEFAULT of the column a is a constant",
    "create table n (a double default 0.12345678901234567)": "1:34: DEFAULT of the column a is a constant",
    "create table n (a int default nope)": "1:31: there is no column nope",
    "create table n (a int default 1 + 1)": "1:31: DEFAULT of the column a is a constant",
    "create table n (a int default (select 1))": "1:",
    "create table n (a date default current_date)": "1:",
    "create table n": "1:14: n needs columns: CREATE TABLE n (column type, …)",
    "create table n as select nope from t": "1:26: there is no column nope",
    "create table n as select array_agg(a) as l from t": "1:14: the column l is array<int>: declare it",
    "create table n (x) as select a, b from t": "1:",
    "create table n (x string) as select a from t": "1:17: x STRING: the query says the types",
    "create table n (x, primary key (x)) as select a from t": "1:",
    "create view n (x int) as select a from t": "1:16: x INT: the query says the types",
    "create table n (a int default 1 default 2)": "1:17: the column a has two DEFAULTs",
    "create or replace table n as select 1 as a": "1:25: a table cannot be replaced: DROP TABLE it",
    "create temporary view n as select 1 as a": "1:",
    "create index n on t (a)": "1:1: CREATE INDEX is not supported",
    "create view n as select a, a from t": "1:25: two columns are called 'a'",
    "create view n (x) as select a, b from t": "1:13: n has 2 columns",
    "create view n as select * from n": "1:32: the table n is not there",
    "create or replace view v as select * from v": "1:24: a cycle of views: v would read itself",
    "drop table v": "1:12: v is the view v; there are the tables t, u, k",
    "drop table nowhere": "1:12: nowhere is not there",
    "drop table t": "1:12: the table t is read by v",
    "insert into nowhere values (1)": "1:13: there is no table nowhere; there are: t, u, k",
    "insert into v values (1)": "1:13: the view v takes no rows",
    "insert into t values (1)": "1:",
    "insert into t values ('x', 'y')": "1:23: INSERT INTO t: the column a: 'x' is no int",
    "insert into t values (true, 'y')": "1:29: INSERT INTO t: the column a is int, and the value is bool",
    "insert into t values (1, 'y'), (null, 'y')": "1:39: INSERT INTO t: the column a is NOT NULL",
    "insert into t (b) values ('y')": "1:13: INSERT INTO t: the column a is NOT NULL, and has no value",
    "insert into t (c) values (1)": "1:16: INSERT INTO t: there is no column c; there are a, b",
    "insert into t select b, a from t": "1:",
    "insert into t values ((select 1), 'y')": "1:",
    "update t set c = 1": "1:14: c = 1 sets no column; there are a, b",
    "update t set a = 'x' || b": "1:",
    "update k set id = 2": "1:14: id is of the PRIMARY KEY: DELETE the row, and INSERT another",
    "delete from v": "1:13: the view v takes no rows",
    "delete from t where nope = 1": "1:21: there is no column nope",
    "show nothing": "1:1: write SHOW TABLES",
    "show columns from nowhere": "1:19: nowhere is not there; there are: k, t, u, v",
    "subscribe": "1:1: SUBSCRIBE: something is missing behind it",
    "explain analyze t": "1:17: t is no view",
    "explain insert into t values (1, 'x')": "1:9: ",
    "select t.a from t"
    + ", u" * 256: "1:785: FROM has 257 tables, and 256 may be joined: make a view of some",
    "select t.a from t" + " union all select a from t" * 1_000: "1:",
    "select a from t where a in (" + "1, " * 20_000 + "nope)": "1:60029: there is no column nope",
    "select 'a\ud800' from t": "1:10: a surrogate, which is no character",
    "select percentile_cont(0.5) within group () from t": "1:8: PERCENTILE_CONT(0.5) WITHIN GROUP",
    "select max_by(distinct, a) from t": "1:",
    "create table n (`` int)": "1:17: a column needs a name",
    "select 'x": "1:8: what begins with ' has no end",
    "": "1:1: there is no statement",
    "select " + "(" * 5_000 + "1" + ")" * 5_000: "1:1: is nested too deeply",
    "select '" + "x" * (1 << 20) + "'": "1:1: 1,048,617 characters are too many; 500,000 are possible",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.sql(
            "create table t (a int not null, b string); create table u (a int not null, c int);"
            "create table k (id int primary key, n int); create view v as select a from t;"
            "insert into t values (1, 'one')"
        )
        yield cluster


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:40])
def test_a_wrong_text_is_an_error_in_one_line_and_changes_nothing(cluster: timely.Cluster, text: str) -> None:
    flows, epoch = cluster.flows(), cluster.flow("t").epoch
    with pytest.raises(dd.SqlError) as refused:
        cluster.sql("insert into t values (2, 'two');" + text if text else "")
    (message,) = str(refused.value).splitlines()
    assert not _NOT_OURS.search(message), message
    shift = len("insert into t values (2, 'two');") if text else 0
    place = re.match(r"<sql>:1:(\d+): ", message)
    assert place is not None, message
    moved = f"1:{max(1, int(place.group(1)) - shift)}: {message.split(': ', 1)[1]}"
    assert moved.startswith(WRONG[text]), moved
    assert (cluster.flows(), cluster.flow("t").epoch) == (flows, epoch)


@pytest.mark.parametrize("text", ["it's", 'a "b"', "'; drop table t; --", "\\'", "\n", "$$", "/*", ":a"])
def test_a_parameter_with_quotes_is_a_value(cluster: timely.Cluster, text: str) -> None:
    for dialect in ("spark", "postgres", "duckdb"):
        query = "select x, a from (values (:x)) as v (x), t where x = :x"
        assert cluster.sql(query, dialect=dialect, x=text).collect() == [{"x": text, "a": 1}], dialect


def test_long_texts_are_planned_in_seconds(cluster: timely.Cluster) -> None:
    joins = " ".join(f"join u as u{n} on u{n}.a = u{n - 1}.a" for n in range(1, 150))
    values = ", ".join(f"({n}, {n} + 1)" for n in range(400))
    left_joins = " ".join(f"left join u as u{n} on u{n}.a = u{n - 1}.c" for n in range(1, 60))
    texts = {
        f"explain select count(*) as n from u as u0 {joins}": 20,  # it took 70 s
        f"explain select count(*) as n from u as u0 {left_joins}": 10,  # it took 60 s for 100
        "explain " + " union all ".join(f"select a + {n} as x from u" for n in range(200)): 10,
        f"select count(*) as n from (values {values}) as v (x, y) where y > x": 10,
    }
    for text, seconds in texts.items():
        begun = time.process_time()
        assert len(cluster.sql(text)) > 0
        assert time.process_time() - begun < seconds, text[:60]


def test_errors_of_a_script_have_the_lines_of_the_script(cluster: timely.Cluster) -> None:
    with pytest.raises(dd.SqlError, match=r"^<sql>:4:10: there is no column nope; there are: a, b"):
        cluster.sql("-- a comment; with a semicolon\nselect ';' as s;\n\n  select nope\n  from t")


def test_a_parameter_that_no_statement_has_is_refused(cluster: timely.Cluster) -> None:
    with pytest.raises(dd.SqlError, match=r"the text has no parameter :other"):
        cluster.sql("select * from t where a = :a", a=1, other=2)
    with pytest.raises(dd.SqlError, match=r":a is a set that no constant has"):
        cluster.sql("select * from t where a = :a", a={1})
    with pytest.raises(timely.MisuseError, match=r"cluster\.sql takes a text"):
        cluster.sql(7)  # type: ignore[arg-type]


def test_if_exists_and_if_not_exists_do_nothing(cluster: timely.Cluster) -> None:
    assert (
        repr(cluster.sql("create table if not exists t (z int)"))
        == "nothing to do: the table t is there already"
    )
    assert repr(cluster.sql("drop view if exists nowhere")) == "nothing to do: nothing of that name is there"
