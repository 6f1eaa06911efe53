"""Answers about outputs: how far they are, their changes, their rows at an epoch, the positions of readers.

If a request is about an epoch that is not complete yet, the answer comes later. If a dataflow was replaced,
the new version answers once it has taken the place of the old one on this worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...errors import TimelyError, WaitTimeoutError, class_names
from ...failure import full_text_of
from ...limits import READER_SECONDS_MAX
from ...operators.capture import FOREVER, CaptureVertex
from ...operators.outputs.places import ReaderPositions
from ...running.core import Worker
from ...running.instance import Instance
from ...wire.requests import Probe, Progress, Read, Reply, Request, Value
from ..counting.counters import loop_under_way
from ..durability.durability import Durability
from ..orders import open_epoch
from ..replacing import Replacements
from ..tasks.pieces import check_origin, drop, held, hold, piece
from .later import Later, now_or_later
from .outstanding import outstanding
from .probes import Probes

__all__ = ["Outputs"]

_DISK_SECONDS: Final = 5.0
"""How long a question about outputs waits while the disk of a durable cluster fails. Then its answer says so.
"""


class Outputs:
    """Answers for the outputs of one worker.

    Args:
        worker: the worker.
        replacements: finds the version of a dataflow that has the outputs.
        clock: seconds, only their differences count.
        session: a name that no other worker has, or had before; outputs of a durable cluster begin in that.
    """

    def __init__(
        self,
        worker: Worker,
        replacements: Replacements,
        clock: Callable[[], float],
        session: str = "",
    ) -> None:
        self._worker = worker
        self._session = session
        self._replacements = replacements
        self._clock = clock
        self._probes = Probes(replacements, clock)
        self.durability: Durability | None = None
        """Knows which epochs may be shown; None: all that are complete may."""

    def handle(self, request: Request) -> Reply | Later | None:
        """Return the answer; None if the request does not ask about outputs."""
        if isinstance(request, Progress):
            return self._progress(request)
        if isinstance(request, Read):
            return self._read(request)
        if isinstance(request, Probe):
            self._probes.durability = self.durability
            return self._probes.answer(request)
        return None

    def _progress(self, request: Progress) -> Reply | Later:
        dataflow, output = request.dataflow, request.output
        values: dict[str, Value] = {}
        if request.reader or request.drops:
            places = (capture := self._output(dataflow, output)).places
            before = places.written_of(request.reader) if self.durability is not None else None
            if request.drops:
                values["kept"] = drop(capture, request, self.complete(dataflow, output))
            elif request.keep_from < 0:
                places.leave(request.reader)
            else:
                hold(capture, request)
            self._write_place(request, before, places)
        if request.extent:
            return self._extent(request)
        return self._once_complete(
            dataflow,
            output,
            request.beyond,
            request.timeout_seconds,
            lambda complete: Reply({"complete": complete, **values}),
            request.waited_seconds,
            request.reader,
        )

    def _read(self, request: Read) -> Reply | Later:
        dataflow, output, start = request.dataflow, request.output, request.start
        answer: Callable[[int], Reply]
        if request.first != -1:
            # Checked at once, so that nobody waits for an epoch of another output.
            check_origin(request, self._origin(dataflow, output), self._incarnation)

            def answer(complete: int) -> Reply:
                return piece(self._output(dataflow, output), request, self._incarnation)

        elif start == -1:

            def answer(complete: int) -> Reply:
                return Reply(
                    {"complete": complete}, self._output(dataflow, output).snapshot(request.stop - 1)
                )

        else:
            if request.reader:
                places = self._output(dataflow, output).places
                before = places.written_of(request.reader) if self.durability is not None else None
                places.come(request.reader, start)
                self._write_place(request, before, places)

            def answer(complete: int) -> Reply:
                return self._changes(request, complete)

        return self._once_complete(
            dataflow, output, request.stop - 1, request.timeout_seconds, answer, reader=request.reader
        )

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
        return Reply({"complete": complete, "failed": failed}, capture.logged_changes(request.start, stop))

    def _extent(self, request: Progress) -> Reply | Later:
        """Answer once there is news behind epoch `beyond`, or after the timeout in any case."""
        dataflow, output = request.dataflow, request.output
        seconds = max(0.0, min(request.timeout_seconds, READER_SECONDS_MAX))
        until = self._clock() + seconds

        def ready() -> Reply | None:
            capture = self._output(dataflow, output)  # perhaps of a new version by now
            complete = self.complete(dataflow, output)
            if not self.is_restored(dataflow, output):
                return None
            if complete <= request.beyond and self._clock() < until:
                return None
            return held(capture, complete, self._origin(dataflow, output), request.keep_from)

        def late() -> TimelyError:
            return WaitTimeoutError(f"output {output!r} has nothing behind epoch {request.beyond}")

        # An output that somebody has read does not go back, also after the timeout.
        limit = seconds if self.is_restored(dataflow, output) else -1.0
        return now_or_later(ready, late, self._clock(), limit)

    def _origin(self, dataflow: int, output: str) -> str:
        """Return where an output began: in which durable cluster, or else in which process, and with which
        dataflow. A durable cluster that starts again has the same outputs.
        """
        where = self._session if self.durability is None else self.durability.cluster
        return f"{where}/{self._replacements.first_of(dataflow, output)}"

    @property
    def _incarnation(self) -> int:
        return 0 if self.durability is None else self.durability.number

    def _once_complete(
        self,
        dataflow: int,
        output: str,
        epoch: int,
        seconds: float,
        answer: Callable[[int], Reply],
        waited_seconds: float = 0.0,
        reader: str = "",
    ) -> Reply | Later:
        complete = self.complete(dataflow, output, epoch)
        if complete > epoch:
            # Fast path: embedded workers have worked before this.
            if self.durability is None or self.is_restored(dataflow, output):
                return answer(complete)
            seconds = -1.0  # the limit is for the epoch, and not for what a restart makes again

        begun = self._clock()

        def ready() -> Reply | None:
            complete = self.complete(dataflow, output, epoch)
            if complete > epoch and self.is_restored(dataflow, output):
                return answer(complete)
            if self.durability is not None and self._clock() - begun > _DISK_SECONDS:
                self.durability.check()
            return None

        def late() -> TimelyError:
            complete = self.complete(dataflow, output)
            is_over = 0 <= seconds <= self._clock() - begun
            waited = f" after {seconds + waited_seconds:g} s" if is_over else ""
            if epoch >= FOREVER - 1:
                return self._unfinished(dataflow, complete, waited)
            where = f"output {output!r}" if output else f"dataflow {dataflow}"
            instance = self._replacements.instance(dataflow)
            opened = open_epoch(instance)
            at_sources = bool(instance.sources) and all(each.is_closed for each in instance.inputs.values())
            if opened <= epoch:
                passes = "its sources have not gone past it" if at_sources else "it is not sealed yet"
                why = f"{passes} (the open epoch is {opened})"
            elif not self.is_restored(dataflow, output):
                why = "the answers that were shown before a restart are not made again yet"
            elif self.complete(dataflow, output, epoch, is_durable=False) > epoch:
                why = "its rows are not on disk yet"
            else:
                why = _under_way(instance, complete)
            return WaitTimeoutError(
                f"epoch {epoch} of {where} is not complete on worker "
                f"{self._worker.index}{waited}: {why}; "
                f"complete are the epochs before {complete}"
                f"{outstanding(instance, epoch) if opened > epoch or at_sources else ''}"
            )

        deadline = begun + seconds if seconds >= 0 else float("inf")
        return Later(ready, late, deadline, is_of_outputs=not reader)

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

    def complete(self, dataflow: int, output: str, epoch: int = -1, is_durable: bool = True) -> int:
        """Return the first epoch that may not be shown, since it is not complete at `output` (at all of the
        dataflow, if that is empty), in this worker's view, or not durable; one ≤ `epoch` may be too high.
        Without `is_durable`, only look whether the work is done.
        """
        if output:
            complete = self._output(dataflow, output).complete_before
        else:
            if self._replacements.were_any:
                dataflow = self._replacements.outputs_of(dataflow)
            instance = self._worker.instance(dataflow)
            complete = FOREVER
            for capture in instance.captures:
                complete_here = capture.complete_before
                if complete_here < complete:
                    complete = complete_here
            # To look at all pointstamps after each step would be slow; an output without the epoch decides.
            if complete > epoch:
                complete = min(complete, instance.epochs_done())
        if self.durability is None or not is_durable:
            return complete
        return self.durability.shown_before(self._replacements.instance(dataflow), output, complete)

    @property
    def is_durable(self) -> bool:
        """True if only epochs are shown that a restart does not lose."""
        return self.durability is not None

    def is_restored(self, dataflow: int, output: str) -> bool:
        """Return True if an output is as far as somebody may have seen before a restart (all outputs, if
        `output` is empty). Until then no question about it has an answer: neither a frontier nor the latest
        collection goes back.
        """
        if self.durability is None:
            return True
        return self.durability.digests.are_made_again(self._replacements.instance(dataflow), output)

    def _write_place(
        self, request: Progress | Read, before: tuple[int, float] | None, places: ReaderPositions
    ) -> None:
        """Write how far a reader has come if that is not where it was `before`, so that it has its place
        after a restart; also when it is first heard of after one, and now and then, as the log forgets those
        that were silent for long.
        """
        if self.durability is not None and (place := places.of(request.reader)) != before:
            epoch, seconds = place or (-1, 0.0)
            self.durability.journal.place(
                request.dataflow, request.output, request.reader, epoch, float(seconds)
            )
            places.note_written(request.reader)

    def _output(self, dataflow: int, name: str) -> CaptureVertex:
        if self._replacements.were_any:
            self._replacements.check_output(dataflow, name)
            dataflow = self._replacements.outputs_of(dataflow)
        return self._worker.instance(dataflow).output(name)


def _under_way(instance: Instance, complete: int) -> str:
    """Return why epochs from `complete` on, which are sealed, have no answer yet."""
    loop = loop_under_way(instance, complete)
    return "the work on it is not done yet" + (f" ({loop})" if loop else "")
