"""A loop of built-in operators as a region: a kernel goes from gate to gate, Python does what it leaves.

Epochs are done in *stretches*: all that are closed when one begins, iteration by iteration, together. What is
closed meanwhile waits for the next one. So what a gate is told of what may still come only ever grows.

Between two calls of `run` rows may wait in slots: what has come in for epochs that are still open, and what
is pending. All else is in the machines of the vertices, which are those of ordinary loops.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.packed.block import Block
from differential.columns.packed.parts import Part, each_in, in_order
from differential.columns.update_batch import PackedBatch, UpdateBatch, as_batch, words_of
from differential.kernels.history.times import latest_counter, shift_times
from differential.kernels.loading import prepare
from differential.kernels.regions.gates import find_next, frontier_behind
from differential.kernels.regions.layout import (
    DONE,
    E_ROWS,
    FAR,
    HEAD_IS_FULL,
    NO_ROOM,
    NO_TURNS,
    P_NEXT,
    ROWS_MAX,
    S_ROWS,
    STATE,
    TOLD_IS_FULL,
    TOLD_MAX,
    TOO_MUCH,
    X_BOUND,
    X_COUNTERS,
    X_FROM,
    X_ROWS,
    X_SLOT,
    X_STEP,
    X_TELLS,
    X_TOLD,
    X_TURNS,
)
from differential.kernels.regions.run import run_region
from differential.kernels.regions.slots import least_in, least_of, moved_in_order, put_rows
from differential.linear.failures.failing import FAILURES
from differential.operators.arrangement import ArrangedBatch
from differential.operators.join_vertex import JoinVertex
from differential.operators.vertices import MachineVertex
from differential.regions.tables import Parts
from progress.times.anchor import Rebase
from progress.times.word_antichain import floor_of, not_beyond
from timely.dictionaries import Mark
from timely.errors import InternalError
from timely.wire.batch import Batch

__all__ = ["LONG_EPOCHS", "LoopRegion"]

_TURNS_MAX: Final = 4096
"""Gates that are opened before others have their turn."""

_OTHER_TURNS_MAX: Final = 64
"""The same of steps that Python does."""

LONG_EPOCHS: Final = 64
"""So many epochs are very many for one stretch."""


_KERNELS: Final = (
    (run_region, "ttttttlt"),
    (find_next, "ttl"),
    (frontier_behind, "itl"),
    (put_rows, "titiii"),
    (least_of, "t"),
    (least_in, "lii"),
    (moved_in_order, "tiii"),
    (shift_times, "tii"),
    (latest_counter, "tii"),
    (floor_of, "li"),
    (not_beyond, "lli"),
)
"""What a loop calls, beside what its operators do."""


class LoopRegion:
    """See above. `parts`: what it is made of."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._slots = parts.slots
        self._state = np.zeros(STATE, np.int64)
        self._state[X_TELLS] = parts.tells
        self._state[X_COUNTERS] = (1 << parts.epoch_shift) - 1
        self._told = np.zeros((3, max(TOLD_MAX, 2 * parts.tells)), np.int64)
        self._is_done = True
        """The last stretch."""
        self._is_long = False
        """Whether it was of very many epochs."""
        self._gates = list(parts.gates.values())
        self._reduces = [vertex for vertex in parts.vertices if isinstance(vertex, MachineVertex)]
        # All in which rows may wait between two calls. What leaves is among them: pairs that an insert of an
        # arrangement makes at once are not sent before their epoch is closed.
        self._waiting = [
            *parts.passing,
            *(gate.slot for gate in self._gates),
            *(leaving.slot for leaving in parts.leaving),
            *(out.slot for out in parts.outs),
        ]
        self._turns: dict[int, int] = {}
        self.at: int | None = None
        self._since = self._told_since = 0
        """Nothing is asked about times before it, and what reduces know of that."""
        for reduce in self._reduces:
            reduce.machine.let_look(self._look)
        for kernel, shape in _KERNELS:
            prepare(kernel, shape)

    def __deepcopy__(self, memo: dict[int, object]) -> LoopRegion:
        """Refused: tables name memory by address. Who copies workers lets loops run as they do elsewhere."""
        raise InternalError("a loop that is a region cannot be copied")

    def take(self, stage: int, port: int, batch: Batch) -> None:
        """Rows wait in their slot; inserts of an arrangement are looked at at once."""
        look = self._parts.looks.get((stage, port))
        if look is not None:
            self.at = look.stage
            look.take(batch, self._slots)
            self.at = None
            return
        slot = self._parts.entries[stage, port]
        if isinstance(batch, UpdateBatch):
            self._slots.put(slot, batch.words)
        elif isinstance(batch, PackedBatch):
            self._slots.put_packed(slot, batch.packed())
        else:
            self._slots.put(slot, batch.words if isinstance(batch, ArrangedBatch) else words_of(batch))

    def run(self, bound: int) -> bool:
        """See `Region`."""
        while self._has_work(bound):
            why = self._work(_TURNS_MAX, _OTHER_TURNS_MAX)
            self.send()
            if why != DONE:
                return False
            self._is_done = True
            self._slots.tidy()
            if bound <= self._slots.bound:  # and all that waited where it came in was passed on
                break
        return True

    def rests(self) -> bool:
        """Rows of epochs that are still open wait where they came in, as long as they are few."""
        rows = self._slots.table[:, S_ROWS].tolist()
        for slot in self._parts.passing:
            if rows[slot] > ROWS_MAX:
                return False
        return True

    def _has_work(self, bound: int) -> bool:
        """Whether something is to be done before a bound; begin a stretch if that has none."""
        slots = self._slots
        if self._is_done and bound > slots.bound:
            self._state[X_FROM], self._state[X_BOUND] = slots.bound, bound
            slots.bound = bound
            self._is_done = self._least() >= bound
            if not self._is_done:
                self._begin()
        return not (self._is_done and self.rests())

    def _begin(self) -> None:
        """A stretch: see what waits in it at gates. Behind one of very many epochs what that has left in
        traces is summed up first: keys that changed in each of them have rows at each, which nobody tells
        apart any more.
        """
        parts = self._parts
        if self._is_long:
            parts.traces.sum_up()
        self._is_long = self._state[X_BOUND] - self._state[X_FROM] >= LONG_EPOCHS << parts.epoch_shift
        if self._is_long:
            parts.traces.mark()
        find_next(parts.steps, self._slots.table, self._state)
        self._slots.find_packed()
        for number, gate in parts.gates.items():
            if gate.held.shape[0]:
                parts.steps[number, P_NEXT] = self._slots.next_of(gate.held)

    def _work(self, turns: int, others: int) -> int:
        """Open so many gates, do so many steps that are Python's; why it has ended."""
        parts, state = self._parts, self._state
        state[X_TURNS] = turns
        parts.lend()
        while True:
            why = self._call()
            if why in (DONE, NO_TURNS) or others == 0:
                break
            others -= self._help(why)
        parts.traces.take_back()
        return why

    def _help(self, why: int) -> int:
        """Do what a kernel has left to Python; how many steps that were Python's."""
        parts, state = self._parts, self._state
        steps = 0
        if why == NO_ROOM:
            self._slots.make_room(int(state[X_SLOT]), int(state[X_ROWS]))
        elif why == HEAD_IS_FULL:
            parts.traces.take_back()
            if not parts.traces.make_room(int(state[X_SLOT]), int(state[X_ROWS])):
                self._do(int(state[X_STEP]))
            parts.lend()
        elif why == TOLD_IS_FULL:
            self.tell()
        else:
            assert why == TOO_MUCH
            parts.traces.take_back()
            self._do(int(state[X_STEP]))
            parts.lend()
            steps = 1
        return steps

    def _least(self) -> int:
        """The least time of all that waits."""
        least = self._slots.least_of_all()
        for gate in self._gates:
            if gate.held.shape[0]:
                least = min(least, int(gate.held[0]))
        return least

    def _call(self) -> int:
        parts = self._parts
        while True:
            try:
                return run_region(
                    parts.steps,
                    parts.matches,
                    parts.edges,
                    parts.traces.table,
                    self._slots.table,
                    parts.fields,
                    self._state,
                    self._told,
                )
            except OverflowError:
                if not self._do_again():
                    raise

    def _do_again(self) -> bool:
        """Do slowly what a kernel could not do for its numbers: either it raises an error that says which row
        it is, or the step is a gate that takes groups apart, of which nothing was done yet. Whether it is.
        """
        parts, number = self._parts, int(self._state[X_STEP])
        parts.traces.take_back()
        self._do(number)
        gate = parts.gates.get(number)
        if gate is None or gate.failed is None:
            return False
        parts.lend()
        return True

    def _do(self, number: int) -> None:
        """A step that is Python's."""
        parts = self._parts
        gate = parts.gates.get(number)
        if gate is None:
            step = parts.others[number]
            self.at = step.stage
            self._turns[step.stage] = self._turns.get(step.stage, 0) + 1
            step.work(self._slots)
            self.at = None
            return
        self._look()  # before the machine says more of it by itself
        self._turns[gate.stage] = self._turns.get(gate.stage, 0) + 1
        self._state[X_TURNS] -= 1
        frontier = frontier_behind(parts.levels[number], parts.fields, self._state)
        self.at = gate.stage
        gate.open(frontier, self._slots)
        self.at = None
        parts.steps[number, P_NEXT] = self._slots.next_of(gate.held)

    def tell(self, step: int = 0) -> None:
        """See `Region`; words have become less by `step` since kernels noted them."""
        parts, state = self._parts, self._state
        told: int = state.item(X_TOLD)
        if told:
            for number, word, rows in self._told[:, :told].T.tolist():
                parts.uses[number].tell_round(word - step, rows)
            state[X_TOLD] = 0
        carried = parts.edges[:, E_ROWS]
        for number, rows in enumerate(carried.tolist()):
            if rows:
                carried[number] = 0
                use = parts.uses.get(number)
                if use is not None:
                    use.rows_sent += rows
                    use.messages_sent += 1

    def send(self) -> None:
        """Hand on what leaves, of each epoch what its iterations add up to."""
        for slot, uses, keep, add, way in self._parts.leaving:
            if not self._slots.rows(slot):
                continue
            if way != "summed":
                # Others go through a transform, which says which words of its result are symbols.
                symbol_words = FAILURES.symbol_words if way == "made" else ()
                for words in each_in(self._slots.take_parts(slot)):
                    batch: Batch = UpdateBatch(words, symbol_words)
                    for use in uses:
                        (use.send_made if way == "made" else use.send)(batch, int(words[-2].min()))
                continue
            few = self._slots.take_moved(slot, keep, add)
            if few is not None:
                words, least = few
                if words.shape[1]:
                    batch = UpdateBatch(words)
                    for use in uses:
                        use.send(batch, least)
                continue
            many = as_batch(in_order(_moved(self._slots.take_parts(slot), keep, add)))
            if many.rows:
                for use in uses:
                    use.send(many, many.least_time())

    def first(self) -> int | None:
        """See `Region`."""
        least = self._least()
        shift = self._parts.epoch_shift
        return None if least >= FAR else least >> shift << shift

    def on_since(self, since: int, has_ended: bool) -> None:
        """See `Region`."""
        self._since = max(self._since, since)
        if not has_ended:
            return  # noted: it is asked for when merges begin
        self._told_since = self._since
        for reduce in self._reduces:
            reduce.machine.set_since(reduce.frontier(0))
        for vertex in self._parts.vertices:
            if isinstance(vertex, JoinVertex):
                vertex.on_frontier()

    def _look(self) -> None:
        """A merge begins, or a machine goes on by itself: let reduces know what is asked about."""
        if self._told_since < self._since:
            self._told_since = self._since
            frontier = np.array([self._since], np.int64)
            for reduce in self._reduces:
                if len(reduce.frontier(0)):
                    reduce.machine.set_since(frontier)

    def turns(self) -> dict[int, int]:
        """See `Region`."""
        turns, self._turns = self._turns, {}
        return turns

    def rebase(self, by: Rebase) -> None:
        """See `Region`."""
        self.tell(by.step)  # in the middle of a stretch: what went round has words of before
        self._since, self._told_since = by.early_word(self._since), by.early_word(self._told_since)
        for each in (X_FROM, X_BOUND):
            self._state[each] = by.early_word(int(self._state[each]))
        self._slots.bound = int(self._state[X_BOUND])
        for slot in self._waiting:
            self._slots.rebase(by, slot)
        for gate in self._gates:
            if gate.pending >= 0:
                self._slots.rebase(by, gate.pending, -1)
            gate.held = by.words(gate.held)

    def symbols(self, mark: Mark) -> None:
        """What waits in slots."""
        for slot in self._waiting:
            for words in self._slots.looks(slot):
                mark.words(words[:-2])
        for gate in self._parts.gates.values():
            if gate.pending >= 0:
                mark.words(self._slots.look(gate.pending)[:-1])

    def compared(self) -> object:
        """All that decides what it will do, beside its vertices."""
        return [[words.tolist() for words in self._slots.looks(slot)] for slot in range(len(self._slots))]


def _moved(parts: list[Part], keep: int, add: int) -> list[Part]:
    """The same rows with every time `t` at `(t & keep) + add`; what is packed is packed again."""
    for number, part in enumerate(parts):
        words = part.words() if isinstance(part, Block) else part
        words[-2] = (words[-2] & keep) + add
        parts[number] = Block(words) if isinstance(part, Block) else words
    return parts
