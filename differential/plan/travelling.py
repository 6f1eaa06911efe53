"""Send a function of the user to the workers: by import name, or as source; never pickled.

    [[function, …], [source, …]]

    a function    [name, digest, whether the digest says everything, its serial, its form]
    a form        ["import", "module:name"]: workers import it. What they import must be the same function
                  ["source", number]: a source of the second list
                  ["value", …], ["list", …], ["date", …], ["module", …] …: what functions name or have
                  closed over
    a source      [text, is a lambda, file, line, [[name, form], …]]: its text, and by name the plain values,
                  modules and functions that it uses or has closed over

Each source occurs once, however many functions use it: functions may share others, and call one another and
themselves. A function that a worker has read from a plan can travel on, since its source is stored with it.

Source runs with the rights of the worker. So workers accept it only from the client that started them
(`is_trusted`). A function that can travel in neither way (an object, a method of one, a function without
source) is refused. The error names the line and the remedy: put it in a module that the workers can import.
"""

from __future__ import annotations

import ast
import builtins
import datetime as dt
import dis
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from types import CodeType, FunctionType, ModuleType
from typing import Final, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

import msgpack

from timely.errors import MisuseError
from timely.user_code.written_text import written_text

from ..errors import SchemaError
from .functions import UserFunction, code_within, import_name, names_used, source_tree

__all__ = ["FUNCTION_BYTES_MAX", "packed_functions", "unpacked_functions"]

FUNCTION_BYTES_MAX: Final = 65_536
"""Limit for the source of one function."""

_DEPTH_MAX: Final = 16
_PLAIN: Final = (int, float, str, bytes, bool, type(None))


def _duration(text: str) -> dt.timedelta:
    """The inverse of `repr`: read the keywords between its brackets."""
    inside = text.removeprefix("datetime.timedelta(").removesuffix(")")
    parts = [part.partition("=") for part in inside.split(", ") if part != "0"]
    return dt.timedelta(**{name: int(number) for name, _, number in parts})


_AS_TEXT: Final[Mapping[type, tuple[str, Callable[[object], str], Callable[[str], object]]]] = {
    dt.date: ("date", str, dt.date.fromisoformat),
    dt.datetime: ("datetime", str, dt.datetime.fromisoformat),
    dt.timedelta: ("timedelta", repr, _duration),
    Decimal: ("decimal", str, Decimal),
}
"""Values that travel as text: the form's name, how to write the text, how to read it."""


class _WrittenSource(NamedTuple):
    """The source of a function that travels, and where it was written."""

    text: str
    is_lambda: bool
    file: str
    line: int


_sources_by_function: Final[WeakKeyDictionary[FunctionType, _WrittenSource]] = WeakKeyDictionary()
"""Sources of functions that this process has compiled from a plan: no file holds them."""


def packed_functions(functions: Iterable[UserFunction], lines: Sequence[str] = ()) -> list[object]:
    """Return `functions` as plain data; raise MisuseError if one of them cannot travel.

    `lines`: for each function, the line where the user passed it to an operator, for errors.
    """
    packer = _Packer()
    packed: list[object] = []
    for position, function in enumerate(functions):
        try:
            form = packer.form(function.function)
        except MisuseError as error:
            raise MisuseError(f"{lines[position]}: {error}" if lines else str(error)) from error
        packed.append([function.name, function.digest, function.is_whole, function.serial, form])
    return [packed, packer.sources()]


def unpacked_functions(data: object, is_trusted: bool) -> list[UserFunction]:
    """The inverse of `packed_functions`, in a worker. Raise SchemaError for data that is not functions, and
    MisuseError for a function that may not run here, or is another function here.
    """
    match data:
        case [[*packed], [*sources]]:
            reader = _FunctionReader(sources, is_trusted)
        case _:
            raise SchemaError(f"{data!r:.200} are no functions of a plan")
    return [_read(each, reader) for each in packed]


def _read(data: object, reader: _FunctionReader) -> UserFunction:
    match data:
        case [str(name), str(digest), bool(is_whole), (int() | None) as serial, form]:
            value = reader.read(form)
        case _:
            raise SchemaError(f"{data!r:.200} is no function of a plan")
    if not callable(value):
        raise SchemaError(f"{name} of a plan is a {type(value).__name__}, which cannot be called")
    if isinstance(form, list | tuple) and form[0] == "import" and UserFunction.of(value).digest != digest:
        raise MisuseError(
            f"{name} is another function on this worker than where the query was written: the module was "
            "edited, or is another one. Start the cluster anew, with the same files everywhere"
        )
    return UserFunction(value, name, digest, is_whole, serial)


class _Packer:
    """Packs the functions of one plan, and numbers those that travel as source."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        """By id of a function. The list below keeps the functions alive, so that no id is reused."""
        self._functions: list[FunctionType] = []

    def form(self, thing: object, depth: int = 0, names: Set[str] = frozenset()) -> list[object]:
        """Return the form of `thing`, which a function with these names and attributes uses."""
        if depth > _DEPTH_MAX:
            raise MisuseError(f"{_shown(thing)} is nested more than {_DEPTH_MAX} deep")
        if type(thing) in _PLAIN:
            _check_fits(thing)
            return ["value", thing]
        if type(thing) in (tuple, list):
            assert isinstance(thing, tuple | list)
            return [type(thing).__name__, [self.form(each, depth + 1) for each in thing]]
        if type(thing) in (set, frozenset):
            assert isinstance(thing, set | frozenset)
            # Sort: Python's own order of a set differs between processes.
            entries = sorted((self.form(each, depth + 1) for each in thing), key=_packed)
            return [type(thing).__name__, cast("object", entries)]
        if type(thing) in _AS_TEXT and _is_read_back(thing):
            kind, write, _ = _AS_TEXT[type(thing)]
            return [kind, write(thing)]
        if type(thing) is dict:
            pairs = [[self.form(key, depth + 1), self.form(value, depth + 1)] for key, value in thing.items()]
            return ["dict", cast("object", pairs)]
        if isinstance(thing, ModuleType):
            return ["module", thing.__name__, *_submodules(thing.__name__, names)]
        name = import_name(thing)
        if name is not None:
            return ["import", name]
        if isinstance(thing, FunctionType):
            if id(thing) not in self._numbers:
                self._numbers[id(thing)] = len(self._functions)
                self._functions.append(thing)
            return ["source", self._numbers[id(thing)]]
        raise MisuseError(
            f"a {type(thing).__module__}.{type(thing).__qualname__} ({_shown(thing)}) cannot be sent to "
            "workers: functions of a query may use plain values (numbers of Python, text, bytes, dates, "
            "decimals; tuples, lists, sets and dicts of these), modules and functions. Put what needs it in "
            "a module that the workers can import"
        )

    def sources(self) -> list[object]:
        """Return the sources that forms refer to so far, and all that these refer to in turn."""
        sources: list[object] = []
        while len(sources) < len(self._functions):
            sources.append(self._source(self._functions[len(sources)]))
        return sources

    def _source(self, function: FunctionType) -> list[object]:
        where = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
        source = _sources_by_function.get(function) or _source_of(function, where)
        used: list[object] = []
        names = _all_names(function.__code__)
        for name, value in sorted(_uses(function).items()):
            try:
                used.append([name, self.form(value, 0, names)])
            except MisuseError as error:
                raise MisuseError(f"{function.__qualname__} ({where}) uses {name!r}: {error}") from error
        return [*source, used]


def _source_of(function: FunctionType, where: str) -> _WrittenSource:
    """Return the source from the file or cell of the function; raise MisuseError if it cannot travel."""
    code = function.__code__
    tree = source_tree(function)
    if tree is None:
        raise MisuseError(
            f"the source of {function.__qualname__} ({where}) is not there, so it cannot be sent to workers"
            f"{_HOW_IT_CAME.get(code.co_filename, '')}. Put it in a module that they can import"
        )
    _check_keeps_no_state(function, where)
    if getattr(tree, "decorator_list", []):
        raise MisuseError(
            f"{function.__qualname__} ({where}) is decorated: workers would not get what the decorator "
            "made of it. Put it in a module that they can import"
        )
    text = ast.get_source_segment(written_text(code, function.__globals__) or "", tree, padded=True) or ""
    if len(text.encode()) > FUNCTION_BYTES_MAX:
        raise MisuseError(
            f"{function.__qualname__} ({where}) is longer than {FUNCTION_BYTES_MAX:,} bytes: "
            "put it in a module"
        )
    source = _WrittenSource(text, isinstance(tree, ast.Lambda), code.co_filename, tree.lineno)
    _check_means_the_same(function, source, where)
    return source


_HOW_IT_CAME: Final = {
    "<stdin>": ": Python keeps none of what is typed at its prompt (before 3.13) or read from standard input",
    "<string>": ": Python keeps none of what comes by -c, exec or eval",
    "<timed exec>": ": IPython keeps none of what %time runs outside of a notebook's cells",
    "<timed eval>": ": IPython keeps none of what %time runs outside of a notebook's cells",
    "<magic-timeit>": ": IPython keeps none of what %timeit runs; %time does",
}


def _packed(form: list[object]) -> bytes:
    return cast("bytes", msgpack.packb(form))


def _is_read_back(thing: object) -> bool:
    """Return True if the text of a value describes it fully.

    A datetime with a zone other than UTC, or with a fold, is not: the text has the offset only.
    """
    if isinstance(thing, dt.datetime):
        return not thing.fold and (thing.tzinfo is None or thing.tzinfo is dt.UTC)
    return True


def _check_fits(thing: object) -> None:
    """Raise MisuseError for a plain value that msgpack cannot hold."""
    if isinstance(thing, int) and not -(2**63) <= thing < 2**64:
        raise MisuseError(
            f"a number of {thing.bit_length():,} bits is beyond 64 bits, and cannot be sent to workers"
        )
    if isinstance(thing, str):
        try:
            thing.encode()
        except UnicodeEncodeError as error:
            raise MisuseError(f"{_shown(thing)} is no text that can be sent to workers: {error}") from None


def _shown(thing: object) -> str:
    """Return the beginning of its `repr`; that is code of the user, and may raise, or be endless."""
    try:
        return f"{thing!r:.100}"
    except Exception as error:
        return f"a {type(thing).__name__} whose __repr__ raised {type(error).__name__}"


def _submodules(name: str, names: Set[str]) -> list[str]:
    """Return the modules within a module that a function with these names can reach through it."""
    inside = (loaded for loaded in sys.modules if loaded.startswith(f"{name}."))
    return sorted(loaded for loaded in inside if set(loaded.removeprefix(f"{name}.").split(".")) <= names)


def _all_names(code: CodeType) -> set[str]:
    """Return names and attributes, and names closed over: those become names of its module in the worker."""
    return {name for each in code_within(code) for name in (*each.co_names, *each.co_freevars)}


def _check_keeps_no_state(function: FunctionType, where: str) -> None:
    """Raise MisuseError if the function keeps state between calls: its state would differ in each worker."""
    code = function.__code__
    changed = _changed(code, set(code.co_freevars))
    if changed or vars(function):
        state = ", ".join(sorted(changed | set(vars(function))))
        raise MisuseError(
            f"{function.__qualname__} ({where}) keeps something from call to call ({state}), and cannot be "
            "sent: a function of a query gives the same for the same record, every time. Keep it in a module"
        )


def _changed(code: CodeType, around: Set[str]) -> set[str]:
    """Return the names that `code`, or a function within it, sets: of its module, and of `around` it."""
    names: set[str] = set()
    for one in dis.get_instructions(code):
        if one.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
            one.opname in ("STORE_DEREF", "DELETE_DEREF") and one.argval in around
        ):
            names.add(str(one.argval))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            # A name around the inner function may be one of `code` itself, which is new at every call.
            names |= _changed(constant, around & set(constant.co_freevars) - set(code.co_cellvars))
    return names


def _check_means_the_same(function: FunctionType, source: _WrittenSource, where: str) -> None:
    """Raise MisuseError if a worker would get another function from the text: it compiles the text by itself,
    and provides everything the function uses as names of one module.
    """
    code = function.__code__
    both = sorted(names_used(code) & set(code.co_freevars))
    if both:
        raise MisuseError(
            f"{function.__qualname__} ({where}) means two things by {both[0]!r}, a name of its module and "
            "one of what is around it, and cannot be sent: give one of them another name"
        )
    compiled = _compiled(source.text, source.is_lambda, (source.file, source.line)).__code__
    private = sorted(_every_name(code) - _every_name(compiled))
    if private:
        raise MisuseError(
            f"{function.__qualname__} ({where}) uses {private[0]!r}, which has another name outside of its "
            "class, and cannot be sent: call it by a name without two underscores in front"
        )


def _every_name(code: CodeType) -> set[str]:
    """Return names, attributes and variables, also of functions within it."""
    return {
        name
        for each in code_within(code)
        for name in (*each.co_names, *each.co_varnames, *each.co_freevars, *each.co_cellvars)
    }


def _uses(function: FunctionType) -> dict[str, object]:
    """Return, by name, the values that it uses: closed-over ones, and names of its module; no builtins."""
    code = function.__code__
    used: dict[str, object] = {}
    for name in names_used(code):
        if name in function.__globals__:
            used[name] = function.__globals__[name]
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            value: object = cell.cell_contents
        except ValueError:
            continue
        used[name] = value
    defaults = inspect.signature(function).parameters.values()
    if any(parameter.default is not parameter.empty for parameter in defaults):
        # Defaults are expressions that Python evaluated long ago; only their values matter.
        used[_DEFAULTS] = (function.__defaults__, function.__kwdefaults__)
    return used


_DEFAULTS: Final = "__naiad_defaults__"


class _FunctionReader:
    """Compiles the functions of one plan from their sources, and reads forms."""

    def __init__(self, sources: list[object], is_trusted: bool) -> None:
        self._is_trusted = is_trusted
        self._functions: list[FunctionType] = []
        used: list[list[object]] = []
        for source in sources:
            match source:
                case [str(text), bool(is_lambda), str(file), int(line), [*names]]:
                    _require(is_trusted, f"a function of {file}:{line}")
                    self._functions.append(_compiled(text, is_lambda, (file, line)))
                    _sources_by_function[self._functions[-1]] = _WrittenSource(text, is_lambda, file, line)
                    used.append(names)
                case _:
                    raise SchemaError(f"{source!r:.200} is no source of a function of a plan")
        # Now that all functions are there, they can name one another, and themselves.
        for function, names in zip(self._functions, used, strict=True):
            self._provide_names(function, names)

    def read(self, form: object, depth: int = 0) -> object:
        """Return the value of this form."""
        if depth > _DEPTH_MAX:
            raise SchemaError("a value of a plan is nested too deep")
        match form:
            case ["value", value] if type(value) in _PLAIN:
                return value
            case ["tuple", [*entries]]:
                return tuple(self.read(each, depth + 1) for each in entries)
            case ["list", [*entries]]:
                return [self.read(each, depth + 1) for each in entries]
            case ["set", [*entries]]:
                return {self.read(each, depth + 1) for each in entries}
            case ["frozenset", [*entries]]:
                return frozenset(self.read(each, depth + 1) for each in entries)
            case ["date" | "datetime" | "timedelta" | "decimal" as name, str(text)]:
                return _read_text(name, text)
            case ["dict", [*pairs]]:
                return {
                    self.read(key, depth + 1): self.read(value, depth + 1) for key, value in _pairs(pairs)
                }
            case ["module", str(name), *inside] if all(isinstance(each, str) for each in inside):
                _require(self._is_trusted, f"the module {name}")
                return _modules(name, cast("list[str]", inside))
            case ["import", str(name)] if name.count(":") == 1:
                _require(self._is_trusted, name)
                return _imported(name)
            case ["source", number] if type(number) is int and 0 <= number < len(self._functions):
                return self._functions[number]
        raise SchemaError(f"{form!r:.200} is no part of a function of a plan")

    def _provide_names(self, function: FunctionType, names: list[object]) -> None:
        """Give a compiled function the values of the names that it uses."""
        for name, form in _pairs(names):
            if not isinstance(name, str):
                raise SchemaError(f"{name!r:.200} is no name in a function of a plan")
            value = self.read(form)
            if name != _DEFAULTS:
                function.__globals__[name] = value
            elif isinstance(value, tuple) and len(value) == 2:
                function.__defaults__ = cast("tuple[object, ...] | None", value[0])
                function.__kwdefaults__ = cast("dict[str, object] | None", value[1])


def _read_text(name: str, text: str) -> object:
    readers = {kind: function for kind, _, function in _AS_TEXT.values()}
    try:
        return readers[name](text)
    except (ValueError, ArithmeticError, TypeError):
        raise SchemaError(f"{text!r:.200} in a function of a plan is no {name}") from None


def _pairs(entries: list[object]) -> Iterator[tuple[object, object]]:
    for entry in entries:
        if not isinstance(entry, list | tuple) or len(entry) != 2:
            raise SchemaError(f"{entry!r:.200} is no name and value of a function of a plan")
        yield entry[0], entry[1]


def _require(is_trusted: bool, what: str) -> None:
    """Raise MisuseError unless code is trusted.

    Workers run code of the client that started them, and of no other client that finds their port.
    """
    if not is_trusted:
        raise MisuseError(
            f"{what} is code that this cluster was not started with: workers take code only from the client "
            "that has started them. Put the query in a module that the workers can import, mark its builder "
            "by @timely.builder, and install it by name"
        )


def _modules(name: str, inside: list[str]) -> ModuleType:
    """Import a module, and the modules in it that functions use through it."""
    try:
        for each in inside:
            importlib.import_module(each)
        return importlib.import_module(name)
    except ImportError as error:
        raise MisuseError(f"the module {name} of a query cannot be imported here: {error}") from error


def _imported(name: str) -> object:
    module, _, path = name.partition(":")
    try:
        value: object = importlib.import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise MisuseError(
            f"{name} of a query cannot be imported here: {error}. Start the workers where the module is, or "
            "set PYTHONPATH for them"
        ) from error
    return value


def _compiled(text: str, is_lambda: bool, where: tuple[str, int]) -> FunctionType:
    """Return the function with this source; it has no names of its module yet."""
    file, line = where
    names: dict[str, object] = {"__builtins__": builtins, "__name__": "naiad_query"}
    try:
        tree = ast.parse(_as_module(text, is_lambda), file)
        statement = tree.body[0]
        if isinstance(statement, ast.If):  # around a function that was indented
            statement, line = statement.body[0], line - 1
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Lambda):
            statement.value = _without_evaluation(statement.value)
            tree.body = [ast.Assign([ast.Name(_LAMBDA, ast.Store())], statement.value)]
            name = _LAMBDA
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            tree.body = [_without_evaluation(statement)]
            name = statement.name
        else:
            raise SchemaError(f"the source at {file}:{line} is no function")
        exec(compile(ast.increment_lineno(ast.fix_missing_locations(tree), line - 1), file, "exec"), names)
    except (SyntaxError, ValueError, IndexError) as error:
        raise SchemaError(f"the source of a function of {file}:{line} cannot be read: {error}") from error
    function = names[name]
    assert isinstance(function, FunctionType)
    return function


def _as_module(text: str, is_lambda: bool) -> str:
    """Return the text of a function so that Python can parse it by itself."""
    if is_lambda:
        return f"({text}\n)"  # a lambda may span several lines, and end in a comment
    if text[:1].isspace():
        return f"if 1:\n{text}"  # the function was indented in the file
    return text


_LAMBDA: Final = "__naiad_lambda__"

_F = TypeVar("_F", bound=ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def _without_evaluation(node: _F) -> _F:
    """Remove what Python evaluates where a function is defined: annotations, and defaults, which travel as
    values.
    """
    arguments: ast.arguments = node.args
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if each is None else ast.Constant(None) for each in arguments.kw_defaults]
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    for argument in every:
        if argument is not None:
            argument.annotation = None
    if not isinstance(node, ast.Lambda):
        node.returns = None
    return node
