"""Python functions generated from entries of the catalogue, with the parameters that the entries name.

Each is a copy of a template with the same number of parameters, whose code gets the entry's names. So Python
itself binds the arguments, reports a missing one, and shows signature and docstring, as for a function in
source code. `tests/stubs.py` writes the same signatures for editors and mypy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Final, NamedTuple, Protocol, TypeAlias, cast

from differential.columns.foreign.type_names import Kind
from differential.expressions.functions.function import ANY_KIND, Function, Param

__all__ = ["SELF", "Parameter", "Write", "call_params", "function_of", "method_params"]


class Write(Protocol):
    """Writes an expression of a function of the catalogue."""

    def __call__(self, name: str, /, *operands: object) -> object:
        """Return the expression of the function `name` over `operands`."""


class Parameter(NamedTuple):
    """A parameter of a Python function. `annotation`: its type, as written in an annotation."""

    name: str
    annotation: str
    is_optional: bool = False
    is_repeated: bool = False


SELF: Final = Parameter("self", "")

_CONSTANTS: Final[dict[tuple[Kind, ...], str]] = {
    ("string",): "str",
    ("int",): "int",
    ("bool",): "bool",
    ("int", "float"): "float",
    ("string", "int"): "str | int",
    ANY_KIND: "object",
}
"""The type in Python of a constant, by the kinds that it may have."""


def call_params(function: Function) -> list[Parameter]:
    """Return the parameters of a function that writes `function`: all its operands."""
    last = len(function.params) - 1
    return [
        _parameter(param, is_repeated=function.many and index == last)
        for index, param in enumerate(function.params)
    ]


def method_params(function: Function) -> list[Parameter]:
    """Return the parameters of a method that writes `function`, whose first operand is the expression."""
    return [SELF, *call_params(function)[1:]]


def _parameter(param: Param, is_repeated: bool) -> Parameter:
    annotation = _CONSTANTS[param.takes] if param.is_constant else "ExprLike"
    return Parameter(
        param.name,
        f"{annotation} | None" if param.is_optional else annotation,
        param.is_optional,
        is_repeated,
    )


def function_of(
    write: Write,
    function: Function,
    name: str,
    params: Sequence[Parameter],
    module: dict[str, object],
    owner: type | None = None,
) -> FunctionType:
    """Return a Python function called `name`, of a `module`, that passes its arguments to `write`.

    `module`: its names, as from `globals()`. The function is a method of `owner`, if that is not None.
    """
    template = _of_all if params[-1].is_repeated else _TEMPLATES[len(params)]
    model = cast("FunctionType", template(write, function.name))
    qualified = name if owner is None else f"{owner.__qualname__}.{name}"
    names = tuple(param.name for param in params)
    code = model.__code__.replace(co_name=name, co_qualname=qualified, co_varnames=names)
    generated = FunctionType(code, module, name, None, model.__closure__)
    generated.__qualname__ = qualified
    generated.__doc__ = function.says
    generated.__defaults__ = (None,) * sum(param.is_optional for param in params) or None
    generated.__annotations__ = {param.name: param.annotation for param in params if param is not SELF}
    generated.__annotations__["return"] = "Expr"
    return generated


_Template: TypeAlias = Callable[[Write, str], object]


def _of_one(write: Write, name: str) -> object:
    def template(first: object) -> object:
        return write(name, first)

    return template


def _of_two(write: Write, name: str) -> object:
    def template(first: object, second: object) -> object:
        return write(name, first, second)

    return template


def _of_three(write: Write, name: str) -> object:
    def template(first: object, second: object, third: object) -> object:
        return write(name, first, second, third)

    return template


def _of_all(write: Write, name: str) -> object:
    def template(*values: object) -> object:
        return write(name, *values)

    return template


_TEMPLATES: Final[dict[int, _Template]] = {1: _of_one, 2: _of_two, 3: _of_three}
"""Templates by number of parameters."""
