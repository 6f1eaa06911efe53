"""What other libraries call it is told what it is called here."""

from __future__ import annotations

import ast
import datetime as dt
import itertools
import math
import re
from collections.abc import Callable, Iterator
from operator import attrgetter

import pytest

import differential as dd
from differential import algorithms, col
from differential.aggregates import Aggregate
from differential.errors import ExpressionError, SchemaError
from differential.expressions.expression import Expr
from differential.other_spellings.table import (
    ACCESSORS,
    ALGORITHMS,
    COLLECTIONS,
    EXPRESSIONS,
    FUNCTIONS,
    GROUPS,
)
from timely import Dataflow
from timely.user_code.spellings import Same


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("eval", "Write instead: with_columns(name=col.x + 1)"),
        ("collect", "read flow.output('name')"),
        ("withWatermark", "split_late('time', allowed, clock=…)"),
        ("group_by_dynamic", "window('time', dd.tumbling(minutes=5)).group_by('window_start')"),
        ("join_asof", "asof_join(other, on='key', left_time='time')"),
        ("pivot", "agg(a=dd.sum(dd.when(col.p == 'a').then(col.x)), …)"),
        ("sample", "filter(dd.hash(col.id) % 100 < 5)"),
        ("stage", "map(fn, schema), or dataflow.input('x').stage(…)"),
        ("nonsense", "a collection has no 'nonsense'"),
    ],
)
def test_spellings_of_other_libraries_are_told_what_to_write(name: str, said: str) -> None:
    edges = dd.input(Dataflow(), "edges", "src: int, dst: int")
    with pytest.raises(AttributeError) as caught:
        getattr(edges, name)
    assert said in str(caught.value)
    with pytest.raises(AttributeError, match=r"Write instead: agg\(n=dd.count\(\)"):
        getattr(edges.group_by("src"), "describe")  # noqa: B009
    with pytest.raises(AttributeError, match=r"Write instead: reduce\(function, schema\)"):
        getattr(edges.group_by("src"), "applyInPandas")  # noqa: B009
    with pytest.raises(AttributeError, match=r"Write instead: agg\(n=dd.count\(\)\).output\(…\)"):
        getattr(edges.group_by("src"), "output")  # noqa: B009


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("n_unique", "module 'differential' has no attribute 'n_unique'. Write instead: dd.count_distinct"),
        ("implode", "dd.collect('x')"),
        ("connected_components", "from differential.algorithms import connected_components"),
        ("F", "dd.sum('x')"),
        ("sample", "filter(dd.hash(col.id) % 100 < 5)"),
        ("session_window", "dd.session('30 minutes', by='key')"),
        ("convert_timezone", "dd.from_utc_timestamp(t, 'Europe/Rome')"),
        ("try_cast", "x.try_cast('int')"),
        ("union", "a.concat(b, c)"),
        ("merge_asof", "left.asof_join(right, on='key', left_time='at', right_time='since')"),
        ("timestampdiff", "(y - x) // 60_000_000, whole minutes"),
        ("make_interval", "col.x + datetime.timedelta(hours=1)"),
        ("Window", "over('key', by='time')"),
        ("nonsense", "module 'differential' has no attribute 'nonsense'"),
    ],
)
def test_functions_of_other_libraries_are_told_what_to_write(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(said)):
        getattr(dd, name)
    assert getattr(dd, name, None) is None


@pytest.mark.parametrize("name", sorted(FUNCTIONS.names))
def test_functions_that_are_told_of_exist_under_the_other_name_only(name: str) -> None:
    assert name not in dd.__all__ and name not in dir(dd)
    for told in re.findall(r"\bdd\.(\w+)", str(FUNCTIONS.write(name))):
        assert told in dd.__all__
    entry = FUNCTIONS.names[name]
    if isinstance(entry, Same):
        assert getattr(dd, name) is attrgetter(entry.attribute)(dd)


def _typed() -> dd.Collection:
    columns = "k: int, s: string, d: int, t: timestamp, day: date, tags: any"
    return dd.input(Dataflow(), "typed", columns)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (lambda c: c.agg(dd.sum("d") / dd.count()), "agg(n=dd.sum('d')).with_columns(m=col.n + 1)"),
        (lambda c: c.agg(n=1 - dd.count()), "name it in agg(…)"),
        (lambda c: c.group_by("k").agg(n=("s", "nunique")), "Write dd.count_distinct('s')"),
        (lambda c: c.group_by("k")["d"].sum(), "agg(total=dd.sum('d')), or sum('d')"),
        (lambda c: c.group_by("k")[["d", "t"]].max(), "agg(total=dd.sum('x'))"),
        (lambda c: dd.concat([c, c]), "first.concat(second, third)"),
        (lambda c: c.agg(n=dd.round(dd.avg("d"), 2)), "dd.avg('d') is of a group"),
        (lambda c: c.agg(n=col.d * dd.sum("d").alias("x")), "dd.sum('d') is of a group"),
        (lambda c: c.having(dd.count() > 1), ".having(col.n > 1)"),
        (lambda c: c.select(col("*")), "For all columns write select('*')"),
        (lambda c: c.dropna(how="all"), "filter(col.x.is_not_null() | col.y.is_not_null())"),
        (lambda c: c.drop_nulls(thresh=2), "drop_nulls('x', 'y')"),
        (lambda c: c.fill_null(), "fill_null({'x': 0, 'y': 'none'})"),
        (lambda c: c.fill_null({"k": 0}, "k"), "a mapping says itself which columns"),
        (lambda c: c.agg(n=dd.first("k")), "first('x', by='time'): rows have no order"),
        (lambda c: c.agg(n=dd.last("k")), "if any value will do, min('x')"),
        (lambda c: c.agg(n=dd.count_distinct("k", "s")), "select('k', 'x', 'y').distinct()"),
        (lambda c: c.agg({"k": "first"}), "agg(first=dd.first('k', by='time'))"),
        (lambda c: c.filter(col.s == None), "Whether x is null is x.is_null()"),  # noqa: E711  # as PySpark has it
        (lambda c: c.join(c, "k", rsuffix="_r"), "suffix='_right'"),
        (lambda c: c.asof_join(c, by="k", left_on="t"), "asof_join(other, on='key', left_time='at'"),
        (lambda c: c.iterate(lambda x: x, max_iterations=3), "iterations_max=100"),
        (lambda c: c.prioritized_iterate(lambda x: x), "priority='label'"),
        (lambda c: c.window("t", dd.sliding("1 hour")), "sliding('1 hour', '10 minutes')"),
        (lambda c: c.select(a=dd.to_date(col.s)), "or x.cast('date')"),
        (lambda c: c.select(a=dd.to_timestamp(col.s)), "or x.cast('timestamp')"),
        (lambda c: c.select(a=dd.try_to_date(col.s)), "or x.try_cast('date')"),
        (lambda c: c.select(a=dd.concat_ws("-", "s")), "Of the column write concat_ws('-', col.s)"),
        (lambda c: c.fitted(dd.Schema.of(["a", "b"])), "'a' in a schema is no pair of a name and a type"),
        (lambda c: c.agg(n=dd.argmax("k")), "argmax('x', by='y')"),
        (lambda c: c.filter(k=1), "Write instead: filter(col.x == 1)"),
        (lambda c: c["kk"], "there is no column 'kk'"),
        (lambda c: c[0:2], "it is no list"),
        (lambda c: c.select(a=col.s[1:2]), "Write instead: col.s.str.slice(offset, length)"),
        (lambda c: c.join(c, left_on="k"), "on={'left_column': 'right_column'}"),
        (lambda c: c.join(c, left_on="k", right_on=["k", "d"]), "as many columns each"),
        (lambda c: c.join(c, on="k", left_on="k", right_on="k"), "no on= beside them"),
        (lambda c: c.top_k(3, by="d", descending=True), "top_k(3, by=col.x.desc())"),
        (lambda c: c.top_k(3, by="d", reverse=True), "top_k(3, by=col.x.desc())"),
        (lambda c: c.group_by("k").top_k(3), "top_k(3, by=col.x.desc())"),
        (lambda c: c.order_by("k", ascending=False), "order_by(col.x.desc(), 'y')"),
        (lambda c: c.group_by("k").order_by("d", ascending=False), "order_by(col.x.desc(), 'y')"),
        (lambda c: c.group_by("k").first(), "Write instead: first(by='time')"),
        (lambda c: c.group_by("k").last(), "Write instead: last(by='time')"),
        (lambda c: c.distinct("k"), "or drop_duplicates('x')"),
        (lambda c: c.drop_duplicates("k", keep="last"), "group_by('x').first(by='time')"),
        (lambda c: c.unique("k", keep="last"), "group_by('x').first(by='time')"),
        (lambda c: c.dropDuplicates(["k"], keep="last"), "group_by('x').first(by='time')"),
        (lambda c: c.last("t", dt.timedelta(hours=1)), "clock=dd.clock(start, minutes=1)"),
        (lambda c: c.window("t", dd.tumbling(minutes=5), by="k"), "dd.session(minutes=30, by='user')"),
        (lambda c: c.select(m=dd.date_trunc(col.day, "month")), "Write date_trunc('month', col.day)"),
        (lambda c: c.select(d=col.day + dt.timedelta(days=3)), "timedelta(days=3) is 259200000000 µs"),
        (lambda c: c.select(d=col.day + dt.timedelta(days=3)), "write x.dt.add_days(3)"),
        (lambda c: c.select(d=col.day - dt.timedelta(days=3)), "write x.dt.add_days(-3)"),
        (lambda c: c.window("t", dd.tumbling("10 minuets")), "'5 minutes'"),
    ],
)  # fmt: skip
def test_arguments_of_other_libraries_are_told_what_to_write(
    written: Callable[[dd.Collection], object], said: str
) -> None:
    with pytest.raises((SchemaError, ExpressionError), match=re.escape(said)):
        written(_typed())


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (lambda c: c.group_by("k").having(col.n > 1), "agg(n=dd.count()).having(col.n > 1)"),
        (lambda c: c.group_by("k").pivot("s"), "agg(a=dd.sum(dd.when(col.p == 'a').then(col.x)), …)"),
        (lambda c: c.agg(n=dd.sum("d").cast("float")), "name it in agg(…)"),
        (lambda c: c.order_by("d").tail(3), "limit(10) of the opposite order"),
    ],
)
def test_methods_of_other_libraries_are_told_what_to_write(
    written: Callable[[dd.Collection], object], said: str
) -> None:
    with pytest.raises(AttributeError, match=re.escape(said)):
        written(_typed())


@pytest.mark.parametrize(
    ("elsewhere", "here"),
    [
        (
            lambda c: c.group_by("k").agg([dd.sum("d").alias("a"), dd.count().alias("n")]),
            lambda c: c.group_by("k").agg(a=dd.sum("d"), n=dd.count()),
        ),
        (lambda c: c.agg(n=dd.count("*")), lambda c: c.agg(n=dd.count())),
        (
            lambda c: c.select(x=dd.when(col.d > 1, "a").when(col.d > 0, "b").otherwise("c")),
            lambda c: c.select(x=dd.when(col.d > 1).then("a").when(col.d > 0).then("b").otherwise("c")),
        ),
        (
            lambda c: c.join(c.select(e=col.k), left_on="k", right_on=["e"]),
            lambda c: c.join(c.select(e=col.k), on={"k": "e"}),
        ),
        (
            lambda c: c.window("t", dd.tumbling("10 minutes")),
            lambda c: c.window("t", dd.tumbling(minutes=10)),
        ),
        (
            lambda c: c.window("t", dd.session("1 hour 30 Minutes", by="k")),
            lambda c: c.window("t", dd.session(minutes=90, by="k")),
        ),
        (
            lambda c: c.window("t", dd.sliding("1 hour", "10 minutes")),
            lambda c: c.window("t", dd.sliding(dt.timedelta(hours=1), dt.timedelta(minutes=10))),
        ),
    ],
)
def test_what_other_libraries_write_is_the_same_plan(
    elsewhere: Callable[[dd.Collection], dd.Collection], here: Callable[[dd.Collection], dd.Collection]
) -> None:
    lines = [re.sub(r"\w+\.py:\d+", "", made(_typed()).explain()) for made in (elsewhere, here)]
    assert lines[0] == lines[1]


def _elsewhere() -> dict[str, tuple[object, list[str]]]:
    """What is asked for a name, and the names that there are elsewhere."""
    import polars as pl
    import pyspark.sql as spark
    from polars.lazyframe.group_by import LazyGroupBy
    from pyspark.sql import functions

    c = dd.input(Dataflow(), "given", "k: int?, v: int, s: string?, t: timestamp, tags: any")
    grouped = c.group_by("k")
    return {
        "DataFrame": (c, dir(spark.DataFrame)),
        "GroupedData": (grouped, dir(spark.GroupedData)),
        "Column": (col.v, dir(spark.Column)),
        "functions": (dd, [name for name in functions.__all__ if name[0].islower()]),
        "LazyFrame": (c, dir(pl.LazyFrame)),
        "GroupBy": (grouped, dir(LazyGroupBy)),
        "Expr": (col.v, dir(pl.Expr)),
    }


@pytest.mark.parametrize(
    "of", ["DataFrame", "GroupedData", "Column", "functions", "LazyFrame", "GroupBy", "Expr"]
)
def test_every_name_of_others_exists_or_is_answered_with_what_to_write(of: str) -> None:
    asked, names = _elsewhere()[of]
    unanswered = []
    for name in names:
        try:
            getattr(asked, name)
        except (AttributeError, SchemaError) as error:
            if "Write " not in str(error) and not name.startswith("_"):
                unanswered.append(name)
            for told in re.findall(r"\bdd\.(\w+)", str(error)):
                assert told in dd.__all__, (name, told)
    assert len(names) > 10 and not unanswered


def test_names_of_nobody_are_not_answered() -> None:
    c = dd.input(Dataflow(), "given", "k: int")
    for asked in (c, c.group_by("k"), col.k, dd):
        with pytest.raises(AttributeError) as caught:
            getattr(asked, "filtre")  # noqa: B009
        assert "Write" not in str(caught.value)


def test_algorithms_are_answered_with_where_they_are() -> None:
    assert frozenset(algorithms.__all__) == ALGORITHMS


def test_misspelt_names_are_answered_with_one_like_them() -> None:
    rows = dd.input(Dataflow("q"), "rows", "a: int")
    for thing, name, like in (
        (rows, "gruop_by", "group_by"),
        (rows.group_by("a"), "redcue", "reduce"),
        (dd, "cout", "count"),
    ):
        with pytest.raises(AttributeError, match=rf"no .*'{name}'\. Did you mean '{like}'\?$"):
            getattr(thing, name)
    with pytest.raises(AttributeError, match="no '__copy_'$"):
        getattr(rows, "__copy_")


# What is told to be written can be written: each piece of code in the tables is carried out.

TYPED = (
    "x: int, y: int, t: timestamp, d: date, s: string, p: string, key: string, id: int, time: timestamp, "
    "start: timestamp, tags: any, seconds: int, milliseconds: int, microseconds: int, kept: int, "
    "a: string, b: string"
)
TYPES = ("int", "float", "string", "bool", "date", "timestamp", "any")
STARTS = (
    "group_by", "agg", "select", "filter", "join", "with_columns", "order_by", "concat", "explode", "window",
    "top_k", "rank", "asof_join", "split_late", "last", "cross_join", "except_all", "drop_nulls", "drop",
    "fill_null",
)  # fmt: skip
HEADS = (
    r"(dd|col|x|t|d|collection|schema|(milli|micro)?seconds)\b[.( ]|[-~]x|"
    r"\((x|(milli)?seconds)|math\.|print\(|"
    rf"({'|'.join(STARTS)})\("
)


def codes_in(told: str) -> Iterator[str]:
    """The longest pieces of a sentence that Python can read, from where code may begin."""
    at = 0
    while at < len(told):
        if not (re.match(HEADS, told[at:]) and (at == 0 or told[at - 1] in " (,")):
            at += 1
            continue
        for end in range(len(told), at, -1):
            piece = told[at:end].strip()
            if piece and "…" not in piece and _is_code(piece):
                yield from _parts(ast.parse(piece, mode="eval").body)
                at = end
                break
        else:
            at += 1


def _parts(tree: ast.expr) -> Iterator[str]:
    """The code in what Python reads as a list of things: words between them are of the sentence."""
    if isinstance(tree, ast.Tuple | ast.BoolOp):
        for part in tree.elts if isinstance(tree, ast.Tuple) else tree.values:
            yield from _parts(part)
    elif isinstance(tree, ast.Compare) and isinstance(tree.ops[0], ast.Is | ast.In):
        yield from _parts(tree.left)
    elif not isinstance(tree, ast.Name):
        yield ast.unparse(tree)


def _is_code(piece: str) -> bool:
    try:
        ast.parse(piece, mode="eval")
    except SyntaxError:
        return False
    return True


def all_told() -> list[str]:
    tables = (COLLECTIONS, GROUPS, FUNCTIONS, EXPRESSIONS, *ACCESSORS.values())
    told = {each for table in tables for each in table.names.values() if isinstance(each, str)}
    told |= {each for table in tables for _, each in table.families}
    return sorted({code for each in told for code in codes_in(each)})


def carried_out(code: str, kind: str, others: int) -> None:
    """Evaluate `code` where x and y are of this type; raise what is wrong with it. Another collection has
    the columns that `others` say.
    """
    columns = TYPED.replace("x: int, y: int", f"x: {kind}, y: {kind}")
    if code.startswith("group_by('window_start')"):  # which follows on window(…)
        columns += ", window_start: timestamp"
    rows = dd.input(Dataflow(), "rows", columns)
    one = {"float": 0.5, "string": "a", "bool": True, "date": dt.date(2024, 1, 1)}.get(kind, 1)
    columns_named = ("x", "y", "t", "d", "seconds", "milliseconds", "microseconds", "start")
    names: dict[str, object] = {
        **{name: col(name) for name in columns_named},
        "dd": dd, "col": col, "datetime": dt, "math": math, "collection": rows, "n": 1,
        "dataflow": Dataflow(),
        "a": col.x, "b": col.y, "c": col.x == col.y, "size": dt.timedelta(hours=1),
        "other": (rows, rows.select("key", z=col.x), rows.select(z=col.x))[others],
        "function": lambda *_: [], "fn": lambda *_: [], "schema": "x: int", "type": "int", "value": one,
        "pattern": "(a)", "separator": ",", "old": "a", "new": "b", "offset": 1, "length": 1, "position": 1,
        "width": 3, "text": col.s, "name": "x", "body": lambda rows: rows, "owner": "shop",
        "stream": Dataflow().input("changes"),
    }  # fmt: skip
    calls = (*STARTS, "map_batches", "map", "flat_map", "reduce", "having")
    grouped = rows.group_by("key")
    for call in calls:
        names[call] = getattr(rows, call, None) or getattr(grouped, call)
    made = eval(code, names)
    if isinstance(made, Expr):
        made.type_in(rows.schema)
    elif isinstance(made, Aggregate):
        rows.group_by("key").agg(n=made)


@pytest.mark.parametrize("code", all_told())
def test_what_is_told_can_be_written(code: str) -> None:
    wrong: dict[str, Exception] = {}
    for kind, others in itertools.product(TYPES, range(3)):
        try:
            carried_out(code, kind, others)
        except Exception as error:
            wrong[f"{kind} {others}"] = error
        else:
            return
    pytest.fail("\n".join(f"{kind}: {type(error).__name__} {error}" for kind, error in wrong.items()))


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (lambda c: c.select(day=col.t // 86400), "timestamp"),
        (lambda c: c.select(day=col.t % 86400), "timestamp"),
        (lambda c: c.group_by(col.t // 86400), "timestamp"),
        (lambda c: c.select(day=col.d + dt.timedelta(days=1)), "date"),
        (lambda c: c.select(s=col.s + "a"), "string"),
    ],
)
def test_what_an_error_says_can_be_written(written: Callable[[dd.Collection], object], kind: str) -> None:
    with pytest.raises((ExpressionError, SchemaError)) as caught:
        written(dd.input(Dataflow(), "rows", TYPED))
    told = str(caught.value)
    codes = list(codes_in(re.split("write|needs a name", told, maxsplit=1)[1]))
    assert codes, told
    for code in codes:
        carried_out(code, kind, 0)
