"""A loop of built-in operators, compiled: a kernel runs from barrier to barrier; Python runs the other steps.

The loop does closed epochs in spans. When a span begins, it takes all closed epochs and does them together,
iteration by iteration. Epochs that close meanwhile wait for the next span. So the frontier that a barrier
sees only ever grows.

Between two spans rows may wait in slots: rows for epochs that are still open, and pending ones. All other
state is in the machines of the vertices, which are those of ordinary loops.

With several workers the loop stops at each barrier, and waits for rows of other workers, round by round.
Python runs the rounds, or, where workers share memory, a kernel (`rounds.py`). A lone worker never loads that
kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from differential.columns.packed.block import Block
from differential.columns.packed.parts import (
    Part,
    column_of,
    columns_of,
    each_in,
    in_order,
    with_added,
)
from differential.columns.update_batch import PackedBatch, UpdateBatch, as_batch, words_of
from differential.compiled_loops.copying import copied
from differential.compiled_loops.round_messages import RoundMessage, to_send
from differential.compiled_loops.rounds import STOPS, Rounds
from differential.compiled_loops.tables import Parts
from differential.kernels.compiled_loops.barriers import (
    find_next,
    find_next_in,
    frontier_behind,
    next_barrier,
)
from differential.kernels.compiled_loops.layout import (
    COUNTS_ARE_FULL,
    COUNTS_ROOM,
    DONE,
    E_ROWS,
    FAR,
    HEAD_IS_FULL,
    NO_ROOM,
    NO_TURNS,
    P_NEXT,
    P_PLACES,
    S_COLUMNS,
    S_COMPONENTS,
    S_NEXT,
    S_ROWS,
    STATE,
    TOO_MUCH,
    X_BOUND,
    X_COUNTED,
    X_COUNTERS,
    X_COUNTS_MAX,
    X_FROM,
    X_NOW,
    X_ROWS,
    X_SLOT,
    X_STEP,
    X_TURNS,
)
from differential.kernels.compiled_loops.round_layout import WAITS
from differential.kernels.compiled_loops.run import run_loop
from differential.kernels.compiled_loops.slots import least_in, least_of, moved_in_order, put_rows
from differential.kernels.history.times import latest_counter, shift_times
from differential.kernels.loading import prepare
from differential.kernels.sums.components import are_components
from differential.linear.failures.failing import FAILURES
from differential.operators.arrangement import ArrangedBatch
from differential.operators.join_vertex import JoinVertex
from differential.operators.patterns.lookups import LookupMachine
from differential.operators.vertices import MachineVertex
from differential.thresholds import STEP_ROWS_MAX
from progress.compiled.arrays import Int64s
from progress.errors import PeerError
from progress.times.anchor import Rebase
from progress.times.word_antichain import floor_of, not_beyond
from timely.dictionaries import Mark
from timely.limits import GATHERED_ROWS_MAX
from timely.operators.compiled_loop import RoundInput, RoundResult, Vote
from timely.wire.batch import Batch

__all__ = ["LONG_EPOCHS", "KernelLoop"]

_TURNS_MAX: Final = 4096
"""Barriers that a lone worker opens before it lets other work run."""

_OTHER_TURNS_MAX: Final = 64
"""Steps in Python that it runs before it lets other work run."""

_ANY_NUMBER: Final = 1 << 62

LONG_EPOCHS: Final = 64
"""Epochs from which on a span is long: see `close`."""

_KERNELS: Final = (
    (run_loop, "ttttttlt"),
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
"""Kernels that a loop calls itself, beside those of its operators."""


class KernelLoop:
    """One worker's share of a compiled loop: see `CompiledLoop`."""

    message_kind = RoundMessage.KIND

    def __init__(self, parts: Parts, workers: int) -> None:
        """Run the loop that `parts` describe, on one of `workers` workers."""
        self._parts = parts
        self._slots = parts.slots
        self._state = np.zeros(STATE, np.int64)
        self._state[X_COUNTS_MAX] = parts.counts_max
        self._state[X_COUNTERS] = (1 << parts.epoch_shift) - 1
        self._round_counts = np.zeros((3, max(COUNTS_ROOM, 2 * parts.counts_max)), np.int64)
        self._is_long = False
        """True if the last span had very many epochs."""
        self._barriers = list(parts.barriers.values())
        self._held_least = FAR
        """The least time of rows that barriers' machines hold outside of slots; FAR: none."""
        self._reduces = [vertex for vertex in parts.vertices if isinstance(vertex, MachineVertex)]
        machines = [vertex.machine for vertex in self._reduces]
        self._by_span = [machine for machine in machines if isinstance(machine, LookupMachine)]
        # All slots in which rows may wait between two calls. Slots of rows that leave are among them: an
        # insert into an arrangement makes pairs at once, which are not sent before their epoch is closed.
        self._waiting = [
            *parts.passing,
            *(barrier.slot for barrier in self._barriers),
            *(leaving.slot for leaving in parts.leaving),
            *(out.slot for out in parts.outs),
        ]
        self._turns: dict[int, int] = {}
        self.at: int | None = None
        self._reported_since = 0
        """Reduces know that nobody asks about times before this word."""
        for reduce in self._reduces:
            reduce.machine.let_look(self._look)
        for kernel, shape in _KERNELS:
            prepare(kernel, shape)
        barriers = {barrier.slot: number for number, barrier in parts.barriers.items()}
        self._to_barriers = {out.slot: barriers[out.target] for out in parts.outs if out.target in barriers}
        """By slot for rows to another worker: the barrier they go to, if they go to one."""
        self._elsewhere = [out.slot for out in parts.outs if out.target not in barriers]
        self._targets = {out.target for out in parts.outs}
        self._outs: Int64s = np.array([out.slot for out in parts.outs], np.int64)
        self._rounds: Rounds | None = None
        if workers > 1:
            prepare(find_next_in, "ltl")
            prepare(next_barrier, "tttl")
            self._add_rounds()

    def _add_rounds(self) -> None:
        self._rounds = Rounds(self._parts, self._to_barriers, self._state, self._round_counts)

    def __deepcopy__(self, memo: dict[int, object]) -> KernelLoop:
        """Return a loop in the same state, whose tables name memory of its own."""
        loop = copied(self, memo, without="_rounds")
        if self._rounds is not None:
            loop._add_rounds()
        return loop

    def take(self, stage: int, port: int, batch: Batch) -> None:
        """Put rows into their slot; if they are inserts of an arrangement, look for matches at once."""
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

    def rests(self) -> bool:
        """Return True if rows that wait at no barrier may go on waiting.

        Without peers: while each of their slots has few rows. With peers: until they are very many in all;
        then own rows and those of others make one run, as in `Gathered`.
        """
        slots = self._slots
        rows = slots.table[:, S_ROWS].tolist()
        if self._rounds is None:
            for slot in self._parts.passing:
                if rows[slot] > STEP_ROWS_MAX:
                    return False
            return True
        waiting_rows: int = sum([rows[slot] for slot in self._parts.passing])
        return waiting_rows + slots.packed_rows < GATHERED_ROWS_MAX

    def close(self, start: int, bound: int) -> bool:
        """See `CompiledLoop`. Find the first times at barriers, for a span that begins or continues.

        Behind a span of very many epochs the traces are compacted first: a key that changed in each of them
        has rows at each, and no reader can distinguish them any more.
        """
        parts, slots, state = self._parts, self._slots, self._state
        state[X_FROM], state[X_BOUND] = start, bound
        slots.bound = bound
        for machine in self._by_span:
            machine.begin_span(start, bound)
        if self._rounds is None and self._held_least >= bound and least_of(slots.table) >= bound:
            self._end_span()
            return False  # with peers, their rows may still come in this span
        if self._is_long:
            parts.traces.sum_up()
        self._is_long = bound - start >= LONG_EPOCHS << parts.epoch_shift
        if self._is_long:
            parts.traces.mark()
        find_next(parts.steps, slots.table, state)
        if self._rounds is not None:
            find_next_in(self._outs, slots.table, state)
        if slots.packed:
            slots.find_packed()
        for number, barrier in parts.barriers.items():
            if barrier.held.shape[0]:
                parts.steps[number, P_NEXT] = slots.next_of(barrier.held)
        return True

    def run(self) -> bool:
        """See `CompiledLoop`."""
        why = self._work(_TURNS_MAX, _OTHER_TURNS_MAX)
        self._send()
        if why != DONE:
            return False
        if self._by_span or self._slots.are_large:
            self._end_span()
        return True

    def _end_span(self) -> None:
        """Free what only the span needed."""
        if self._slots.are_large:
            self._slots.tidy()
        for machine in self._by_span:
            machine.end_span()

    def pass_on(self) -> None:
        """See `CompiledLoop`."""
        self._do_all(0)

    def _do_all(self, turns: int) -> None:
        """Open at most `turns` barriers, and run all steps that need none."""
        why = self._work(turns, _ANY_NUMBER)
        assert why in (DONE, NO_TURNS), why

    def _work(self, turns: int, others: int) -> int:
        """Open at most `turns` barriers and run at most `others` steps in Python; return why it ended."""
        parts, state = self._parts, self._state
        state[X_TURNS] = turns
        if parts.traces.lend():
            parts.refresh()
        while True:
            try:
                why = run_loop(
                    parts.steps,
                    parts.matches,
                    parts.edges,
                    parts.traces.table,
                    self._slots.table,
                    parts.fields,
                    state,
                    self._round_counts,
                )
            except OverflowError:
                if not self._do_again():
                    raise
                continue
            if why in (DONE, NO_TURNS) or others == 0:
                break
            others -= self._help(why)
        parts.traces.take_back()
        return int(why)

    def _help(self, why: int) -> int:
        """Do what a kernel has left to Python; return how many steps ran in Python."""
        parts, state = self._parts, self._state
        steps = 0
        if why == NO_ROOM:
            self._slots.make_room(int(state[X_SLOT]), int(state[X_ROWS]))
        elif why == HEAD_IS_FULL:
            parts.traces.take_back()
            if not parts.traces.make_room(int(state[X_SLOT]), int(state[X_ROWS])):
                self._do(int(state[X_STEP]))
            parts.lend()
        elif why == COUNTS_ARE_FULL:
            self._count()
        else:
            assert why == TOO_MUCH
            parts.traces.take_back()
            self._do(int(state[X_STEP]))
            parts.lend()
            steps = 1
        return steps

    def _do_again(self) -> bool:
        """Redo in Python a step in which a kernel met a number beyond 64 bits; return True if that succeeded.

        The step raises an error that names the row, unless it is a barrier that sets failing groups apart.
        """
        parts, number = self._parts, int(self._state[X_STEP])
        parts.traces.take_back()
        self._do(number)
        barrier = parts.barriers.get(number)
        if barrier is None or barrier.failed is None:
            return False
        parts.lend()
        return True

    def _do(self, number: int) -> None:
        """Run a step in Python."""
        parts = self._parts
        barrier = parts.barriers.get(number)
        if barrier is None:
            step = parts.others[number]
            self.at = step.stage
            self._turns[step.stage] = self._turns.get(step.stage, 0) + 1
            step.work(self._slots)
            self.at = None
            return
        self._look()  # before the machine sets `since` by itself
        self._turns[barrier.stage] = self._turns.get(barrier.stage, 0) + 1
        self._state[X_TURNS] -= 1
        frontier = frontier_behind(parts.levels[number], parts.fields, self._state)
        self.at = barrier.stage
        barrier.open(frontier, self._slots)
        self.at = None
        parts.steps[number, P_NEXT] = self._slots.next_of(barrier.held)
        self._find_held()

    def _find_held(self) -> None:
        """Update `_held_least`, after the machines of barriers have changed what they hold."""
        self._held_least = min(
            [int(barrier.held[0]) for barrier in self._barriers if barrier.held.shape[0]], default=FAR
        )

    def report(self) -> dict[int, int]:
        """See `CompiledLoop`."""
        self._count()
        turns, self._turns = self._turns, {}
        return turns

    def _count(self, step: int = 0) -> None:
        """Let connectors count rows that kernels have noted, by words that are less by `step` now."""
        parts, state = self._parts, self._state
        count: int = state.item(X_COUNTED)
        if count:
            for number, word, rows in self._round_counts[:, :count].T.tolist():
                parts.uses[number].count_iteration(word - step, rows)
            state[X_COUNTED] = 0
        carried = parts.edges[:, E_ROWS]
        for number, rows in enumerate(carried.tolist()):
            if rows:
                carried[number] = 0
                use = parts.uses.get(number)
                if use is not None:
                    use.rows_sent += rows
                    use.messages_sent += 1

    def send(self) -> None:
        """See `CompiledLoop`; a span is over."""
        self._send()
        self._end_span()

    def _send(self) -> None:
        """Send rows that leave the loop; if `way` is "summed", with the iterations of each epoch added up."""
        table = self._slots.table
        for slot, uses, keep, add, way in self._parts.leaving:
            if not table.item(slot, S_ROWS):
                continue
            if way != "summed":
                # The others go through a transform, which says which words of its result are symbols.
                symbol_words = FAILURES.symbol_words if way == "made" else ()
                for words in each_in(self._slots.take_parts(slot)):
                    batch: Batch = UpdateBatch(words, symbol_words)
                    for use in uses:
                        (use.send_made if way == "made" else use.send)(batch, int(words[-2].min()))
                continue
            summed = self._slots.take_moved(slot, keep, add)
            if summed is not None:
                words, least = summed
                if words.shape[1]:
                    batch = UpdateBatch(words)
                    for use in uses:
                        use.send_moved(batch, least)
                continue
            large_batch = as_batch(in_order(self._slots.take_parts_moved(slot, keep, add)))
            if large_batch.rows:
                for use in uses:
                    use.send_moved(large_batch, large_batch.least_time())

    def first(self) -> int | None:
        """See `CompiledLoop`."""
        least: int = least_of(self._slots.table)
        if self._held_least < least:
            least = self._held_least
        shift = self._parts.epoch_shift
        return None if least >= FAR else least >> shift << shift

    def on_ended(self) -> None:
        """See `CompiledLoop`."""
        for reduce in self._reduces:
            frontier = reduce.frontier_words(0)
            if len(frontier):
                self._reported_since = int(frontier[0])
            reduce.machine.set_since(frontier)
        for vertex in self._parts.vertices:
            if isinstance(vertex, JoinVertex):
                vertex.on_frontier()

    def _look(self) -> None:
        """Tell reduces which times nobody asks about; before a merge begins, or a machine runs by itself."""
        reported = self._reported_since
        for reduce in self._reduces:
            frontier = reduce.frontier_words(0)
            if len(frontier) and (since := int(frontier[0])) > reported:
                self._reported_since = since
                reduce.machine.set_since(frontier)

    # Rounds of several workers.

    def waiting(self) -> tuple[int, int, bool]:
        """See `CompiledLoop`."""
        barrier, counters = self.next_barrier() or (-1, 0)
        return barrier, counters, self.passes()

    def next_barrier(self) -> tuple[int, int] | None:
        """Return the barrier that opens next, and its counters, for rows here and rows about to leave."""
        table, here = self._slots.table, self._here()
        candidates = [(barrier, int(table[slot, S_NEXT])) for slot, barrier in self._to_barriers.items()]
        candidates = [each for each in candidates if each[1] != FAR]
        if here is not None:
            candidates.append(here)
        return min(candidates, key=lambda each: self.order(*each), default=None)

    def _here(self) -> tuple[int, int] | None:
        """Return the barrier that opens next for rows that wait here, and its counters."""
        parts = self._parts
        barrier = int(next_barrier(parts.steps, self._slots.table, parts.fields, self._state))
        return None if barrier < 0 else (barrier, int(self._state[X_NOW]))

    def order(self, barrier: int, counters: int) -> tuple[int, ...]:
        """Return the key by which barriers open, least first: see `comes_first` in `barriers.py`."""
        parts = self._parts
        key: list[int] = []
        for level in range(1, parts.levels[barrier] + 1):
            shift, mask = parts.fields[:, level].tolist()
            key += [(counters >> shift) & mask, int(parts.steps[barrier, P_PLACES + level - 1])]
        return tuple(key)

    def passes(self) -> bool:
        """Return True if rows of closed epochs are about to leave for slots other than those of barriers."""
        return any(self._slots.table[slot, S_NEXT] != FAR for slot in self._elsewhere)

    def follow(self, votes: Sequence[Vote]) -> bool:
        """See `CompiledLoop`."""
        if any(vote.passes for vote in votes):
            self.pass_on()
            return True
        waiting = {(vote.barrier, vote.counters) for vote in votes if vote.barrier >= 0}
        if not waiting:
            return False
        # Fast path: all votes name the same barrier.
        chosen = waiting.pop() if len(waiting) == 1 else min(waiting, key=lambda each: self.order(*each))
        self.open(*chosen)
        return True

    def open(self, barrier: int, counters: int) -> None:
        """Open a barrier, if rows wait at it for these counters, and run all steps that need none open."""
        self._do_all(1 if self._here() == (barrier, counters) else 0)

    def message(self, vote: Vote, peer: int) -> Batch:
        """See `CompiledLoop`."""
        parts: list[tuple[int, Part]] = []
        symbols: list[Int64s] = []
        for out in self._parts.outs:
            if out.peer == peer and self._slots.rows(out.slot):
                words = sorted(self._parts.symbol_words[out.target])
                for part in to_send(self._slots.take_parts(out.slot)):
                    parts.append((out.target, part))
                    symbols += [column_of(part, word) for word in words]
        return RoundMessage(vote, tuple(parts), tuple(symbols))

    def vote_in(self, message: Batch) -> Vote:
        """See `CompiledLoop`."""
        assert isinstance(message, RoundMessage)
        return message.vote

    def hear(self, message: Batch) -> None:
        """See `CompiledLoop`."""
        assert isinstance(message, RoundMessage)
        worker, barrier = message.vote.worker, message.vote.barrier
        if barrier >= 0 and barrier not in self._parts.barriers:
            raise PeerError(f"worker {worker} named barrier {barrier} of a loop, which has none such")
        for slot, part in message.parts:
            columns = columns_of(part)
            if slot not in self._targets or columns != self._slots.table[slot, S_COLUMNS]:
                raise PeerError(
                    f"worker {worker} sent rows of {columns} words for slot {slot} of a loop, "
                    "which are none of those that come from others"
                )
            components = int(self._slots.table[slot, S_COMPONENTS])
            if components and not are_components(column_of(part, -3).reshape(1, -1), 0, components):
                raise PeerError(
                    f"worker {worker} sent rows for slot {slot} of a loop, which are of none of "
                    f"its {components:,} components"
                )
            here = self._with_times_moved(slot, part, message.moved)
            if isinstance(here, Block):
                self._slots.put_packed(slot, [here])
            else:
                self._slots.put(slot, np.ascontiguousarray(here))

    def _with_times_moved(self, slot: int, part: Part, moved: int) -> Part:
        """Return rows whose words that are times count from the same epoch as the message's times now do."""
        times = self._slots.times.get(slot, ())
        if not moved or not times:
            return part
        return with_added(part, times, moved)

    def go_on(self, start: RoundInput) -> RoundResult:
        """See `CompiledLoop`."""
        parts, rounds = self._parts, self._rounds
        assert rounds is not None
        parts.lend()
        rounds.begin(start)
        while True:
            try:
                why = rounds.go_on(self._held_least, start.lent.others)
            except OverflowError:
                if not self._do_again():
                    raise
                continue
            if why == WAITS and start.lent.looks_out(rounds.number):
                continue
            if why in STOPS:
                break
            self._help(why)
        parts.traces.take_back()
        return rounds.result(why)

    # Called by the runner.

    def rebase(self, by: Rebase) -> None:
        """See `CompiledLoop`."""
        self._count(by.step)  # in the middle of a span: the noted words are from before the rebase
        self._reported_since = by.early_word(self._reported_since)
        for each in (X_FROM, X_BOUND):
            self._state[each] = by.early_word(int(self._state[each]))
        self._slots.bound = int(self._state[X_BOUND])
        for slot in self._waiting:
            self._slots.rebase(by, slot)
        for barrier in self._barriers:
            if barrier.pending >= 0:
                self._slots.rebase(by, barrier.pending, -1)
            barrier.held = by.words(barrier.held)
        self._find_held()

    def symbols(self, mark: Mark) -> None:
        """Show the words of all rows that wait in slots."""
        for slot in self._waiting:
            for words in self._slots.looks(slot):
                mark.words(words[:-2])
        for barrier in self._barriers:
            if barrier.pending >= 0:
                mark.words(self._slots.look(barrier.pending)[:-1])

    def compared(self) -> object:
        """Return all state that decides what it will do, beside its vertices."""
        state, traces = self._state, self._parts.traces
        return (
            [[words.tolist() for words in self._slots.looks(slot)] for slot in range(len(self._slots))],
            [barrier.held.tolist() for barrier in self._barriers],
            (int(state[X_FROM]), int(state[X_BOUND]), self._reported_since),
            (self._is_long, traces.inserted_since_mark()),
        )
