"""Functions over columns as PySpark has them: `upper(col.name)`, `year(col.t)`, under its names.

Each is generated from an entry of `functions/catalogue.py`, and writes what its method writes
(`col.name.str.upper()`). Editors and mypy read them in `catalogued.pyi`, which `./scripts/stubs` writes.
Functions that are written in terms of others are in `composed.py`.
"""

from __future__ import annotations

from differential.expressions.expression import Expr, ExprLike, call_function  # noqa: F401  # of annotations
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.signatures import call_params, function_of
from differential.other_spellings import written_as

__all__ = [name for function in FUNCTIONS.values() for name in function.called]

for _function in FUNCTIONS.values():
    for _name in _function.called:
        _call = function_of(call_function, _function, _name, call_params(_function), globals())
        globals()[_name] = written_as(_function.usage)(_call) if _function.usage else _call
