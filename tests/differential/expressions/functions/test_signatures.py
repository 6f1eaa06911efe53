"""Python functions that are made of entries of the catalogue."""

from __future__ import annotations

import inspect

import pytest

from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.function import Function
from differential.expressions.functions.signatures import call_params, function_of, method_params

CALLED = [function for function in FUNCTIONS.values() if function.called]


def write(name: str, /, *operands: object) -> object:
    return name, operands


@pytest.mark.parametrize("function", CALLED, ids=lambda function: function.name)
def test_a_function_hands_its_arguments_on_in_their_order(function: Function) -> None:
    made = function_of(write, function, "made", call_params(function), globals())
    given = tuple(range(len(function.params)))
    assert made(*given) == (function.name, given)
    if not function.many:
        assert made(**dict(zip([param.name for param in function.params], given, strict=True))) == made(
            *given
        )


@pytest.mark.parametrize("function", CALLED, ids=lambda function: function.name)
def test_what_may_be_left_out_is_none(function: Function) -> None:
    parameters = inspect.signature(
        function_of(write, function, "made", call_params(function), globals())
    ).parameters
    optional = [name for name, each in parameters.items() if each.default is None]
    assert optional == [param.name for param in function.params if param.is_optional]


def test_a_method_has_the_object_in_place_of_the_first_operand() -> None:
    class Owner:
        pass

    made = function_of(
        write, FUNCTIONS["replace"], "replace", method_params(FUNCTIONS["replace"]), globals(), Owner
    )
    setattr(Owner, "replace", made)  # noqa: B010
    owner = Owner()
    assert owner.replace("a", new="b") == ("replace", (owner, "a", "b"))  # type: ignore[attr-defined]
    assert made.__qualname__.endswith("Owner.replace")


def test_functions_of_one_template_do_not_share_names() -> None:
    upper, lower = (
        function_of(write, FUNCTIONS[name], name, call_params(FUNCTIONS[name]), globals())
        for name in ("upper", "lower")
    )
    assert upper("x") == ("upper", ("x",)) and lower("x") == ("lower", ("x",))
    assert (upper.__code__.co_name, lower.__code__.co_name) == ("upper", "lower")
