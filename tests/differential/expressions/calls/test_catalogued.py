"""PySpark's functions write what the methods write, and look as if they were written out."""

from __future__ import annotations

import ast
import inspect
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import pytest
from stubs import STUBS

import differential as dd
from differential import col
from differential.errors import ExpressionError
from differential.expressions.calls import catalogued, composed
from differential.expressions.expression import Expr
from differential.expressions.functions import namespaces
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.function import Function

COMPOSED_OF = {
    "trim": "strip", "ltrim": "lstrip", "rtrim": "rstrip", "isnan": "is_nan", "substring": "slice",
}  # fmt: skip


def test_every_function_can_be_called_under_its_name_or_pysparks() -> None:
    assert set(catalogued.__all__) == {name for function in FUNCTIONS.values() for name in function.called}
    uncalled = {function.name for function in FUNCTIONS.values() if not function.called}
    called = {COMPOSED_OF.get(name, name) for name in composed.__all__}
    assert uncalled - called == {"field", "item", "title", "date", "iso_year"}, "methods alone"
    for module in (catalogued, composed):
        assert all(getattr(dd, name) is getattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.name)
def test_stubs_are_those_of_the_catalogue(path: Path) -> None:
    """Or else `./scripts/stubs` writes them."""
    assert path.read_text() == STUBS[path]()


def test_stubs_name_each_call_and_each_method_with_its_parameters_and_its_docstring() -> None:
    for module in (catalogued, namespaces):
        path = Path(str(module.__file__)).with_suffix(".pyi")
        for part in ast.parse(path.read_text()).body:
            owner, inside = (
                (getattr(module, part.name), part.body)
                if isinstance(part, ast.ClassDef)
                else (module, [part])
            )
            for written in inside:
                if not isinstance(written, ast.FunctionDef) or written.name == "__init__":
                    continue
                if not (ast.get_docstring(written) or "").startswith("The same as `"):  # a second spelling
                    made = getattr(owner, written.name)
                    assert str(inspect.signature(made)).replace("'", "") == (
                        f"({ast.unparse(written.args)}) -> Expr".replace("=None", " = None")
                    )
                    assert (
                        inspect.cleandoc(made.__doc__).split() == (ast.get_docstring(written) or "").split()
                    )


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_a_call_is_a_function_as_if_it_were_written_out(function: Function) -> None:
    for name in function.called:
        call = getattr(dd, name)
        assert inspect.isfunction(call) and call.__name__ == call.__qualname__ == name
        assert call.__module__ == catalogued.__name__ and call.__doc__ == function.says
        assert get_type_hints(call)["return"] is Expr, "annotations mean what they say"
        assert pickle.loads(pickle.dumps(call)) is call
        assert list(inspect.signature(call).parameters) == [param.name for param in function.params]


def test_arguments_that_do_not_fit_are_answered_as_those_of_any_function() -> None:
    with pytest.raises(TypeError, match=r"^upper\(\) missing 1 required positional argument: 'text'$"):
        dd.upper()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^replace\(\) got an unexpected keyword argument 'fresh'$"):
        dd.replace(col.s, "a", fresh="b")  # type: ignore[call-arg]
    assert dd.replace(new="b", old="a", text=col.s).equals(dd.replace(col.s, "a", "b"))


def test_a_call_names_the_line_that_it_stands_in() -> None:
    call = dd.round(col.f, 1)
    assert call.site.file == __file__ and call.site.line == inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("call", "method"),
    [
        (dd.upper(col.s), col.s.str.upper()),
        (dd.regexp_replace(col.s, "a", "b"), col.s.str.replace_regex("a", "b")),
        (dd.round(col.f, 2), col.f.round(2)),
        (dd.year(col.t), col.t.dt.year()),
        (abs(col.i), col.i.abs()),
        (round(col.f), col.f.round()),
        (round(col.f, 2), col.f.round(2)),
        (math.floor(col.f), col.f.floor()),
        (math.ceil(col.f), col.f.ceil()),
        (dd.day(col.t), col.t.dt.day()),
    ],
)
def test_a_call_is_the_method(call: Expr, method: Expr) -> None:
    assert call.equals(method)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: dd.upper("name"), r"upper\(col.name\)"),
        (lambda: dd.month("day"), r"month\(col.day\)"),
        (lambda: dd.coalesce("n", 0), r"coalesce\(col.n, 0\)"),
        (lambda: dd.least("n", "m"), r"least\(col.n, 'm'\)"),
        (lambda: dd.concat("a", "b"), r"concat\(col.a, 'b'\)"),
    ],
)
def test_a_call_of_nothing_but_texts_says_how_a_column_is_written(
    call: Callable[[], Expr], meant: str
) -> None:
    """In PySpark they would be names of columns; here they would be the same in every row, unnoticed."""
    with pytest.raises(ExpressionError, match=rf"is a text.\n  Of the column write {meant}; of a text"):
        call()


def test_a_call_with_texts_beside_a_column_takes_them_as_they_are() -> None:
    assert dd.concat(col.s, "x").equals(dd.concat(col.s, dd.lit("x")))
    assert dd.coalesce(dd.lit("a"), "b").equals(dd.lit("a").fill_null("b"))
