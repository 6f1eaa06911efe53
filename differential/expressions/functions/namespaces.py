"""Functions as methods of an expression: `col.name.str.upper()`, `col.t.dt.year()`, `col.x.list.get(0)`.

Each method is generated from the entry of its name in `catalogue.py`. Editors and mypy read them in
`namespaces.pyi`, which `./scripts/stubs` writes.
"""

from __future__ import annotations

from typing import Final

from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.signatures import Write, function_of, method_params
from differential.other_spellings.table import ACCESSORS
from timely.user_code.offered import Offered
from timely.user_code.short_traces import short_lookup

__all__ = ["ListMethods", "NumberMethods", "StringMethods", "TimeMethods"]


_FUNCTION: Final = ". Write instead: map(function, schema), of a collection: a Python function of each record"


class NumberMethods:
    """Functions of numbers, and others that are methods of the expression itself: base of expressions."""

    __slots__ = ()


class _Namespace(Offered):
    """The functions of one accessor, for one expression."""

    _accessor = ""
    __slots__ = ("_expr", "_write")

    def __init__(self, expr: object, write: Write) -> None:
        self._expr = expr
        self._write = write

    @short_lookup
    def __getattr__(self, name: str) -> object:
        spellings = ACCESSORS[self._accessor]
        same = spellings.same(self, name)
        if same is None:
            missing = f"x.{self._accessor} has no {name!r}"
            raise AttributeError(spellings.message(missing, name, otherwise=_FUNCTION))
        return same


class StringMethods(_Namespace):
    """Functions of strings: the methods of `x.str`."""

    _accessor = "str"
    __slots__ = ()


class TimeMethods(_Namespace):
    """Functions of dates and timestamps: the methods of `x.dt`."""

    _accessor = "dt"
    __slots__ = ()


class ListMethods(_Namespace):
    """Functions of lists and maps: the methods of `x.list`."""

    _accessor = "list"
    __slots__ = ()


def _write_of_itself(name: str, this: NumberMethods, /, *operands: object) -> object:
    return this._write(name, this, *operands)


def _write_of_its_expression(name: str, this: _Namespace, /, *operands: object) -> object:
    return this._write(name, this._expr, *operands)


_CLASSES: Final = {"": NumberMethods, "str": StringMethods, "dt": TimeMethods, "list": ListMethods}

for _function in FUNCTIONS.values():
    if _function.accessor is not None:
        _owner = _CLASSES[_function.accessor]
        _write = _write_of_its_expression if _function.accessor else _write_of_itself
        _params = method_params(_function)
        _method = function_of(_write, _function, _function.name, _params, globals(), _owner)
        setattr(_owner, _function.name, _method)
