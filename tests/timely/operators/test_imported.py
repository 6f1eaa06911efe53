"""An import as an input of its dataflow: what enters, and when its epochs are over.

enters_*   rows first, then the epoch moves on
over_*     by the owner's upper alone, once
"""

from __future__ import annotations

from collections.abc import Callable

from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import TimeShape
from timely.operators.imported import Exported, ImportHandle, Taken
from timely.operators.vertex import Vertex
from timely.wire.batch import Batch, Records

CODE = TimeCode(TimeLayout((20, 8)), TimeShape.ROOT)


class Entry:
    """Notes what happens at the stage."""

    code = CODE
    room = 1 << 40

    def __init__(self) -> None:
        self.noted: list[object] = []

    def wake(self) -> None:
        self.noted.append("wake")

    def resume(self) -> None:
        self.noted.append("resume")

    def may_enter(self, epoch: int) -> bool:
        return epoch < self.room

    def let_in(self, batch: Batch, word: int) -> None:
        assert isinstance(batch, Records)
        self.noted.append((CODE.unpack(word)[0], *batch.records))

    def advance(self, old: int, new: int | None) -> None:
        self.noted.append((old, "to", new))

    def take(self) -> list[object]:
        noted, self.noted = self.noted, []
        return noted


class Source:
    """Gives what it was told to give."""

    since = 3

    def __init__(self) -> None:
        self.gives: list[Taken] = []
        self.begun: tuple[TimeCode, int, Callable[[], None]] | None = None
        self.closed = 0

    def begin(self, code: TimeCode, epoch: int, news: Callable[[], None]) -> None:
        self.begun = (code, epoch, news)

    def take(self, before: int) -> Taken:
        assert before == Entry.room
        return self.gives.pop(0)

    def close(self) -> None:
        self.closed += 1


def importing() -> tuple[ImportHandle, Source, Entry]:
    source, entry = Source(), Entry()
    return ImportHandle(Exported(1, "owner", "rows", "", Vertex()), source, entry), source, entry


def batch(*records: object) -> Records:
    return Records(list(records))


def test_enters_as_of_the_epoch_that_all_begin_with() -> None:
    handle, source, entry = importing()
    assert handle.since == 3 and handle.exported.title() == "'rows' of dataflow 1 (owner)"
    handle.begin(5)
    assert source.begun is not None and source.begun[:2] == (CODE, 5)
    assert handle.held_epoch == 5 and entry.take() == ["wake"]
    source.begun[2]()
    assert entry.take() == ["wake"]


def test_enters_before_the_epoch_moves_on() -> None:
    handle, source, entry = importing()
    handle.begin(5)
    entry.take()
    source.gives = [Taken([(5, batch("a")), (6, batch("b"))], 7, True)]
    handle.let_rows_in()
    assert entry.take() == [(5, "a"), (6, "b"), (5, "to", 7)] and handle.held_epoch == 7


def test_enters_in_pieces_while_nothing_is_over() -> None:
    handle, source, entry = importing()
    handle.begin(5)
    entry.take()
    source.gives = [Taken([(5, batch("a"))], 9, False), Taken([], 9, True)]
    handle.let_rows_in()
    assert entry.take() == [(5, "a"), "resume"] and not handle.is_through(5)
    handle.let_rows_in()
    assert entry.take() == [(5, "to", 9)] and handle.is_through(9) and not handle.is_through(10)


def test_over_is_what_the_owner_has_passed_and_no_more() -> None:
    handle, source, entry = importing()
    handle.begin(5)
    entry.take()
    source.gives = [Taken([], 4, True), Taken([], 5, True), Taken([], 6, True), Taken([], 6, True)]
    for _ in range(4):
        handle.let_rows_in()
    assert entry.take() == [(5, "to", 6)], "an owner that is behind is waited for"


def test_over_for_ever_when_nothing_can_come_any_more() -> None:
    handle, source, entry = importing()
    handle.begin(5)
    entry.take()
    source.gives = [Taken([(8, batch("last"))], None, True)]
    handle.let_rows_in()
    handle.let_rows_in()
    assert entry.take() == [(8, "last"), (5, "to", None)]
    assert handle.is_complete and handle.held_epoch is None and handle.is_through(99)
    handle.close()
    assert source.closed == 1
