"""functions.py: when two functions are the same.

same_*     comments, positions, docstrings, where it was written
other_*    body, defaults, what it has closed over, what it calls
whole_*    whether the digest says everything
named_*    what another process finds by import
"""

from __future__ import annotations

import ast
import datetime as dt
import enum
import importlib.util
import math
import re
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import cast

import numpy as np
import pytest

from differential.plan.functions import UserFunction, import_name, source_tree

CASES = iter(range(10_000))


def module(tmp_path: Path, text: str) -> ModuleType:
    """A module with this text."""
    file = tmp_path / f"made_{next(CASES)}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("made", file)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def digest(tmp_path: Path, text: str, name: str = "f") -> str:
    return UserFunction.of(getattr(module(tmp_path, text), name)).digest


BASE = "def f(x):\n    return x + 1\n"


@pytest.mark.parametrize(
    "text",
    [
        "\n\n\n# a comment\ndef f(x):\n    # another\n    return x + 1\n",
        'def f(x):\n    """What it does."""\n    return x + 1\n',
        "def f(\n    x,\n):\n    return (x\n            + 1)\n",
        "y = 3\ndef g(): pass\ndef f(x): return x + 1\n",
        "def f(x: int) -> int: return x + 1\n".replace(": int", "").replace(" -> int", ""),
    ],
)
def test_same_wherever_and_however_it_is_written(tmp_path: Path, text: str) -> None:
    assert digest(tmp_path, text) == digest(tmp_path, BASE)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x + 2\n",
        "def f(x):\n    return x + 1.0\n",
        "def f(x):\n    return 1 + x\n",
        "def f(x, y=1):\n    return x + 1\n",
        "def f(x):\n    x += 0\n    return x + 1\n",
        "async def f(x):\n    return x + 1\n",
    ],
)
def test_other_when_its_body_is(tmp_path: Path, text: str) -> None:
    assert digest(tmp_path, text) != digest(tmp_path, BASE)


def test_other_when_a_default_is(tmp_path: Path) -> None:
    texts = [f"N = {n}\ndef f(x, n=N):\n    return x\n" for n in (1, 2)]
    first, second = (UserFunction.of(module(tmp_path, text).f) for text in texts)
    assert first.digest != second.digest


def test_other_when_a_function_or_a_constant_that_it_names_is(tmp_path: Path) -> None:
    calls = "def g(x):\n    return x + {}\ndef f(x):\n    return g(x)\n"
    assert digest(tmp_path, calls.format(1)) != digest(tmp_path, calls.format(2))
    constant = "N = {}\ndef f(x):\n    return [x + N for _ in range(2)]\n"
    assert digest(tmp_path, constant.format(1)) != digest(tmp_path, constant.format(2))


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Limits:
    least: int
    days: tuple[dt.date, ...]


def adder(n: object) -> Callable[[int], object]:
    return lambda x: (x, n)


def test_other_when_what_it_has_closed_over_is() -> None:
    assert UserFunction.of(adder(1)).digest == UserFunction.of(adder(1)).digest
    assert len({UserFunction.of(adder(n)).digest for n in (1, 1.0, True, "1", None, (1,), b"1")}) == 7


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
        (dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        (Decimal("1.0"), Decimal("1.00")),
        (frozenset({dt.date(2024, 1, 1)}), frozenset({dt.date(2024, 1, 2)})),
        (range(3), range(4)),
        (re.compile("a"), re.compile("a", re.IGNORECASE)),
        (Colour.RED, Colour.BLUE),
        (np.int64(1), np.int64(2)),
        (np.arange(2000), np.arange(2000) * 2),
        (Limits(1, (dt.date(2024, 1, 1),)), Limits(1, (dt.date(2024, 1, 2),))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_when_a_value_of_some_class_is(one: object, other: object) -> None:
    """A job that goes on with another limit than before would mix two answers."""
    assert UserFunction.of(adder(one)).digest == UserFunction.of(adder(deepcopy(one))).digest
    assert UserFunction.of(adder(one)).digest != UserFunction.of(adder(other)).digest


def test_other_lambdas_on_one_line_are_told_apart() -> None:
    one, two, same = lambda x: x + 1, lambda x: x + 2, lambda x: x + 1  # fmt: skip
    assert UserFunction.of(one).digest == UserFunction.of(same).digest != UserFunction.of(two).digest
    outer = lambda x: lambda y: x + y  # noqa: E731
    assert UserFunction.of(outer(1)).digest != UserFunction.of(outer(2)).digest
    assert UserFunction.of(outer).digest != UserFunction.of(outer(1)).digest


def test_same_source_is_read_from_the_file_as_long_as_it_is_still_what_runs(tmp_path: Path) -> None:
    made = module(tmp_path, BASE)
    assert source_tree(made.f) is not None
    assert source_tree(cast("type[None]", eval("lambda x: x + 1"))) is None  # type: ignore[arg-type]
    edited = module(tmp_path, "def f(x):\n    return x + other(x)\n")
    Path(str(edited.__file__)).write_text("def f(x):\n    return x * nothing.of(x)\n")
    assert source_tree(edited.f) is None, "the file says something else by now"


def test_same_file_is_parsed_once_for_all_of_its_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = module(tmp_path, "def f(x):\n    return [x, 'once']\n\n\ndef g(x):\n    return lambda y: x + y\n")
    parsed: list[str] = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda text: parsed.append(text) or parse(text))
    kinds = [type(source_tree(function)) for function in (made.f, made.g, made.g(1), made.f)]
    assert kinds == [ast.FunctionDef, ast.FunctionDef, ast.Lambda, ast.FunctionDef] and len(parsed) == 1


def test_same_without_a_source_are_equal_instructions() -> None:
    one, two, other = (eval(text) for text in ("lambda x: x + 1", "lambda x: x + 1", "lambda x: x + 2"))
    assert UserFunction.of(one).digest == UserFunction.of(two).digest != UserFunction.of(other).digest
    nested = [eval(f"lambda x: [y + {n} for y in x]") for n in (1, 2)]
    assert UserFunction.of(nested[0]).digest != UserFunction.of(nested[1]).digest


class Scale:
    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, x: int) -> int:
        return x * self.by


@pytest.mark.parametrize(
    "function, is_whole",
    [
        (adder(1), True),
        (adder((1, "a", (None,))), True),
        (adder((dt.date(2024, 1, 1), dt.timedelta(1), Decimal(1))), True),
        (adder([1]), False),
        (adder({"a": 1}), False),
        (adder({1}), False),
        (adder(Scale(2)), False),
        (Scale(2), False),
        (Scale(2).__call__, False),
        (partial(adder, 1), True),
        (partial(adder, [1]), False),
        (len, True),
    ],
    ids=[
        "int",
        "tuple",
        "dates",
        "list",
        "dict",
        "set",
        "object",
        "callable",
        "method",
        "partial",
        "partial of a list",
        "builtin",
    ],
)
def test_whole_is_what_plain_values_that_cannot_change_say(function: object, is_whole: bool) -> None:
    assert UserFunction.of(function).is_whole is is_whole


def test_whole_recursion_ends() -> None:
    def down(x: int) -> int:
        return 0 if x == 0 else down(x - 1)

    assert UserFunction.of(down).digest == UserFunction.of(down).digest


def test_named_are_functions_that_another_process_can_import() -> None:
    assert import_name(Path.joinpath) == "pathlib:PurePath.joinpath"
    assert import_name(len) == "builtins:len"
    assert import_name(adder(1)) is None, "a function within a function"
    assert import_name(Scale(1)) is None
    made = type(sys)("no_such_module_anywhere")
    exec(BASE, made.__dict__)
    assert import_name(made.f) is None, "its module cannot be imported"


def starting_with(pattern: str) -> Callable[[str], object]:
    match = re.compile(pattern).match
    return lambda text: match(text)


def test_whole_a_method_of_an_object_is_not_by_its_name() -> None:
    """`pattern.match` and `mapping.get` are builtins to Python, bound to what no text says."""
    for function in (starting_with("a"), re.compile("a").match, {1: 2}.get):
        assert not UserFunction.of(function).is_whole
    assert UserFunction.of(math.isqrt).is_whole


def test_other_when_functions_within_it_change_names(tmp_path: Path) -> None:
    text = "def f(x):\n    def {}(): return 1\n    def {}(): return 2\n    return a()\n"
    assert digest(tmp_path, text.format("a", "b")) != digest(tmp_path, text.format("b", "a"))


def test_other_when_a_factory_elsewhere_made_what_it_names(tmp_path: Path) -> None:
    factory = module(tmp_path, "def make(n):\n    def inner(v): return v + n\n    return inner\n")
    found = []
    for n in (1, 100):
        made = module(tmp_path, "def f(row): return step(row)\n")
        made.step = factory.make(n)  # type: ignore[attr-defined]
        found.append(UserFunction.of(made.f).digest)
    assert found[0] != found[1]


def test_same_attributes_are_no_globals(tmp_path: Path) -> None:
    text = "{}\ndef f(row): return row.x\n"
    with_global = UserFunction.of(module(tmp_path, text.format("x = object()")).f)
    assert with_global.is_whole and with_global.digest == digest(tmp_path, text.format(""))


def test_whole_attributes_of_a_function_can_change() -> None:
    def counted(row: object) -> object:
        return row

    assert UserFunction.of(counted).is_whole
    counted.rate = 3  # type: ignore[attr-defined]
    assert not UserFunction.of(counted).is_whole


def test_same_whole_numbers_of_any_length_and_no_others() -> None:
    """Python refuses to write down so many digits."""
    first, second, other = (adder(number) for number in (10**5_000, 10**5_000, 10**5_000 + 1))
    assert UserFunction.of(first).digest == UserFunction.of(second).digest != UserFunction.of(other).digest
