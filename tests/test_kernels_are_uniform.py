"""Every kernel compiles once: one signature, out of whole numbers and arrays of them.

  shape_*     what the source of a kernel may say (static)
  compiled_*  how a second signature is found; `conftest.py` looks at the end of every run

A second signature means that somewhere an array arrived with another layout or type, or a Python value where
the rest passes a numpy one. It costs seconds at a user's first start, and a slower machine code at each call.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from compiled_kernels import SEVERAL_SIGNATURES, compiled_twice, loaded_kernels, sources
from house import Module, report

from progress.compiled.kernel import Kernel

ALLOWED_TYPES = ("int", "bool", "None", "Int64s", "Int32s", "Bools")
"""Names that a kernel's annotations are made of; tuples of them are fine. Narrow integers are for storage
only: a loop counter or an index is always an `int`, which is an int64 inside."""

ARGUMENTS_MAX = 8
MAKES_ARRAYS = ("empty", "zeros", "ones", "full", "arange", "array", "copy")
FORBIDDEN_WORDS = ("fastmath", "locals", "float32", "uint16", "uint8", "int16", "int8")


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def test_shape_kernels_take_and_return_whole_numbers_and_arrays_of_them() -> None:
    report(
        f"{module.where(function.lineno)}: {function.name} has {ast.unparse(annotation)}"
        for module, function in sources()
        for annotation in [*(argument.annotation for argument in _parameters(function)), function.returns]
        if annotation is not None and not _names(annotation) <= _allowed_in(module)
    )


def _names(annotation: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(annotation) if isinstance(part, ast.Name)} - {"tuple"}


def _allowed_in(module: Module) -> set[str]:
    """The plain types, and a module's own named tuples of columns (more than eight arguments want one)."""
    records = {
        part.name
        for part in module.parts
        if isinstance(part, ast.ClassDef) and any(ast.unparse(base) == "NamedTuple" for base in part.bases)
    }
    return {*ALLOWED_TYPES, *records}


def test_shape_kernels_have_no_defaults_and_no_keyword_arguments() -> None:
    """A default left out is another signature than the same value given."""
    report(
        f"{module.where(function.lineno)}: {function.name}"
        for module, function in sources()
        if function.args.defaults or function.args.kwonlyargs or function.args.vararg or function.args.kwarg
    )


def test_shape_kernels_are_called_with_few_arguments() -> None:
    report(
        f"{module.where(function.lineno)}: {function.name} takes {len(_parameters(function))}"
        for module, function in sources()
        if len(_parameters(function)) > ARGUMENTS_MAX
    )


def test_shape_kernels_use_no_narrow_integers_and_no_inexact_arithmetic() -> None:
    """A counter of 16 bits never reaches 70 000; a sum under fastmath never cancels exactly."""
    report(
        f"{module.where(part.lineno)}: {word}"
        for module, function in sources()
        for part in ast.walk(function)
        if isinstance(part, ast.Name | ast.Attribute)
        for word in [part.id if isinstance(part, ast.Name) else part.attr]
        if word in FORBIDDEN_WORDS
    )


def test_shape_the_decorator_compiles_without_fastmath_and_without_the_interpreter_lock() -> None:
    source = Module(Path("progress/compiled/machine_code/compiling.py"))
    calls = [
        part
        for part in source.parts
        if isinstance(part, ast.Call) and ast.unparse(part.func).endswith("njit")
    ]
    assert len(calls) == 1, "there is one way in which kernels are compiled"
    options = {option.arg: ast.unparse(option.value) for option in calls[0].keywords}
    assert options.get("nogil") == "True"
    assert options.get("cache") == "False", "ours reads nothing that it has not looked at"
    assert set(options) == {"nogil", "cache", "boundscheck", None}, "and what small ones are given"


def test_shape_small_kernels_neither_make_arrays_nor_return_them() -> None:
    """They count no references: an array that they return is freed too early, one that they get never."""
    kernels = _kernels()
    returning = [
        kernels[f"{module.name}.{function.name}"]
        for module, function in sources()
        if function.returns is not None and not _names(function.returns) <= {"int", "bool", "None"}
    ]
    small = [
        (module, function)
        for module, function in sources()
        if "small_kernel" in map(ast.unparse, function.decorator_list)
    ]
    assert small and returning
    for module, function in small:
        known = vars(importlib.import_module(module.name))
        assert kernels[f"{module.name}.{function.name}"] not in returning, module.where(function.lineno)
        for part in ast.walk(function):
            if isinstance(part, ast.Call):
                called = ast.unparse(part.func)
                assert known.get(called) not in returning, f"{module.where(part.lineno)}: {called}"
                assert called.rpartition(".")[2] not in MAKES_ARRAYS, f"{module.where(part.lineno)}: {called}"


def test_shape_the_decorated_function_is_still_there_in_python() -> None:
    """Reference tests and coverage call `py_func`; a debugger can step through it."""
    for name, kernel in _kernels().items():
        assert isinstance(kernel, Kernel) and callable(kernel.py_func), name


def _kernels() -> dict[str, Kernel]:
    for module, function in sources():
        kernel = getattr(importlib.import_module(module.name), function.name, None)
        assert isinstance(kernel, Kernel), (
            f"{module.where(function.lineno)}: {function.name} is not found in its module: "
            "a kernel is a free function at the top of a file, and its name is its own"
        )
    return loaded_kernels()


def test_compiled_every_kernel_is_looked_at() -> None:
    assert len(_kernels()) == len(sources())


def test_compiled_a_second_signature_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = _kernels()["differential.kernels.rows.hashing.mix"]
    monkeypatch.setattr(Kernel, "signatures", property(lambda self: ["()"] * (1 + (self is kernel))))
    assert len(compiled_twice()) == 1 and compiled_twice()[0].startswith(
        "differential.kernels.rows.hashing.mix: "
    )


def test_compiled_exceptions_still_exist() -> None:
    assert set(SEVERAL_SIGNATURES) <= set(_kernels())
