"""The end of vertices: each hears once why nothing will be delivered to it any more.

    the dataflow fails, or is uninstalled     with the error that clients get from then on
    it cannot be installed                    with what refuses it, if the vertex has started
    a worker is lost, or work interrupted     with the error that clients get
    the worker is closed in good order        with None

What a vertex raises then harms nobody: it is logged, and all others hear of their end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from ...errors import TimelyError, VertexError
from ...failure import fresh_copy, full_text_of, is_interrupt, text_of
from ...operators.vertex import Vertex
from .vertex_runner import VertexRunner

__all__ = ["as_reason", "close_vertices", "end_vertices"]

_log = logging.getLogger("timely")


class _Dataflow(Protocol):
    """An instance: see `running/instance.py`."""

    runners: list[VertexRunner]


class _HasDataflows(Protocol):
    """A worker: see `running/core.py`."""

    @property
    def instances(self) -> Mapping[int, _Dataflow]: ...


def close_vertices(
    workers: Iterable[_HasDataflows], reason: TimelyError | None, prepared: Iterable[_Dataflow] = ()
) -> None:
    """Tell all vertices of workers that these are closed, in good order if there is no `reason`.

    `prepared`: dataflows whose vertices have started, and that do not run yet.
    """
    dataflows = [*(each for one in workers for each in one.instances.values()), *prepared]
    end_vertices([runner for each in dataflows for runner in each.runners], reason)


def as_reason(error: BaseException) -> TimelyError:
    """Return an error as vertices hear it."""
    if isinstance(error, TimelyError):
        return error
    return VertexError(f"{type(error).__name__}: {text_of(error)}")


def end_vertices(runners: Iterable[VertexRunner], reason: TimelyError | None) -> None:
    """Call `on_end` of all vertices that have it, once each. An interrupt from the keyboard is raised when
    all have heard.
    """
    interrupt: BaseException | None = None
    for runner in runners:
        vertex = runner.vertex
        if vertex is None or not runner.end():
            continue
        if runner.calls is not None:
            runner.calls.end()
        if type(vertex).on_end is Vertex.on_end:
            continue
        try:
            # A fresh copy: what a vertex raises or keeps of it does not keep its frames alive.
            vertex.on_end(None if reason is None else fresh_copy(reason))
        except BaseException as error:
            if is_interrupt(error):
                interrupt = error
            else:
                _log.warning(
                    "on_end of %s, built at %s, has raised %s: %s",
                    runner.title(), runner.site, type(error).__name__, full_text_of(error),
                )  # fmt: skip
    if interrupt is not None:
        raise interrupt
