"""rounds.py: a loop takes up the round messages that it expects from shared memory, and nothing else.

Random loops in any order of what workers do are in `test_loop.py`, on processes in
`processes/test_loops_in_rounds.py`.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_bodies import BODIES
from reference.dataflow import Cluster
from ring_network import RingNetwork
from strategies_collections import NUMBERS, examples
from words_seen import Seen

import differential as dd
from differential.columns.packed.block import Block
from differential.compiled_loops import rounds
from differential.compiled_loops import slots as slots_module
from differential.compiled_loops.loop import KernelLoop
from differential.compiled_loops.round_messages import RoundMessage
from differential.compiled_loops.rounds import _ROUNDS_MAX
from differential.kernels.compiled_loops.layout import (
    S_COMPONENTS,
    S_NEXT,
    S_ROOM,
    S_ROWS,
    T_INSERTED,
    X_TURNS,
)
from differential.kernels.compiled_loops.round_layout import (
    LISTENS,
    R_ANCHOR,
    R_ARE_ALIKE,
    R_ENDED,
    R_FIRST_OF_ALL,
    R_LOOKS,
    R_PHASE,
    R_SHIFT,
    R_TURNS,
    R_VOTE,
    R_WORD,
    V_ENDED,
    V_IS_EMPTY,
    V_PARTS,
    V_PASSES,
    WAITS,
    WORKS,
)
from differential.kernels.compiled_loops.round_messages import HEADER_BYTES
from differential.thresholds import STEP_ROWS_MAX
from differential.trace.trace import Trace
from timely.building.dataflow import Dataflow
from timely.dictionaries import Mark
from timely.operators.compiled_loop import RoundInput, RoundResult, Stop, Vote
from timely.running.progress_messages import DataHeader, read_header, write_control_header
from timely.running.stages.compiled_loop import CompiledLoopRunner
from timely.wire.transport import Lent
from timely.wire.transport.ring import IS_POSSIBLE

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="a host without rings")

Frames = list[bytes]


class Waiting:
    """Of two workers the first has said a beat; the second has, too, with rows. `frames`: its message, which
    has been taken out of the ring.
    """

    def __init__(self, ring_bytes: int = 1 << 16, body: str = "distances") -> None:
        def flow(flow: Dataflow) -> None:
            first, second = dd.input(flow, "first", NUMBERS), dd.input(flow, "second", NUMBERS)
            BODIES[body][0](first, second).output("result")

        self.network = RingNetwork(2, ring_bytes, 0)
        self.network.lends = 0.0
        self.cluster = Cluster(flow, workers=2, network=self.network)
        (region,) = self.cluster.instances[0].loops
        assert isinstance(region, CompiledLoopRunner) and isinstance(region.loop, KernelLoop)
        self.runner, self.region = region, region.loop
        rng = random.Random(1)
        for worker in range(2):
            rows = [((rng.randrange(8), rng.randrange(8)), 1) for _ in range(20)]
            self.cluster.change("first", rows, 0, worker)
            self.cluster.change("second", rows, 0, worker)
        self.cluster.seal()
        self.frames = self._until_it_has_come()

    def _until_it_has_come(self) -> Frames:
        for _ in range(100):
            said = self.runner._vote
            for _, frames in self.network.workers[0].take(1, 1 << 30) if said is not None else ():
                header = read_header(frames[0], 1)
                if isinstance(header, DataHeader) and header.batch_kind == RoundMessage.KIND:
                    beat = RoundMessage.from_frames(frames[1:], 1)
                    if said is not None and beat.rows and beat.vote.number == said.number:
                        for _, behind in self.network.workers[0].take(1 << 30, 1 << 30):
                            self.cluster.workers[0]._receive(1, behind)
                        return [bytes(frame) for frame in frames]
                self.cluster.workers[0]._receive(1, frames)
                self.cluster.workers[0].step()
            self.cluster.step(0)
            self.cluster.step(1)
        raise AssertionError("no beat with rows")

    def send(self, frames: Sequence[bytes]) -> None:
        """The second worker sends something."""
        self.network.workers[1].send(0, frames)

    def go_on(self, looks_out: Callable[[int], bool] = lambda number: False) -> RoundResult:
        """The first one goes on by itself, from ring to ring."""
        lines, said = self.network.workers[0].lend(), self.runner._vote
        assert lines is not None and said is not None
        going = self.runner._round_input(Lent(lines, looks_out, 100), said, self.runner._ports_ended())
        try:
            return self.region.go_on(going)
        finally:
            self.taken_back = self.network.workers[0].take_back()

    @property
    def kept(self) -> object:
        """All rows of the region."""
        return self.region.compared()


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    made = Waiting()
    yield made
    made.network.close()


def test_a_round_is_taken_up_its_barrier_opened_and_the_next_vote_sent(waiting: Waiting) -> None:
    said, before = waiting.runner._vote, waiting.kept
    assert said is not None
    waiting.send(waiting.frames)
    went = waiting.go_on()
    assert (went.stop, went.rounds, went.vote.number) == (Stop.WAITS, 1, said.number + 1)
    assert waiting.taken_back == (1, 1) and waiting.kept != before
    ((_, frames),) = waiting.network.workers[1].take(9, 1 << 30)[-1:]
    assert RoundMessage.from_frames(frames[1:], 0).vote == went.vote


def test_afterwards_messages_and_traces_go_on_from_where_a_kernel_has_left_them(waiting: Waiting) -> None:
    waiting.send(waiting.frames)
    assert waiting.go_on().rounds == 1
    waiting.send([write_control_header(), b"word"])
    assert len(waiting.network.workers[0].take(9, 1 << 30)) == 1
    traces = waiting.region._parts.traces
    assert not traces.table[:, T_INSERTED].any()
    for trace in traces._read:
        if isinstance(trace, Trace):
            trace.check_invariants()


def test_a_kernel_votes_as_python_does(waiting: Waiting) -> None:
    """Two pairs of workers in one state: the beats are the same to the last byte."""
    other = Waiting()
    assert other.runner._vote is not None
    other_number = other.runner._vote.number
    for one in (waiting, other):
        one.network.workers[1].take(1 << 30, 1 << 30)
    waiting.send(waiting.frames)
    waiting.go_on()
    other.cluster.workers[0]._receive(1, [memoryview(frame) for frame in other.frames])
    other.runner.activate()
    sent = [_beats(one) for one in (waiting, other)]
    (number,) = sent[0].keys() & sent[1].keys()
    assert number == other_number + 1 and sent[0][number] == sent[1][number]
    other.network.close()


def _beats(waiting: Waiting) -> dict[int, Frames]:
    """Those that the second worker has got and not taken, by number."""
    found = {}
    for _, frames in waiting.network.workers[1].take(1 << 30, 1 << 30):
        if isinstance(read_header(frames[0], 0), DataHeader):
            number = RoundMessage.from_frames(frames[1:], 0).vote.number
            found[number] = [bytes(frame) for frame in frames]
    return found


_NOT_EXPECTED: dict[str, Callable[[Frames], Frames]] = {
    "something that is no data": lambda frames: [write_control_header(), *frames[1:]],
    "another dataflow's": lambda frames: _with(frames, 0, "<I", 4, 7),
    "another way": lambda frames: _with(frames, 0, "<I", 8, 1),
    "a time below zero": lambda frames: _with(frames, 0, "<q", 12, -1),
    "another kind": lambda frames: _with(frames, 0, "<H", 20, 2),
    "another anchor": lambda frames: _with(frames, 0, "<q", 22, 1),
    "another worker's": lambda frames: _with(frames, 1, "<q", 0, 2),
    "an earlier beat": lambda frames: _with(frames, 1, "<q", 8, -1),
    "another bound": lambda frames: _with(frames, 1, "<q", 16, 9),
    "a barrier that is none": lambda frames: _with(frames, 1, "<q", 32, 99),
    "less than no parts": lambda frames: _with(frames, 1, "<q", 48, -1),
    "too many parts": lambda frames: _with(frames, 1, "<q", 48, 1 << 60),
    "a slot that is none": lambda frames: _with(frames, 1, "<q", 58, 1 << 40),
    "a slot of others": lambda frames: _with(frames, 1, "<q", 58, -1),
    "too few columns": lambda frames: _with(frames, 1, "<q", 66, 2),
    "no rows": lambda frames: _with(frames, 1, "<q", 74, 0),
    "rows that are not there": lambda frames: _with(frames, 1, "<q", 74, 1 << 58),
    "half a row": lambda frames: [*frames[:2], frames[2][:-8]],
    "half a header": lambda frames: [frames[0], frames[1][:40], frames[2]],
    "symbols": lambda frames: [*frames, b"12345678"],
    "nothing": lambda frames: [],
    "packed rows": lambda frames: [frames[0], *_packed(frames)],
}


def _packed(frames: Frames) -> Frames:
    """The same beat, as one whose rows are packed."""
    beat = RoundMessage.from_frames([memoryview(frame) for frame in frames[1:]], 1)
    parts = [(slot, Block(part)) for slot, part in beat.parts if not isinstance(part, Block)]
    assert len(parts) == len(beat.parts) > 0
    return [*map(bytes, RoundMessage(beat.vote, tuple(parts)).to_frames(0))]


def _with(frames: Frames, number: int, kind: str, at: int, value: int) -> Frames:
    changed = bytearray(frames[number])
    struct.pack_into(kind, changed, at, value)
    return [*frames[:number], bytes(changed), *frames[number + 1 :]]


@pytest.mark.parametrize("what", _NOT_EXPECTED)
def test_what_is_not_expected_is_left_where_it_is_for_whoever_knows_it(what: str, waiting: Waiting) -> None:
    before, said = waiting.kept, waiting.runner._vote
    frames = _NOT_EXPECTED[what](waiting.frames)
    assert frames != waiting.frames
    waiting.send(frames)
    went = waiting.go_on()
    assert (went.stop, went.rounds, went.vote) == (Stop.WAITS, 0, said)
    assert waiting.taken_back == (0, 0) and waiting.kept == before
    ((_, found),) = waiting.network.workers[0].take(9, 1 << 30)
    assert [bytes(frame) for frame in found] == frames


@pytest.mark.parametrize("component", [2, 3, -1, 1 << 62])
def test_rows_of_no_component_of_a_sum_are_left_to_who_says_whose_they_are(component: int) -> None:
    """Components are 0, 1 and 2."""
    waiting = Waiting(body="counted")
    before, header = waiting.kept, waiting.frames[1]
    slot, columns, rows = struct.unpack_from("<3q", header, 58)
    assert waiting.region._slots.table[slot, S_COMPONENTS] == 3
    waiting.send(_with(waiting.frames, 2, "<q", 8 * ((columns - 3) * rows + rows - 1), component))
    went = waiting.go_on()
    assert (went.rounds == 0) == (waiting.kept == before) == (component != 2)
    waiting.network.close()


@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("other", [0, 1])
def test_a_span_ends_alike_if_all_have_said_the_same_of_what_has_ended(
    own: int, other: int, waiting: Waiting
) -> None:
    runner, said = waiting.runner, waiting.runner._vote
    assert said is not None
    ports = len(runner._watched)
    nothing = said._replace(barrier=-1, counters=0, passes=False, is_empty=True)
    runner._vote = nothing._replace(ended=bytes([1] * (ports - 1) + [own]))
    answer = nothing._replace(worker=1, ended=bytes([1] * (ports - 1) + [other]))
    waiting.send([waiting.frames[0], *map(bytes, RoundMessage(answer, ()).to_frames(0))])
    went = waiting.go_on()
    assert (went.stop, went.rounds, went.is_alike) == (Stop.ENDS, 1, own == other)
    assert went.vote == runner._vote


def test_what_a_barrier_keeps_outside_of_slots_is_outstanding(waiting: Waiting) -> None:
    """As if it were of the epoch before all others."""
    barrier = waiting.region._barriers[0]
    barrier.held = np.array([-1 << waiting.region._parts.epoch_shift, 1 << 40])
    waiting.region._find_held()
    waiting.send(waiting.frames)
    went = waiting.go_on()
    assert (went.rounds, went.vote.first, went.vote.is_empty) == (1, -1, False)


def test_a_message_before_that_of_a_round_is_taken_first(waiting: Waiting) -> None:
    waiting.send([write_control_header(), b"word"])
    waiting.send(waiting.frames)
    assert waiting.go_on().rounds == 0
    assert len(waiting.network.workers[0].take(1, 1 << 30)) == 1
    assert waiting.go_on().rounds == 1


@examples(0.5)
@given(st.randoms(use_true_random=False))
def test_rubbish_in_shared_memory_does_no_harm(draw: random.Random) -> None:
    waiting = Waiting()
    waiting.send(waiting.frames)
    ring = waiting.network.workers[0]._rings[0]
    at = ring._head & (ring._size - 1)
    length = ring._header()[0]
    for _ in range(draw.choice([1, 1, 3])):
        word = draw.choice([0, 32 + (at + draw.randrange(length)) // 8])
        ring._words[word] = draw.choice(
            [draw.randint(-10, 300), draw.getrandbits(63), -draw.getrandbits(62), ring._words[word] + 8]
        )
    said, before = waiting.runner._vote, waiting.kept
    went = waiting.go_on()
    if went.rounds == 0:
        assert went.vote == said and waiting.kept == before and waiting.taken_back == (0, 0)
    table = waiting.region._slots.table
    assert (table[:, S_ROWS] <= table[:, S_ROOM]).all() and (table[:, S_ROWS] >= 0).all()
    waiting.network.close()


def test_where_there_is_no_room_for_a_vote_python_sends_it(waiting: Waiting) -> None:
    writer, said = waiting.network.workers[0], waiting.runner._vote
    assert said is not None
    while not waiting.network.sockets[0, 1]:
        writer.send(1, [bytes(400)])
    waiting.send(waiting.frames)
    went = waiting.go_on()
    assert (went.stop, went.rounds, went.vote) == (Stop.VOTES, 1, said)
    assert waiting.taken_back == (0, 1)


def test_rows_that_wait_packed_for_another_worker_are_not_left_behind() -> None:
    """Those that are words would fit into a record: a kernel knows of no others."""
    waiting = Waiting(1 << 20)
    slots, said = waiting.region._slots, waiting.runner._vote
    assert said is not None
    slot = next(out.slot for out in waiting.region._parts.outs if out.peer == 1)
    columns = slots.look(slot).shape[0]
    few = slots_module.SLOT_LOOSE_ROWS_MAX - 100
    for rows in (few, STEP_ROWS_MAX + 1):
        words = np.zeros((columns, rows), np.int64)
        words[-1] = 1
        slots.put(slot, words)
    assert slots.packed[slot] and slots.rows(slot) == STEP_ROWS_MAX + 1
    waiting.send(waiting.frames)
    went = waiting.go_on()
    assert (went.stop, went.rounds, went.vote) == (Stop.VOTES, 1, said)
    beat = waiting.region.message(said, 1)
    assert isinstance(beat, RoundMessage) and beat.rows > few + STEP_ROWS_MAX
    waiting.network.close()


def test_what_waits_first_at_a_barrier_is_found_among_packed_rows_and_their_words_are_shown(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots_module, "SLOT_LOOSE_ROWS_MAX", 2 * STEP_ROWS_MAX)
    region = waiting.region
    slots, (bound, counters) = region._slots, (1 << region._parts.epoch_shift, (1, 5))
    for slot in (region._barriers[0].slot, region._parts.outs[0].slot):
        slots.take(slot)
        for time in counters:
            words = np.ones((slots.look(slot).shape[0], 2 * STEP_ROWS_MAX), np.int64)
            words[-2] = time
            words[0, 7] = 70_000 + 10 * slot + time
            slots.put(slot, words)
        assert slots.packed[slot] and (slots.look(slot)[-2] == counters[1]).all()
        region.close(0, bound)
        assert slots.table[slot, S_NEXT] == counters[0]
        seen = Seen()
        region.symbols(Mark([seen]))
        assert seen.words >= {70_000 + 10 * slot + time for time in counters}


def test_what_nobody_has_read_is_not_written_over_after_it_was_lent(waiting: Waiting) -> None:
    writer = waiting.network.workers[0]
    line = writer._lines[1]
    assert line.out is not None
    while line.out.put(line.sent, [bytes(400)]):
        line.sent += 1
    assert writer.lend() is not None and writer.take_back() == (0, 0)
    assert not line.out.put(line.sent, [bytes(400)])


@pytest.mark.parametrize("symbols", [set(), {0}])
def test_rows_with_symbols_are_said_elsewhere(symbols: set[int], waiting: Waiting) -> None:
    """What the other one knows of them is kept there."""
    parts = waiting.region._parts
    (out,) = [out for out in parts.outs if out.peer == 1][:1]
    parts.symbol_words[out.target] = symbols
    waiting.region._slots.put(out.slot, np.ones((waiting.region._slots.look(out.slot).shape[0], 2), np.int64))
    waiting.send(waiting.frames)
    went = waiting.go_on()
    assert (went.stop, went.rounds) == (Stop.VOTES if symbols else Stop.WAITS, 1)
    assert (waiting.region._slots.rows(out.slot) > 0) == bool(symbols)


def test_who_sleeps_is_woken_before_anybody_waits_for_it(waiting: Waiting) -> None:
    reader = waiting.network.workers[1]
    reader.take(1 << 30, 1 << 30)
    assert reader.fall_asleep() and reader.wake_descriptor is not None
    waiting.send(waiting.frames)
    asked: list[int] = []
    went = waiting.go_on(lambda number: bool(asked.append(number)))
    assert (went.stop, went.rounds, asked) == (Stop.AGAIN, 1, [])
    assert os.read(reader.wake_descriptor, 9) == b"!"
    assert waiting.go_on().stop is Stop.WAITS


def test_looking_out_for_a_message_ends_when_it_is_told_to(waiting: Waiting) -> None:
    said = waiting.runner._vote
    assert said is not None
    asked: list[int] = []

    def looks_out(number: int) -> bool:
        asked.append(number)
        if len(asked) == 3:
            waiting.send(waiting.frames)
        return len(asked) < 5

    went = waiting.go_on(looks_out)
    assert (went.stop, went.rounds) == (Stop.WAITS, 1)
    assert asked == [said.number] * 3 + [said.number + 1] * 2


def test_others_have_their_turn_after_so_many_rounds(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "_ROUNDS_MAX", 0)
    waiting.send(waiting.frames)
    asked: list[int] = []
    went = waiting.go_on(lambda number: bool(asked.append(number)))
    assert (went.stop, went.rounds, asked) == (Stop.WAITS, 0, []), "and it does not look out meanwhile"
    assert waiting.network.workers[0].has_more()


def test_a_slot_without_room_gets_it(waiting: Waiting) -> None:
    beat = RoundMessage.from_frames([memoryview(frame) for frame in waiting.frames[1:]], 1)
    slot, _ = beat.parts[0]
    slots = waiting.region._slots
    room = int(slots.table[slot, S_ROOM])
    columns = int(slots.look(slot).shape[0])
    many = room + 1
    words = beat.parts[0][1][:, :1].repeat(many, axis=1)
    assert words.shape == (columns, many)
    larger = RoundMessage(beat.vote, ((slot, words),))
    waiting.send([waiting.frames[0], *map(bytes, larger.to_frames(0))])
    assert waiting.go_on().rounds == 1
    assert int(slots.table[slot, S_ROOM]) > room


def test_a_kernel_is_told_all_each_time_whatever_it_was_told_before(waiting: Waiting) -> None:
    """Word by word, by the names of `layout.py`; what is not written anew is what was written last."""
    lines, said = waiting.network.workers[0].lend(), waiting.runner._vote
    assert lines is not None and said is not None
    rings, region, ports = waiting.region._rounds, waiting.region, waiting.runner._watched
    state = region._state
    calls: list[tuple[set[int], bytes, bool]] = [
        ({ports[0]}, bytes(range(1, len(ports) + 1)), False),
        (set(), b"", True),
        (set(ports), b"\1", False),
        (set(ports), bytes(len(ports)), True),
        ({ports[-1]}, b"", False),
        (set(), b"", False),
    ]
    for number, (ended, ended_said, begins) in enumerate(calls):
        given_said = Vote(1, 20 + number, 31, 32, 33, 34, number % 2 == 0, number % 3 == 0, ended_said)
        going = waiting.runner._round_input(
            Lent(lines, lambda _: False, 41 + number), given_said, ended, begins
        )
        header = bytes(range(number, number + HEADER_BYTES))
        going = going._replace(word=51 + number, anchor=61 + number, header=header)
        state[X_TURNS] = 9
        rings.begin(going)
        told = rings._round.tolist()
        assert told[R_PHASE] == (WORKS if begins else LISTENS) and state[X_TURNS] == (0 if begins else 9)
        assert (told[R_LOOKS], told[R_WORD], told[R_ANCHOR]) == (41 + number, 51 + number, 61 + number)
        assert (told[R_SHIFT], told[R_ENDED]) == (region._parts.epoch_shift, len(ports))
        assert told[R_TURNS] == _ROUNDS_MAX and not told[R_FIRST_OF_ALL] and not told[R_ARE_ALIKE]
        assert told[R_VOTE : R_VOTE + V_PARTS + 1] == [1, 20 + number, 31, 32, 33, 34, 0]
        assert (
            told[R_VOTE + V_PASSES] == given_said.passes and told[R_VOTE + V_IS_EMPTY] == given_said.is_empty
        )
        assert told[R_VOTE + V_ENDED] == len(ended_said)
        assert rings._ended[0, : len(ended_said)].tolist() == [*ended_said]
        assert rings._ended[1].tolist() == [port in ended for port in ports], "as of now"
        assert rings._header.tobytes()[:HEADER_BYTES] == header
        assert rings.result(WAITS).vote == given_said
    waiting.network.workers[0].take_back()


# What the runner makes of how far it went.


def _runs(waiting: Waiting, went: RoundResult, monkeypatch: pytest.MonkeyPatch, calls: int = 1) -> bool:
    """Let the region have gone so far; whether there may be more to do. Meanwhile port 99 has ended."""
    waiting.network.lends, waiting.runner._calls_left = 1.0, calls
    monkeypatch.setattr(waiting.region, "go_on", lambda going: went)
    monkeypatch.setattr(waiting.runner, "_ports_ended", lambda: {99})
    said = waiting.runner._vote
    assert said is not None
    return waiting.runner._go_by_itself(said)


def test_what_has_ended_counts_from_when_it_was_said(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = waiting.runner._vote
    assert said is not None
    now = said._replace(is_empty=True)
    for number, seen in ((said.number, set[int]()), (said.number + 1, {99})):
        waiting.runner._voted_ended = set()
        later = now._replace(number=number)
        assert not _runs(waiting, RoundResult(Stop.WAITS, later, 0, 0, False), monkeypatch)
        assert (waiting.runner._vote, waiting.runner._round) == (later, number + 1)
        assert waiting.runner._voted_ended == seen
        waiting.runner._vote = said


def test_the_hold_is_at_what_all_have_and_not_at_what_was_said_last(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, said = waiting.runner, waiting.runner._vote
    assert said is not None
    later = said._replace(number=said.number + 1, first=said.bound)
    for beats, first, held in ((0, 1, 0), (1, 0, 0), (1, 1, 1)):
        assert not _runs(waiting, RoundResult(Stop.WAITS, later, beats, first, False), monkeypatch)
        assert runner.held == runner._word(held)


def test_the_vote_that_the_runner_sends_has_the_bound_of_the_loop(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, said = waiting.runner, waiting.runner._vote
    assert said is not None
    monkeypatch.setattr(runner, "_closed_before", lambda: said.bound + 5)
    assert _runs(waiting, RoundResult(Stop.VOTES, said, 1, 0, False), monkeypatch)
    assert runner._vote is not None
    assert (runner._vote.bound, runner._vote.number) == (said.bound, said.number + 1)


def test_others_have_their_turn_after_so_many_calls(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = waiting.runner._vote
    assert said is not None
    went = RoundResult(Stop.AGAIN, said, 1, 0, False)
    assert _runs(waiting, went, monkeypatch) and waiting.runner._calls_left == 0
    assert not _runs(waiting, went, monkeypatch, calls=0)


def test_a_span_begins_within_the_loop_of_a_worker_that_hears_of_none_before(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the first beat of it has been said when it comes back."""
    waiting.send(waiting.frames)
    waiting.cluster.run()
    waiting.network.lends = 1.0
    begun: list[tuple[int, RoundResult]] = []
    for instance in waiting.cluster.instances:
        (runner,) = instance.loops
        assert isinstance(runner, CompiledLoopRunner) and isinstance(runner.loop, KernelLoop)

        def noted(
            going: RoundInput, go_on: Callable[[RoundInput], RoundResult] = runner.loop.go_on
        ) -> RoundResult:
            went = go_on(going)
            begun.extend([(going.vote.number, went)] * going.begins)
            return went

        monkeypatch.setattr(runner.loop, "go_on", noted)
    waiting.cluster.change("first", [((1, 2), 1), ((2, 3), 1)], 1, 0)
    waiting.cluster.seal()
    waiting.cluster.run()
    assert waiting.runner._done == 2 and waiting.runner._vote is None
    assert begun
    for before, went in begun:
        assert went.vote.number == before + 1 + went.rounds and went.vote.bound == 2


def test_a_span_whose_first_vote_the_loop_cannot_send_begins_with_that_vote(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where there is no room for it: nothing of it was said, and none is left out."""
    runner = waiting.runner
    waiting.send(waiting.frames)
    waiting.cluster.run()
    before = runner._before(2)
    assert runner._vote is None and before.number == runner._round - 1
    waiting.network.lends, runner._calls_left = 1.0, 1
    monkeypatch.setattr(
        waiting.region, "go_on", lambda going: RoundResult(Stop.VOTES, going.vote, 0, 0, False)
    )
    held = runner.held
    assert runner._go_by_itself(before, begins=True)
    assert runner._vote is not None and runner.held == held
    assert (runner._vote.number, runner._vote.bound) == (before.number + 1, 2)
