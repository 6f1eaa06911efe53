"""Methods of expressions are in step with the table of functions."""

from __future__ import annotations

import inspect

import pytest

from differential import col
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.function import Function
from differential.expressions.functions.namespaces import (
    ListMethods,
    NumberMethods,
    StringMethods,
    TimeMethods,
)

CLASSES = {"": NumberMethods, "str": StringMethods, "dt": TimeMethods, "list": ListMethods}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_a_function_with_an_accessor_is_a_method_with_its_parameters(function: Function) -> None:
    if function.accessor is None:
        return
    owner = CLASSES[function.accessor]
    method = getattr(owner, function.name)
    assert inspect.isfunction(method) and method.__qualname__ == f"{owner.__name__}.{function.name}"
    params = [param for name, param in inspect.signature(method).parameters.items() if name != "self"]
    assert [param.name for param in params] == [param.name for param in function.params[1:]]
    assert method.__doc__ == function.says


def test_there_are_no_other_methods() -> None:
    for accessor, owner in CLASSES.items():
        names = {name for name in vars(owner) if not name.startswith("_")}
        assert names == {function.name for function in FUNCTIONS.values() if function.accessor == accessor}


def test_arguments_that_do_not_fit_are_answered_as_those_of_any_method() -> None:
    with pytest.raises(
        TypeError, match=r"StringMethods.replace\(\) missing 1 required positional argument: 'new'"
    ):
        col.s.str.replace("a")  # type: ignore[call-arg]
    assert col.s.str.replace(new="b", old="a").equals(col.s.str.replace("a", "b"))
