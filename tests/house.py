"""Reading the project's own source: the modules, what they import, define, and how long they are.

Used by the tests of the house's rules (`test_layers.py`, `test_public_names.py` and its neighbours).
Source is parsed, not imported: a rule can then speak about a module whose import needs Java or a socket.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import pytest

__all__ = ["PACKAGES", "ROOT", "Import", "Module", "modules", "python_files", "report"]

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("progress", "timely", "differential")
"""The packages that are shipped, lowest layer first."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True)
class Import:
    """One imported module, or one name out of it: `from timely.errors import E` is timely.errors, E."""

    module: str
    name: str | None
    line: int

    @property
    def top(self) -> str:
        """The outermost package: `timely` of `timely.spark.source`."""
        return self.module.partition(".")[0]

    def is_from(self, package: str) -> bool:
        """Whether this is `package`, something inside it, or `from parent import package`."""
        whole = self.module if self.name is None else f"{self.module}.{self.name}"
        return whole == package or whole.startswith(package + ".")


@dataclass(frozen=True)
class Module:
    """One Python file of the project, by its path relative to the root."""

    path: Path

    @cached_property
    def source(self) -> str:
        """The whole text."""
        return (ROOT / self.path).read_text()

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return _kept(ast.parse(self.source, filename=str(self.path)))

    @cached_property
    def parts(self) -> list[ast.AST]:
        """All nodes of the tree, breadth first: most rules look through them."""
        return _kept(list(ast.walk(self.tree)))

    @property
    def name(self) -> str:
        """The dotted name: `timely.wire.transport` for `timely/transport/__init__.py`."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_package(self) -> bool:
        """Whether this is an `__init__.py`."""
        return self.path.name == "__init__.py"

    @property
    def line_count(self) -> int:
        """How many lines the file has."""
        return len(self.source.splitlines())

    @cached_property
    def imports(self) -> list[Import]:
        """Everything imported anywhere in the file, made absolute; late imports and those for types too."""
        found = []
        for part in self.parts:
            if isinstance(part, ast.Import):
                found += [Import(alias.name, None, part.lineno) for alias in part.names]
            elif isinstance(part, ast.ImportFrom):
                source = self._absolute(part)
                found += [Import(source, alias.name, part.lineno) for alias in part.names]
        return found

    def _absolute(self, part: ast.ImportFrom) -> str:
        if part.level == 0:
            return part.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        base = package[: len(package) - (part.level - 1)]
        return ".".join([*base, part.module] if part.module else base)

    @cached_property
    def functions(self) -> list[_Function]:
        """Every function and method, those inside others included."""
        return [part for part in self.parts if isinstance(part, _Function)]

    @cached_property
    def named(self) -> ast.Module:
        """The text in which its public names stand: the stub beside it, where they are made on import."""
        stub = (ROOT / self.path).with_suffix(".pyi")
        return ast.parse(stub.read_text(), filename=str(stub)) if stub.exists() else self.tree

    @cached_property
    def declared_names(self) -> list[str] | None:
        """The names in `__all__`, or None where there is none."""
        for statement in self.named.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.expr() as value):
                    return _strings(value)
                case ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value):
                    return _strings(value)
                case _:
                    pass
        return None

    @cached_property
    def defined_names(self) -> set[str]:
        """Public names bound at the top of the file by a definition or an assignment, not by an import."""
        return {name for name in _bound_names(self.named.body) if not name.startswith("_")}

    @cached_property
    def reexported_names(self) -> set[str]:
        """Public names that come from this project's own packages through `from … import …` at the top, also
        if for types only: a package may import what it offers when it is first asked for.
        """
        names = set()
        types = [part.body for part in self.tree.body if isinstance(part, ast.If) and _is_for_types(part)]
        for statement in [*self.tree.body, *(part for body in types for part in body)]:
            if isinstance(statement, ast.ImportFrom) and self._absolute(statement).split(".")[0] in PACKAGES:
                names |= {alias.asname or alias.name for alias in statement.names}
        return {name for name in names if not name.startswith("_")}

    def where(self, line: int) -> str:
        """`path:line`, as editors and terminals like it."""
        return f"{self.path}:{line}"


def _kept(parsed: _Parsed) -> _Parsed:
    """What is parsed stays: some millions of objects, through which no search for garbage need go."""
    gc.freeze()
    return parsed


def _bound_names(statements: list[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets) if not _is_type_variable(statement.value):
                for target in targets:
                    yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.If(body=body, orelse=orelse):
                yield from _bound_names(body + orelse)
            case ast.Try(body=body, orelse=orelse):
                yield from _bound_names(body + orelse)
            case _:
                pass


def _is_for_types(statement: ast.If) -> bool:
    return isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"


def _strings(value: ast.expr) -> list[str]:
    names: list[str] = ast.literal_eval(value)
    return names


def _is_type_variable(value: ast.expr) -> bool:
    made_by = ("TypeVar", "ParamSpec", "TypeVarTuple")
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in made_by


@cache
def modules(package: str) -> tuple[Module, ...]:
    """The modules of a package (or folder) of the project, in order of their paths; not those of an
    environment that a peer has in it.
    """
    paths = (path.relative_to(ROOT) for path in sorted((ROOT / package).rglob("*.py")))
    return tuple(Module(path) for path in paths if ".venv" not in path.parts)


@cache
def python_files() -> tuple[Module, ...]:
    """Every Python file that is ours: packages, tests, examples, benchmarks."""
    folders = (*PACKAGES, "tests", "examples", "bench")
    return tuple(module for folder in folders if (ROOT / folder).is_dir() for module in modules(folder))


def report(violations: Iterable[str]) -> None:
    """Fail with every violation, one a line, if there is any."""
    listed = sorted(set(violations))
    if listed:
        pytest.fail("\n  ".join([f"{len(listed)} violation(s):", *listed]), pytrace=False)
