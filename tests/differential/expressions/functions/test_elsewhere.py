"""Methods that expressions of other libraries have are answered with what to write."""

from __future__ import annotations

import re

import pytest

from differential import col
from differential.expressions.functions.elsewhere import OF_ACCESSORS, explain_method
from differential.expressions.functions.namespaces import ListMethods, StringMethods, TimeMethods

CLASSES = {"str": StringMethods, "dt": TimeMethods, "list": ListMethods}


def test_methods_of_other_libraries_are_explained() -> None:
    with pytest.raises(AttributeError, match=r"col.a has no 'ilike'. Write instead: x.str.lower"):
        _ = col.a.ilike  # type: ignore[attr-defined]
    assert explain_method("col.a", "city") == (
        "col.a has no 'city'. Of a map or struct write col.a.list.field('city')"
    )


@pytest.mark.parametrize(
    ("accessor", "name", "said"),
    [
        ("str", "to_uppercase", "x.str has no 'to_uppercase'. Write instead: x.str.upper()"),
        ("str", "len_chars", "x.str.length()"),
        ("dt", "truncate", "x.dt.date_trunc('hour')"),
        ("dt", "epoch", "x.cast('int'): microseconds"),
        ("list", "len", "x.list.size()"),
        ("list", "nothing", "map(function, schema), of a collection"),
    ],
)
def test_methods_of_other_accessors_are_explained(accessor: str, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(said)):
        getattr(getattr(col.a, accessor), name)


@pytest.mark.parametrize("accessor", sorted(CLASSES))
def test_methods_that_are_told_of_exist(accessor: str) -> None:
    for told in OF_ACCESSORS[accessor].values():
        for other, name in re.findall(r"\.(str|dt|list)\.(\w+)", told):
            assert name in vars(CLASSES[other]), told
