"""Queries of TPC-H about orders and who placed them: ours, with the SQL text in the docstring.

Named by the number that they have there. `ORDER BY` without a limit says nothing about a collection and is
left out; where there is a limit, the order has been completed by a key.
"""

from __future__ import annotations

from datetime import date

from sql.tpch.tables import Tables

import differential as dd
from differential import Collection, Expr, col

__all__ = ["OF_ORDERS"]


def _revenue() -> Expr:
    return col.l_extendedprice * (100 - col.l_discount)


def _of_region(t: Tables, region: str) -> Collection:
    """The nations of a region."""
    named = t.region.filter(col.r_name == region)
    return t.nation.join(named, on=[("n_regionkey", "r_regionkey")], how="semi")


def q1(t: Tables) -> Collection:
    """
    SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
           sum(l_extendedprice * (100 - l_discount)),
           sum(l_extendedprice * (100 - l_discount) * (100 + l_tax)), count(*)
    FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus
    """
    shipped = t.lineitem.filter(col.l_shipdate <= date(1998, 9, 2))
    priced = shipped.with_columns(price=_revenue(), charge=_revenue() * (100 + col.l_tax))
    return priced.group_by("l_returnflag", "l_linestatus").agg(
        quantity=dd.sum("l_quantity"),
        base=dd.sum("l_extendedprice"),
        price=dd.sum("price"),
        charge=dd.sum("charge"),
        n=dd.count(),
    )


def q3(t: Tables) -> Collection:
    """
    SELECT l_orderkey, sum(l_extendedprice * (100 - l_discount)) AS revenue, o_orderdate, o_shippriority
    FROM customer, orders, lineitem
    WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
      AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
    GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, l_orderkey LIMIT 10
    """
    buyers = t.customer.filter(col.c_mktsegment == "BUILDING")
    placed = t.orders.filter(col.o_orderdate < date(1995, 3, 15)).join(
        buyers, on=[("o_custkey", "c_custkey")], how="semi"
    )
    lines = t.lineitem.filter(col.l_shipdate > date(1995, 3, 15)).with_columns(revenue=_revenue())
    found = lines.join(placed, on=[("l_orderkey", "o_orderkey")])
    sums = found.group_by("l_orderkey", "o_orderdate", "o_shippriority").agg(revenue=dd.sum("revenue"))
    first = sums.top_k(10, [col.revenue.desc(), "l_orderkey"])
    return first.select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")


def q4(t: Tables) -> Collection:
    """
    SELECT o_orderpriority, count(*) FROM orders
    WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND EXISTS (
        SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
    GROUP BY o_orderpriority
    """
    late = t.lineitem.filter(col.l_commitdate < col.l_receiptdate)
    placed = t.orders.filter(col.o_orderdate >= date(1993, 7, 1), col.o_orderdate < date(1993, 10, 1))
    found = placed.join(late, on=[("o_orderkey", "l_orderkey")], how="semi")
    return found.group_by("o_orderpriority").agg(n=dd.count())


def q5(t: Tables) -> Collection:
    """
    SELECT n_name, sum(l_extendedprice * (100 - l_discount))
    FROM customer, orders, lineitem, supplier, nation, region
    WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
      AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
      AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
    GROUP BY n_name
    """
    placed = t.orders.filter(col.o_orderdate >= date(1994, 1, 1), col.o_orderdate < date(1995, 1, 1))
    bought = placed.join(t.customer, on=[("o_custkey", "c_custkey")])
    lines = t.lineitem.with_columns(revenue=_revenue()).join(bought, on=[("l_orderkey", "o_orderkey")])
    home = [("l_suppkey", "s_suppkey"), ("c_nationkey", "s_nationkey")]
    sold = lines.join(t.supplier, on=home)
    named = sold.join(_of_region(t, "ASIA"), on=[("c_nationkey", "n_nationkey")])
    return named.group_by("n_name").agg(revenue=dd.sum("revenue"))


def q6(t: Tables) -> Collection:
    """
    SELECT sum(l_extendedprice * l_discount) FROM lineitem
    WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
      AND l_discount BETWEEN 5 AND 7 AND l_quantity < 24
    """
    sold = t.lineitem.filter(
        col.l_shipdate >= date(1994, 1, 1),
        col.l_shipdate < date(1995, 1, 1),
        col.l_discount.between(5, 7),
        col.l_quantity < 24,
    )
    return sold.select(saved=col.l_extendedprice * col.l_discount).group_by().agg(revenue=dd.sum("saved"))


def q7(t: Tables) -> Collection:
    """
    SELECT n1.n_name, n2.n_name, year(l_shipdate), sum(l_extendedprice * (100 - l_discount))
    FROM supplier, lineitem, orders, customer, nation n1, nation n2
    WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
      AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
      AND (n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY' OR n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')
      AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
    GROUP BY ALL
    """
    both = t.nation.filter(col.n_name.is_in(["FRANCE", "GERMANY"])).select("n_nationkey", "n_name")
    sellers = t.supplier.join(both, on=[("s_nationkey", "n_nationkey")]).select(
        "s_suppkey", seller=col.n_name
    )
    buyers = t.customer.join(both, on=[("c_nationkey", "n_nationkey")]).select("c_custkey", buyer=col.n_name)
    lines = t.lineitem.filter(col.l_shipdate.between(date(1995, 1, 1), date(1996, 12, 31)))
    sold = (
        lines.select("l_orderkey", "l_suppkey", year=col.l_shipdate.dt.year(), revenue=_revenue())
        .join(sellers, on=[("l_suppkey", "s_suppkey")])
        .join(t.orders, on=[("l_orderkey", "o_orderkey")])
        .join(buyers, on=[("o_custkey", "c_custkey")], where=col.seller != col.buyer)
    )
    return sold.group_by("seller", "buyer", "year").agg(revenue=dd.sum("revenue"))


def q8(t: Tables) -> Collection:
    """
    SELECT year(o_orderdate) AS y,
           sum(CASE WHEN n2.n_name = 'BRAZIL' THEN l_extendedprice * (100 - l_discount) ELSE 0 END)::DOUBLE
             / sum(l_extendedprice * (100 - l_discount))
    FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey
      AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey
      AND r_name = 'AMERICA' AND s_nationkey = n2.n_nationkey
      AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' AND p_type LIKE 'ECONOMY%'
    GROUP BY y
    """
    buyers = t.customer.join(_of_region(t, "AMERICA"), on=[("c_nationkey", "n_nationkey")], how="semi")
    placed = t.orders.filter(col.o_orderdate.between(date(1995, 1, 1), date(1996, 12, 31))).join(
        buyers, on=[("o_custkey", "c_custkey")], how="semi"
    )
    wanted = t.part.filter(col.p_type.like("ECONOMY%"))
    sold = (
        t.lineitem.join(wanted, on=[("l_partkey", "p_partkey")], how="semi")
        .join(placed, on=[("l_orderkey", "o_orderkey")])
        .join(t.supplier, on=[("l_suppkey", "s_suppkey")])
        .join(t.nation, on=[("s_nationkey", "n_nationkey")])
    )
    theirs = dd.when(col.n_name == "BRAZIL").then(_revenue()).otherwise(0)
    sums = (
        sold.select(y=col.o_orderdate.dt.year(), theirs=theirs, revenue=_revenue())
        .group_by("y")
        .agg(theirs=dd.sum("theirs"), all=dd.sum("revenue"))
    )
    return sums.select("y", share=col.theirs / col.all)


def q10(t: Tables) -> Collection:
    """
    SELECT c_custkey, c_name, sum(l_extendedprice * (100 - l_discount)) AS revenue, c_acctbal, n_name
    FROM customer, orders, lineitem, nation
    WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R'
      AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND c_nationkey = n_nationkey
    GROUP BY c_custkey, c_name, c_acctbal, n_name ORDER BY revenue DESC, c_custkey LIMIT 20
    """
    placed = t.orders.filter(col.o_orderdate >= date(1993, 10, 1), col.o_orderdate < date(1994, 1, 1))
    lines = t.lineitem.filter(col.l_returnflag == "R").select("l_orderkey", revenue=_revenue())
    lost = (
        lines.join(placed, on=[("l_orderkey", "o_orderkey")])
        .group_by("o_custkey")
        .agg(revenue=dd.sum("revenue"))
    )
    named = lost.join(t.customer, on=[("o_custkey", "c_custkey")]).join(
        t.nation, on=[("c_nationkey", "n_nationkey")]
    )
    first = named.top_k(20, [col.revenue.desc(), "o_custkey"])
    return first.select("o_custkey", "c_name", "revenue", "c_acctbal", "n_name")


def q12(t: Tables) -> Collection:
    """
    SELECT l_shipmode, sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END),
           sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END)
    FROM orders, lineitem
    WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
      AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
      AND l_receiptdate < DATE '1995-01-01'
    GROUP BY l_shipmode
    """
    late = t.lineitem.filter(
        col.l_shipmode.is_in(["MAIL", "SHIP"]),
        col.l_commitdate < col.l_receiptdate,
        col.l_shipdate < col.l_commitdate,
        col.l_receiptdate >= date(1994, 1, 1),
        col.l_receiptdate < date(1995, 1, 1),
    )
    urgent = col.o_orderpriority.is_in(["1-URGENT", "2-HIGH"]).cast("int")
    told = late.join(t.orders, on=[("l_orderkey", "o_orderkey")]).select(
        "l_shipmode", high=urgent, low=1 - urgent
    )
    return told.group_by("l_shipmode").agg(high=dd.sum("high"), low=dd.sum("low"))


def q13(t: Tables) -> Collection:
    """
    SELECT c_count, count(*) FROM (
        SELECT c_custkey, count(o_orderkey) AS c_count
        FROM customer LEFT JOIN orders
          ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
        GROUP BY c_custkey) AS t
    GROUP BY c_count
    """
    other = ~col.o_comment.like("%special%requests%")
    placed = t.customer.join(t.orders, on=[("c_custkey", "o_custkey")], how="left", where=other)
    counted = placed.select("c_custkey", one=col.o_orderkey.is_not_null().cast("int"))
    each = counted.group_by("c_custkey").agg(c_count=dd.sum("one"))
    return each.group_by("c_count").agg(n=dd.count())


def q18(t: Tables) -> Collection:
    """
    SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
    FROM customer, orders, lineitem
    WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250)
      AND c_custkey = o_custkey AND o_orderkey = l_orderkey
    GROUP BY ALL ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100
    """
    large = t.lineitem.group_by("l_orderkey").agg(quantity=dd.sum("l_quantity")).filter(col.quantity > 250)
    found = t.orders.join(large, on=[("o_orderkey", "l_orderkey")]).join(
        t.customer, on=[("o_custkey", "c_custkey")]
    )
    first = found.top_k(100, [col.o_totalprice.desc(), "o_orderdate", "o_orderkey"])
    return first.select("c_name", "o_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "quantity")


def q21(t: Tables) -> Collection:
    """
    SELECT s_name, count(*) AS n FROM supplier, lineitem l1, orders, nation
    WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
      AND l1.l_receiptdate > l1.l_commitdate AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
      AND EXISTS (SELECT * FROM lineitem l2
                  WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
      AND NOT EXISTS (SELECT * FROM lineitem l3
                      WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
                        AND l3.l_receiptdate > l3.l_commitdate)
    GROUP BY s_name ORDER BY n DESC, s_name LIMIT 100
    """
    late = t.lineitem.filter(col.l_receiptdate > col.l_commitdate).select(
        "l_orderkey", "l_suppkey", "l_linenumber"
    )
    home = t.nation.filter(col.n_name == "SAUDI ARABIA")
    sellers = t.supplier.join(home, on=[("s_nationkey", "n_nationkey")], how="semi")
    done = t.orders.filter(col.o_orderstatus == "F")
    others = t.lineitem.select("l_orderkey", other=col.l_suppkey)
    others_late = late.select("l_orderkey", other=col.l_suppkey)
    waiting = (
        late.join(sellers, on=[("l_suppkey", "s_suppkey")])
        .join(done, on=[("l_orderkey", "o_orderkey")], how="semi")
        .join(others, on="l_orderkey", how="semi", where=col.l_suppkey != col.other)
        .join(others_late, on="l_orderkey", how="anti", where=col.l_suppkey != col.other)
    )
    return waiting.group_by("s_name").agg(n=dd.count()).top_k(100, [col.n.desc(), "s_name"])


OF_ORDERS = [q1, q3, q4, q5, q6, q7, q8, q10, q12, q13, q18, q21]
