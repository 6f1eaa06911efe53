"""Functions of strings: random texts against Python's own, and what differs between libraries."""

from __future__ import annotations

import re

import pytest
from expression_values import values_of
from hypothesis import given
from hypothesis import strategies as st

import differential as dd
from differential import Schema, col
from differential.columns.rows import Row
from differential.errors import ExpressionError
from differential.expressions.expression import Expr

PAIR = Schema.of("s: string, z: string?")
texts = st.text("aAbé ß.%_(1", max_size=6)
pairs = st.lists(st.tuples(texts, st.none() | texts), min_size=1, max_size=6)


def of(expr: Expr, *texts: str | None) -> list[object]:
    """The values of an expression over `z`."""
    rows: list[Row] = [("", text) for text in texts]
    return values_of(expr, rows, PAIR)


@given(pairs, st.integers(-7, 7), st.integers(0, 7), texts)
def test_against_pythons_strings(rows: list[Row], start: int, length: int, other: str) -> None:
    claims = [
        (col.z.str.length(), lambda s: len(s)),
        (col.z.str.upper(), str.upper),
        (col.z.str.lower(), str.lower),
        (col.z.str.title(), str.title),
        (col.z.str.reverse(), lambda s: s[::-1]),
        (col.z.str.strip(), lambda s: s.strip()),
        (col.z.str.strip("a1"), lambda s: s.strip("a1")),
        (col.z.str.lstrip("a"), lambda s: s.lstrip("a")),
        (col.z.str.rstrip(), lambda s: s.rstrip()),
        (col.z.str.contains(other), lambda s: other in s),
        (col.z.startswith(other), lambda s: s.startswith(other)),
        (col.z.endswith(other), lambda s: s.endswith(other)),
        (col.z.str.lpad(length), lambda s: s.rjust(length)),
        (col.z.str.rpad(length, "é"), lambda s: s.ljust(length, "é")),
        (
            col.z.str.slice(start, length),
            lambda s: s[max(0, at := len(s) + start if start < 0 else start) : max(0, at + length)],
        ),
        (col.z.str.slice(start), lambda s: s[start:]),
    ]
    if other:
        claims.append((col.z.str.replace(other, "x"), lambda s: s.replace(other, "x")))
        claims.append((col.z.str.split(other), lambda s: tuple(s.split(other))))
    for expr, plain in claims:
        expected = [None if row[1] is None else plain(str(row[1])) for row in rows]
        assert values_of(expr, rows, PAIR) == expected, expr


@given(pairs)
def test_texts_are_joined_and_compared_as_they_are(rows: list[Row]) -> None:
    both = [(str(s), None if z is None else str(z)) for s, z in rows]
    assert values_of(dd.concat(col.s, "-", col.z), rows, PAIR) == [
        None if z is None else f"{s}-{z}" for s, z in both
    ]
    assert values_of(dd.concat_ws("-", col.s, col.z), rows, PAIR) == [
        s if z is None else f"{s}-{z}" for s, z in both
    ]
    assert values_of(dd.concat_ws("-", col.z, col.z), rows, PAIR) == [
        "" if z is None else f"{z}-{z}" for _, z in both
    ]
    assert values_of(col.s < col.z, rows, PAIR) == [None if z is None else s < z for s, z in both]
    assert values_of(col.s >= "a", rows, PAIR) == [s >= "a" for s, _ in both]
    assert values_of(dd.max_of(col.s, col.z, "b"), rows, PAIR) == [
        None if z is None else max(s, z, "b") for s, z in both
    ]
    assert values_of(dd.least(col.s, col.z), rows, PAIR) == [s if z is None else min(s, z) for s, z in both]


@given(st.lists(texts, min_size=1, max_size=5), texts)
def test_like_is_the_pattern_that_sql_has(values: list[str], pattern: str) -> None:
    plain = "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)
    expected: list[object] = [re.fullmatch(plain, value, re.DOTALL) is not None for value in values]
    assert of(col.z.like(pattern), *values) == expected


def test_patterns_match_anywhere_and_give_their_groups() -> None:
    assert of(col.z.rlike(r"^a\d"), "a1", "ba1", None) == [True, False, None]
    assert of(col.z.str.extract(r"(\d+)-(?P<tail>[(]\w)"), "12-(x", "x", "7-(y") == ["12", None, "7"]
    assert of(col.z.str.extract(r"(\d+)-(?P<tail>[(]\w)", 2), "12-(x", "x") == ["(x", None]
    assert of(col.z.str.extract(r"a.", 0), "xab", "b", "") == ["ab", None, None]
    assert of(col.z.str.extract(r"a(b)?"), "a", "x", "ab") == ["", None, "b"]
    assert of(col.z.str.replace_regex(r"(\w)(\w)", r"\2\1"), "ab cd") == ["ba dc"]
    assert of(col.z.str.title(), "ada LOVELACE") == ["Ada Lovelace"]
    assert of(col.z.str.upper(), "straße é", "a", None) == ["STRASSE É", "A", None]
    assert of(col.z.str.lower(), "ΑΣ", "İ", "A") == ["ας", "i̇", "a"]
    assert of(col.z.str.initcap(), "o'neil MC-donald", "ßa  b", "") == ["O'neil Mc-donald", "Ssa  B", ""]
    assert of(col.z.str.title(), "o'neil ß") == ["O'Neil Ss"]
    assert of(dd.trim(col.z), " \tx ", None) == ["\tx", None]
    assert of(col.z.substr(1, 2), "abc") == ["ab"] and of(col.z.substr(-2, 1), "abc") == ["b"]


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        (col.s.str.replace("", "-"), "an empty text is everywhere, and cannot be replaced"),
        (col.s.str.split(""), "an empty text separates nothing"),
        (col.s.rlike("("), "cannot be computed: Invalid regular expression"),
        (col.s.str.extract("a", 1), "no group 1 in 'a'"),
        (col.s.str.contains(col.z), "takes a constant for 'part'"),
        (col.s.str.slice("a"), "takes int for 'offset'"),
    ],
)
def test_what_cannot_be_computed_is_refused_when_it_is_written(expr: Expr, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        expr.type_in(PAIR)
