"""Shortcuts for work that numba repeats for each kernel, or does in vain.

- For each `a[i]`, `a + b` and `len(a)` of each kernel numba asks every implementation of this function, one
  after the other, whether it fits arguments of these types: once when it infers types, and again when it
  writes code; most of them do not fit. A few thousand questions have a thousand different answers.
- It looks for closures to inline, and for arithmetic of whole arrays. No kernel has any.
- Eight times, between its passes, it computes which variables are alive at the start of each block. Only
  generators use them, and functions that numba leaves to Python.
- To list the variables of an instruction it tests each of its fields for six classes.

All but the second are replacements of functions of numba, in place while a kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast

from numba.core import transforms
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager
from numba.core.ir import Inst, Loc, Var
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NopythonRewrites
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import InlineClosureLikes

if TYPE_CHECKING:
    from numba.core.compiler import Flags
    from numba.core.types import Type
    from numba.core.typing.context import Context
    from numba.core.typing.templates import Signature

__all__ = ["Passes", "with_shortcuts"]

P = ParamSpec("P")
R = TypeVar("R")

_LEFT_OUT: Final = (InlineClosureLikes, NopythonRewrites)


class Passes(Compiler):
    """Numba's passes for a function, without those that no kernel needs."""

    def define_pipelines(self) -> list[PassManager]:
        """Return all passes, in order."""
        return [self._without(passes) for passes in super().define_pipelines()]

    def _without(self, passes: PassManager) -> PassManager:
        left = PassManager(passes.pipeline_name)
        for each, what in passes.passes:
            if each not in _LEFT_OUT:
                left.add_pass(each, what)
        left.finalize()
        return left


_number_of: Final = attrgetter("_code")
"""The number of a type. Equal types are one object with one number."""
_Answers = dict[tuple[int, ...], tuple["Signature", object]]


class _Memory:
    """Answers, separately for each set of flags: flags decide which code is called."""

    def __init__(self) -> None:
        self._by_flags: dict[Flags | None, _Answers] = {}
        self._flags: Flags | None = None
        self._now: _Answers = self._by_flags.setdefault(None, {})

    def now(self) -> _Answers:
        """Return the answers under the flags of the current compilation."""
        flags = ConfigStack.top_or_none()
        if flags is not self._flags:
            self._flags = flags
            self._now = self._by_flags.setdefault(flags and flags.copy(), {})
        return self._now


_memory: Final = _Memory()
_ask: Final = BaseFunction.get_call_type


def _remember(
    function: BaseFunction, context: Context, args: tuple[Type, ...], kws: dict[str, Type]
) -> Signature:
    """Do `BaseFunction.get_call_type`, and call that only for questions that are new."""
    if kws:
        return cast("Signature", _ask(function, context, args, kws))
    answers = _memory.now()
    question = (_number_of(function), *map(_number_of, args))
    answer = answers.get(question)
    if answer is None:
        signature = cast("Signature", _ask(function, context, args, kws))
        answers[question] = signature, _codes_of(function)[signature.args]
        return signature
    # The function itself notes, for the last question, which code it is.
    signature, code = answer
    _codes_of(function)[signature.args] = code
    return signature


def _codes_of(function: BaseFunction) -> dict[tuple[Type, ...], object]:
    """Return which code the function has noted for which types."""
    return cast("dict[tuple[Type, ...], object]", vars(function)["_impl_keys"])


def _process(processor: PostProcessor, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Do `PostProcessor.run`, without `block_entry_vars`."""
    function = processor.func_ir
    if function.is_generator:
        _process_all(processor, emit_dels, extend_lifetimes)
        return
    function.blocks = transforms.canonicalize_cfg(function.blocks)
    function.variable_lifetime = VariableLifetime(function.blocks)
    function.generator_info = None
    if emit_dels:
        processor._insert_var_dels(extend_lifetimes=extend_lifetimes)


_process_all: Final = PostProcessor.run


def _variables(_: Inst, value: object) -> list[Var]:
    """Do `Inst._rec_list_vars`."""
    variables: list[Var] = []
    _find_variables(value, variables)
    return variables


def _find_variables(value: object, variables: list[Var]) -> None:
    kind = type(value)
    if kind is Var:
        variables.append(cast("Var", value))
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            if type(each) not in _HAVE_NONE:
                _find_variables(each, variables)
    elif isinstance(value, Inst):
        variables += value.list_vars()


_HAVE_NONE: Final = {Loc, str, int, bool, type(None)}
_REPLACED: Final[tuple[tuple[type, str, object], ...]] = (
    (BaseFunction, "get_call_type", _remember),
    (PostProcessor, "run", _process),
    (Inst, "_rec_list_vars", _variables),
)


def with_shortcuts(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function`, with the shortcuts in place while it runs. Requires the compiler's lock."""

    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        before = [vars(owner)[name] for owner, name, _ in _REPLACED]
        for owner, name, shortcut in _REPLACED:
            setattr(owner, name, shortcut)
        try:
            return function(*args, **kwargs)
        finally:
            for (owner, name, _), what in zip(_REPLACED, before, strict=True):
                setattr(owner, name, what)

    return called
