"""Queries of TPC-H about parts, who sells them and who has not ordered: ours, with the SQL text in the
docstring; see `of_orders.py`.
"""

from __future__ import annotations

from datetime import date

from sql.tpch.tables import Tables

import differential as dd
from differential import Collection, Expr, col

__all__ = ["OF_PARTS"]


def _revenue() -> Expr:
    return col.l_extendedprice * (100 - col.l_discount)


def q2(t: Tables) -> Collection:
    """
    SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr
    FROM part, supplier, partsupp, nation, region
    WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size < 15 AND p_type LIKE '%BRASS'
      AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
      AND ps_supplycost = (
        SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region
        WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
          AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
    ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100
    """
    europe = t.region.filter(col.r_name == "EUROPE")
    nations = t.nation.join(europe, on=[("n_regionkey", "r_regionkey")], how="semi")
    sellers = t.supplier.join(nations, on=[("s_nationkey", "n_nationkey")])
    wanted = t.part.filter(col.p_size < 15, col.p_type.like("%BRASS"))
    offers = t.partsupp.join(wanted, on=[("ps_partkey", "p_partkey")]).join(
        sellers, on=[("ps_suppkey", "s_suppkey")]
    )
    least = offers.group_by("ps_partkey").agg(least=dd.min("ps_supplycost"))
    best = offers.join(least, on=[("ps_partkey", "ps_partkey"), ("ps_supplycost", "least")])
    first = best.top_k(100, [col.s_acctbal.desc(), "n_name", "s_name", "ps_partkey"])
    return first.select("s_acctbal", "s_name", "n_name", "ps_partkey", "p_mfgr")


def q9(t: Tables) -> Collection:
    """
    SELECT n_name, year(o_orderdate), sum(l_extendedprice * (100 - l_discount)
                                           - ps_supplycost * l_quantity * 100)
    FROM part, supplier, lineitem, partsupp, orders, nation
    WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
      AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
      AND p_name LIKE '%green%'
    GROUP BY ALL
    """
    green = t.part.filter(col.p_name.contains("green"))
    sold = (
        t.lineitem.join(green, on=[("l_partkey", "p_partkey")], how="semi")
        .join(t.partsupp, on=[("l_partkey", "ps_partkey"), ("l_suppkey", "ps_suppkey")])
        .join(t.orders, on=[("l_orderkey", "o_orderkey")])
        .join(t.supplier, on=[("l_suppkey", "s_suppkey")])
        .join(t.nation, on=[("s_nationkey", "n_nationkey")])
    )
    profit = _revenue() - col.ps_supplycost * col.l_quantity * 100
    each = sold.select("n_name", year=col.o_orderdate.dt.year(), profit=profit)
    return each.group_by("n_name", "year").agg(profit=dd.sum("profit"))


def q11(t: Tables) -> Collection:
    """
    SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS stock
    FROM partsupp, supplier, nation
    WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
    GROUP BY ps_partkey HAVING sum(ps_supplycost * ps_availqty) * 200 > (
        SELECT sum(ps_supplycost * ps_availqty) FROM partsupp, supplier, nation
        WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
    """
    home = t.nation.filter(col.n_name == "GERMANY")
    sellers = t.supplier.join(home, on=[("s_nationkey", "n_nationkey")], how="semi")
    kept = t.partsupp.join(sellers, on=[("ps_suppkey", "s_suppkey")], how="semi").select(
        "ps_partkey", value=col.ps_supplycost * col.ps_availqty
    )
    each = kept.group_by("ps_partkey").agg(stock=dd.sum("value"))
    whole = kept.group_by().agg(whole=dd.sum("value"))
    return each.cross_join(whole).filter(col.stock * 200 > col.whole).select("ps_partkey", "stock")


def q14(t: Tables) -> Collection:
    """
    SELECT 100 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (100 - l_discount) ELSE 0 END)
             ::DOUBLE / sum(l_extendedprice * (100 - l_discount))
    FROM lineitem, part
    WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'
    """
    shipped = t.lineitem.filter(col.l_shipdate >= date(1995, 9, 1), col.l_shipdate < date(1995, 10, 1))
    sold = shipped.join(t.part, on=[("l_partkey", "p_partkey")])
    promoted = dd.when(col.p_type.startswith("PROMO")).then(_revenue()).otherwise(0)
    sums = (
        sold.select(promoted=promoted, all=_revenue())
        .group_by()
        .agg(promoted=dd.sum("promoted"), all=dd.sum("all"))
    )
    return sums.select(share=100 * col.promoted / col.all)


def q15(t: Tables) -> Collection:
    """
    WITH revenue AS (
        SELECT l_suppkey, sum(l_extendedprice * (100 - l_discount)) AS total FROM lineitem
        WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey)
    SELECT s_suppkey, s_name, total FROM supplier, revenue
    WHERE s_suppkey = l_suppkey AND total = (SELECT max(total) FROM revenue)
    """
    shipped = t.lineitem.filter(col.l_shipdate >= date(1996, 1, 1), col.l_shipdate < date(1996, 4, 1))
    revenue = shipped.select("l_suppkey", r=_revenue()).group_by("l_suppkey").agg(total=dd.sum("r"))
    most = revenue.group_by().agg(most=dd.max("total"))
    best = revenue.join(most, on=[("total", "most")], how="semi")
    named = best.join(t.supplier, on=[("l_suppkey", "s_suppkey")])
    return named.select("l_suppkey", "s_name", "total")


def q16(t: Tables) -> Collection:
    """
    SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) FROM partsupp, part
    WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
      AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
      AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
    GROUP BY p_brand, p_type, p_size
    """
    wanted = t.part.filter(
        col.p_brand != "Brand#45",
        ~col.p_type.like("MEDIUM POLISHED%"),
        col.p_size.is_in([49, 14, 23, 45, 19, 3, 36, 9]),
    )
    refused = t.supplier.filter(col.s_comment.like("%Customer%Complaints%"))
    offers = t.partsupp.join(wanted, on=[("ps_partkey", "p_partkey")]).join(
        refused, on=[("ps_suppkey", "s_suppkey")], how="anti"
    )
    sellers = offers.select("p_brand", "p_type", "p_size", "ps_suppkey").distinct()
    return sellers.group_by("p_brand", "p_type", "p_size").agg(n=dd.count())


def q17(t: Tables) -> Collection:
    """
    SELECT sum(l_extendedprice) / 7.0 FROM lineitem, part
    WHERE p_partkey = l_partkey AND p_brand LIKE 'Brand#2%' AND p_container LIKE '%BOX' AND l_quantity < (
        SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)
    """
    boxes = t.part.filter(col.p_brand.startswith("Brand#2"), col.p_container.like("%BOX"))
    sold = t.lineitem.join(boxes, on=[("l_partkey", "p_partkey")], how="semi")
    usual = sold.group_by("l_partkey").agg(n=dd.count(), total=dd.sum("l_quantity"))
    small = sold.join(usual, on="l_partkey", where=5 * col.l_quantity * col.n < col.total)
    return small.group_by().agg(cents=dd.sum("l_extendedprice")).select(yearly=col.cents / 7)


def q19(t: Tables) -> Collection:
    """
    SELECT sum(l_extendedprice * (100 - l_discount)) FROM lineitem, part
    WHERE p_partkey = l_partkey AND l_shipmode IN ('AIR', 'REG AIR')
      AND l_shipinstruct = 'DELIVER IN PERSON'
      AND (p_brand LIKE 'Brand#1%' AND p_container LIKE 'SM%' AND l_quantity BETWEEN 1 AND 11
             AND p_size BETWEEN 1 AND 5
           OR p_brand LIKE 'Brand#2%' AND p_container LIKE 'MED%' AND l_quantity BETWEEN 10 AND 20
             AND p_size BETWEEN 1 AND 10
           OR p_brand LIKE 'Brand#3%' AND p_container LIKE 'LG%' AND l_quantity BETWEEN 20 AND 30
             AND p_size BETWEEN 1 AND 15)
    """

    def kind(brand: str, container: str, quantity: int, size: int) -> Expr:
        part = col.p_brand.startswith(brand) & col.p_container.startswith(container)
        return part & col.l_quantity.between(quantity, quantity + 10) & col.p_size.between(1, size)

    flown = t.lineitem.filter(
        col.l_shipmode.is_in(["AIR", "REG AIR"]), col.l_shipinstruct == "DELIVER IN PERSON"
    )
    sold = flown.join(
        t.part,
        on=[("l_partkey", "p_partkey")],
        where=kind("Brand#1", "SM", 1, 5) | kind("Brand#2", "MED", 10, 10) | kind("Brand#3", "LG", 20, 15),
    )
    return sold.select(r=_revenue()).group_by().agg(revenue=dd.sum("r"))


def q20(t: Tables) -> Collection:
    """
    SELECT s_name FROM supplier, nation
    WHERE s_suppkey IN (
        SELECT ps_suppkey FROM partsupp
        WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'f%') AND 2 * ps_availqty > (
            SELECT sum(l_quantity) FROM lineitem
            WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
              AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'))
      AND s_nationkey = n_nationkey AND n_name LIKE 'C%'
    """
    shipped = t.lineitem.filter(col.l_shipdate >= date(1994, 1, 1), col.l_shipdate < date(1995, 1, 1))
    sold = shipped.group_by("l_partkey", "l_suppkey").agg(sold=dd.sum("l_quantity"))
    wanted = t.part.filter(col.p_name.startswith("f"))
    offered = t.partsupp.join(wanted, on=[("ps_partkey", "p_partkey")], how="semi")
    both = [("ps_partkey", "l_partkey"), ("ps_suppkey", "l_suppkey")]
    plenty = offered.join(sold, on=both, how="semi", where=2 * col.ps_availqty > col.sold)
    home = t.nation.filter(col.n_name.like("C%"))
    sellers = t.supplier.join(home, on=[("s_nationkey", "n_nationkey")], how="semi")
    return sellers.join(plenty, on=[("s_suppkey", "ps_suppkey")], how="semi").select("s_name")


def q22(t: Tables) -> Collection:
    """
    WITH rich AS (
        SELECT substring(c_phone, 1, 2) AS code, c_custkey, c_acctbal FROM customer
        WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17'))
    SELECT code, count(*), sum(c_acctbal) FROM rich
    WHERE c_acctbal > (SELECT avg(c_acctbal) FROM rich WHERE c_acctbal > 0)
      AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)
    GROUP BY code
    """
    coded = t.customer.select("c_custkey", "c_acctbal", code=col.c_phone.substr(1, 2))
    rich = coded.filter(col.code.is_in(["13", "31", "23", "29", "30", "18", "17"]))
    usual = rich.filter(col.c_acctbal > 0).group_by().agg(n=dd.count(), total=dd.sum("c_acctbal"))
    above = rich.cross_join(usual).filter(col.c_acctbal * col.n > col.total)
    idle = above.join(t.orders, on=[("c_custkey", "o_custkey")], how="anti")
    return idle.group_by("code").agg(customers=dd.count(), balance=dd.sum("c_acctbal"))


OF_PARTS = [q2, q9, q11, q14, q15, q16, q17, q19, q20, q22]
