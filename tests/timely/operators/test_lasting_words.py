"""A vertex without `rebase` after the anchor has moved: what it says is translated, or refused as ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest

from progress.errors import TimelyError, TimeOverflowError, TimeRegressionError
from progress.times.timestamp import Timestamp
from timely import Batch, Dataflow, MisuseError, Records, Vertex
from timely.operators.lasting_words import LastingWords, has_times
from timely.running.core import Worker
from timely.running.instance import Instance


class Timed(Records):
    """Rows that say that they have times of their own."""

    def rebased(self, step: int) -> Timed:
        return Timed(self.records)


class Asks(Vertex):
    """Does what the test says at each message, and notes what was refused."""

    word_times: ClassVar[bool] = True
    acts: Callable[[Asks, int], None]

    def __init__(self) -> None:
        self.refused: list[TimelyError] = []
        self.got: list[Timestamp] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, _ in messages:
            self.got.append(self.code.unpack(word))
            try:
                self.acts(word)
            except (MisuseError, TimeRegressionError) as error:
                self.refused.append(error)


def moved(acts: Callable[[Asks, int], None], batch: Batch | None = None) -> tuple[Worker, Instance, Asks]:
    """A worker whose words count from a late epoch, and a vertex that has had a message before and after."""
    vertex = type("Asks", (Asks,), {"acts": acts})()
    dataflow = Dataflow(level_bits=(4, 57))
    dataflow.output("sent", dataflow.input("rows").stage("asks", lambda: vertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    worker.on_failure = lambda number, error: None
    handle = instance.input("rows")
    for epoch in (0, 100):
        handle.seal(epoch - 1)
        handle.append(epoch, Records(["row"]) if batch is None else batch)
        handle.seal(epoch)
        worker.run_until_idle()
    return worker, instance, vertex


def test_what_is_sent_at_words_of_more_than_63_bits_arrives_at_their_times() -> None:
    def sends(vertex: Asks, word: int) -> None:
        vertex.send(0, Records(["x"]), word)
        assert vertex.frontier_words(0).tolist()[-1] >= word

    _, instance, vertex = moved(sends)
    assert isinstance(vertex._bound, LastingWords) and instance.anchor.epoch > 50
    assert vertex.got == [(0,), (100,)] and not vertex.refused
    table = instance.output("sent").log.changes(0, 101)
    assert table.column("epoch").to_pylist() == [0, 100] and vertex.code.pack((100,)) == 100 << 58


@pytest.mark.parametrize(
    ("acts", "message"),
    [
        (lambda vertex, word: vertex.send(0, Records(["x"]), 0), r"sent at \(0,\), which is complete"),
        (lambda vertex, word: vertex.hold_word(0), r"asked to hold at \(0,\), which is complete"),
        (lambda vertex, word: vertex.release_word(0), r"released a time at \(0,\), which is complete"),
        (lambda vertex, word: vertex.notify_at((0,)), r"asked for notification at \(0,\), which is complete"),
        (lambda vertex, word: vertex.notify_at((400,)), r"the epoch of \(400,\) does not fit"),
        (
            lambda vertex, word: vertex.send(0, Records(["x"]), vertex.code.pack((99,))),
            r"sent at .*only at or after \(100,\)",
        ),
    ],
)
def test_what_it_may_not_say_is_refused_by_its_time(acts: Callable[[Asks, int], None], message: str) -> None:
    def late(vertex: Asks, word: int) -> None:
        if word:
            acts(vertex, word)

    _, _, vertex = moved(late)
    (refused,) = vertex.refused
    assert isinstance(refused, TimeRegressionError | TimeOverflowError)
    with pytest.raises(type(refused), match=message):
        raise refused


def test_a_right_may_be_held_at_an_epoch_that_no_word_of_the_dataflow_holds_yet() -> None:
    def holds(vertex: Asks, word: int) -> None:
        if word:
            vertex.hold_word(vertex.code.pack((400,)))

    worker, instance, vertex = moved(holds)
    assert not vertex.refused
    instance.input("rows").close()
    worker.run_until_idle()
    assert instance.output("sent").complete_before == 400
    vertex.release_word(vertex.code.pack((400,)))
    worker.run_until_idle()
    assert instance.is_complete()


def test_rows_that_have_times_of_their_own_need_a_rebase() -> None:
    assert has_times(Timed([1])) and not has_times(Records([1]))
    worker, _, _ = moved(lambda vertex, word: None, Timed(["row"]))
    assert "takes rows that have times of their own" in str(worker.ended[0])
    assert "give Asks a method `rebase`" in str(worker.ended[0])
