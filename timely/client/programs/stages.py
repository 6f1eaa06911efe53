"""The dataflow behind a program: all workers hear what the program on one of them says, in the same order.

    source    on each worker; holds an epoch, sends what its program says at it, and goes on to the next one
    heard     on each worker; gets what all sources say, and passes it on once an epoch is over: the source of
              no worker holds it any more

A source whose program is silent must not hold up the others. It goes past an epoch as soon as its worker
hears that another one has said something at it. So an epoch is over after one message each way, and no clock
decides. This is the sequencer of timely dataflow, which advances by a clock, without the clock.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from types import FunctionType
from typing import TypeVar, cast

from progress.times.timestamp import Timestamp

from ...building.builders import builder, load_function
from ...building.dataflow import Dataflow
from ...errors import MisuseError, TimelyError, UninstalledError
from ...failure import add_note
from ...operators.capability import Capability
from ...operators.vertex import Vertex
from ...user_code.call_site import CallSite, at_site, site_of
from ..cluster import Cluster
from .common_order import FINISHED, CommonOrder, Word
from .program_worker import ProgramWorker

__all__ = ["OUTPUT", "HeardVertex", "Program", "ProgramVertex", "build", "of_name", "program"]

OUTPUT = "results"
"""The output with the result of each worker, as (worker, result)."""

_MARK = "__naiad_program__"

Program = Callable[..., object]  # type: ignore[explicit-any]  # each program has arguments of its own
"""Takes a `ProgramWorker` and keyword arguments; what it returns is the result of that worker."""

F = TypeVar("F", bound=Program)


def program(function: F) -> F:
    """Mark a function as one that runs on workers, so that workers in other processes will call it; used as a
    decorator.

    @timely.program
    def main(worker): …
    """
    if not isinstance(function, FunctionType):
        raise MisuseError(f"@timely.program marks a function, not a {type(function).__name__}")
    setattr(function, _MARK, True)
    return function


class ProgramVertex(Vertex):
    """The source on one worker. It starts the thread of the program, and ends when that has."""

    def __init__(self, order: CommonOrder, main: Callable[[], object]) -> None:
        self._order = order
        self._main = main
        self._held: Capability | None = None

    def on_open(self, capability: Capability) -> None:
        """Start the program."""
        self._held = capability
        self._order.begin(self.activator().activate, self.worker, self.workers)
        threading.Thread(target=self._main, name=f"naiad-program-{self.worker}", daemon=True).start()

    def on_activate(self) -> None:
        """Send what the program has said, and go past epochs at which others have said something."""
        if self._order.failure is not None:
            raise self._order.failure
        if self._held is None:
            return
        (epoch,), words = self._held.time, self._order.take()
        if words:
            self.send_by(0, words, self._held.time)
        if words and words[-1][2] == FINISHED:
            self._held.drop()
            self._held = None
        elif (following := max(epoch + bool(words), self._order.used_before)) > epoch:
            self._held.downgrade((following,))


class HeardVertex(Vertex):
    """Hears on one worker what all programs say, epoch by epoch; puts out the result of its own."""

    def __init__(self, order: CommonOrder) -> None:
        self._order = order
        self._waiting: defaultdict[Timestamp, list[Word]] = defaultdict(list)

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Keep words until all of their epoch are here, and let this worker's source go past it."""
        if time not in self._waiting:
            self.notify_at(time)
            self._order.use(time[0])
        self._waiting[time] += cast("list[Word]", message)

    def on_notify(self, time: Timestamp) -> None:
        """Pass on the words of an epoch that is over."""
        words = sorted(self._waiting.pop(time), key=_place_of)
        self.send_by(0, [(word[0], word[4]) for word in words if _is_result(word, self.worker)], time)
        self._order.hear(words)

    def on_end(self, reason: TimelyError | None) -> None:
        """Let the program know."""
        self._order.end(reason or UninstalledError("the cluster was closed"))


def _place_of(word: Word) -> tuple[int, int]:
    return word[:2]


def _is_result(word: Word, worker: int) -> bool:
    return word[0] == worker and word[2] == FINISHED


def build(
    dataflow: Dataflow,
    main: Program,
    arguments: Mapping[str, object],
    cluster: Cluster | Sequence[str],
) -> None:
    """Add the stages that run `main` on one worker; each worker builds its own."""
    name = getattr(main, "__name__", "main")
    if iscoroutinefunction(main):
        raise MisuseError(
            f"program {name!r} is a coroutine function, which nobody would await: write "
            f"def {name}(worker, …), and asyncio.run(…) in it"
        )
    order = CommonOrder()

    def run() -> None:
        try:
            worker = ProgramWorker(order, cluster)
            try:
                order.say(FINISHED, "", main(worker, **arguments))
            finally:
                worker.close()
        except BaseException as error:
            site = site_of(error)
            if isinstance(error, TimelyError) and site.line:  # any other error is shown with its lines
                add_note(error, f"  {site}: here the program was")
            order.fail(error)

    said = dataflow.source(f"program {name}", lambda: ProgramVertex(order, run))
    dataflow.stages[said.stage_index].begins_anew = "a program begins with its first line"
    heard = said.broadcast().stage("heard", lambda: HeardVertex(order))
    dataflow.output(OUTPUT, heard)


@builder
def of_name(dataflow: Dataflow, main: str, arguments: Mapping[str, object], addresses: Sequence[str]) -> None:
    """Build the stages in a worker process, which imports the program by its name."""
    function = load_function(main, "a program")
    if not isinstance(function, FunctionType) or not hasattr(function, _MARK):
        name = main.partition(":")[2]
        raise MisuseError(
            f"a program {main!r}: {name} is not marked as one, and workers call nothing else. Write "
            f"@timely.program above 'def {name}(worker, …)'"
        )
    code = function.__code__
    with at_site([CallSite(code.co_filename, code.co_firstlineno)]):
        build(dataflow, function, arguments, addresses)
