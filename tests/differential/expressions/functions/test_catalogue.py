"""The catalogue of functions is whole: each is typed, printed, sent, and computed."""

from __future__ import annotations

import msgpack
import pytest
from expression_values import EVERY, ROWS, values_of

import differential as dd
from differential import col, lit, when
from differential.expressions.expression import Expr, call_function
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.function import ANY_KIND, Function
from differential.expressions.types import type_of
from differential.plan.expressions import expr_data, expr_of

COLUMNS = {
    "string": col.s,
    "int": col.i,
    "float": col.f,
    "decimal": col.p,
    "timestamp": col.t,
    "date": col.d,
    "any": col.x,
    "array": col.l,
    "struct": col.k,
    "map": col.m,
}
CONSTANTS: dict[str, object] = {
    "format": "%Y", "unit": "day", "fill": "*", "group": 1, "pattern": "(a)", "value": 1, "key": "k",
    "schema": "array<int>",
    "base": 2, "bits": 256, "zone": "Europe/Rome", "weekday": "Mon", "path": "$.a", "ascending": False,
}  # fmt: skip


OPERANDS: dict[str, tuple[object, ...]] = {
    "named_struct": ("a", col.i),
    "create_map": ("a", col.i),
    "map_from_arrays": (dd.array(col.i), dd.array(col.s)),
    "map_contains_key": (col.m, "u"),
    "flatten": (dd.array(col.l),),
    "xxhash64_as": ("int, string", col.i, col.s),
}
"""Operands of functions whose operands depend on one another."""


def call_of(function: Function, optional: bool) -> Expr:
    """A call of `function`, with or without what may be left out."""
    if function.name in OPERANDS:
        return call_function(function.name, *OPERANDS[function.name])
    operands: list[object] = []
    for param in function.params:
        if param.is_optional and not optional:
            continue
        if param.is_constant:
            operands.append(CONSTANTS.get(param.name, "a" if param.takes[0] == "string" else 1))
        else:
            operands.append(COLUMNS[param.takes[0]])
    return call_function(function.name, *operands)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
@pytest.mark.parametrize("optional", [False, True], ids=["", "all"])
def test_a_function_is_printed_sent_and_computed(function: Function, optional: bool) -> None:
    expr = call_of(function, optional)
    again = expr_of(msgpack.unpackb(msgpack.packb(expr_data(expr))))
    assert again.equals(expr)
    printed = eval(expr.describe(), {"col": col, "lit": lit, "when": when, **vars(dd)})
    assert printed.equals(expr)
    if not function.can_fail:
        assert len(values_of(expr)) == len(ROWS)
    if function.typed is None:
        assert type_of(expr, EVERY).nullable == (function.may_lack and not function.can_fail)


NULLS = {"decimal": "decimal(9, 2)", "array": "array<int>", "map": "map<int, int>"}
ALONE = [each for each in FUNCTIONS.values() if each.typed is None or not each.skips_nulls]


@pytest.mark.parametrize("function", ALONE, ids=lambda function: function.name)
def test_a_function_passes_nulls_on_unless_it_says_otherwise(function: Function) -> None:
    wanted = [param for param in function.params if not param.is_constant]
    nulls = [lit(None, NULLS.get(param.takes[0], param.takes[0])) for param in wanted]
    if function.name == "flatten":
        nulls = [lit(None, "array<array<int>>")]
    if function.typed is not None and len(wanted) > 1 and wanted[1].takes == ANY_KIND:
        nulls[1] = lit(None, "int" if wanted[0].takes == ("array",) else "any")
    given = iter(nulls)
    operands = [
        CONSTANTS.get(param.name, "a" if param.takes[0] == "string" else 1)
        if param.is_constant
        else next(given)
        for param in function.params
        if not param.is_optional
    ]
    expected = [""] * 2 if function.skips_nulls else [None] * 2
    assert values_of(call_function(function.name, *operands)) == expected


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_a_function_is_told_of_in_a_sentence(function: Function) -> None:
    """Which `docs/reference.md` repeats: `tests/test_reference_page.py`."""
    assert function.says.endswith(".") and set(ANY_KIND) >= set(function.params[0].takes)
