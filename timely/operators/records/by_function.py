"""A vertex whose callbacks are functions: for a stage that is too small for a class."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import NoReturn, TypeAlias, cast

from progress.errors import InternalError, MisuseError
from progress.times.timestamp import Timestamp

from ...user_code.vertex_calls import check_result
from ...wire.claims import shown
from ..vertex import Vertex

__all__ = ["FunctionVertex"]

_OnRecv: TypeAlias = Callable[[list[object], Timestamp], object]
_OnRecvAt: TypeAlias = Callable[[int, list[object], Timestamp], object]
_OnNotify: TypeAlias = Callable[[Timestamp], object]


class FunctionVertex(Vertex):
    """Calls what `make` has made of the vertex, once on each worker: `on_recv`, or (`on_recv`, `on_notify`).

    `has_edge`: on_recv gets the number of the input first.
    """

    def __init__(self, make: Callable[[Vertex], object], has_edge: bool) -> None:
        self._make = make
        self._has_edge = has_edge

    def on_start(self) -> None:
        """Make the functions."""
        functions = self._make(self)
        pair = functions if isinstance(functions, tuple) else (functions, super().on_notify)
        if len(pair) != 2 or not all(callable(each) for each in pair):
            raise MisuseError(
                f"{self!r}: its function returned {shown(functions)}; it returns on_recv, or (on_recv, "
                "on_notify), which are functions"
            )
        if any(iscoroutinefunction(each) for each in pair):
            raise MisuseError(
                f"{self!r}: its function returned a coroutine function, which nobody would await here. Write "
                "a class of vertices with `async def on_recv`, and dataflow.stage(name, Vertex, …)"
            )
        self._on_recv, self._on_notify = pair[0], cast(_OnNotify, pair[1])

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Call the function for records."""
        if self._has_edge:
            result = cast(_OnRecvAt, self._on_recv)(edge, message, time)
        else:
            result = cast(_OnRecv, self._on_recv)(message, time)
        check_result(self, "on_recv", result)

    def on_notify(self, time: Timestamp) -> None:
        """Call the function for a complete time."""
        check_result(self, "on_notify", self._on_notify(time))

    def __deepcopy__(self, memo: dict[int, object]) -> NoReturn:
        # Functions are never copied: those of a copy would send for the original.
        raise InternalError(
            f"{self!r} has functions as callbacks, which keep what they have closed over, so its worker "
            "cannot be copied: write a class of vertices to explore what it does"
        )
