"""Functions of users in a plan: identify a function, and decide when two are the same.

A plan stores a function's *identity* in place of the function. The identity is text that is the same in every
process. It does not change when lines move or comments change, but it does when the body changes. It is made
of

    what it does       its syntax tree without positions and docstrings; without source (a REPL, a notebook
                       whose cell is gone), its instructions
    what it uses       defaults, values that it has closed over, other functions of its module that it names

Two functions with one identity are the same only if all of that is plain data that nobody can change. A
function that has closed over a list, or an object of some class, could differ from another one though all its
text is equal. Such a function is the same only as itself; the plan adds a number to tell it from others.
"""

from __future__ import annotations

import ast
import datetime as dt
import dis
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from hashlib import blake2b
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Final, TypeAlias

from timely.user_code.code_digest import digest_of, value_of
from timely.user_code.written_text import written_text

__all__ = [
    "Syntax",
    "UserFunction",
    "UserFunctions",
    "code_within",
    "import_name",
    "names_used",
    "source_tree",
]

_PLAIN: Final = (
    *(int, float, complex, str, bytes, bool, type(None)),
    *(dt.date, dt.datetime, dt.timedelta, Decimal, range),
)
_DEPTH_MAX: Final = 8

Syntax: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
"""The syntax tree of a function."""


@dataclass(frozen=True, eq=False)
class UserFunction:
    """A function and its identity; `serial` tells it from others if its digest alone does not (see `of`)."""

    function: object
    name: str
    digest: str
    is_whole: bool
    serial: int | None = None

    @classmethod
    def of(cls, function: object) -> UserFunction:
        """Describe `function`; `is_whole` is True if its digest says everything about it."""
        walk = _Walk()
        digest = blake2b("\n".join(walk.parts(function, 0)).encode("utf-8", "surrogatepass"), digest_size=16)
        name = getattr(function, "__qualname__", type(function).__qualname__)
        return cls(function, str(name), digest.hexdigest(), walk.is_whole)

    @property
    def identity(self) -> list[object]:
        """Plain data that is equal for functions that are the same."""
        return [self.digest] if self.serial is None else [self.digest, self.serial]


UserFunctions: TypeAlias = Callable[[object], UserFunction]
"""Look up a function by the identity that a plan has for it; raises SchemaError if there is none."""


def import_name(function: object) -> str | None:
    """Return `module:name` if a process that imports the module finds this function there; else None."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or "<" in name:
        return None
    try:
        value: object = __import__(module, fromlist=["__name__"])
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError):
        return None
    return f"{module}:{name}" if value is function else None


def source_tree(function: FunctionType) -> Syntax | None:
    """Return the syntax of `function` from the file or cell where it was written; None if that is not
    available. The tree is shared with later callers: do not change it.

    A lambda is identified by the columns that its instructions come from, since a line may have several.
    Cost: a file is parsed once, unless many other files are read in between.
    """
    code = function.__code__
    text = written_text(code, function.__globals__)
    if text is None:
        return None  # the file was edited since, or the code was not written by Python's compiler
    written = _functions_in(text)
    where = _body_position(code)
    matches: list[Syntax] = []
    for node in written:
        if isinstance(node, ast.Lambda):
            if code.co_name != "<lambda>" or where is None:
                continue
            if _starts(node.body) <= where <= _ends(node.body):
                matches.append(node)
        elif node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                matches.append(node)
    if not matches:
        return None
    # For lambdas within lambdas: the innermost one around the position begins last.
    return max(matches, key=lambda node: (node.lineno, node.col_offset))


def _body_position(code: CodeType) -> tuple[int, int] | None:
    """Return line and column of the first instruction that computes something."""
    for line, _, column, _ in code.co_positions():
        if line is not None and column is not None and (line, column) != (code.co_firstlineno, 0):
            return line, column
    return None


def _starts(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _ends(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


@lru_cache(maxsize=16)
def _functions_in(text: str) -> tuple[Syntax, ...]:
    """Return all functions in this source, in the order of `ast.walk`."""
    return tuple(
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    )


def names_used(code: CodeType) -> set[str]:
    """Return the names, attributes aside, that a function, or one within it, looks up in its module."""
    return {
        str(instruction.argval)
        for each in code_within(code)
        for instruction in dis.get_instructions(each)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }


def code_within(code: CodeType) -> Iterator[CodeType]:
    """Yield `code`, and the code of all functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_within(constant)


class _Walk:
    """Walks through a function and what it uses, and notes if text cannot describe all of it."""

    def __init__(self) -> None:
        self.is_whole = True
        self._seen: dict[int, tuple[int, object]] = {}
        """By id: a number, and the object itself, which keeps its id from being reused."""

    def parts(self, thing: object, depth: int) -> Iterator[str]:
        """Yield the lines that describe `thing`; they are the same in every process."""
        if type(thing) is int:
            yield f"int {thing:#x}"  # Python refuses to print an int with thousands of decimal digits
        elif type(thing) in _PLAIN:
            yield f"{type(thing).__name__} {thing!r}"
        elif isinstance(thing, ModuleType):
            yield f"module {thing.__name__}"
        elif id(thing) in self._seen:
            yield f"again {self._seen[id(thing)][0]}"
        elif depth > _DEPTH_MAX:
            self.is_whole = False
            yield f"deep {type(thing).__name__}"
        else:
            # Equal tuples may be one object here and two elsewhere: each is described in full.
            if not isinstance(thing, tuple | frozenset):
                self._seen[id(thing)] = (len(self._seen), thing)
            yield from self._parts_of(thing, depth)

    def _parts_of(self, thing: object, depth: int) -> Iterator[str]:
        if isinstance(thing, list | dict | set | bytearray):
            self._require(False)  # its content can change
        if type(thing) in (tuple, list):
            assert isinstance(thing, tuple | list)
            yield f"{type(thing).__name__} of {len(thing)}"
            for entry in thing:
                yield from self.parts(entry, depth + 1)
        elif isinstance(thing, frozenset | set):
            yield f"{type(thing).__name__} of {len(thing)}"
            yield from sorted("\n".join(_Walk().parts(entry, depth + 1)) for entry in thing)
            self._require(all(type(entry) in _PLAIN for entry in thing))
        elif isinstance(thing, dict):
            yield f"dict of {len(thing)}"
            for key, value in thing.items():
                yield from self.parts(key, depth + 1)
                yield from self.parts(value, depth + 1)
        elif isinstance(thing, FunctionType):
            yield from self._parts_of_function(thing, depth)
            self._require(not vars(thing))  # attributes of a function can change
        elif isinstance(thing, MethodType):
            yield from self.parts((thing.__func__, thing.__self__), depth + 1)
        elif isinstance(thing, partial):
            keywords = tuple(sorted(thing.keywords.items()))
            yield from self.parts((thing.func, thing.args, keywords), depth + 1)
        elif isinstance(thing, type) or inspect.isbuiltin(thing):
            # A bound method such as `pattern.match` is a builtin as well: the object it is bound to matters.
            yield f"{thing.__module__}.{thing.__qualname__} {digest_of(thing)}"
            owner = getattr(thing, "__self__", None)
            self._require(import_name(thing) is not None and (owner is None or isinstance(owner, ModuleType)))
        else:
            yield f"a {type(thing).__module__}.{type(thing).__qualname__} {digest_of(thing)}"
            yield from self.parts(value_of(thing), depth + 1)
            self._require(False)

    def _parts_of_function(self, function: FunctionType, depth: int) -> Iterator[str]:
        tree = source_tree(function)
        if tree is None:
            yield f"instructions {digest_of(function.__code__)} {function.__code__.co_code.hex()}"
            yield from self.parts(_constants(function.__code__), depth + 1)
        else:
            # The outermost name does not affect what the function does; names within it do.
            yield from _tree_lines(tree, without="name")
        yield from self.parts((function.__defaults__, function.__kwdefaults__), depth + 1)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            yield f"closed over {name}"
            try:
                yield from self.parts(cell.cell_contents, depth + 1)
            except ValueError:
                self._require(False)
                yield "no value yet"
        for name in sorted(names_used(function.__code__)):
            used = function.__globals__.get(name)
            if used is None:
                continue
            yield f"names {name}"
            is_elsewhere = isinstance(used, FunctionType) and used.__module__ != function.__module__
            elsewhere = import_name(used) if is_elsewhere else None
            if elsewhere is not None:
                yield f"of {elsewhere}"
            else:
                yield from self.parts(used, depth + 1)

    def _require(self, holds: bool) -> None:
        self.is_whole = self.is_whole and holds


def _constants(code: CodeType) -> tuple[object, ...]:
    constants: list[object] = []
    for constant in code.co_consts:
        constants.append(_constants(constant) if isinstance(constant, CodeType) else constant)
    return tuple(constants)


def _tree_lines(node: ast.AST, without: str = "") -> Iterator[str]:
    """Yield the tree as text, without what differs between Pythons: positions, docstrings, empty fields."""
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        if value is None or value == [] or name in ("ctx", "type_comment", "kind", without):
            continue
        entries = value if isinstance(value, list) else [value]
        if name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            entries = entries[1:] if ast.get_docstring(node) is not None else entries
        yield f".{name}"
        for each in entries:
            if isinstance(each, ast.AST):
                yield from _tree_lines(each)
            else:
                yield f"{type(each).__name__} {each!r}"
        yield "."
