"""Batches of an arrangement stay on their worker; who may read one, and from where."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from arranged_flows import arranged_by, inside_loop, joined, reduced, stream_of
from reference.dataflow import Cluster
from reference.words import as_words
from strategies_collections import NUMBERS
from strategies_words import CODES

import differential as dd
from differential import Collection, col
from differential.columns.routes import KeyRoute
from differential.columns.update_batch import UpdateBatch
from differential.operators.arrange import Arranged
from differential.operators.arrangement import ArrangedBatch, Arrangement, arranged
from differential.operators.join import LEFT, RIGHT
from differential.operators.join_vertex import JoinPort, JoinVertex
from timely.building.dataflow import Dataflow
from timely.building.loop import Loop
from timely.building.stream import Feed
from timely.errors import InternalError

CODE = CODES[2]


def _batch() -> ArrangedBatch:
    return ArrangedBatch(as_words([(1, CODE.pack((0, 2)), 1), (2, CODE.pack((1, 0)), 1)], 3), 7)


def test_a_batch_enters_loops_as_it_is_and_goes_round_as_a_later_copy() -> None:
    batch = _batch()
    assert batch.shifted(CODE.keep_mask(1), 0) is batch
    later = batch.shifted((1 << 63) - 1, 1)
    assert (later.sequence, [CODE.unpack(word) for word in later.words[1].tolist()]) == (7, [(0, 3), (1, 1)])
    assert [CODE.unpack(word) for word in batch.words[1].tolist()] == [(0, 2), (1, 0)]
    shift, bits = CODE.fields[1]
    assert later.latest(shift, (1 << bits) - 1) == 3 and later.rows == 2


@pytest.mark.parametrize(
    "leave",
    [
        lambda: _batch().to_frames(1),
        lambda: _batch().on_sent(1),
        lambda: ArrangedBatch.from_frames([], 1),
        lambda: ArrangedBatch.absorb([], 1),
        lambda: arranged(UpdateBatch(np.empty((3, 0), np.int64))),
    ],
)
def test_a_batch_never_leaves_its_worker_and_is_no_other_batch(leave: Callable[[], object]) -> None:
    with pytest.raises(InternalError, match="arrangement"):
        leave()


def test_a_trace_is_made_once() -> None:
    arrangement = Arrangement(1, 1)
    trace = arrangement.trace(CODE, "arrange")
    assert arrangement.trace(CODE, "arrange") is trace and trace.guards == CODE.guards


def _install(build: Callable[[Collection], Collection | None]) -> None:
    def build_all(flow: Dataflow) -> None:
        build(dd.input(flow, "rows", NUMBERS))

    Cluster(build_all)


def _stage(source: Collection, *feeds: Feed) -> None:
    source.dataflow.stage(
        "reads", lambda: JoinVertex(1, 1, 1, None, [JoinPort(LEFT, True), JoinPort(RIGHT, True)]), feeds
    )


def _inside(source: Collection) -> tuple[Loop, Collection]:
    return inside_loop(source, "loop")


def _two_at_one_port(source: Collection) -> None:
    by_key, other = arranged_by(source, "k"), arranged_by(source, "v")
    _stage(source, Feed(by_key.stream, 0), Feed(other.stream, 0), Feed(by_key.stream, 1))


def _rows(source: Collection) -> None:
    _stage(source, Feed(stream_of(source), 0), Feed(arranged_by(source, "k").stream, 1))


def _answers_that_are_not_shared(source: Collection) -> None:
    made = reduced(arranged_by(source, "k"), "min", shares=False)
    _stage(source, Feed(made.rows, 0), Feed(made.rows, 1))


def _routed(source: Collection) -> None:
    stream = arranged_by(source, "k").stream
    _stage(source, Feed(stream, 0, KeyRoute(1)), Feed(stream, 1))


def _transformed(source: Collection) -> None:
    stream = arranged_by(source, "k").stream
    _stage(source, Feed(stream, 0, None, lambda batch: batch), Feed(stream, 1))


def _left(source: Collection) -> None:
    loop, inside = _inside(source)
    stream = loop.leave(arranged_by(inside, "k").stream)
    _stage(source, Feed(stream, 0), Feed(stream, 1))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (_two_at_one_port, "one arrangement at input 0, not 2"),
        (_rows, "offers no arrangement"),
        (_answers_that_are_not_shared, "offers no arrangement"),
        (_routed, "a route or a transform"),
        (_transformed, "a route or a transform"),
        (_left, "from outside the loop"),
    ],
)
def test_who_cannot_read_is_told_why_when_it_starts(build: Callable[[Collection], None], said: str) -> None:
    with pytest.raises(InternalError, match=said):
        _install(build)


def test_one_behind_its_own_loop_in_the_order_of_stages_is_read_all_the_same() -> None:
    """The reader starts before the writer: the trace is made when it asks for it."""

    def build(source: Collection) -> None:
        loop, inside = _inside(source)
        back = loop.feedback()
        pairs = joined(inside, Arranged(back.stream, 1, 1, inside.schema), arranged_by(inside, "k"))
        least = reduced(arranged_by(pairs.select(k=col.k, v=col.w).concat(inside), "k"), "min")
        assert least.answers is not None
        back.connect(least.answers.stream)
        loop.check_connected()

    _install(build)
