"""Methods of expressions are in step with the table of functions."""

from __future__ import annotations

import inspect

import pytest

from differential import col
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
    assert explain_method("col.a", "nothing") == "col.a has no 'nothing'"
