"""joins_on_conditions.py: joins on conditions give what a loop over all pairs gives, at every epoch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import differential as dd
import differential.functions
import timely
from differential import Collection, Expr
from differential.errors import ExpressionError, SchemaError

LEFT = "id: int, k: int?, s: string, f: float?"
RIGHT = "id: int, k: int?, m: decimal(10, 2)?, s: string"
_Row = tuple[object, ...]
_Test = Callable[[_Row, _Row], bool]


def _equal(one: object, other: object) -> bool:
    return one is not None and other is not None and one == other


CONDITIONS: dict[str, tuple[Callable[[Collection, Collection], object], _Test]] = {
    "one key": (lambda a, b: a.k == b.k, lambda x, y: _equal(x[1], y[1])),
    "two keys": (
        lambda a, b: (a.k == b.k) & (a.s == b.s),
        lambda x, y: _equal(x[1], y[1]) and _equal(x[2], y[3]),
    ),
    "a list": (lambda a, b: [a.id == b.id, a.s != b.s], lambda x, y: x[0] == y[0] and x[2] != y[3]),
    "null equals null": (lambda a, b: a.k.eqNullSafe(b.k), lambda x, y: x[1] == y[1]),
    "both": (
        lambda a, b: a.k.eqNullSafe(b.k) & (a.s == b.s),
        lambda x, y: x[1] == y[1] and x[2] == y[3],
    ),
    "null equals null, and does not": (
        lambda a, b: a.k.eqNullSafe(b.k) & (a.k == b.k),
        lambda x, y: _equal(x[1], y[1]),
    ),
    "null equals null in one of two keys": (
        lambda a, b: a.id.eqNullSafe(b.id) & (a.f == b.k),
        lambda x, y: x[0] == y[0] and _equal(x[3], y[1]),
    ),
    "a key in two conditions": (
        lambda a, b: (a.id + 1 == b.id) & (b.id > a.k),
        lambda x, y: int(str(x[0])) + 1 == y[0] and x[1] is not None and int(str(y[0])) > int(str(x[1])),
    ),
    "int and float": (lambda a, b: b.k == a.f, lambda x, y: _equal(y[1], x[3])),
    "int and decimal": (lambda a, b: a.k == b.m, lambda x, y: _equal(x[1], y[2])),
    "computed": (
        lambda a, b: (a.id + 1 == b.id % 5) & (a.id <= b.id),
        lambda x, y: int(str(x[0])) + 1 == int(str(y[0])) % 5 and int(str(x[0])) <= int(str(y[0])),
    ),
    "no key": (
        lambda a, b: (a.k < b.k) | (a.s == "x"),
        lambda x, y: x[2] == "x" or (None not in (x[1], y[1]) and int(str(x[1])) < int(str(y[1]))),
    ),
}  # fmt: skip
HOWS = ("inner", "left", "right", "outer", "left_semi", "anti")


def query(flow: timely.Dataflow) -> None:
    a, b = dd.input(flow, "a", LEFT), dd.input(flow, "b", RIGHT)
    for name, (condition, _) in CONDITIONS.items():
        for how in HOWS:
            a.join(b, condition(a, b), how).output(f"{name}, {how}")  # type: ignore[arg-type]


def expected(left: list[_Row], right: list[_Row], how: str, test: _Test) -> Counter[_Row]:
    pairs = [(one, other) for one in left for other in right if test(one, other)]
    matched = [one for one in left if any(test(one, other) for other in right)]
    alone = [one for one in left if one not in matched]
    if how == "left_semi":
        return Counter(matched)
    if how == "anti":
        return Counter(alone)
    rows = [(*one, *other) for one, other in pairs]
    if how in ("left", "outer"):
        rows += [(*one, None, None, None, None) for one in alone]
    if how in ("right", "outer"):
        rows += [
            (None, None, None, None, *other) for other in right if not any(test(one, other) for one in left)
        ]
    return Counter(rows)


@pytest.fixture(scope="module")
def flow() -> Iterator[timely.Flow]:
    with timely.connect(workers=2, embedded=True) as cluster:
        yield cluster.install(query)


def test_joins_on_conditions_are_loops_over_all_pairs(flow: timely.Flow, seed: int = 5) -> None:
    draw = random.Random(seed)
    there: dict[str, list[_Row]] = {"a": [], "b": []}
    for _ in range(3):
        for name, rows in there.items():
            gone = draw.sample(rows, len(rows) // 3)
            new: list[_Row] = []
            for _ in range(9):
                number, k = draw.randrange(9), draw.choice((None, 0, 1, 2, 3))
                text = draw.choice("xyz")
                value = draw.choice((None, 0, 1, 2))
                new.append((number, k, text, value) if name == "a" else (number, k, value, text))
            flow.input(name).remove(gone)
            flow.input(name).insert(new)
            for row in gone:
                rows.remove(row)
            rows.extend(new)
        flow.seal()
        for name, (_, test) in CONDITIONS.items():
            for how in HOWS:
                table = flow.output(f"{name}, {how}").snapshot().to_pylist()
                answer = Counter(tuple(row.values()) for row in table)
                assert answer == expected(there["a"], there["b"], how, test), (name, how)


def test_joins_on_conditions_make_keys_of_equalities(flow: timely.Flow) -> None:
    dataflow = timely.Dataflow("explained")
    a, b = dd.input(dataflow, "a", LEFT), dd.input(dataflow, "b", RIGHT)
    for name in ("one key", "two keys", "null equals null", "int and float", "int and decimal", "computed"):
        rows = a.join(b, CONDITIONS[name][0](a, b), "left")  # type: ignore[arg-type]
        assert "all pairs" not in rows.explain(), name


def test_names_of_the_right_that_are_taken_get_others() -> None:
    dataflow = timely.Dataflow("named")
    a, b = dd.input(dataflow, "a", "k: int"), dd.input(dataflow, "b", "k: int, k_right: int")
    assert a.join(b, a.k == b.k).schema.names == ("k", "k_right2", "k_right")
    assert a.join(b, a.k == b.k, suffix="_b").schema.names == ("k", "k_b", "k_right")
    c, d = dd.input(dataflow, "c", "k: int"), dd.input(dataflow, "d", "k: int, k2: int")
    assert d.join(d.filter(d.k > 1), d.k < d.k2, suffix="2").schema.names == ("k", "k2", "k22", "k222")
    chained = a.join(b, a.k == b.k).join(c, a.k == c.k)
    assert chained.select(c.k.alias("x"), b.k.alias("y"), a.k).schema.names == ("x", "y", "k")


@pytest.mark.parametrize(
    ("on", "said"),
    [
        (lambda a, b: dd.expr("k = 3"), "both sides have a column 'k'"),
        (lambda a, b: (a.k == b.k) & dd.expr("k > k_right"), "both sides have a column 'k'"),
        (lambda a, b: (a.k == b.k) & (dd.functions.abs("k") == 1), "both sides have a column 'k'"),
    ],
)
def test_refused_names_of_both_sides(on: Callable[[Collection, Collection], Expr], said: str) -> None:
    dataflow = timely.Dataflow("refused")
    a, b = dd.input(dataflow, "a", "k: int"), dd.input(dataflow, "b", "k: int, n: int")
    with pytest.raises(ExpressionError, match=said):
        a.join(b, on(a, b))
    assert a.join(b, (a.k == b.k) & dd.expr("n = 3")).schema.names == ("k", "k_right", "n")


def test_refused_balance_of_outer_joins_on_conditions() -> None:
    dataflow = timely.Dataflow("refused")
    a, b = dd.input(dataflow, "a", "k: int"), dd.input(dataflow, "b", "k: int")
    with pytest.raises(SchemaError, match="balance= is for how='inner' and 'cross', not 'left'"):
        a.join(b, a.k == b.k, "left", balance="auto")
