"""Methods that expressions of other libraries have: the same, or answered with what to write."""

from __future__ import annotations

import re

import pytest

import differential as dd
from differential import col
from differential.expressions.expression import Expr
from differential.expressions.functions.namespaces import ListMethods, StringMethods, TimeMethods
from differential.other_spellings.table import ACCESSORS, EXPRESSIONS
from timely.user_code.spellings import Same

CLASSES = {"str": StringMethods, "dt": TimeMethods, "list": ListMethods}


def test_methods_of_other_libraries_are_explained() -> None:
    with pytest.raises(AttributeError, match=r"col.a has no 'fill_nan'. Write instead: dd.when"):
        _ = col.a.fill_nan  # type: ignore[attr-defined]
    with pytest.raises(AttributeError) as caught:
        _ = col.a.city  # type: ignore[attr-defined]
    assert str(caught.value) == "col.a has no 'city'. Of a map or struct write col.a.list.field('city')"


SECOND = {name: entry for name, entry in EXPRESSIONS.names.items() if isinstance(entry, Same)}


@pytest.mark.parametrize("name", SECOND)
def test_second_spellings_are_the_methods_and_none_of_their_own(name: str) -> None:
    assert name not in dir(Expr) and name not in dir(col.a)
    owner, _, method = SECOND[name].attribute.rpartition(".")
    first = getattr(CLASSES[owner] if owner else Expr, method)
    assert getattr(col.a, name).__func__ is first
    assert owner or getattr(Expr, name) is first, "of the class, too"


@pytest.mark.parametrize(
    ("second", "first"),
    [
        (col.x.astype("int"), col.x.cast("int")),
        (col.x.isin(1, 2), col.x.is_in([1, 2])),
        (col.x.isNull(), col.x.is_null()),
        (col.x.isNotNull(), col.x.is_not_null()),
        (col.x.eqNullSafe(1), col.x.eq_null_safe(1)),
        (col.x.fillna(0), col.x.fill_null(0)),
        (col.x.contains("a"), col.x.str.contains("a")),
        (col.x.startswith("a"), col.x.str.startswith("a")),
        (col.x.endswith("a"), col.x.str.endswith("a")),
        (col.x.like("a%"), col.x.str.like("a%")),
        (col.x.rlike("a+"), col.x.str.matches("a+")),
    ],
)
def test_second_spellings_write_the_same(second: Expr, first: Expr) -> None:
    assert second.equals(first)


@pytest.mark.parametrize(
    ("accessor", "name", "said"),
    [
        ("str", "zfill", "x.str has no 'zfill'. Write instead: x.str.lpad(width, '0')"),
        ("str", "len_bytes", "x.str.length()"),
        ("dt", "truncate", "x.dt.date_trunc('hour')"),
        ("dt", "epoch", "x.cast('int'): microseconds"),
        ("list", "first", "x.list.get(0)"),
        ("list", "nothing", "map(function, schema), of a collection"),
    ],
)
def test_methods_of_other_accessors_are_explained(accessor: str, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(said)):
        getattr(getattr(col.a, accessor), name)


@pytest.mark.parametrize("accessor", sorted(CLASSES))
def test_second_spellings_behind_accessors_are_the_methods(accessor: str) -> None:
    functions = getattr(col.a, accessor)
    for name, entry in ACCESSORS[accessor].names.items():
        if isinstance(entry, Same):
            assert getattr(functions, name) == getattr(functions, entry.attribute)
            assert name not in dir(functions)


@pytest.mark.parametrize("accessor", sorted(CLASSES))
def test_methods_that_are_told_of_exist(accessor: str) -> None:
    for told in ACCESSORS[accessor].names.values():
        for other, name in re.findall(r"\.(str|dt|list)\.(\w+)", str(told)):
            assert name in vars(CLASSES[other]), told


@pytest.mark.parametrize("name", ["filter", "where"])
def test_an_aggregate_of_some_rows_is_told_what_to_write(name: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"no '{name}'\. .* write dd\.count_if\(col\.x > 0\), or dd\.sum"
    ):
        getattr(dd.count(), name)
