"""Methods of expressions are in step with the table of functions."""

from __future__ import annotations

import inspect
import re

import pytest

from differential import col
from differential.expressions.functions import namespaces
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.function import Function
from differential.expressions.functions.namespaces import (
    ListMethods,
    StringMethods,
    TimeMethods,
    explain_method,
)

CLASSES = {"str": StringMethods, "dt": TimeMethods, "list": ListMethods}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_a_function_with_an_accessor_is_a_method_with_its_parameters(function: Function) -> None:
    if function.accessor is None:
        return
    owner = CLASSES.get(function.accessor, type(col.x))
    method = getattr(owner, function.name)
    params = [param for name, param in inspect.signature(method).parameters.items() if name != "self"]
    assert [param.name for param in params] == [param.name for param in function.params[1:]]
    if owner is not type(col.x):
        assert method.__doc__ == function.says


def test_there_are_no_other_methods() -> None:
    for accessor, owner in CLASSES.items():
        names = {name for name in vars(owner) if not name.startswith("_")}
        assert names == {function.name for function in FUNCTIONS.values() if function.accessor == accessor}


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
    for told in namespaces._OF_ACCESSORS[accessor].values():
        for other, name in re.findall(r"\.(str|dt|list)\.(\w+)", told):
            assert name in vars(CLASSES[other]), told
