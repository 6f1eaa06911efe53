"""Epoch after epoch: sent, sealed, answered, committed, and told to callbacks.

A callback hears of an epoch when every sink of every output has committed it, so that whoever was told of an
epoch finds it there. If the job ends by an error what was handed over is committed on the way out, and
callbacks hear of that, too.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import pyarrow as pa

import timely
from timely.errors import TimelyError
from timely.operators.appends import ExpectedAppend
from timely.spark.epochs import EpochSize

from .columns import SparkForm
from .outputs import Epoch
from .shown import Screen
from .sinks import Sink

__all__ = ["Answers", "OneOutput", "close_all"]

_Call: TypeAlias = Callable[[Epoch, pa.Table], object]


@dataclass(frozen=True)
class OneOutput:
    """An output of the query: its sinks, and who is called."""

    name: str
    form: SparkForm
    sinks: Sequence[Sink]
    callbacks: Sequence[_Call] = ()


@dataclass
class Answers:
    """What the dataflow `flow` answers goes from here to all that asked for it.

    `wants`: epochs before need not be handed over. `unread`: outputs that nobody asked for.
    """

    flow: timely.Flow
    outputs: Sequence[OneOutput]
    screen: Screen
    wants: int = 0
    unread: Sequence[str] = ()
    _waiting: deque[tuple[Epoch, list[pa.Table]]] = field(default_factory=deque)
    _is_told: bool = True

    def seal(self, number: int, value: object, size: EpochSize, expected: Sequence[ExpectedAppend]) -> None:
        """Complete the epoch, wait for its answers, and hand them on.

        An epoch before `wants` is the sum of all up to it: it is only held against what is committed.
        """
        begin = time.perf_counter()
        self.screen.waits("workers")
        self.flow.seal(expected, through=number)
        read = [self.flow.output(output.name) for output in self.outputs]
        tables = [output.changes(number, number + 1) for output in read]
        seconds = time.perf_counter() - begin
        for output in (*read, *map(self.flow.output, self.unread)):
            output.forget(number + 1)
        self._hand_on(Epoch.of(number, value, size, seconds), tables)
        self.screen.done(number, size.rows, sum(table.num_rows for table in tables))

    def _hand_on(self, epoch: Epoch, tables: list[pa.Table]) -> None:
        if epoch < self.wants:
            for output, table in zip(self.outputs, tables, strict=True):
                for sink in output.sinks:
                    if sink.wants == self.wants:
                        sink.check_before(table)
            return
        self.screen.waits("Spark, to commit")
        formed = [output.form.of(table) for output, table in zip(self.outputs, tables, strict=True)]
        for output, table in zip(self.outputs, formed, strict=True):
            for sink in output.sinks:
                sink.commit(epoch, table)
        if any(output.callbacks for output in self.outputs):
            self._waiting.append((epoch, formed))
            self.tell()

    def finish(self) -> None:
        """All epochs are sealed: commit what is left, write snapshots, call who has not been called."""
        self.screen.waits("Spark, to write snapshots")
        for output in self.outputs:
            for sink in output.sinks:
                sink.finish(partial(self._snapshot, output))
        self.tell()

    def tell(self) -> None:
        """Call back for the epochs that are committed by now."""
        committed = min((sink.committed for output in self.outputs for sink in output.sinks), default=1 << 62)
        while self._is_told and self._waiting and self._waiting[0][0] < committed:
            epoch, tables = self._waiting.popleft()
            try:
                for output, table in zip(self.outputs, tables, strict=True):
                    for callback in output.callbacks:
                        callback(epoch, table)
            except Exception:
                self._is_told = False  # whoever raises is not called again on the way out
                raise

    def _snapshot(self, output: OneOutput) -> pa.Table:
        return output.form.of(self.flow.output(output.name).snapshot())


def close_all(outputs: Iterable[OneOutput], is_failing: bool) -> None:
    """Let go of all sinks, which commit what they have; if something else has failed already, that is
    said.
    """
    failure: TimelyError | None = None
    for output in outputs:
        for sink in output.sinks:
            try:
                sink.close()
            except TimelyError as error:
                failure = failure or error
    if failure is not None and not is_failing:
        raise failure
