"""Statements against embedded workers: what they do, what they return, and what stays when one is wrong.

tables_*    rows that come, change and go
views_*     are kept current, over tables, views, and what dataflows in Python export
scripts_*   are read as a whole before anything is done
fails_*     a row that fails in one view, and goes again
shared_*    what another client sees
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import differential as dd
import timely
from differential.relational.statements.reads import StatementReads
from differential.relational.statements.session import run_reads
from timely.client.statements.results import SqlResult

SHOP = """
create table orders (id int primary key, customer string not null, cents decimal(10, 2), day date);
create table late (id int not null);
create view paid as
  select customer, sum(cents) as cents from orders
  where not exists (select 1 from late where late.id = orders.id) group by customer;
create materialized view large as select customer from paid where cents > 50;
insert into orders values (1, 'ann', 120.5, '2020-01-02'), (2, 'bob', -30, null), (3, 'ann', 1, null)
"""


@pytest.fixture
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2, embedded=True) as cluster:
        yield cluster


@pytest.fixture
def shop(cluster: timely.Cluster) -> timely.Cluster:
    cluster.sql(SHOP)
    return cluster


def rows(cluster: timely.Cluster, text: str, **parameters: object) -> list[tuple[object, ...]]:
    result = cluster.sql(text, **parameters)
    assert isinstance(result, SqlResult)
    return result.fetchall()


def test_tables_are_read_without_a_seal_if_they_are_sealed_equally_far(shop: timely.Cluster) -> None:
    shop.sql("insert into orders values (7, 'dan', 60, null)")
    flows = {name: shop.flow(name) for name in ("orders", "late", "paid")}
    flows["orders"].seal(
        through=flows["late"].refresh() + 4
    )  # behind the others, as a program would leave it

    def epochs() -> dict[str, int]:
        return {name: flow.refresh() for name, flow in flows.items()}

    def read(text: str) -> SqlResult:
        (result,) = run_reads(shop, text, "spark", {}, 30.0, "<prompt>")
        assert isinstance(result, SqlResult)
        return result

    before = epochs()
    assert before["orders"] > before["late"] + 3
    both = "select customer from orders where not exists (select 1 from late where late.id = orders.id)"
    behind = (
        rf"late is sealed up to epoch {before['late'] - 1}, and orders up to {before['orders'] - 1}: .*SELECT"
    )
    with pytest.raises(dd.SqlError, match=behind):
        read(both)
    told = read("select customer from paid")
    assert told.epoch == before["late"] - 1 and sorted(told.fetchall()) == [("ann",), ("bob",), ("dan",)]
    assert read("select count(*) from orders").epoch == before["orders"] - 1
    assert read("select 1 as one").fetchall() == [(1,)]
    assert epochs() == before, "nothing is sealed"
    assert rows(shop, f"select count(*) from ({both})") == [(4,)], "and here all are"
    assert epochs()["late"] == before["orders"]
    assert read(f"select count(*) from ({both})").fetchall() == [(4,)]

    def rates(flow: timely.Dataflow) -> None:
        dd.input(flow, "rates", "id: int").export("rates")

    own, through = shop.install(rates), epochs()["orders"] - 1
    own.seal()
    with pytest.raises(
        dd.SqlError, match=rf"your own dataflows are sealed by flow.seal\(through={through}\)"
    ):
        read("select orders.id from orders join rates on rates.id = orders.id")
    own.seal(through=through)
    assert read("select orders.id from orders join rates on rates.id = orders.id").epoch == through


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("select 1 as one; drop table nowhere", "DROP"),
        ("insert into orders select nothing from nowhere", "INSERT"),
        ("subscribe orders", "SUBSCRIBE"),
    ],
)
def test_a_prompt_that_reads_refuses_what_does_more_before_it_says_how_to_write_it(
    shop: timely.Cluster, text: str, refused: str
) -> None:
    before = rows(shop, "show tables")
    with pytest.raises(dd.SqlError, match=rf"<prompt>:\d:\d+: {refused} is refused here, .* timely\.sql$"):
        list(run_reads(shop, text, "spark", {}, 30.0, "<prompt>"))
    assert rows(shop, "show tables") == before
    (result,) = run_reads(shop, "(select 1 as one)", "spark", {}, 30.0, "<prompt>")
    assert isinstance(result, SqlResult) and result.fetchall() == [(1,)]


def test_tables_with_a_key_keep_the_last_row_of_each(shop: timely.Cluster) -> None:
    assert rows(shop, "select * from orders order by id desc") == [
        (3, "ann", Decimal("1.00"), None),
        (2, "bob", Decimal("-30.00"), None),
        (1, "ann", Decimal("120.50"), dt.date(2020, 1, 2)),
    ]
    shop.sql("insert into orders (customer, id) values ('cy', 2)")
    assert rows(shop, "select customer, cents from orders where id = 2") == [("cy", None)]
    assert repr(shop.sql("delete from orders o where o.cents is null")) == "DELETE 1"
    assert (
        repr(shop.sql("update orders set cents = cents * 2, day = :day where id = 1", day=None)) == "UPDATE 1"
    )
    assert rows(shop, "select id, cents, day from orders order by 1") == [
        (1, Decimal("241.00"), None),
        (3, Decimal("1.00"), None),
    ]


def test_tables_without_a_key_have_a_row_as_often_as_it_was_inserted(shop: timely.Cluster) -> None:
    shop.sql("insert into late values (1), (1), (2)")
    assert rows(shop, "select id, count(*) from late group by id order by id") == [(1, 2), (2, 1)]
    shop.sql("insert into late select id + 10 from late")
    shop.sql("update late set id = id + 1 where id > 10")
    shop.sql("delete from late where id = 1")
    assert rows(shop, "select id from late order by id") == [(2,), (12,), (12,), (13,)]


def test_views_are_kept_current_and_read_one_another(shop: timely.Cluster) -> None:
    assert rows(shop, "select * from paid order by cents") == [
        ("bob", Decimal("-30.00")),
        ("ann", Decimal("121.50")),
    ]
    inserted = shop.sql("insert into late values (1)")
    assert rows(shop, "select * from large") == []
    changes = shop.flow("large").output("large").changes()
    assert changes.to_pylist()[-1] == {"customer": "ann", "epoch": inserted.epoch, "diff": -1}


def test_tables_of_a_query_and_values_by_default(shop: timely.Cluster) -> None:
    made = shop.sql(
        "create table copy as select customer, cents * 2 as `2 x` from orders where id < :id", id=3
    )
    assert repr(made) == "CREATE TABLE copy, INSERT 2"
    shop.sql("insert into copy values ('cy', 7)")
    assert rows(shop, "select `2 x` from copy order by 1") == [
        (Decimal("-60.00"),), (Decimal("7.00"),), (Decimal("241.00"),)
    ]  # fmt: skip
    assert rows(shop, "show create table copy") == [
        ("CREATE TABLE `copy` (`customer` STRING NOT NULL, `2 x` DECIMAL(12, 2))",)
    ]
    with pytest.raises(
        dd.SqlError, match="^<sql>:1:30: CREATE TABLE other: the column x: .* divides by zero"
    ):
        shop.sql("create table other as select id / 0 as x from orders")
    assert "other" not in shop.flows().values()
    shop.sql(
        "create table f (x double default -0.5, y double, z decimal(5, 2) default 1.5); "
        "insert into f (y) values (0.1), (2); insert into f values (1, 3, 1.255)"
    )
    assert rows(shop, "select * from f order by y") == [
        (-0.5, 0.1, Decimal("1.50")), (-0.5, 2.0, Decimal("1.50")), (1.0, 3.0, Decimal("1.26"))
    ]  # fmt: skip
    shop.sql("""
        create table d (id int primary key, a int not null default 3, b decimal(9, 1) default 2, s string
            default ':a; its', day date default date '2024-01-02', z int default :z);
        insert into d (id) values (1), (2); insert into d (id, a) select id + 10, 7 from orders where id = 1
    """, z=None)  # fmt: skip
    row = (Decimal("2.0"), ":a; its", dt.date(2024, 1, 2), None)
    assert rows(shop, "select * from d order by id") == [(1, 3, *row), (2, 3, *row), (11, 7, *row)]
    with pytest.raises(dd.SqlError, match="the column a is NOT NULL"):
        shop.sql("insert into d (id, a) values (3, null)")


def test_tables_of_a_query_take_more_rows_in_each_dialect(cluster: timely.Cluster) -> None:
    cluster.sql("""
        create table all_types (i bigint, s string not null, d decimal(10, 2), t timestamp, day date,
            f double, b boolean, y binary, l array<int>);
        insert into all_types (i, s, d, t, day, f, b) values (1, 'a', 1.5, timestamp '2024-01-02 03:04:05',
            date '2024-01-02', 0.5, true)
    """)  # fmt: skip
    (row,) = rows(cluster, "select * from all_types")
    for dialect, mark in (("spark", "`"), ("postgres", '"'), ("duckdb", '"')):
        name = f"{mark}order by {dialect}{mark}"
        cluster.sql(f"create table {name} as select * from all_types", dialect=dialect)
        cluster.sql(f"insert into {name} select * from all_types", dialect=dialect)
        cluster.sql(f"insert into {name} (s) values ('b')", dialect=dialect)
        text = f"select * from `order by {dialect}` order by s"
        three = rows(cluster, text)
        assert three == [row, row, (None, "b", *([None] * 7))]
        ((statement,),) = rows(cluster, f"show create table `order by {dialect}`")
        cluster.sql(f"drop table `order by {dialect}`")
        cluster.sql(f"{statement}; insert into {name} select * from all_types", dialect=dialect)
        assert rows(cluster, text) == [row]


def test_views_that_are_replaced_while_they_are_read_answer_all_the_same(
    shop: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    replacing = ["select customer from paid where cents > 0 or true"]
    together, began = StatementReads.together, StatementReads._began

    def replace(when: str) -> None:
        if replacing and when == at:
            shop.sql(f"create or replace view large as {replacing.pop()}")

    def replaced_before(reads: StatementReads, *entries: object) -> int:
        through = together(reads, *entries)  # type: ignore[arg-type]
        replace("before it is installed")
        return through

    def replaced_after(reads: StatementReads, flow: timely.Flow, through: int) -> object:
        replace("while it runs")
        return began(reads, flow, through)

    asked: list[str] = []
    answer = StatementReads._answer
    monkeypatch.setattr(StatementReads, "_answer", lambda *args: (asked.append(""), answer(*args))[1])
    with pytest.raises(dd.RowError, match="divides by zero"):
        shop.sql("select 1 / (length(customer) - 3) as x from large")
    assert len(asked) == 1, "nobody has replaced a view"
    monkeypatch.setattr(StatementReads, "together", replaced_before)
    monkeypatch.setattr(StatementReads, "_began", replaced_after)
    for at in ("before it is installed", "while it runs"):
        shop.sql("create or replace view large as select customer from paid where cents > 50")
        replacing[:] = ["select customer from paid where cents > 0 or true"]
        assert rows(shop, "select * from large order by 1") == [("ann",), ("bob",)], at
        replacing[:] = ["select cents from paid"]
        with pytest.raises(
            dd.SqlError, match="the view large has been replaced meanwhile, and has other col"
        ):
            shop.sql("select * from large")
    assert list(shop.flows().values()).count("large") == 1


def test_views_are_replaced_and_what_reads_them_is_made_again(shop: timely.Cluster) -> None:
    shop.sql("create view all_of_it as select p.customer from paid as p join large using (customer)")
    shop.sql("create or replace view paid as select customer, cents + 100 as cents from orders")
    assert rows(shop, "select * from large order by 1") == [("ann",), ("ann",), ("bob",)]
    assert len(rows(shop, "select * from all_of_it")) == 5
    with pytest.raises(
        dd.SqlError, match=r"^<view large>:1:\d+: there is no column cents; there are: customer"
    ):
        shop.sql("create or replace view paid as select customer from orders")
    with pytest.raises(dd.SqlError, match=r"a cycle of views: paid would read large, which reads it$"):
        shop.sql("create or replace view paid as select * from large")
    assert len(rows(shop, "select * from all_of_it")) == 5
    assert sorted(shop.flows().values()) == ["all_of_it", "large", "late", "orders", "paid"]


def test_views_read_what_dataflows_in_python_export_and_the_other_way_round(shop: timely.Cluster) -> None:
    def rates(flow: timely.Dataflow) -> None:
        dd.input(flow, "rates", "customer: string, percent: int").export("rates")

    flow = shop.install(rates)
    flow.input("rates").insert([("ann", 10)])
    flow.seal(through=shop.sql("insert into late values (9)").epoch)
    shop.sql("create view rated as select percent * cents as p from paid join rates.rates using (customer)")
    assert rows(shop, "select * from rated") == [(Decimal("1215.00"),)]

    def reads(flow: timely.Dataflow) -> None:
        dd.imported(flow, "rated", "rated", "p: decimal(38, 2)?").output("p")

    reader = shop.install(reads)
    with pytest.raises(dd.SqlError, match=r"the view rated is read by dataflow \d+ \(reads\)"):
        shop.sql("drop view rated")
    shop.sql("drop view rated cascade")
    with pytest.raises(timely.UninstalledError):
        reader.output("p").snapshot()


def test_scripts_are_read_as_a_whole_before_anything_is_done(cluster: timely.Cluster) -> None:
    with pytest.raises(dd.SqlError, match=r"<sql>:3:25: there is no column b; there are: a$"):
        cluster.sql("create table t (a int);\ninsert into t values (1);\ncreate view v as select b from t")
    assert cluster.flows() == {}
    result = cluster.sql(
        "create table t (a int); insert into t values (1); create view v as select a from t; "
        "select * from v; drop view v; drop table t"
    )
    assert repr(result) == "DROP TABLE t" and cluster.flows() == {}


def test_scripts_add_rows_of_neighbouring_statements_in_one_epoch(shop: timely.Cluster) -> None:
    before = shop.sql("select 1").epoch
    shop.sql("insert into late values (1); insert into orders values (7, 'dan', 1, null); select 1")
    epochs = {row["epoch"] for row in shop.flow("paid").output("paid").changes(before + 1).to_pylist()}
    assert len(epochs) == 1


def test_shared_with_python_and_with_other_clients(shop: timely.Cluster) -> None:
    flow = shop.flow("orders")
    assert flow.note.startswith("-- SQL table, dialect spark\ncreate table orders")
    flow.input("orders").upsert([(9, "eve", Decimal(5), None)])
    flow.seal()
    assert rows(shop, "select cents from paid where customer = 'eve'") == [(Decimal("5.00"),)]
    other = timely.Cluster(shop._workers)
    assert rows(other, "select count(*) from orders") == [(4,)]
    assert rows(other, "show views") == [("large", "paid", ""), ("paid", "late, orders", "large")]
    assert [row[:2] for row in rows(other, "show tables")] == [("late", "table"), ("orders", "table")]
    assert rows(other, "show create view large")[0][0].startswith("create materialized view large")
    assert rows(other, "describe orders")[0] == ("id", "int", "NOT NULL", "PRIMARY KEY")


def test_columns_of_an_inserted_query_count_by_their_places(shop: timely.Cluster) -> None:
    shop.sql(
        "insert into orders (id, customer, cents, day) "
        "select id + 50, 'zed', null, null from orders where id = 1"
    )
    assert rows(shop, "select * from orders where id = 51") == [(51, "zed", None, None)]
    shop.sql("create table pairs (a int, b int); insert into pairs select id, id from orders where id = 51")
    assert rows(shop, "select * from pairs") == [(51, 51)]


def test_parameters_are_never_read_as_sql(shop: timely.Cluster) -> None:
    odd = "o'; drop table orders; --"
    shop.sql("insert into orders values (:id, :name, :cents, :day)", id=5, name=odd, cents=Decimal("0.5"),
             day=dt.date(2021, 1, 1))  # fmt: skip
    assert rows(shop, "select id from orders where customer = :name", name=odd) == [(5,)]
    assert rows(shop, "select id from orders where id in (:ids) order by id", ids=[5, 2]) == [(2,), (5,)]
    assert rows(shop, "select id from orders where id in :ids order by id", ids=[5, 2]) == [(2,), (5,)]
    shop.sql("create view mine as select id from orders where customer = :name", name=odd)
    shop.sql("create view bare as select id from orders where id not in :ids", ids=[1, 5])
    assert str(rows(shop, "show create view bare")[0][0]).endswith("not in (1, 5)")
    (text,) = rows(shop, "show create view mine")[0]
    assert str(text).endswith(r"'o\'; drop table orders; --'")
    shop.sql(
        "create view up as with mutually recursive (return at recursion limit 3) r (n int) as "
        "(select :k as n union select n + 1 from r) select n from r where n not in (:ids)",
        k=-5,
        ids=[1, 2],
    )
    (text,) = rows(shop, "show create view up")[0]
    assert "(return at recursion limit 3) r (n int) as (select (-5) as n" in str(text)
    assert str(text).endswith("n not in (1, 2)")
    with pytest.raises(dd.SqlError, match=r"^<sql>:1:15: the parameter :c stands where only a name can$"):
        shop.sql("select orders.:c from orders", c="id")
    with pytest.raises(dd.SqlError, match=r"^<sql>:1:8: the parameter :c has a surrogate"):
        shop.sql("select :c as c", c="\ud800")


def test_subscribe_brings_the_answer_and_then_each_change(shop: timely.Cluster) -> None:
    with shop.sql("subscribe to large") as changes:
        each = iter(changes)
        assert next(each)[1].to_pylist()[0]["customer"] == "ann"
        epoch = shop.sql("insert into late values (1)").epoch
        assert next(each)[1].to_pylist() == [{"customer": "ann", "epoch": epoch, "diff": -1}]
    with shop.sql("subscribe (select count(*) as n from orders)") as changes:
        each = iter(changes)
        assert next(each)[1].to_pylist()[0]["n"] == 3
        shop.sql("delete from orders where id = 1")
        assert [(row["n"], row["diff"]) for row in next(each)[1].to_pylist()] == [(2, 1), (3, -1)]
    assert len(shop.flows()) == 4


def test_subscribe_ends_at_once_if_the_program_has_dropped_it(shop: timely.Cluster) -> None:
    changes = shop.sql("subscribe (select id from orders)")
    for _ in changes:
        break
    assert len(shop.flows()) == 5
    shop.sql("insert into late values (7); delete from orders where id = 1")
    assert next(iter(changes))[1].to_pylist()[0]["id"] == 1  # a loop that is left ends nothing
    del changes
    until = time.monotonic() + 60
    while len(shop.flows()) > 4 and time.monotonic() < until:
        time.sleep(0.001)
    assert len(shop.flows()) == 4
    for _ in shop.sql("subscribe to large"):
        break
    for _ in shop.sql("subscribe (select id from late)"):
        break
    assert repr(shop.sql("drop table late cascade")) == "DROP TABLE late"
    assert list(shop.flows().values()) == ["orders"]


def test_order_by_has_nan_as_the_largest_number(cluster: timely.Cluster) -> None:
    cluster.sql("create table f (x double); insert into f values (2), (null), (:nan), (-1)", nan=float("nan"))
    for order, expected in {
        "x": "null -1.0 2.0 nan",
        "x desc": "nan 2.0 -1.0 null",
        "x nulls last": "-1.0 2.0 nan null",
        "x desc nulls first": "null nan 2.0 -1.0",
    }.items():
        got = [
            str(row[0]).replace("None", "null") for row in rows(cluster, f"select x from f order by {order}")
        ]
        assert " ".join(got) == expected
        cut = rows(cluster, f"select x from f order by {order} limit 4")
        assert [str(row[0]).replace("None", "null") for row in cut] == got


def test_views_over_lists_and_names_in_quotes(cluster: timely.Cluster) -> None:
    cluster.sql("""
        create table `A"b` (a int, `-- SQL` string); insert into `A"b` values (1, 'p'), (1, 'q'), (2, null);
        create view `select` as select a, array_agg(`-- SQL`) as l from `A"b` group by a;
        create view over as select a, b from `select` lateral view explode(l) as b;
    """)
    assert rows(cluster, "select * from `select` order by a") == [(1, ["p", "q"]), (2, [])]
    assert rows(cluster, "select * from over order by b") == [(1, "p"), (1, "q")]
    assert [row[:2] for row in rows(cluster, 'describe `A"b`')] == [("a", "int"), ("-- SQL", "string")]
    assert rows(cluster, "describe `select` -- of lists")[1][1] == "array<string>"
    assert rows(cluster, "show create view `select`")[0][0].startswith("create view `select`")
    assert "import" in repr(cluster.sql("explain `select`"))
    cluster.sql("create table lists (l array<string>); insert into lists select l from `select`")
    cluster.sql("update lists set l = null")
    assert rows(cluster, "select * from lists") == [(None,), (None,)]
    with cluster.sql("subscribe to `select`") as changes:
        assert sorted(map(str, next(iter(changes))[1].column("l").to_pylist())) == ["['p', 'q']", "[]"]


def test_explain_shows_the_plan_and_what_stages_keep(shop: timely.Cluster) -> None:
    assert "count=count()" in repr(shop.sql("explain select customer, count(*) from orders group by 1"))
    analyzed = shop.sql("explain analyze paid").to_pylist()
    (group,) = [each for each in analyzed if "group by customer" in each["stage"]]
    assert group["place"].startswith("<sql>:") and group["rows_kept"] > 0 and group["busy_ms"] > 0
    assert len(shop.sql("explain analyze select * from paid")) > 0
    assert len(shop.flows()) == 4


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("select a, a from t", [(1, 1), (3, 3)]),
        ("select a, a from t union all select b, b from t", [(1, 1), (2, 2), (3, 3), (4, 4)]),
        ("select a, a from t order by a limit 1", [(1, 1)]),
        ("with r (i, j) as (select a, a from t) select i, i from r where j > 1", [(3, 3)]),
        ("select s.a, u.a from t as s join t as u on s.a = u.a", [(1, 1), (3, 3)]),
    ],
)
def test_views_with_names_of_their_own_may_have_a_column_twice(
    cluster: timely.Cluster, query: str, answer: list[tuple[int, int]]
) -> None:
    cluster.sql("create table t (a int, b int); insert into t values (1, 2), (3, 4)")
    cluster.sql(f"create view n (x, y) as {query}")  # alone: then its types are not tried before
    cluster.sql(f"create view m (v, w) as {query}; create view o as select v + w as s from m")
    cluster.sql(f"create or replace view m (w, v) as {query}; create table k (x, y) as {query}")
    for entry in ("n", "m", "k"):
        assert sorted(rows(cluster, f"select * from {entry}")) == answer
    assert cluster.sql("select * from n").to_arrow().column_names == ["x", "y"]
    assert sorted(rows(cluster, "select s from o")) == [(x + y,) for x, y in answer]


def test_fails_in_one_view_of_three_until_the_row_goes(cluster: timely.Cluster) -> None:
    cluster.sql("""
        create table t (a int, b int); create view share as select a / b as q from t;
        create view total as select sum(a) as a from t;
        create view one as select a, (select b from t as o where o.a = t.a) as b from t;
        insert into t values (6, 2), (8, 0)
    """)
    with pytest.raises(timely.TimelyError, match="divides by zero in the row with b=0, a=8"):
        cluster.sql("select * from share")
    assert rows(cluster, "select * from total") == [(14,)]
    assert sorted(rows(cluster, "select * from one")) == [(6, 2), (8, 0)]
    cluster.sql("insert into t values (6, 3)")
    with pytest.raises(dd.NotEmptyError):
        cluster.sql("select * from one")
    cluster.sql("create view more as select a + 1 as a from total; insert into t values (1, 1)")
    assert rows(cluster, "select * from more") == [(22,)] and rows(cluster, "select * from total") == [(21,)]
    for view in ("share", "one"):
        with pytest.raises(timely.TimelyError):
            cluster.sql(f"select * from {view}")
    cluster.sql("delete from t where b in (0, 3)")
    assert sorted(rows(cluster, "select * from share")) == [(1.0,), (3.0,)]
    assert sorted(rows(cluster, "select * from one")) == [(1, 1), (6, 2)]
    assert rows(cluster, "select * from more") == [(8,)] and rows(cluster, "select * from total") == [(7,)]


def test_views_that_are_replaced_are_there_at_any_time(
    shop: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = timely.Cluster(shop._workers)
    uninstall, seen = timely.Flow.uninstall, []

    def watched(flow: timely.Flow, *, cascade: bool = False) -> None:
        if flow.name == "paid":
            seen.append(rows(other, "select * from large order by 1"))
        uninstall(flow, cascade=cascade)

    monkeypatch.setattr(timely.Flow, "uninstall", watched)
    shop.sql("create or replace view paid as select customer, id * 40 as cents from orders")
    assert seen == [[("ann",)]]
    assert rows(other, "select * from large order by 1") == [("ann",), ("bob",)]
    assert sorted(shop.flows().values()) == ["large", "late", "orders", "paid"]
    with pytest.raises(dd.SqlError, match="there is no column cents"):
        shop.sql("create or replace view paid as select id from orders")
    assert rows(other, "select * from large order by 1") == [("ann",), ("bob",)]


def test_a_name_that_two_clients_create_at_once_is_made_once(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = timely.Cluster(cluster._workers)
    install = cluster.install

    def late(build: object, **arguments: object) -> timely.Flow:
        other.sql("create table t (b string)")
        return install(build, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(cluster, "install", late)
    with pytest.raises(dd.SqlError, match="t exists already: another client has made it at the same time"):
        cluster.sql("create table t (a int)")
    assert list(cluster.flows().values()) == ["t"] and rows(cluster, "describe t")[0][0] == "b"


def test_what_another_client_drops_meanwhile_stops_only_statements_that_read_it(
    shop: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = timely.Cluster(shop._workers)
    refresh = timely.Flow.refresh
    dropping = ["drop table late cascade"]

    def late(flow: timely.Flow) -> int:
        while dropping:
            other.sql(dropping.pop())
        return refresh(flow)

    monkeypatch.setattr(timely.Flow, "refresh", late)
    assert rows(shop, "select count(*) as n from orders") == [(3,)]
    dropping.append("drop table orders")
    with pytest.raises(dd.SqlError, match=r"^<sql>:1:11: the table orders has been dropped meanwhile$"):
        shop.sql("select 1; select count(*) as n from orders")


def test_an_embedded_durable_cluster_has_rows_again_when_its_statements_are_run_again(tmp_path: Path) -> None:
    for begun in range(2):
        with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster:
            cluster.sql(SHOP.rpartition(";")[0])
            assert len(rows(cluster, "select * from late")) == begun
            cluster.sql("insert into late values (:id)", id=begun)
