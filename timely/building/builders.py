"""Builders: from "module:function" to a dataflow.

A *builder* is a function `build(dataflow: Dataflow, **arguments) -> None` at the top of a module that every
worker can import. Only its name and its arguments travel. Each worker calls it for itself and must build the
same.

Worker processes call only functions marked by `@builder`: a program that reaches a client port may name any
function of any module, and most of them were not written to be called by strangers (`sys:exit`).
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import TypeVar

from ..errors import MisuseError, TimelyError, VertexError
from ..failure import add_note, is_interrupt
from ..user_code.call_site import site_of
from ..user_code.loaded_sources import check_unchanged, note_loaded
from ..user_code.short_traces import users_frames
from .dataflow import Dataflow

__all__ = [
    "Builder",
    "build_dataflow",
    "builder",
    "check_not_importing",
    "is_marked",
    "load_builder",
    "load_function",
    "spec_of",
]

Builder = Callable[..., object]  # type: ignore[explicit-any]  # each builder has arguments of its own
"""Takes a `Dataflow` and keyword arguments, and adds to the dataflow."""

B = TypeVar("B", bound=Builder)
_importing: ContextVar[str] = ContextVar("importing", default="")
"""The module that is being imported for a builder in it."""


class _RunsWhenImportedError(MisuseError):
    """A module with a builder connects when it is imported."""


def check_not_importing() -> None:
    """Raise `MisuseError` while a module is imported for a builder in it.

    A script that workers import to find its builder would start workers that import it, and so on.
    """
    if _importing.get():
        raise _RunsWhenImportedError(
            f"the module {_importing.get()!r} connects to a cluster when it is imported, and workers import "
            "it to find its builder. Put what is to run only in the program under "
            'if __name__ == "__main__":, or the builder into a module of its own'
        )


_MARK = "__naiad_builder__"


def builder(function: B) -> B:
    """Mark a function as one that builds a dataflow, so that workers will call it; used as a decorator.

    @timely.builder
    def components(dataflow): …
    """
    if not isinstance(function, FunctionType):
        raise MisuseError(f"@timely.builder marks a function, not a {type(function).__name__}")
    setattr(function, _MARK, True)
    return function


_PUT_OUT = "differential.queries:put_out"
"""What makes outputs of returned collections, which `differential` knows."""

_SPEC = re.compile(r"\w[\w.-]*:[A-Za-z_]\w*")
"""A script may be called 02_reachable.py or my-job.py: any module that can be imported by its name is
allowed."""


def load_function(spec: str, what: str) -> Builder:
    """Return the function that "module:function" names; errors say `what` it is for."""
    return _function_of(_module_of(spec, what), spec, what)


def _module_of(spec: str, what: str) -> ModuleType:
    if not _SPEC.fullmatch(spec):
        raise MisuseError(
            f"{what} is named as 'module:function', for example 'my_queries:mentions', not {spec!r}"
        )
    module_name = spec.partition(":")[0]
    if module_name not in sys.modules:  # else each table of a client would pay for a look at all folders
        importlib.invalidate_caches()  # the module may have been written after this process last looked
    outer = _importing.get()
    try:  # an interrupt (Ctrl-C) may come as any call returns, that of `set`, too
        _importing.set(module_name)
        return importlib.import_module(module_name)
    except _RunsWhenImportedError as error:
        raise MisuseError(f"{what} {spec!r}: {error}") from error
    except ModuleNotFoundError as error:
        raise MisuseError(
            f"{what} {spec!r}: there is no module {error.name!r} on the path {sys.path}. Start the workers "
            "where the module is, or set PYTHONPATH for them"
        ) from (None if error.name == module_name else error)  # else the traceback shows its import
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise VertexError(
            f"{what} {spec!r}: importing {module_name!r} failed.\n{_traceback_of(error)}"
        ) from None  # the message has its traceback
    finally:
        _importing.set(outer)


def _function_of(module: ModuleType, spec: str, what: str) -> Builder:
    function_name = spec.partition(":")[2]
    function = getattr(module, function_name, None)
    if not callable(function):
        offered = sorted(
            name for name, value in vars(module).items() if callable(value) and not name.startswith("_")
        )
        raise MisuseError(
            f"{what} {spec!r}: {getattr(module, '__file__', module.__name__)} has no function "
            f"{function_name!r}; it has {', '.join(offered) or 'none'}"
        )
    result: Builder = function
    return result


def load_builder(spec: str) -> Builder:
    """Return the builder that "module:function" names; raise `MisuseError` or `VertexError` if there is none.

    It calls no function of the module that is not marked as a builder.
    """
    module = _module_of(spec, "a dataflow")
    # Check first: a user who has marked the function after an error must not get the same error again.
    check_unchanged(module)
    note_loaded(module)
    function = _function_of(module, spec, "a dataflow")
    if not isinstance(function, FunctionType) or not is_marked(function):
        name = spec.partition(":")[2]
        raise MisuseError(
            f"a dataflow {spec!r}: {name} is not marked as a builder, and workers call nothing else. Write "
            f"@timely.builder above 'def {name}(dataflow, …)'"
        )
    return function


def build_dataflow(builder: Builder, name: str, arguments: Mapping[str, object]) -> Dataflow:
    """Return what `builder` builds; an error in it becomes a `VertexError` with the traceback.

    Collections that it returns are outputs, as if it had named them.
    """
    dataflow = Dataflow(name)
    try:
        answer = builder(dataflow, **arguments)
        if answer is not None and "differential" in sys.modules:
            load_function(_PUT_OUT, "what is returned")(dataflow, answer)
    except TimelyError as error:
        site = site_of(error)
        if site.line and str(site) not in str(error):  # a copy of the error has no traceback
            add_note(error, f"  {site}: here it was asked for")
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        call = f" with arguments {_shown(arguments)}" if arguments else ""
        raise VertexError(
            f"the builder {name!r} failed{call}.\n{_traceback_of(error)}{_elsewhere(error)}"
        ) from None  # the message has its traceback; a debugger finds it as the context
    return dataflow


def is_marked(function: object) -> bool:
    """Return True if `function` was marked by `builder`, so that workers that can import it will call it."""
    return isinstance(function, FunctionType) and hasattr(function, _MARK)


def _shown(arguments: Mapping[str, object]) -> str:
    """Return arguments for a message: long ones cut, and no secrets."""
    shown = {name: f"{len(v):,} bytes" if isinstance(v, bytes) else v for name, v in arguments.items()}
    return f"{ {name: value for name, value in shown.items() if name != 'token'}!r:.2000}"


def spec_of(builder: Builder) -> str:
    """Return "module:function" of a function at the top of a module; raise `MisuseError` for any other."""
    module_name = getattr(builder, "__module__", None)
    name = getattr(builder, "__qualname__", "")
    if module_name == "__main__":
        # A worker runs another main program: it imports the module under its own name, or a script under the
        # name of its file.
        main = sys.modules["__main__"]
        script = getattr(main, "__file__", None)
        main_spec = getattr(main, "__spec__", None)
        module_name = main_spec.name if main_spec is not None else Path(script).stem if script else None
    if module_name is None or not name.isidentifier():
        raise MisuseError(
            f"{builder!r} cannot be imported by worker processes: put it at the top of a module, "
            "or run embedded: connect(workers=…, embedded=True). A query of collections alone can be sent to "
            "them from anywhere: leave @timely.builder off"
        )
    return f"{module_name}:{name}"


def _traceback_of(error: BaseException) -> str:
    """Return the text of an error in a user's code: the frames of that code, and the message."""
    lines = users_frames(error.__traceback__)
    return "".join(traceback.format_exception(type(error), error, lines)).rstrip()


def _elsewhere(error: BaseException) -> str:
    """Return a line on what to write in place of another library, if the error comes from one: PySpark's
    functions fail without a session, some with only an AssertionError.
    """
    names = {} if error.__traceback__ is None else _last_frame(error.__traceback__).f_globals
    package = str(names.get("__name__")).partition(".")[0]
    library = {"pyspark": "PySpark", "polars": "Polars"}.get(package)
    if library is None:
        return ""
    return f"\nA query is not written with {library}: col.x is a column, dd.sum('x') or dd.upper(col.x) more"


def _last_frame(trace: TracebackType) -> FrameType:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame
