"""Acts: what somebody does to a dataflow from outside, while a test explores or simulates it.

    send(rows, input="payments")    insert rows into the open epoch of an input
    seal()                          end the open epoch of all inputs, or of one
    close("questions")              let nothing come in at an input any more
    call("lines", function)         call a function with a vertex, as a thread could between callbacks

Acts are listed in the order in which one program does them. A seal, or a close, reaches each worker by
itself, so the acts at one worker come in their order, and nothing is promised between two workers. Behind the
last act all inputs close; if that is a seal of all inputs, they close in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

import pyarrow as pa

from progress.errors import MisuseError

from ..operators.vertex import Vertex
from ..running.instance import Instance
from ..wire.batch import Batch, Records
from ..wire.frames.record_values import pack_value, unpack_value
from ..wire.frames.table_batch import TableBatch

__all__ = [
    "CallAct",
    "CloseAct",
    "SealAct",
    "SendAct",
    "UserAct",
    "call",
    "close",
    "closed",
    "distributed",
    "distributions",
    "seal",
    "send",
    "vertex_of",
]

_DISTRIBUTIONS_MAX = 256


@dataclass(frozen=True, eq=False)
class UserAct:
    """Something that is done at one worker; `worker` is None if it may be any, or is each of them."""

    worker: int | None = None

    def act(self, instance: Instance) -> None:
        """Do it to a dataflow on a worker."""
        raise NotImplementedError

    @property
    def is_everywhere(self) -> bool:
        """True if it reaches each worker, as a seal does."""
        return False


@dataclass(frozen=True, eq=False)
class SendAct(UserAct):
    """Rows for the open epoch of an input."""

    rows: tuple[object, ...] | pa.Table = ()
    input: str | None = None

    def act(self, instance: Instance) -> None:
        """Insert them."""
        handle = instance.input(_only_input(instance) if self.input is None else self.input)
        handle.append(handle.epoch, _batch_of(self.rows))

    def __str__(self) -> str:
        rows = self.rows.to_pylist() if isinstance(self.rows, pa.Table) else list(self.rows)
        return f"send {rows}{'' if self.input is None else f' to {self.input!r}'}"


@dataclass(frozen=True, eq=False)
class SealAct(UserAct):
    """The end of an epoch."""

    input: str | None = None

    def act(self, instance: Instance) -> None:
        """Seal the open epoch of one input, or of all that are open."""
        for name, handle in instance.inputs.items():
            if self.input == name or (self.input is None and not handle.is_closed):
                handle.seal()
        if self.input is not None:
            instance.input(self.input)  # raises if there is none

    @property
    def is_everywhere(self) -> bool:
        """True: every worker hears of it."""
        return True

    def __str__(self) -> str:
        return f"seal {'all inputs' if self.input is None else repr(self.input)}"


@dataclass(frozen=True, eq=False)
class CloseAct(UserAct):
    """The end of an input."""

    input: str | None = None

    def act(self, instance: Instance) -> None:
        """Close one input, or all that are open."""
        names = instance.inputs if self.input is None else [self.input]
        for name in names:
            handle = instance.input(name)
            if not handle.is_closed:
                handle.close()

    @property
    def is_everywhere(self) -> bool:
        """True: every worker hears of it."""
        return True

    def __str__(self) -> str:
        return f"close {'all inputs' if self.input is None else repr(self.input)}"


@dataclass(frozen=True, eq=False)
class CallAct(UserAct):
    """A call of a function with a vertex."""

    stage: str = ""
    function: Callable[[Vertex], object] = field(default=lambda vertex: None)

    def act(self, instance: Instance) -> None:
        """Call it with the vertex of the stage on this worker."""
        self.function(vertex_of(instance, self.stage))

    def __str__(self) -> str:
        return f"call {getattr(self.function, '__name__', self.function)} with the vertex of {self.stage!r}"


def send(
    rows: Sequence[object] | pa.Table, input: str | None = None, *, worker: int | None = None
) -> SendAct:
    """Insert rows into the open epoch of an input (by default the only one), at one worker. Without a worker,
    `explore` tries each, and `simulate` draws one.
    """
    return SendAct(worker, rows if isinstance(rows, pa.Table) else tuple(rows), input)


def seal(input: str | None = None) -> SealAct:
    """End the open epoch of an input, or of all inputs, on all workers."""
    return SealAct(None, input)


def close(input: str | None = None) -> CloseAct:
    """Let nothing come in at an input, or at all inputs, any more, on all workers."""
    return CloseAct(None, input)


def call(stage: str, function: Callable[[Vertex], object], *, worker: int = 0) -> CallAct:
    """Call a function with the vertex of a stage on a worker, between two of its callbacks, as a thread of
    the user could: it may change what the vertex keeps for it, and ring its activator.
    """
    return CallAct(worker, stage, function)


def distributions(acts: Sequence[UserAct], workers: int) -> list[list[list[UserAct]]]:
    """Return all ways to distribute acts among workers: for each way the acts of each worker, in order."""
    _check(acts, workers)
    free = [act for act in acts if act.worker is None and not act.is_everywhere]
    if workers ** len(free) > _DISTRIBUTIONS_MAX:
        raise MisuseError(
            f"{len(free)} acts may be at any of {workers} workers, which is {workers ** len(free):,} ways: "
            "say which worker some of them are for, as in send(rows, worker=0)"
        )
    return [
        distributed(closed(acts), dict(zip(map(id, free), chosen, strict=True)), workers)
        for chosen in product(range(workers), repeat=len(free))
    ]


def closed(acts: Sequence[UserAct]) -> list[UserAct]:
    """Return acts after which all inputs are closed."""
    is_sealed = bool(acts) and isinstance(acts[-1], SealAct) and acts[-1].input is None
    return [*(acts[:-1] if is_sealed else acts), CloseAct()]


def distributed(acts: Sequence[UserAct], chosen: dict[int, int], workers: int) -> list[list[UserAct]]:
    """Return the acts of each worker, in order; `chosen` has the worker of an act that may be at any, by its
    `id`.
    """
    by_worker: list[list[UserAct]] = [[] for _ in range(workers)]
    for act in acts:
        if act.is_everywhere:
            for listed in by_worker:
                listed.append(act)
        else:
            by_worker[chosen[id(act)] if act.worker is None else act.worker].append(act)
    return by_worker


def vertex_of(instance: Instance, stage: str) -> Vertex:
    """Return the vertex of a stage on a worker; raise `MisuseError` if there is no such stage."""
    vertices = [each.vertex for each in instance.runners if each.name == stage and each.vertex is not None]
    if len(vertices) != 1:
        names = sorted({each.name for each in instance.runners if each.vertex is not None})
        many = "several stages are" if vertices else "no stage is"
        raise MisuseError(f"{many} called {stage!r}: there are {', '.join(map(repr, names)) or 'none'}")
    return vertices[0]


def _check(acts: Sequence[UserAct], workers: int) -> None:
    for act in acts:
        if not isinstance(act, UserAct):
            raise MisuseError(f"{act!r:.80} is no act: write send(…), seal(…), close(…) or call(…)")
        if act.worker is not None and not 0 <= act.worker < workers:
            raise MisuseError(
                f"{act} is for worker {act.worker}, and there are {workers}: 0 to {workers - 1}"
            )


def _only_input(instance: Instance) -> str:
    names = list(instance.inputs)
    if len(names) != 1:
        raise MisuseError(f"there are {len(names)} inputs, {names}: write send(rows, input=…)")
    return names[0]


def _batch_of(rows: tuple[object, ...] | pa.Table) -> Batch:
    if isinstance(rows, pa.Table):
        return TableBatch.of(rows)
    # As from a client: new objects each time, and tuples in place of lists.
    return Records([unpack_value(pack_value(row)) for row in rows])
