"""Write the stubs of what is made of tables: functions of the catalogue, and second spellings.

Editors and mypy read a stub in place of the module beside it, which makes the functions, or finds the
methods, when it runs. `./scripts/stubs` writes them; `test_catalogued.py` holds them to their tables.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from textwrap import indent, wrap

import differential as dd
from differential.collections.collection import Collection
from differential.collections.groups import Grouped
from differential.collections.in_order.ordered import Ordered
from differential.columns.schema import Schema
from differential.expressions.calls import catalogued
from differential.expressions.expression import Expr
from differential.expressions.functions import namespaces
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.signatures import SELF, Parameter, call_params, method_params
from differential.other_spellings import of_collections, of_expressions
from differential.other_spellings.table import (
    ACCESSORS,
    COLLECTIONS,
    EXPRESSIONS,
    GROUPS,
    ORDERS,
)
from differential.other_spellings.table import (
    FUNCTIONS as FUNCTION_NAMES,
)
from timely.user_code.spellings import Same, Spellings

__all__ = ["STUBS"]

_LINE_MAX = 110
_OWNERS = {
    "": namespaces.NumberMethods,
    "dt": namespaces.TimeMethods,
    "list": namespaces.ListMethods,
    "str": namespaces.StringMethods,
}
_OPERATORS = {
    "__add__": "x + y",
    "__and__": "x & y",
    "__eq__": "x == y",
    "__floordiv__": "x // y",
    "__ge__": "x >= y",
    "__gt__": "x > y",
    "__invert__": "~x",
    "__le__": "x <= y",
    "__lt__": "x < y",
    "__mod__": "x % y",
    "__mul__": "x * y",
    "__ne__": "x != y",
    "__neg__": "-x",
    "__or__": "x | y",
    "__sub__": "x - y",
    "__truediv__": "x / y",
}


def text_of_calls() -> str:
    """Return the stub of `differential.expressions.calls.catalogued`."""
    made = [
        _function(name, call_params(function), function.says, "")
        for function in FUNCTIONS.values()
        for name in function.called
    ]
    declared = "".join(f'    "{name}",\n' for name in _sorted(catalogued.__all__))
    return "\n".join(
        [
            f'"""{catalogued.__doc__}"""\n',
            "from differential.expressions.expression import Expr, ExprLike\n",
            f"__all__ = [\n{declared}]\n",
            *made,
        ]
    )


def text_of_namespaces() -> str:
    """Return the stub of `differential.expressions.functions.namespaces`."""
    declared = ", ".join(f'"{name}"' for name in namespaces.__all__)
    return "\n".join(
        [
            f'"""{namespaces.__doc__}"""\n',
            "from differential.expressions.expression import Expr, ExprLike",
            "from differential.expressions.functions.signatures import Write\n",
            f"__all__ = [{declared}]\n",
            *(_class(accessor, owner) for accessor, owner in _OWNERS.items()),
        ]
    )


_COLLECTIONS_HEAD = """
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from differential.aggregates import Aggregate
from differential.collections.grouping_sets import GroupedBySets
from differential.collections.groups import Grouped, _Key, _Selected
from differential.collections.handle import Name, Names
from differential.collections.in_order.ordered import Ordered
from differential.collections.selecting import NullOperators, _Name
from differential.columns.column_types import TypeSpec
from differential.columns.schema import Schema, SchemaSpec
from differential.expressions.expression import Aliased, Expr, ExprLike, Ordering
from differential.expressions.orders import OrderSpec
from differential.linear.user_functions import FlatMapFunction, MapFunction
from differential.operators.reduce import RankKind
from differential.skew.balance import Balance

__all__ = ["CollectionSpellings", "GroupSpellings", "OrderSpellings"]

T = TypeVar("T")
C = TypeVar("C")
H = TypeVar("H")
S = TypeVar("S", bound=CollectionSpellings)
"""
_EXPRESSIONS_HEAD = """
from collections.abc import Iterable

from differential.aggregates import Aggregate
from differential.columns.column_types import TypeSpec
from differential.expressions.expression import Expr, ExprLike, Ordering
from differential.expressions.literals import Scalar
from differential.spelled import Closed

__all__ = ["ExprSpellings"]
"""
_FUNCTIONS_DOC = """Second spellings of functions of the module: `dd.countDistinct` is `dd.count_distinct`.

For editors and mypy alone; when a program runs, the table answers. `./scripts/stubs` writes it.
"""


def text_of_collections() -> str:
    """Return the stub of `differential.other_spellings.of_collections`."""
    parts = [
        f'"""{of_collections.__doc__}"""',
        _COLLECTIONS_HEAD,
        _spelled("CollectionSpellings", of_collections.CollectionSpellings.__doc__, COLLECTIONS, Collection),
        _spelled("GroupSpellings(Generic[C])", of_collections.GroupSpellings.__doc__, GROUPS, Grouped),
        _spelled("OrderSpellings(Generic[H])", of_collections.OrderSpellings.__doc__, ORDERS, Ordered),
    ]
    return "\n".join(parts)


def text_of_expressions() -> str:
    """Return the stub of `differential.other_spellings.of_expressions`."""
    doc = of_expressions.ExprSpellings.__doc__
    parts = [f'"""{of_expressions.__doc__}"""', _EXPRESSIONS_HEAD]
    return "\n".join([*parts, _spelled("ExprSpellings", doc, EXPRESSIONS, Expr)])


def text_of_functions() -> str:
    """Return the stub of `differential.other_spellings.of_functions`."""
    second = {name: entry for name, entry in FUNCTION_NAMES.names.items() if isinstance(entry, Same)}
    lines = sorted(f"from {_home_of(each)} import {_last(each)} as {name}" for name, each in second.items())
    declared = "".join(f'    "{name}",\n' for name in sorted(second))
    return "\n".join([f'"""{_FUNCTIONS_DOC}"""\n', *lines, f"\n__all__ = [\n{declared}]\n"])


def _last(same: Same) -> str:
    return same.attribute.rpartition(".")[2]


def _home_of(same: Same) -> str:
    """Return the module that defines what a second spelling is the same as."""
    thing, name = attrgetter(same.attribute)(dd), _last(same)
    homes = [
        each.__name__
        for each in list(sys.modules.values())
        if each.__name__.startswith("differential.") and name in getattr(each, "__all__", ())
        if vars(each).get(name) is thing and each.__name__ != "differential.functions"  # has them once more
    ]
    (home,) = homes
    return home


def _spelled(written: str, doc: str | None, spellings: Spellings, owner: type) -> str:
    second = {name: entry for name, entry in spellings.names.items() if isinstance(entry, Same)}
    made = [_second(name, entry, owner) for name, entry in second.items()]
    return f'class {written}:\n    """{doc}"""\n\n' + "\n".join(made)


def _second(name: str, same: Same, owner: type) -> str:
    accessor, _, method = same.attribute.rpartition(".")
    function = getattr({**_OWNERS, "schema": Schema}[accessor] if accessor else owner, method)
    is_property = isinstance(function, property)
    if isinstance(function, property):
        assert function.fget is not None
        function = function.fget
    signature = _bare(inspect.signature(function))
    written = str(signature).replace("'", '"').replace("(self: Expr", "(self")
    # IPython takes `Self` for the base that is written here, and would show none of the methods of its heirs.
    if re.search(r"\bSelf\b", written):
        written = re.sub(r"\bSelf\b", "S", written).replace("(self", "(self: S", 1)
    line = f"    def {name}{written}:"
    if len(line) > _LINE_MAX:
        inside, _, gives = written[1:].rpartition(") -> ")
        if len(inside) + 8 > _LINE_MAX:  # as ruff formats it: no comma here is within brackets
            inside = inside.replace(", ", ",\n        ") + ","
        line = f"    def {name}(\n        {inside}\n    ) -> {gives}:"
    # A hidden method says itself what it is the same as: nobody can write its name.
    says = f"The same as `{_OPERATORS.get(method, same.attribute)}`."
    if method.startswith("_") and method not in _OPERATORS:
        says = inspect.getdoc(function) or ""
    if is_property:
        line = f"    @property\n{line}"
    if re.search(
        r"(Grouped|GroupedBySets|NullOperators|Ordered)\[[CS]\]", line
    ):  # of a collection: this is its base
        line += "  # type: ignore[type-var]"
    return f'{line}\n        """{says}"""\n'


class _Written(str):
    """An annotation, which is shown as it was written."""

    __slots__ = ()
    __repr__ = str.__str__


def _bare(signature: inspect.Signature) -> inspect.Signature:
    empty = inspect.Parameter.empty
    return signature.replace(
        parameters=[
            each if each.annotation is empty else each.replace(annotation=_Written(each.annotation))
            for each in signature.parameters.values()
        ],
        return_annotation=_Written(signature.return_annotation),
    )


def _class(accessor: str, owner: type) -> str:
    made = [
        _function(function.name, method_params(function), function.says, "    ")
        for function in FUNCTIONS.values()
        if function.accessor == accessor
    ]
    names = ACCESSORS[accessor].names if accessor else {}
    made += [_second(name, same, owner) for name, same in names.items() if isinstance(same, Same)]
    begin = "    def __init__(self, expr: Expr, write: Write) -> None: ...\n" if accessor else ""
    return f'class {owner.__name__}:\n    """{owner.__doc__}"""\n\n{begin}' + "\n".join(made)


def _function(name: str, params: Sequence[Parameter], says: str, margin: str) -> str:
    written = ", ".join(map(_parameter, params))
    lines = wrap(f'"""{says}"""', _LINE_MAX - len(margin) - 4)
    if len(lines) > 1:
        lines = [*wrap(f'"""{says}', _LINE_MAX - len(margin) - 4), '"""']
    body = "".join(f"    {line}\n" for line in lines)
    return indent(f"def {name}({written}) -> Expr:\n{body}", margin)


def _parameter(param: Parameter) -> str:
    if param is SELF:
        return param.name
    star = "*" if param.is_repeated else ""
    return f"{star}{param.name}: {param.annotation}{' = None' if param.is_optional else ''}"


def _sorted(names: Sequence[str]) -> list[str]:
    """The names in the order in which ruff wants them, where a number in a name counts as one."""
    parts = {name: re.findall(r"\d+|\D+", name) for name in names}
    return sorted(
        names, key=lambda name: [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in parts[name]]
    )


STUBS: dict[Path, Callable[[], str]] = {
    Path(catalogued.__file__).with_suffix(".pyi"): text_of_calls,
    Path(namespaces.__file__).with_suffix(".pyi"): text_of_namespaces,
    Path(of_collections.__file__).with_suffix(".pyi"): text_of_collections,
    Path(of_expressions.__file__).with_suffix(".pyi"): text_of_expressions,
    Path(of_expressions.__file__).with_name("of_functions.pyi"): text_of_functions,
}
"""By their files: what makes their text."""

if __name__ == "__main__":
    for path, text in STUBS.items():
        path.write_text(text())
