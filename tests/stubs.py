"""Write the stubs of what is made of tables: functions of the catalogue, and second spellings.

Editors and mypy read a stub in place of the module beside it, which makes the functions, or finds the
methods, when it runs. `./scripts/stubs` writes them; `test_catalogued.py` holds them to their tables.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import indent, wrap

from differential.collections.collection import Collection
from differential.collections.groups import Grouped
from differential.expressions.calls import catalogued
from differential.expressions.expression import Expr
from differential.expressions.functions import namespaces
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.signatures import SELF, Parameter, call_params, method_params
from differential.other_spellings import of_collections, of_expressions
from differential.other_spellings.table import COLLECTIONS, EXPRESSIONS, GROUPS
from timely.user_code.spellings import Same, Spellings

__all__ = ["STUBS"]

_LINE_MAX = 110
_OWNERS = {
    "": namespaces.NumberMethods,
    "dt": namespaces.TimeMethods,
    "list": namespaces.ListMethods,
    "str": namespaces.StringMethods,
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

from differential.collections.groups import Grouped, _Key
from differential.collections.handle import Name, Names
from differential.collections.selecting import _Name
from differential.expressions.expression import ExprLike
from differential.linear.user_functions import MapFunction
from differential.skew.balance import Balance

__all__ = ["CollectionSpellings", "GroupSpellings"]

T = TypeVar("T")
C = TypeVar("C")
S = TypeVar("S", bound=CollectionSpellings)
"""
_EXPRESSIONS_HEAD = """
from collections.abc import Iterable

from differential.columns.column_types import TypeSpec
from differential.expressions.expression import Expr, ExprLike
from differential.expressions.literals import Scalar

__all__ = ["ExprSpellings"]
"""


def text_of_collections() -> str:
    """Return the stub of `differential.other_spellings.of_collections`."""
    parts = [
        f'"""{of_collections.__doc__}"""',
        _COLLECTIONS_HEAD,
        _spelled("CollectionSpellings", of_collections.CollectionSpellings.__doc__, COLLECTIONS, Collection),
        _spelled("GroupSpellings(Generic[C])", of_collections.GroupSpellings.__doc__, GROUPS, Grouped),
    ]
    return "\n".join(parts)


def text_of_expressions() -> str:
    """Return the stub of `differential.other_spellings.of_expressions`."""
    doc = of_expressions.ExprSpellings.__doc__
    parts = [f'"""{of_expressions.__doc__}"""', _EXPRESSIONS_HEAD]
    return "\n".join([*parts, _spelled("ExprSpellings", doc, EXPRESSIONS, Expr)])


def _spelled(written: str, doc: str | None, spellings: Spellings, owner: type) -> str:
    second = {name: entry for name, entry in spellings.names.items() if isinstance(entry, Same)}
    made = [_second(name, entry, owner) for name, entry in second.items()]
    return f'class {written}:\n    """{doc}"""\n\n' + "\n".join(made)


def _second(name: str, same: Same, owner: type) -> str:
    accessor, _, method = same.attribute.rpartition(".")
    function = getattr(_OWNERS[accessor] if accessor else owner, method)
    signature = inspect.signature(function)
    assert all(type(each.default) is not str for each in signature.parameters.values()), name
    written = str(signature).replace("'", "")
    # IPython takes `Self` for the base that is written here, and would show none of the methods of its heirs.
    if re.search(r"\bSelf\b", written):
        written = re.sub(r"\bSelf\b", "S", written).replace("(self", "(self: S", 1)
    line = f"    def {name}{written}:"
    if len(line) > _LINE_MAX:
        inside, _, gives = written[1:].rpartition(") -> ")
        line = f"    def {name}(\n        {inside}\n    ) -> {gives}:"
    # A hidden method says itself what it is the same as: nobody can write its name.
    says = inspect.getdoc(function) if method.startswith("_") else f"The same as `{same.attribute}`."
    if "Grouped[S]" in line:  # of a collection: this is its base
        line += "  # type: ignore[type-var]"
    return f'{line}\n        """{says}"""\n'


def _class(accessor: str, owner: type) -> str:
    made = [
        _function(function.name, method_params(function), function.says, "    ")
        for function in FUNCTIONS.values()
        if function.accessor == accessor
    ]
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
    """The names in the order in which ruff wants them, where the number behind a name counts as one."""
    ends = {name: re.search(r"[0-9]*$", name)[0] for name in names}  # type: ignore[index]  # it always matches
    return sorted(names, key=lambda name: (name.removesuffix(ends[name]), int(ends[name] or 0)))


STUBS: dict[Path, Callable[[], str]] = {
    Path(catalogued.__file__).with_suffix(".pyi"): text_of_calls,
    Path(namespaces.__file__).with_suffix(".pyi"): text_of_namespaces,
    Path(of_collections.__file__).with_suffix(".pyi"): text_of_collections,
    Path(of_expressions.__file__).with_suffix(".pyi"): text_of_expressions,
}
"""By their files: what makes their text."""

if __name__ == "__main__":
    for path, text in STUBS.items():
        path.write_text(text())
