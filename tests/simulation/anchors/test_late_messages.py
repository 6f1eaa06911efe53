"""Messages of a worker whose anchor is ahead, with rows that no word here says yet: they wait, and come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from differential.columns.update_batch import UpdateBatch, words_of
from timely import Batch, Dataflow, Vertex
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.transport.memory import MemoryNetwork

BITS = 4
LAST = (1 << BITS) - 2
"""The last epoch that a word says while the anchor is at 0."""


class Keeps(Vertex):
    """Notes at which time words messages and their rows come, and from which epoch these count."""

    word_times = True

    def on_start(self) -> None:
        self.came: list[tuple[int, list[int], int]] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        anchor = self.code.anchor.epoch
        self.came += [(word, words_of(batch)[-2].tolist(), anchor) for word, batch in messages]

    def rebase(self, by: object) -> None:
        pass


def listening(sealed: int) -> tuple[Worker, Instance, Keeps]:
    """Worker 0 of two; all epochs up to `sealed` are, on both."""
    dataflow = Dataflow(level_bits=(BITS,))
    dataflow.input("rows").stage("keeps", Keeps)
    network = MemoryNetwork(2)
    group = [Worker(index, 2, network.transport(index)) for index in range(2)]
    instances = [worker.install(dataflow.freeze()) for worker in group]
    for worker, instance in zip(group, instances, strict=True):
        instance.input("rows").seal(sealed)
        worker.step()
    group[0].run_until_idle()
    kept = instances[0].runners[1].vertex
    assert isinstance(kept, Keeps) and instances[0].anchor.epoch == 0
    return group[0], instances[0], kept


def rows_at(*words: int) -> UpdateBatch:
    return UpdateBatch(np.array([words, [1] * len(words)], np.int64))


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_message_waits_for_its_last_row_and_the_anchor_moves_for_it_however_little(ahead: int) -> None:
    """Its own time is what is first outstanding: if the anchor waited to go further it would for ever."""
    worker, instance, kept = listening(sealed=ahead)
    assert not instance.can_move_anchor(), "nothing waits"
    instance.receive(0, 1, rows_at(1, LAST), anchor=ahead)
    assert len(instance.late_words()) == 1 and not kept.came
    assert instance.late_words() == [(len(instance.runners), 1 + ahead)]
    assert instance.can_move_anchor()
    worker.run_until_idle()
    assert instance.anchor.epoch == ahead
    assert kept.came == [(1, [1, LAST], ahead)] and not instance.late_words()


def test_a_message_whose_last_row_leaves_as_much_room_as_rows_of_inputs_does_not_wait() -> None:
    for beyond in (0, 1):
        worker, instance, kept = listening(sealed=1)
        last = instance.frozen.layout.window - 2 + beyond
        instance.receive(0, 1, rows_at(1, last), anchor=1)
        assert bool(instance.late_words()) == bool(beyond)
        worker.run_until_idle()
        assert kept.came == [(1, [1, last], 1) if beyond else (2, [2, last + 1], 0)]


def test_a_message_waits_while_the_anchor_cannot_move_far_enough() -> None:
    worker, instance, kept = listening(sealed=3)
    instance.receive(0, 5, rows_at(5, LAST), anchor=8)
    worker.run_until_idle()
    assert instance.anchor.epoch == 0 and not kept.came, "a step that does not pay, and does not help"
    assert instance.late_words() == [(len(instance.runners), 13)]


def test_a_message_of_one_that_is_behind_is_said_in_words_of_here() -> None:
    worker, instance, kept = listening(sealed=1)
    instance.anchor.epoch = 1  # as if it had moved: nothing else has words here
    instance.receive(0, 2, rows_at(2, 3), anchor=0)
    assert [(word, words_of(batch)[-2].tolist()) for _, _, word, batch in instance.runners[1].inbox] == [
        (1, [1, 2])
    ]
    with pytest.raises(Exception, match=r"got a message at 0x0, counted from epoch 0, where it took"):
        instance.receive(0, 0, rows_at(0), anchor=0)
    del worker, kept
