"""Functions of arrays, structs, maps and JSON, as we, Spark and DuckDB write them, and odd values of each."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from typing import Final, NamedTuple

__all__ = ["CLAIMS", "COLUMNS", "JSON_CLAIMS", "JSON_TEXTS", "ROWS", "SPARK_COLUMNS", "Claim", "plainly"]


class Claim(NamedTuple):
    """An expression over `ROWS`: ours, Spark's, and DuckDB's if it has the same values."""

    ours: str
    spark: str
    duckdb: str = ""


COLUMNS: Final = (
    "a: array<int?>?, b: array<int?>, f: array<float>, t: array<string?>?, l: array<array<int>?>, i: int?, "
    "k: int, s: struct<x: int, y: array<string>?>?, m: map<string, int?>?, g: map<int, string>"
)
SPARK_COLUMNS: Final = (
    "a array<bigint>, b array<bigint>, f array<double>, t array<string>, l array<array<bigint>>, i bigint, "
    "k int, s struct<x: bigint, y: array<string>>, m map<string, bigint>, g map<bigint, string>"
)

_INTS: Final = (None, 0, 1, 2, -1, 2**63 - 1, -(2**63))
_FLOATS: Final = (0.0, 1.5, float("nan"), float("inf"), -1e300)
_TEXTS: Final = (None, "", "a", "b", "é", "a,b", "\U0001f600", "\uffff")


def _rows(count: int) -> list[tuple[object, ...]]:
    seed = random.Random(37)

    def some(values: tuple[object, ...], longest: int = 4) -> list[object]:
        return [seed.choice(values) for _ in range(seed.randint(0, longest))]

    rows: list[tuple[object, ...]] = []
    for number in range(count):
        null = [seed.random() < 0.15 for _ in range(4)]
        rows.append(
            (
                None if null[0] else some(_INTS),
                some(_INTS),
                some(_FLOATS),
                None if null[1] else some(_TEXTS),
                [None if seed.random() < 0.1 else some(_INTS[1:]) for _ in range(seed.randint(0, 3))],
                seed.choice(_INTS),
                number % 7 - 3,
                None
                if null[2]
                else {"x": seed.choice(_INTS[1:]), "y": None if null[1] else some(_TEXTS[1:])},
                None if null[3] else {str(key): seed.choice(_INTS) for key in some(("a", "b", "é", ""))},
                {key: seed.choice(_TEXTS[1:]) for key in some((0, 1, -1))},
            )
        )
    return rows


ROWS: Final = _rows(200)

CLAIMS: Final = (
    Claim("dd.size(col.a)", "size(a)", "len(a)"),
    Claim("dd.size(col.m)", "size(m)", "cardinality(m)"),
    Claim("dd.get(col.a, 1)", "get(a, 1)"),
    Claim("dd.try_element_at(col.a, 2)", "try_element_at(a, 2)", "list_extract(a, 2)"),
    Claim("dd.try_element_at(col.a, -1)", "try_element_at(a, -1)", "list_extract(a, -1)"),
    Claim("dd.when(dd.size(col.b) > 1).then(col.b[1])", "CASE WHEN size(b) > 1 THEN b[1] END"),
    Claim("col.s['x']", "s.x", "s.x"),
    Claim("col.s.field('y')", "s.y", "s.y"),
    Claim("col.m['a']", "m['a']", "m['a']"),
    Claim("dd.element_at(col.g, col.k)", "element_at(g, bigint(k))"),
    Claim("dd.array_contains(col.a, 1)", "array_contains(a, 1L)"),
    Claim("dd.array_contains(col.a, col.i)", "array_contains(a, i)"),
    Claim("dd.array_position(col.a, col.i)", "array_position(a, i)"),
    Claim("dd.array_position(col.f, float('nan'))", "array_position(f, double('NaN'))"),
    Claim("dd.array_distinct(col.a)", "array_distinct(a)"),
    Claim("dd.array_distinct(col.f)", "array_distinct(f)"),
    Claim("dd.array_union(col.a, col.b)", "array_union(a, b)"),
    Claim("dd.array_intersect(col.a, col.b)", "array_intersect(a, b)"),
    Claim("dd.array_except(col.a, col.b)", "array_except(a, b)"),
    Claim("dd.arrays_overlap(col.a, col.b)", "arrays_overlap(a, b)"),
    Claim("dd.array_remove(col.a, col.i)", "array_remove(a, i)"),
    Claim("dd.array_append(col.a, col.i)", "array_append(a, i)"),
    Claim("dd.array_prepend(col.a, 7)", "array_prepend(a, 7L)"),
    Claim("dd.array_compact(col.a)", "array_compact(a)"),
    Claim("dd.array_repeat(col.i, col.k)", "array_repeat(i, k)"),
    Claim("dd.slice(col.a, 2, 2)", "slice(a, 2, 2)", "list_slice(a, 2, 3)"),
    Claim("dd.slice(col.a, -2, 1)", "slice(a, -2, 1)"),
    Claim("dd.slice(col.a, 1, 9)", "slice(a, 1, 9)", "list_slice(a, 1, 9)"),
    Claim("dd.concat(col.a, col.b)", "concat(a, b)"),
    Claim("dd.reverse(col.a)", "reverse(a)", "list_reverse(a)"),
    Claim("dd.flatten(col.l)", "flatten(l)"),
    Claim("dd.array_min(col.a)", "array_min(a)", "list_min(a)"),
    Claim("dd.array_max(col.f)", "array_max(f)", "list_max(f)"),
    Claim("dd.array_max(col.t)", "array_max(t)", "list_max(t)"),
    Claim("dd.array_join(col.t, '-')", "array_join(t, '-')"),
    Claim("dd.array_join(col.t, '-', '?')", "array_join(t, '-', '?')"),
    Claim("dd.sort_array(col.a)", "sort_array(a)", "list_sort(a, 'ASC', 'NULLS FIRST')"),
    Claim("dd.sort_array(col.t, False)", "sort_array(t, false)", "list_sort(t, 'DESC', 'NULLS LAST')"),
    Claim("dd.sort_array(col.f)", "sort_array(f)", "list_sort(f)"),
    Claim("dd.sequence(col.k, 3)", "sequence(k, 3)"),
    Claim("dd.array(col.i, 1)", "array(i, 1L)", "[i, 1]"),
    Claim("dd.array(col.k, 1.5)", "array(k, 1.5D)", "[k::double, 1.5]"),
    Claim("dd.struct(col.k, z=col.a)", "struct(k, a AS z)", "{'k': k, 'z': a}"),
    Claim("dd.named_struct('p', col.s, 'q', 1)", "named_struct('p', s, 'q', 1L)", "{'p': s, 'q': 1}"),
    Claim("dd.create_map('a', col.i, 'b', 1)", "map('a', i, 'b', 1L)", "MAP {'a': i, 'b': 1}"),
    Claim(
        "(lambda x: dd.map_from_arrays(x, x))(dd.array_distinct(dd.array_compact(col.a)))",
        "map_from_arrays(array_distinct(array_compact(a)), array_distinct(array_compact(a)))",
    ),
    Claim("dd.sort_array(dd.map_keys(col.m))", "sort_array(map_keys(m))", "list_sort(map_keys(m))"),
    Claim(
        "dd.sort_array(dd.map_values(col.m))",
        "sort_array(map_values(m))",
        "list_sort(map_values(m), 'ASC', 'NULLS FIRST')",
    ),
    Claim("dd.map_contains_key(col.m, 'a')", "map_contains_key(m, 'a')"),
    Claim("dd.size(dd.map_entries(col.m))", "size(map_entries(m))"),
    Claim(
        "dd.map_concat(dd.create_map(dd.lit('z'), 1), dd.create_map('y', col.i))",
        "map_concat(map('z', 1L), map('y', i))",
    ),
    Claim("col.a == col.b", "a = b"),
    Claim("dd.to_json(col.s)", "to_json(s)"),
    Claim("dd.to_json(col.f)", "to_json(f)"),
    Claim("dd.to_json(dd.struct(col.a, col.t, f=col.f))", "to_json(struct(a, t, f))"),
    Claim(
        "dd.from_json(dd.to_json(col.s), 'x: int, y: array<string>')",
        "from_json(to_json(s), 'x bigint, y array<string>')",
    ),
)

_PARTS: Final = (
    "1",
    "-1",
    "0",
    "1.5",
    "1e3",
    "9223372036854775807",
    "9223372036854775808",
    "true",
    "false",
    "null",
    '"a"',
    '""',
    '"1"',
    '"1.25"',
    '"2024-02-29"',
    '"2024-2-3"',
    '"2024-02-30"',
    '"2024-02-29T01:02:03Z"',
    '"AQI="',
    '"2024-02-29 01:02:03.5"',
    '"NaN"',
    '"\\u00e9\\n"',
    "[]",
    "[1, null]",
    '[1,"x"]',
    '["a","b"]',
    "{}",
    '{"x":1}',
    '{"x":"q","y":2}',
    '{"x":null}',
    "nul",
    "[1",
    "{",
    '[{"x":1}]',
    "1.255",
    "12345",
    '{"a":{"x":1}}',
)
JSON_TEXTS: Final = [
    None,
    "",
    "  ",
    "x",
    '{"v":1} rest',
    '{"v":1,}',
    '{"v":1,"v":2}',
    '{"V":1}',
    '{"w":2,"v":3}',
    "[",
    "[1,2] 3",
    *(
        form % part
        for part, form in itertools.product(
            _PARTS, ("%s", '{"v":%s}', '{"v":%s,"w":7}', "[%s]", '{"u":[%s]}')
        )
    ),
]

JSON_CLAIMS: Final = (
    *(
        Claim(f"dd.from_json(col.j, {f'v: {ours}, w: int'!r})", f"from_json(j, 'v {spark}, w bigint')")
        for ours, spark in (
            ("int", "bigint"),
            ("float", "double"),
            ("bool", "boolean"),
            ("string", "string"),
            ("date", "date"),
            ("timestamp", "timestamp"),
            ("bytes", "binary"),
            ("decimal(5, 2)", "decimal(5, 2)"),
            ("array<int>", "array<bigint>"),
            ("map<string, int>", "map<string, bigint>"),
            ("struct<x: int, y: float>", "struct<x: bigint, y: double>"),
            ("array<struct<x: int>>", "array<struct<x: bigint>>"),
        )
    ),
    Claim("dd.from_json(col.j, 'array<int>')", "from_json(j, 'array<bigint>')"),
    Claim("dd.from_json(col.j, 'array<string>')", "from_json(j, 'array<string>')"),
    Claim("dd.from_json(col.j, 'map<string, int>')", "from_json(j, 'map<string, bigint>')"),
    Claim("dd.from_json(col.j, 'array<struct<v: int>>')", "from_json(j, 'array<struct<v: bigint>>')"),
    Claim("dd.get_json_object(col.j, '$.v')", "get_json_object(j, '$.v')"),
)


def plainly(value: object) -> object:
    """A value of any of the three in one form: lists, dicts, no -0.0, times without zone, a word for NaN."""
    as_dict = getattr(value, "asDict", None)  # a row of Spark
    if as_dict is not None:
        return plainly(as_dict())
    if isinstance(value, tuple | list):
        return [plainly(part) for part in value]
    if isinstance(value, dict):
        return {key: plainly(part) for key, part in value.items()}
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return bytes(value) if isinstance(value, bytearray) else value
