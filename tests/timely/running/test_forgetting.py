"""Forgetting words, in every order of messages: no row meets a worker that does not know its words.

every_order_*   all that can happen on workers with real tables of symbols and the real protocol
mutants_*       the protocol is broken on purpose, each way by name; what comes of it
refused_*       what no worker of ours does
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

from differential.columns import update_batch
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.symbols.table import SymbolTable
from differential.columns.update_batch import UpdateBatch, words_of
from progress.errors import InternalError, PeerError
from timely.dictionaries import Dictionary, Mark
from timely.running import forgetting
from timely.running.core import Worker
from timely.running.forgetting import Forgetting, forget_the_rest
from timely.running.progress_messages import DataHeader, write_data_header, write_withdrawal_header
from timely.wire.batch import decode
from timely.wire.transport.memory import MemoryNetwork

VALUE = "a"
WORD = SymbolTable().intern_one(VALUE)

Said = str | tuple[int, ...]
"""A message: "withdraw", "answer", or a row, which is the words of the entries that come with it."""


@dataclass
class Node:
    """A worker with one word that it may hold in some row, or not."""

    index: int
    workers: int
    table: SymbolTable = field(default_factory=SymbolTable)
    holds: bool = False

    def __post_init__(self) -> None:
        self.forgetting = Forgetting(self.index, self.workers)

    def copy(self) -> Node:
        """The same, to go its own way: states share the workers that have done nothing."""
        made = Node(self.index, self.workers, SymbolTable(), self.holds)
        for kept, other in ((self.table, made.table), (self.forgetting, made.forgetting)):
            for name, part in vars(kept).items():
                setattr(other, name, copy.deepcopy(part) if isinstance(part, dict | set) else part)
        return made

    def symbols(self, mark: Mark) -> None:
        """Its row."""
        if self.holds:
            mark.words(np.array([WORD]))

    def silent(self) -> list[str]:
        """It says what it holds."""
        return []

    def key(self) -> Hashable:
        """All that decides what it does."""
        noted, awaited = self.table._noted, self.forgetting._awaited
        return (
            self.holds,
            WORD in self.table,
            tuple(sorted(peer for peer, has in self.table._has.items() if has)),
            None if noted is None else WORD in noted,
            None if awaited is None else tuple(sorted(awaited)),
        )


@dataclass
class State:
    """All workers, what is on its way from one to another, and how much more may be done."""

    nodes: list[Node]
    wires: dict[tuple[int, int], tuple[Said, ...]]
    left: dict[str, int]
    path: tuple[str, ...] = ()

    def key(self) -> Hashable:
        """All that decides what may happen."""
        return (
            tuple(node.key() for node in self.nodes),
            tuple(sorted(self.wires.items())),
            tuple(sorted(self.left.items())),
        )


class UnknownWord(AssertionError):
    """A row has met a worker that does not know its word; how."""


class Explored:
    """Goes to every state that can be reached, the nearest first."""

    def __init__(self, workers: int, monkeypatch: pytest.MonkeyPatch, **most: int) -> None:
        self.at_work: list[Dictionary] = []
        monkeypatch.setattr(forgetting, "dictionaries", lambda: self.at_work)
        pairs = [(a, b) for a in range(workers) for b in range(workers) if a != b]
        nodes = [Node(index, workers) for index in range(workers)]
        self.first = State(nodes, dict.fromkeys(pairs, ()), dict(most))

    def run(self) -> int:
        """How many states there are."""
        seen = {self.first.key()}
        waiting = deque([self.first])
        while waiting:
            state = waiting.popleft()
            for named, act in self.moves(state):
                path = (*state.path, named)
                new = State(state.nodes.copy(), state.wires.copy(), state.left.copy(), path)
                act(new)
                if new.key() not in seen:
                    seen.add(new.key())
                    waiting.append(new)
        return len(seen)

    def moves(self, state: State) -> list[tuple[str, Callable[[State], None]]]:
        """What could happen next."""
        found: list[tuple[str, Callable[[State], None]]] = []
        for index, node in enumerate(state.nodes):
            if state.left["enters"] and not node.holds:
                found.append((f"{index} is given the word", partial(self.enter, index=index)))
            if node.holds:
                found.append((f"{index} drops its row", partial(self.drop, index=index)))
            if state.left["begins"] and not node.forgetting.is_under_way:
                found.append((f"{index} begins", partial(self.begin, index=index)))
            if node.forgetting.is_ready:
                found.append((f"{index} forgets", partial(self.forget, index=index)))
        for (source, target), wire in state.wires.items():
            if state.left["sends"] and state.nodes[source].holds:
                found.append(
                    (f"{source} sends to {target}", partial(self.send, source=source, target=target))
                )
            if wire:
                found.append(
                    (
                        f"{target} hears {wire[0]} of {source}",
                        partial(self.hear, source=source, target=target),
                    )
                )
        return found

    def _turn(self, state: State, index: int) -> Node:
        node = state.nodes[index] = state.nodes[index].copy()
        self.at_work[:] = [node.table]
        return node

    def enter(self, state: State, index: int) -> None:
        state.left["enters"] -= 1
        node = self._turn(state, index)
        node.table.intern([VALUE])
        node.holds = True

    def drop(self, state: State, index: int) -> None:
        self._turn(state, index).holds = False

    def begin(self, state: State, index: int) -> None:
        state.left["begins"] -= 1
        for peer in self._turn(state, index).forgetting.begin():
            state.wires[index, peer] += ("withdraw",)

    def forget(self, state: State, index: int) -> None:
        node = self._turn(state, index)
        node.forgetting.forget([node])
        node.table.check_invariants()
        assert (WORD in node.table) >= node.holds

    def send(self, state: State, source: int, target: int) -> None:
        state.left["sends"] -= 1
        node = self._turn(state, source)
        entries = node.table.delta_for(target, np.array([WORD]))
        state.wires[source, target] += (entries.words,)
        node.table.on_sent(target)

    def hear(self, state: State, source: int, target: int) -> None:
        said, *rest = state.wires[source, target]
        state.wires[source, target] = tuple(rest)
        node = self._turn(state, target)
        if said == "withdraw":
            node.forgetting.withdraw(source)
            state.wires[target, source] += ("answer",)
        elif said == "answer":
            node.forgetting.on_answer(source)
        else:
            assert isinstance(said, tuple)
            node.table.learn(_entries(said), source)
            if WORD not in node.table:
                raise UnknownWord("\n".join(state.path))
            node.holds = True


def _entries(words: tuple[int, ...]) -> SymbolEntries:
    teller = SymbolTable()
    teller.intern_one(VALUE)
    return teller.delta_for(0, np.array(words, np.int64))


# every_order_


def test_every_order_of_two_workers_of_which_both_forget(
    monkeypatch: pytest.MonkeyPatch, effort: int
) -> None:
    most = {"enters": 1 + (effort > 1), "sends": 3, "begins": 2}
    assert Explored(2, monkeypatch, **most).run() > 500


def test_every_order_of_three_workers_that_pass_a_word_on(
    monkeypatch: pytest.MonkeyPatch, effort: int
) -> None:
    most = {"enters": 1, "sends": 2 + (effort > 1), "begins": 1}
    assert Explored(3, monkeypatch, **most).run() > 500


# mutants_


def _nothing(*_: object) -> None:
    pass


def _learn_without_note(self: SymbolTable, entries: SymbolEntries, peer: int) -> None:
    noted, self._noted = self._noted, None
    _LEARN(self, entries, peer)
    self._noted = noted


def _tell_without_note(self: SymbolTable, peer: int) -> None:
    noted, self._noted = self._noted, None
    _ON_SENT(self, peer)
    self._noted = noted


_LEARN, _ON_SENT = SymbolTable.learn, SymbolTable.on_sent

MUTANTS: dict[str, tuple[type, str, object]] = {
    "what is learned is not noted": (SymbolTable, "learn", _learn_without_note),
    "what is told is not noted": (SymbolTable, "on_sent", _tell_without_note),
    "peers answer and withdraw nothing": (SymbolTable, "withdraw", _nothing),
    "it does not wait for answers": (Forgetting, "is_ready", property(lambda self: self.is_under_way)),
    "what is in use is not shown": (Node, "symbols", _nothing),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, name, broken = MUTANTS[mutant]
    monkeypatch.setattr(kind, name, broken)
    if mutant == "it does not wait for answers":
        monkeypatch.setattr(Forgetting, "on_answer", _nothing)
    with pytest.raises(AssertionError) as caught:
        # Who learns and hands on needs a third one in the middle of asking two.
        for workers, sends in ((2, 3), (3, 2)):
            Explored(workers, monkeypatch, enters=1, sends=sends, begins=1).run()
    print(caught.value)  # noqa: T201


# refused_


def test_refused_an_answer_to_nothing_and_an_end_before_all_have_answered() -> None:
    passes = Forgetting(0, 3)
    with pytest.raises(PeerError, match="worker 1 answered"):
        passes.on_answer(1)
    with pytest.raises(InternalError, match="before all others"):
        passes.forget([])
    assert list(passes.begin()) == [1, 2]
    with pytest.raises(InternalError, match="begun already"):
        passes.begin()
    passes.on_answer(1)
    assert passes.is_under_way and not passes.is_ready
    with pytest.raises(PeerError, match="worker 1 answered"):
        passes.on_answer(1)


def test_refused_a_withdrawal_with_something_in_it() -> None:
    network = MemoryNetwork(2)
    worker = Worker(0, 2, network.transport(0))
    network.transport(1).send(0, [write_withdrawal_header(False), b"more"])
    with pytest.raises(PeerError, match="2 frames"):
        worker.step()


def test_workers_tell_each_other_and_forget_when_all_have_answered() -> None:
    network = MemoryNetwork(3)
    workers = [Worker(index, 3, network.transport(index)) for index in range(3)]
    workers[0].begin_forgetting()
    workers[1].begin_forgetting()
    for _ in range(2):
        for worker in workers:
            worker.step()
    assert [worker.forgetting.is_ready for worker in workers] == [True, True, False]
    workers[0].forget()
    assert not workers[0].forgetting.is_under_way


def test_what_a_message_tells_is_believed_once_though_it_waits_for_its_dataflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its sender may have forgotten it by the time that the dataflow begins, or that its rows are shown."""
    teller, table = SymbolTable(), SymbolTable()
    words = teller.intern([VALUE])
    monkeypatch.setattr(update_batch, "SYMBOLS", teller)
    batch = UpdateBatch(np.array([words, [0], [1]]), (0,))
    sent = [write_data_header(DataHeader(7, 0, 0, batch.KIND)), *batch.to_frames(0)]
    monkeypatch.setattr(update_batch, "SYMBOLS", table)
    monkeypatch.setattr(forgetting, "dictionaries", lambda: [table])
    network = MemoryNetwork(2)
    worker = Worker(0, 2, network.transport(0))
    for message in (sent, [write_withdrawal_header(False)]):
        network.transport(1).send(0, message)
        worker.step()
    marking = table.marking()
    worker.symbols(Mark([marking]))
    assert table.forget(marking) == 0, "the rows that wait have the word"
    ((peer, (_, *frames)),) = worker.early(7)
    assert words_of(decode(batch.KIND, frames, peer))[0].tolist() == words.tolist()
    assert table.delta_for(1, words).words == (WORD,), "the sender is told it again"


class _Raises:
    def symbols(self, mark: Mark) -> None:
        raise ValueError("cannot say")

    def silent(self) -> list[str]:
        return []


def test_nothing_is_forgotten_while_somebody_cannot_say_what_he_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = SymbolTable()
    table.intern(["a", "b"])
    monkeypatch.setattr(forgetting, "dictionaries", lambda: [table])
    assert forget_the_rest([_Raises()]) == (0, ["ValueError: cannot say"])
    assert len(table) == 2
    assert forget_the_rest([]) == (2, [])
    assert len(table) == 0
