"""What does numba do for each kernel that need be done once, or not at all?

- For each `a[i]`, `a + b` and `len(a)` of each kernel it asks all that it knows of this function, one after
  the other, whether they are for arguments of these types: once when it looks for types, and again when it
  writes code; each time most of them are not. A few thousand questions have a thousand different answers.
- It looks for closures to be put in place, and for arithmetic of whole arrays. No kernel has any.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast

from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NopythonRewrites
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import InlineClosureLikes

if TYPE_CHECKING:
    from numba.core.compiler import Flags
    from numba.core.types import Type
    from numba.core.typing.context import Context
    from numba.core.typing.templates import Signature

__all__ = ["Passes", "with_memory"]

P = ParamSpec("P")
R = TypeVar("R")

_LEFT_OUT: Final = (InlineClosureLikes, NopythonRewrites)


class Passes(Compiler):
    """What numba does for a function, without what no kernel needs."""

    def define_pipelines(self) -> list[PassManager]:
        """All that it may do, in order."""
        return [self._without(passes) for passes in super().define_pipelines()]

    def _without(self, passes: PassManager) -> PassManager:
        left = PassManager(passes.pipeline_name)
        for each, what in passes.passes:
            if each not in _LEFT_OUT:
                left.add_pass(each, what)
        left.finalize()
        return left


_number_of: Final = attrgetter("_code")
"""Of a type: equal ones are one object, which has a number of its own."""
_Answers = dict[tuple[int, ...], tuple["Signature", object]]


class _Memory:
    """What was answered, apart for each set of flags: they decide which code it is that is called."""

    def __init__(self) -> None:
        self._by_flags: dict[Flags | None, _Answers] = {}
        self._flags: Flags | None = None
        self._now: _Answers = self._by_flags.setdefault(None, {})

    def now(self) -> _Answers:
        """Under the flags of what is being compiled."""
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
    """As `BaseFunction.get_call_type`, which is asked what was not asked before."""
    if kws:
        return cast("Signature", _ask(function, context, args, kws))
    answers = _memory.now()
    question = (_number_of(function), *map(_number_of, args))
    known = answers.get(question)
    if known is None:
        signature = cast("Signature", _ask(function, context, args, kws))
        answers[question] = signature, _codes_of(function)[signature.args]
        return signature
    # Which code it is the function itself notes, of the last one who asked.
    signature, code = known
    _codes_of(function)[signature.args] = code
    return signature


def _codes_of(function: BaseFunction) -> dict[tuple[Type, ...], object]:
    """For which types it was told which code it is."""
    return cast("dict[tuple[Type, ...], object]", vars(function)["_impl_keys"])


def with_memory(function: Callable[P, R]) -> Callable[P, R]:
    """What `function` does, while numba remembers what it was told. Requires the compiler's lock."""

    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        before = BaseFunction.get_call_type
        setattr(BaseFunction, _ask.__name__, _remember)
        try:
            return function(*args, **kwargs)
        finally:
            setattr(BaseFunction, _ask.__name__, before)

    return called
