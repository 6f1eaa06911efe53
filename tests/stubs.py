"""Write the stubs of what is made of the catalogue of functions: `catalogued.pyi` and `namespaces.pyi`.

Editors and mypy read these in place of `catalogued.py` and `namespaces.py`, which make the functions when
they are imported. `./scripts/stubs` writes them; `test_catalogued.py` holds them to the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import indent, wrap

from differential.expressions.calls import catalogued
from differential.expressions.functions import namespaces
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.signatures import SELF, Parameter, call_params, method_params

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
}
"""By their files: what makes their text."""

if __name__ == "__main__":
    for path, text in STUBS.items():
        path.write_text(text())
