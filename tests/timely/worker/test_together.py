"""What is in one process forgets together, while nobody works."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Sequence
from types import FrameType, SimpleNamespace

import pytest

import differential as dd
import timely
from differential.columns.symbols.table import SymbolTable
from timely.running import forgetting
from timely.running.core import Worker
from timely.worker import together
from timely.worker.together import (
    begin_turn,
    end_turn,
    forget_alone,
    forget_together,
    hides_words,
    is_full,
    join,
)


class Some:
    """A group of one worker, or of none, or at work."""

    def __init__(self, workers: Sequence[Worker] | None) -> None:
        self.workers = workers

    def at_rest(self) -> Sequence[Worker] | None:
        """As told."""
        return self.workers


@pytest.fixture
def table(alone_in_process: None, monkeypatch: pytest.MonkeyPatch) -> SymbolTable:
    """A table that is full, of a process that has nothing else in it."""
    found = SymbolTable(full_from=2)
    found.intern(["a", "b"])
    monkeypatch.setattr(forgetting, "dictionaries", lambda: [found])
    monkeypatch.setattr(together, "_dictionaries", [found])
    return found


def test_a_group_forgets_in_its_turn_when_all_others_rest(table: SymbolTable) -> None:
    groups = [Some([Worker()]), Some([Worker()]), Some([])]
    for group in groups:
        join(group)
    begin_turn(groups[0])
    assert is_full()
    begin_turn(groups[1])
    assert not forget_together(groups[0])
    end_turn(groups[1])
    groups[1].workers = None
    assert not forget_together(groups[0]) and len(table) == 2
    groups[1].workers = [Worker()]
    assert forget_together(groups[0])
    assert len(table) == 0 and not is_full()


def test_nothing_is_forgotten_while_a_vertex_hides_words(
    table: SymbolTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, worker = Some([Worker(), Worker()]), Worker()
    join(group)
    begin_turn(group)
    runner = SimpleNamespace(hides_words=lambda: True)
    instance = SimpleNamespace(runners=[SimpleNamespace(hides_words=lambda: False), runner])
    monkeypatch.setattr(worker, "_instances", {0: instance})
    assert hides_words(worker)
    monkeypatch.setattr(together, "hides_words", lambda worker: worker is group.workers[1])  # type: ignore[index]
    assert not forget_together(group) and len(table) == 2
    monkeypatch.undo()
    runner.hides_words = lambda: False
    assert not hides_words(worker)


def test_a_turn_that_is_begun_or_ended_twice_is_one(table: SymbolTable) -> None:
    group, other = Some([Worker()]), Some([Worker()])
    join(group)
    join(other)
    begin_turn(group)
    for _ in range(2):
        begin_turn(other)
    for _ in range(2):
        end_turn(other)
    assert forget_together(group) and len(table) == 0


def test_a_worker_with_a_process_to_itself_forgets_alone(table: SymbolTable) -> None:
    del table
    own, other = Some(None), Some([Worker()])
    done: list[str] = []
    join(own)
    begin_turn(own)
    assert forget_alone(own, lambda: done.append("first"))
    join(other)
    assert not forget_alone(own, lambda: done.append("never"))
    other.workers = []
    assert forget_alone(own, lambda: done.append("second"))
    assert done == ["first", "second"]


def test_who_begins_to_work_while_something_is_forgotten_waits_for_that(table: SymbolTable) -> None:
    del table
    own, other = Some(None), Some([])
    has_begun = threading.Event()
    join(own)
    join(other)
    begin_turn(own)

    def begin() -> None:
        begin_turn(other)
        has_begun.set()

    thread = threading.Thread(target=begin)

    def forget() -> None:
        thread.start()
        assert not has_begun.wait(0.1)

    assert forget_alone(own, forget)
    thread.join(30)
    assert has_begun.is_set()
    end_turn(other)
    assert forget_alone(own, lambda: None)


def test_a_turn_that_has_begun_is_seen_before_anything_is_forgotten(table: SymbolTable) -> None:
    own, other = Some([Worker()]), Some([Worker()])
    join(own)
    join(other)
    begin_turn(own)

    def interrupted() -> None:
        raise KeyboardInterrupt

    other.workers = []
    with pytest.raises(KeyboardInterrupt):
        forget_alone(own, interrupted)
    assert not together._process.is_looked_at
    begin_turn(other)  # nobody looks any more: it does not wait
    assert not forget_together(own) and len(table) == 2
    assert not forget_alone(own, interrupted), "also not if that one says it rests"


def test_one_of_who_begins_and_who_looks_hears_of_the_other_however_they_meet(
    table: SymbolTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each says what it does before it asks for the other."""
    del table
    own, other, asked = Some(None), Some([]), list[str]()

    class AtWork(set[together.Group]):
        def __len__(self) -> int:
            asked.append(f"who works, while it is {process.said}")
            return super().__len__()

    class Process(together._GroupRegister):
        said = False

        @property
        def is_looked_at(self) -> bool:  # type: ignore[override]
            asked.append(f"who looks, while {sum(1 for _ in self.at_work)} work")
            return self.said

        @is_looked_at.setter
        def is_looked_at(self, said: bool) -> None:
            self.said = said

    process = Process()
    process.at_work = AtWork()
    monkeypatch.setattr(together, "_process", process)
    begin_turn(own)
    begin_turn(other)
    assert asked == ["who looks, while 1 work", "who looks, while 2 work"]
    assert not forget_together(own) and not forget_alone(own, lambda: None)
    assert asked[2:] == ["who works, while it is True"] * 2 and not process.said


def test_after_an_interrupt_wherever_it_comes_nobody_waits_for_ever(table: SymbolTable) -> None:
    """Also as long as the error is kept, as the prompt of Python keeps the last one."""
    del table
    own, other, kept = Some(None), Some([]), list[KeyboardInterrupt]()
    join(own)
    join(other)
    begin_turn(own)
    was = sys.gettrace()
    for last in itertools.count():
        left = last

        def interrupt(frame: FrameType, event: str, argument: object) -> object:
            nonlocal left
            if event in ("call", "return"):  # as Python itself does: where a call begins, and behind it
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
            return interrupt

        sys.settrace(interrupt)  # type: ignore[arg-type]
        try:
            assert forget_alone(own, lambda: None)
        except KeyboardInterrupt as error:
            kept.append(error)
        finally:
            sys.settrace(was)
        assert not together._process.lock.locked(), f"at place {last}"
        if len(kept) == last:
            break
    assert len(kept) > 6


def names(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int, b: string")
    rows.group_by("a").agg(n=dd.count(), first=dd.min("b")).output("first")


def test_a_group_hides_the_texts_of_batches_that_wait_for_its_sums() -> None:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(names)
        flow.input("rows").insert([(1, "b"), (1, "a")])
        flow.seal(wait=True)
        (worker,) = cluster._workers._workers  # type: ignore[attr-defined]
        assert not hides_words(worker), "all is done"
        hiding = []
        for runner in worker.instance(0).runners:
            runner.inbox.append((0, 0, 0, None))
            hiding += [runner.name] if hides_words(worker) else []
            runner.inbox.pop()
        assert hiding == ["group by a: n=count(), first"]
