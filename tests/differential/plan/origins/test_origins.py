"""origins.py: `rows.x` is the same column behind operators and joins, as long as it is there.

columns_*   what it is called there
refused_*   an error with the user's line where it is not there, or may be one of two
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

import differential as dd
import differential.functions
from differential import Collection, col
from differential.errors import ExpressionError, SchemaError
from timely import Dataflow

ORDERS = "id: int, cust: int?, cents: int, k: string"
CUSTOMERS = "id: int, name: string, k: string"


def inputs() -> tuple[Collection, Collection]:
    flow = Dataflow("query")
    return dd.input(flow, "orders", ORDERS), dd.input(flow, "customers", CUSTOMERS)


def _plan(rows: Collection) -> bytes:
    return rows.node.digest


@pytest.mark.parametrize(
    ("owned", "by_name"),
    [
        (lambda o: o.filter(o.cents > 3), lambda o: o.filter(col.cents > 3)),
        (lambda o: o[["id", o.k]], lambda o: o.select("id", "k")),
        (lambda o: o.select("id", o.id, col.id), lambda o: o.select("id")),
        (lambda o: o.select(o[0], o["k"]), lambda o: o.select("id", "k")),
        (lambda o: o.filter(o.id > 1).select(o.id), lambda o: o.filter(col.id > 1).select("id")),
        (lambda o: o.distinct().drop(o.k, o.cust), lambda o: o.distinct().drop("k", "cust")),
        (
            lambda o: o.rename({"cents": "c"}).filter(o.cents > 1),
            lambda o: o.rename({"cents": "c"}).filter(col.c > 1),
        ),
        (
            lambda o: o.groupBy(o.k).agg(t=dd.sum(o.cents)).filter(o.k > "a"),
            lambda o: o.group_by("k").agg(t=dd.sum("cents")).filter(col.k > "a"),
        ),
        (lambda o: o.orderBy(o.cents.desc()).limit(3), lambda o: o.order_by(col.cents.desc()).limit(3)),
        (lambda o: o.top_k(3, o.cents, keys=o.k), lambda o: o.top_k(3, "cents", keys="k")),
        (
            lambda o: o.over(o.k, by=o.id).with_columns(s=dd.sum(o.cents)).filter(o.id > 1),
            lambda o: o.over("k", by="id").with_columns(s=dd.sum("cents")).filter(col.id > 1),
        ),
        (lambda o: o.withColumn("y", o.cents * 2), lambda o: o.with_columns(y=col.cents * 2)),
        (lambda o: o.drop_nulls(o.cust).select(o.cust), lambda o: o.drop_nulls("cust").select("cust")),
        (
            lambda o: o.select("id", copy=col.id).select(o.id),
            lambda o: o.select("id", copy=col.id).select("id"),
        ),
        (
            lambda o: o.select(a=col.id, b=col.id).select(o.id),
            lambda o: o.select(a=col.id, b=col.id).select(id=col.a),
        ),
        (lambda o: o.concat(o).select(o.id), lambda o: o.concat(o).select("id")),
        (lambda o: o.drop_duplicates(o.k), lambda o: o.drop_duplicates("k")),
        (lambda o: o.fill_null(0, subset=[o.cust]), lambda o: o.fill_null(0, subset=["cust"])),
    ],
)
def test_columns_of_an_owner_are_those_by_name(
    owned: Callable[[Collection], Collection], by_name: Callable[[Collection], Collection]
) -> None:
    orders, _ = inputs()
    assert _plan(owned(orders)) == _plan(by_name(orders))


def test_columns_of_joins_are_those_of_their_sides() -> None:
    o, c = inputs()
    joined = o.join(c, o.cust == c.id, "left")
    assert joined.schema.names == (*o.schema.names, "id_right", "name", "k_right")
    assert _plan(joined.select(c.k)) == _plan(joined.select(k=col.k_right))
    assert _plan(joined.filter(c.id.isNull()).drop(c.id)) == _plan(
        joined.filter(col.id_right.is_null()).drop("id_right")
    )
    assert joined.groupBy(c.k).agg(n=dd.count(o.k)).schema.names == ("k", "n")
    again = joined.join(c.alias("other"), "name", suffix="_other")
    assert _plan(again.select(o.id)) == _plan(again.select("id"))
    by_name = o.join(c, "id", suffix="_c")
    assert _plan(by_name.select(o.id, c.k)) == _plan(by_name.select(id=col.id, k=col.k_c))
    assert _plan(o.join(c, "id", "semi").select(o.k)) == _plan(o.join(c, "id", "semi").select("k"))
    assert o.join(c, "id", "right", suffix="_c").select(c.id).schema.names == ("id",)
    pairs = o.theta_join(c, o.cents < c.id, suffix="_c")
    assert _plan(pairs.select(c.id)) == _plan(pairs.select(id=col.id_c))


def test_columns_of_a_self_join_are_told_apart_by_an_alias_or_by_what_is_derived() -> None:
    o, _ = inputs()
    a, b = o.alias("a"), o.alias("b")
    pairs = a.join(b, a.id == b.cust)
    children = pairs.select(a.id, b.id.alias("child"))
    assert _plan(children) == _plan(pairs.select("id", child=col.id_right))
    large = o.filter(o.cents > 10)
    with_large = o.join(large, o.id == large.cust)
    assert with_large.select(large.id.alias("x"), o.id).schema.names == ("x", "id")


def test_keys_of_joins_are_those_of_their_owners() -> None:
    o, c = inputs()
    x = dd.input(o.dataflow, "x", "id: int, z: int")
    joined = o.join(c, o.cust == c.id)
    by_name = _plan(joined.join(x, {"id_right": "id"}, suffix="_x"))
    assert _plan(joined.join(x, c.id, suffix="_x")) == by_name
    assert _plan(joined.join(x, [c.id], suffix="_x")) == by_name
    assert _plan(joined.join(x, [(c.id, x.id)], suffix="_x")) == by_name
    assert _plan(joined.join(x, left_on=c.id, right_on=x.id, suffix="_x")) == by_name
    assert _plan(joined.join(x, x.id)) == _plan(joined.join(x, "id"))
    renamed = x.rename(z="zz", id="key")
    assert _plan(o.join(renamed, [(o.id, x.id)])) == _plan(o.join(renamed, {"id": "key"}))
    with pytest.raises(ExpressionError, match="these rows do not have it"):
        o.join(x, c.id)


def test_columns_behind_explode_are_those_before() -> None:
    o, c = inputs()
    words = o.with_columns(k=dd.functions.split("k", ",")).explode("k")
    assert words.select(o.id, o.cents).schema.names == ("id", "cents")
    assert words.join(o, words.id == o.cust).select(words.k, o.k.alias("whole")).schema.names == (
        "k",
        "whole",
    )
    posts = dd.input(o.dataflow, "posts", "id: int, cust: int, tags: array<string>")
    tags = posts.explode("tags")
    again = tags.join(posts, tags.id == posts.cust)
    own = again.select(posts.id)
    assert _plan(own) == _plan(again.select(id=col.id_right)), "that side is the owner itself"
    with pytest.raises(ExpressionError, match="computed it anew"):
        words.select(o.k)
    joined = o.join(c, o.cust == c.id).with_columns(name=dd.functions.split("name", ","))
    assert _plan(joined.explode("name").select(c.k)) == _plan(joined.explode("name").select(k=col.k_right))


def test_aggregates_name_no_column_in_whose_place_a_key_is() -> None:
    o, c = inputs()
    joined = o.join(c, o.cust == c.id)
    by_key = joined.group_by(c.id)
    assert _plan(by_key.agg(s=dd.sum(o.id))) == _plan(
        joined.rename({"id": "id'", "id_right": "id"}).group_by("id").agg(s=dd.sum("id'"))
    )
    assert by_key.agg(m=dd.max(c.id), s=dd.sum("cents")).schema.names == ("id", "m", "s")
    for refused in (
        lambda: by_key.agg(s=dd.sum("id")),
        lambda: by_key.agg({"id": "sum"}),
        lambda: by_key.agg(dd.expr("sum(id) AS s")),
        lambda: by_key.order_by(col.id.desc()),
    ):
        with pytest.raises(SchemaError, match="'id' is a key here, in place of another column"):
            refused()


def test_columns_in_the_body_of_a_loop_are_those_of_its_collections() -> None:
    flow = Dataflow("query")
    edges, roots = dd.input(flow, "edges", "src: int, dst: int"), dd.input(flow, "roots", "at: int")

    def owned(r: Collection) -> Collection:
        return r.join(edges, r["at"] == edges.src).select(edges.dst.alias("at")).concat(roots).distinct()

    assert roots.iterate(owned).schema.names == ("at",)


def test_columns_with_names_of_methods_are_written_as_items() -> None:
    rows = dd.input(Dataflow("query"), "rows", "filter: int, count: int, sum: int, path: int")
    assert rows.filter(rows["filter"] > 1).schema == rows.schema
    assert repr(rows.sum) == "rows.sum" and repr(rows["path"]) == "rows.path"
    with pytest.raises(ExpressionError, match=r"no method 'count' .*dd\.count\(\).*rows\['count'\]"):
        rows.count()  # type: ignore[operator]  # that is the point
    with pytest.raises(ExpressionError, match=r"column of that name is rows\['path'\]"):
        rows.select(x=rows.path)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match=r"rows\['filter'\] == 1"):
        rows.filter(rows.filter == 1)  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda o, c: o.filter(c.name == "a"), r"rows\.name \(.*test_origins.py:\d+\) is a column of \(id:"),
        (lambda o, c: o.groupBy("k").agg(n=dd.count(c.name)), "these rows do not have it"),
        (lambda o, c: o.withColumn("cents", o.cents + 1).select(o.cents), "computed it anew"),
        (lambda o, c: o.select(cents=o.cents.cast("float")).select(o.cents), "computed it anew"),
        (lambda o, c: o.join(c, "id", "outer", suffix="_c").select(o.id), "these rows do not have it"),
        (lambda o, c: o.join(c, "id", "right", suffix="_c").select(o.id), "these rows do not have it"),
        (lambda o, c: o.select("id").filter(o.cents > 1), "has left the column out"),
        (lambda o, c: o.join(c, "id", "left", suffix="_c").select(c.id), "these rows do not have it"),
        (lambda o, c: o.join(o, o.id == o.cust), r"ambiguous: it is id and id_right (.|\n)* a\.id == b\.id"),
        (lambda o, c: o.join(c, o.cust == c.id).select(o.id, c.id), "two columns are called 'id'"),
        (lambda o, c: o.join(c, o.cust == c.id).select(c.id, "id"), "two columns are called 'id'"),
        (lambda o, c: o.select("id", o.cents.alias("id")), "two columns are called 'id'"),
        (lambda o, c: o.join(c, col.id == col.id), r"both sides have a column 'id'.*Write on='id'"),
        (lambda o, c: o.join(c, o.cust + c.id), r"is int\?, and no condition"),
        (lambda o, c: o.join(c, o.cust == c.id, where=o.cents > 1), "write where= as a part of it"),
        (lambda o, c: o.join(c, True), r"on=True is neither columns nor a condition"),
        (lambda o, c: o.join(c, [o.cust == c.id, "k"]), "names of columns, or conditions; not both"),
        (lambda o, c: o["nam"], "there is no column 'nam'"),
        (lambda o, c: o[99], "no list"),
        (lambda o, c: o.alias(3), r"alias\('a'\)"),
    ],
)
def test_refused_columns_of_others(build: Callable[[Collection, Collection], object], said: str) -> None:
    with pytest.raises((ExpressionError, SchemaError), match=said):
        build(*inputs())


def test_refused_to_go_through_a_collection() -> None:
    orders, _ = inputs()
    with pytest.raises(TypeError, match="read flow.output"):
        list(orders)  # type: ignore[call-overload]  # that is the point
    with pytest.raises(TypeError, match=r"'x' in a\.columns"):
        "cents" in orders  # type: ignore[operator]  # noqa: B015


def test_refused_a_name_that_is_no_column() -> None:
    orders, _ = inputs()
    with pytest.raises(AttributeError, match="Did you mean 'cents'"):
        orders.cent  # noqa: B018


def test_collections_with_any_columns_can_be_copied() -> None:
    orders, _ = inputs()
    assert copy.copy(orders).schema == orders.schema
    assert not hasattr(orders, "__deepcopy__"), "names that Python asks for are no columns"
    assert not hasattr(orders, "__len_hint__") and not hasattr(object.__new__(Collection), "cents")
