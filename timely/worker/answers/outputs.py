"""Answers about outputs: how far they are, their changes, their rows at an epoch, the positions of readers.

If a request is about an epoch that is not complete yet, the answer comes later. If a dataflow was replaced,
the new version answers once it has taken the place of the old one on this worker.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import TimelyError, WaitTimeoutError, class_names
from ...failure import full_text_of
from ...limits import READER_SECONDS_MAX
from ...operators.capture import FOREVER, CaptureVertex
from ...running.core import Worker
from ...running.instance import Instance
from ...wire.requests import Progress, Read, Reply, Request, Value
from ..counters import loop_under_way
from ..orders import open_epoch
from ..replacing import Replacements
from ..tasks.pieces import check_origin, drop, held, hold, piece
from .later import Later, now_or_later
from .outstanding import outstanding

__all__ = ["Outputs"]


class Outputs:
    """Answers for the outputs of one worker.

    Args:
        worker: the worker.
        replacements: finds the version of a dataflow that has the outputs.
        clock: seconds, only their differences count.
        session: a name that no other worker has, or had before.
    """

    def __init__(
        self, worker: Worker, replacements: Replacements, clock: Callable[[], float], session: str = ""
    ) -> None:
        self._worker = worker
        self._session = session
        self._replacements = replacements
        self._clock = clock

    def handle(self, request: Request) -> Reply | Later | None:
        """Return the answer; None if the request does not ask about outputs."""
        if isinstance(request, Progress):
            return self._progress(request)
        if isinstance(request, Read):
            return self._read(request)
        return None

    def _progress(self, request: Progress) -> Reply | Later:
        dataflow, output = request.dataflow, request.output
        values: dict[str, Value] = {}
        if request.reader or request.drops:
            capture = self._output(dataflow, output)
            if request.drops:
                values["kept"] = drop(capture, request)
            elif request.keep_from < 0:
                capture.places.leave(request.reader)
            else:
                hold(capture, request)
        if request.extent:
            return self._extent(request)
        return self._once_complete(
            dataflow,
            output,
            request.beyond,
            request.timeout_seconds,
            lambda complete: Reply({"complete": complete, **values}),
            request.waited_seconds,
        )

    def _read(self, request: Read) -> Reply | Later:
        dataflow, output, start = request.dataflow, request.output, request.start
        answer: Callable[[int], Reply]
        if request.first != -1:
            # Checked at once, so that nobody waits for an epoch of another output.
            check_origin(request, self._origin(dataflow, output))

            def answer(complete: int) -> Reply:
                return piece(self._output(dataflow, output), request)

        elif start == -1:

            def answer(complete: int) -> Reply:
                return Reply(
                    {"complete": complete}, self._output(dataflow, output).snapshot(request.stop - 1)
                )

        else:
            if request.reader:
                self._output(dataflow, output).places.come(request.reader, start)

            def answer(complete: int) -> Reply:
                return self._changes(request, complete)

        return self._once_complete(dataflow, output, request.stop - 1, request.timeout_seconds, answer)

    def _changes(self, request: Read, complete: int) -> Reply:
        capture = self._output(request.dataflow, request.output)  # perhaps of a new version by now
        stop = max(complete if request.is_open_ended else request.stop, request.start)
        if not request.with_failures:
            return Reply({"complete": complete}, capture.changes(request.start, stop))
        first = request.start if request.start < stop else max(request.start - 1, 0)
        without = [] if capture.failures is None else capture.failures.without(first, stop)
        failed: list[Value] = [
            [
                each.start,
                each.stop,
                each.since,
                list[Value](class_names(each.error)),
                full_text_of(each.error),
            ]
            for each in without
        ]
        return Reply({"complete": complete, "failed": failed}, capture.log.changes(request.start, stop))

    def _extent(self, request: Progress) -> Reply | Later:
        """Answer once there is news behind epoch `beyond`, or after the timeout in any case."""
        dataflow, output = request.dataflow, request.output
        seconds = max(0.0, min(request.timeout_seconds, READER_SECONDS_MAX))
        until = self._clock() + seconds

        def ready() -> Reply | None:
            capture = self._output(dataflow, output)  # perhaps of a new version by now
            if capture.complete_before <= request.beyond and self._clock() < until:
                return None
            return held(capture, self._origin(dataflow, output), request.keep_from)

        def late() -> TimelyError:
            return WaitTimeoutError(f"output {output!r} has nothing behind epoch {request.beyond}")

        return now_or_later(ready, late, self._clock(), seconds)

    def _origin(self, dataflow: int, output: str) -> str:
        """Return where an output began: this process, and the dataflow in which it began."""
        return f"{self._session}/{self._replacements.first_of(dataflow, output)}"

    def _once_complete(
        self,
        dataflow: int,
        output: str,
        epoch: int,
        seconds: float,
        answer: Callable[[int], Reply],
        waited_seconds: float = 0.0,
    ) -> Reply | Later:
        complete = self.complete(dataflow, output, epoch)
        if complete > epoch:  # Fast path: embedded workers have worked before this.
            return answer(complete)

        def ready() -> Reply | None:
            complete = self.complete(dataflow, output, epoch)
            return answer(complete) if complete > epoch else None

        begun = self._clock()

        def late() -> TimelyError:
            complete = self.complete(dataflow, output)
            is_over = 0 <= seconds <= self._clock() - begun
            waited = f" after {seconds + waited_seconds:g} s" if is_over else ""
            if epoch >= FOREVER - 1:
                return self._unfinished(dataflow, complete, waited)
            where = f"output {output!r}" if output else f"dataflow {dataflow}"
            instance = self._replacements.instance(dataflow)
            opened = open_epoch(instance)
            why = (
                f"it is not sealed yet (the open epoch is {opened})"
                if opened <= epoch
                else _under_way(instance, complete)
            )
            return WaitTimeoutError(
                f"epoch {epoch} of {where} is not complete on worker "
                f"{self._worker.index}{waited}: {why}; "
                f"complete are the epochs before {complete}"
                f"{outstanding(instance, epoch) if opened > epoch else ''}"
            )

        return Later(ready, late, begun + seconds if seconds >= 0 else float("inf"))

    def _unfinished(self, dataflow: int, complete: int, waited: str) -> WaitTimeoutError:
        """Return the error for a client that has waited in vain for the end of a dataflow."""
        instance = self._replacements.instance(dataflow)
        opened = [name for name, handle in instance.inputs.items() if not handle.is_closed]
        unfinished = [each for each in instance.imports if not each.is_complete]
        why, where = _under_way(instance, complete), ""
        if opened:
            why = f"not closed yet: {', '.join(f'input {name!r}' for name in opened)}"
        elif unfinished:
            why = "the dataflows that it reads are not finished: finish these first"
        else:
            where = outstanding(instance, FOREVER)
        return WaitTimeoutError(
            f"dataflow {dataflow} is not finished on worker {self._worker.index}{waited}: {why}; "
            f"complete are the epochs before {complete}{where}"
        )

    def complete(self, dataflow: int, output: str, epoch: int = -1) -> int:
        """Return the first epoch that is not complete at `output` (at all of the dataflow, if that is empty),
        in this worker's view; one ≤ `wanted` may be too high.
        """
        if output:
            return self._output(dataflow, output).complete_before
        if self._replacements.were_any:
            dataflow = self._replacements.outputs_of(dataflow)
        instance = self._worker.instance(dataflow)
        at_outputs = FOREVER
        for name in instance.frozen.outputs:
            complete = instance.output(name).complete_before
            if complete < at_outputs:
                at_outputs = complete
        # To look at all pointstamps after each step would be slow; an output that lacks the epoch decides.
        return at_outputs if at_outputs <= epoch else min(at_outputs, instance.epochs_done())

    def _output(self, dataflow: int, name: str) -> CaptureVertex:
        if self._replacements.were_any:
            self._replacements.check_output(dataflow, name)
            dataflow = self._replacements.outputs_of(dataflow)
        return self._worker.instance(dataflow).output(name)


def _under_way(instance: Instance, complete: int) -> str:
    """Return why epochs from `complete` on, which are sealed, have no answer yet."""
    loop = loop_under_way(instance, complete)
    return "the work on it is not done yet" + (f" ({loop})" if loop else "")
