"""Second spellings of collections and groups are the methods, and none of their own."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from functools import reduce
from operator import attrgetter
from pathlib import Path

import pytest

import differential as dd
from differential import Collection, Grouped, col
from differential.collections.in_order.ordered import Ordered
from differential.other_spellings import of_collections
from differential.other_spellings.table import COLLECTIONS, GROUPS, ORDERS
from timely import Dataflow, TimelyError
from timely.user_code.spellings import Same

SECOND = {
    **{("rows", name): entry for name, entry in COLLECTIONS.names.items() if isinstance(entry, Same)},
    **{("groups", name): entry for name, entry in GROUPS.names.items() if isinstance(entry, Same)},
    **{("orders", name): entry for name, entry in ORDERS.names.items() if isinstance(entry, Same)},
}


@pytest.mark.parametrize(("kind", "name"), SECOND)
def test_a_second_spelling_is_the_method_and_none_of_its_own(kind: str, name: str) -> None:
    rows = dd.input(Dataflow(), "rows", "k: int, v: int?")
    thing = {"rows": rows, "groups": rows.group_by("k"), "orders": rows.order_by("k")}[kind]
    first = SECOND[kind, name].attribute
    found, method = getattr(thing, name), getattr(type(thing), first, None)
    assert name not in dir(thing) and name not in dir(type(thing)), "tab completion shows one name"
    if inspect.isfunction(method):
        assert found.__self__ is thing and found.__func__ is method
        assert getattr(type(thing), name) is method, "of the class, too"
    else:
        assert found == attrgetter(first)(thing), "a property"


def test_all_are_written_with_the_arguments_of_their_libraries() -> None:
    """PySpark's camelCase above all; `test_selecting.py` and `test_sets.py` have the rest."""
    rows = dd.input(Dataflow(), "rows", "k: int, v: int?")
    assert rows.withColumn("w", col.k).schema.names == ("k", "v", "w")
    assert rows.withColumns({"w": col.k, "x": col.k}).schema.names == ("k", "v", "w", "x")
    assert rows.withColumnRenamed("k", "n").withColumnsRenamed({"n": "m"}).schema.names == ("m", "v")
    wider = rows.unionByName(rows.select("k", w=col.k), allowMissingColumns=True)
    assert wider.schema.names == ("k", "v", "w")
    assert rows.groupBy("k").mean("v").schema.names == ("k", "avg_v")
    assert rows.groupBy("k").count().having(col.count > 1).schema.names == ("k", "count")


def test_names_on_the_class_are_functions_of_an_object() -> None:
    rows = dd.input(Dataflow(), "rows", "k: int, s: string")
    assert reduce(Collection.unionAll, [rows, rows, rows]).schema == rows.schema
    assert reduce(Collection.unionByName, [rows, rows]).schema == rows.schema
    assert dd.Expr.contains(col.s, "a").equals(col.s.str.contains("a"))
    with pytest.raises(AttributeError, match=r"^type object 'Collection' has no attribute 'sample'\. Write "):
        _ = Collection.sample  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"^type object 'Collection' has no attribute '_none'$"):
        _ = Collection._none  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda c: c.toDF("a"), "there are 2, k, v. For some of them write rename("),
        (lambda c: c.cast("int"), "write cast({'x': 'int'}), or with_columns(x=col.x.cast('int'))"),
        (lambda c: c.join_where(c), "needs a condition, as in col.x < col.y"),
        (lambda c: c.na.drop(how="all"), "drop_nulls('x', 'y')"),
        (lambda c: c.filter(col.k.is_between(1, 2, closed="open")), "one of both, left, right, none"),
        (lambda c: c.agg(n=col.k.std(ddof=2)), "write 1 for n - 1, or 0 for n"),
        (lambda c: c.order_by(dd.desc(1)), "write asc('x'), or col.x.asc()"),
    ],
)
def test_forms_of_other_libraries_say_what_they_take(
    wrong: Callable[[dd.Collection], object], told: str
) -> None:
    with pytest.raises(TimelyError, match=re.escape(told)):
        wrong(dd.input(Dataflow(), "rows", "k: int, v: int?"))


def test_editors_read_the_second_spellings_of_the_table_and_no_others() -> None:
    """`test_catalogued.py` holds the whole stub."""
    stub = ast.parse(Path(of_collections.__file__).with_suffix(".pyi").read_text())
    named = {
        part.name: {each.name for each in part.body if isinstance(each, ast.FunctionDef)}
        for part in stub.body
        if isinstance(part, ast.ClassDef)
    }
    assert named == {
        "CollectionSpellings": {name for kind, name in SECOND if kind == "rows"},
        "GroupSpellings": {name for kind, name in SECOND if kind == "groups"},
        "OrderSpellings": {name for kind, name in SECOND if kind == "orders"},
    }


def test_a_method_of_a_user_of_that_name_is_his() -> None:
    class Mine(dd.Collection):
        def where(self) -> str:
            """Not that of the table."""
            return "mine"

    rows = dd.input(Dataflow(), "rows", "k: int")
    assert Mine(rows.plan, rows.node).where() == "mine"  # type: ignore[call-arg]
    assert inspect.isfunction(Mine.where)


@pytest.mark.parametrize(
    ("name", "wrong", "missing"),
    [
        ("withColumn", ("v", col.nope), "'value'"),
        ("withColumns", ({"v": col.nope},), "'columns'"),
        ("withColumnRenamed", ("nope", "v"), "'new'"),
        ("unionByName", (dd.input(Dataflow(), "others", "k: int"),), "'other'"),
    ],
)
def test_a_form_of_another_library_speaks_of_itself_by_the_name_that_was_typed(
    name: str, wrong: tuple[object, ...], missing: str
) -> None:
    method = getattr(dd.input(Dataflow(), "rows", "k: int, v: int?"), name)
    assert method.__name__ == name and method.__qualname__.endswith(f".{name}")
    with pytest.raises(TypeError, match=rf"\.{name}\(\) missing .*{missing}$"):
        method(*wrong[:-1])
    with pytest.raises(TimelyError) as refused:
        method(*wrong)
    assert refused.traceback[-1].path == Path(__file__), "no frame of ours"


def test_editors_are_told_names_that_can_be_written() -> None:
    stub = ast.parse(Path(of_collections.__file__).with_suffix(".pyi").read_text())
    for kind in stub.body:
        for method in kind.body if isinstance(kind, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef):
                same = re.findall(r"`(?:na\.\w+` is `)?(\w+)", ast.get_docstring(method) or "")
                owner = {"Coll": Collection, "Grou": Grouped, "Orde": Ordered}[kind.name[:4]]
                assert same and hasattr(owner, same[0]), f"{method.name}: {same}"


def test_completion_behind_a_second_spelling_knows_the_kind_of_collection() -> None:
    """IPython takes `Self` of a stub for the class where it is written, which has second spellings only."""
    stub = Path(of_collections.__file__).with_suffix(".pyi").read_text()
    assert "Self" not in stub and "def where(self: S, " in stub
