"""lookups.py: who waits for what, and what may be forgotten meanwhile. Meanings: `test_half_join.py`.

waiting_*   rows by origin
ready_*     when a row may look up
kept_*      what the arrangement must keep apart for rows that come
loops_*     the order of updates in a compiled loop
"""

from __future__ import annotations

from typing import cast

import numpy as np
from machines import worked
from reference.dataflow import Cluster, compact_traces, trace_rows
from reference.words import as_words, rows_of
from strategies_words import CODES

import differential as dd
from differential.columns.packed.parts import Part, words_in
from differential.columns.update_batch import UpdateBatch
from differential.operators.patterns.half_join import HalfJoinMachine
from differential.operators.patterns.lookups import Lookup, LookupMachine, WaitingByOrigin
from differential.operators.vertices import MachineVertex
from differential.trace.readers import Reader
from differential.trace.shared import SharedTrace
from progress.times.anchor import Rebase
from timely.building.dataflow import Dataflow

CODE = CODES[2]
NEVER = np.empty(0, np.int64)


def _at(*time: int) -> int:
    return CODE.pack(time)


def _front(*times: tuple[int, int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(sorted(_at(*time) for time in times), np.int64)


def _machine(strictly: bool, origin: int | None = None) -> tuple[HalfJoinMachine, SharedTrace, Reader]:
    """A half-join on one key that gives the key, and the trace that it reads."""
    trace = SharedTrace(1, 0, CODE.guards, "kept")
    reader = trace.read("half-join", by_position=False)
    lookup = Lookup(1, origin, strictly)
    return HalfJoinMachine(lookup, reader, [(0, 0)], CODE.guards, CODE.fields[0][0]), trace, reader


# waiting_


def test_waiting_rows_are_taken_in_the_order_of_integers() -> None:
    waiting = WaitingByOrigin(None, CODE.guards)
    rows = [(1, _at(0, 5), 1), (2, _at(1, 0), 1), (3, _at(0, 1), 1), (4, _at(1, 0), 1)]
    waiting.add(as_words(rows, 3))
    assert len(waiting) == 3 and waiting.first() == _at(0, 1)
    assert waiting.times().tolist() == [_at(0, 1), _at(1, 0)]
    taken = waiting.take(_at(1, 0))
    assert [row[0] for part in taken for row in rows_of(part)] == [3, 1]
    assert [row[0] for part in waiting.take(None) for row in rows_of(part)] == [2, 4]
    assert waiting.times().tolist() == [] and len(waiting) == 0


def test_waiting_rows_are_held_at_their_times_and_taken_by_their_origins() -> None:
    waiting = WaitingByOrigin(1, CODE.guards)
    waiting.add(as_words([(1, _at(0, 2), _at(0, 7), 1), (2, _at(0, 3), _at(0, 4), 1)], 4))
    assert waiting.times().tolist() == [_at(0, 4)]
    (taken,) = waiting.take(_at(0, 3))
    assert rows_of(taken) == [(1, _at(0, 2), _at(0, 7), 1)]
    assert waiting.times().tolist() == [_at(0, 4)]


def test_waiting_rows_that_were_under_way_have_origins_that_count_from_where_their_times_do() -> None:
    """Words have come to count from a later epoch since they were sent."""
    sent = UpdateBatch(as_words([(7, _at(1, 2), _at(2, 0), 1)], 4))
    arrived = sent.rebased(-_at(1, 0))
    taken: list[np.ndarray[tuple[int, int], np.dtype[np.int64]]] = []

    class Taking(HalfJoinMachine):
        def recv(self, port: int, parts: list[Part]) -> None:
            taken.extend(words_in(parts))

    trace = SharedTrace(1, 0, CODE.guards, "kept")
    reader = trace.read("half-join", by_position=False)
    machine = Taking(Lookup(1, 1, False), reader, [(0, 0)], CODE.guards, CODE.fields[0][0])
    vertex = MachineVertex(lambda vertex: machine, reads=(1,), ports=2)
    vertex.machine = machine
    vertex._go_on = lambda: None  # type: ignore[method-assign]
    vertex.recv_all(0, [(0, arrived), (0, sent)])
    assert [rows_of(words) for words in taken] == [
        [(7, _at(0, 2), _at(1, 0), 1)],
        [(7, _at(1, 2), _at(2, 0), 1)],
    ]
    assert rows_of(arrived.words) == [(7, _at(1, 2), _at(1, 0), 1)], (
        "who else has the batch sees it as it was"
    )


# ready_


def test_ready_when_nothing_before_the_origin_can_come() -> None:
    for strictly in (False, True):
        machine, trace, _ = _machine(strictly)
        trace.add(as_words([(7, _at(1, 1), 1)], 3))
        machine.recv(0, [as_words([(7, _at(1, 1), 1)], 3)])
        machine.advance(_front((0, 9), (2, 0)))
        assert machine.is_done and not machine.is_empty, "(0, 9) is before (1, 1) as an integer"
        assert machine.needs().tolist() == [_at(1, 1)]
        machine.advance(_front((1, 1)))
        assert machine.is_done == (not strictly), "at its own time more can come, which it meets or not"
        machine.advance(_front((1, 2)))
        assert not machine.is_done
        assert rows_of(worked(machine)) == ([] if strictly else [(7, _at(1, 1), 1)])
        assert machine.is_empty and machine.needs().tolist() == []


def test_ready_is_all_when_the_arrangement_is_complete_for_ever() -> None:
    machine, trace, _ = _machine(strictly=True)
    trace.add(as_words([(7, _at(0, 4), 3)], 3))
    machine.recv(0, [as_words([(7, _at(3, 0), 2)], 3)])
    machine.advance(NEVER)
    assert rows_of(worked(machine)) == [(7, _at(3, 4), 6)], "at the lub of the two"


def test_ready_rows_meet_what_is_before_their_origin_not_before_their_time() -> None:
    machine, trace, _ = _machine(strictly=False, origin=1)
    trace.add(as_words([(7, _at(0, 1), 1), (7, _at(0, 3), 1)], 3))
    machine.recv(0, [as_words([(7, _at(0, 2), _at(0, 5), 1)], 4)])
    machine.advance(NEVER)
    assert rows_of(worked(machine)) == [(7, _at(0, 5), 1)]


# kept_


def test_kept_apart_is_the_epoch_before_the_first_that_may_come() -> None:
    machine, _, reader = _machine(strictly=False)
    for front, hold in ([(0, 3)], (0, 0)), ([(1, 4), (3, 0)], (0, 0)), ([(3, 2), (4, 0)], (2, 0)):
        machine.hold_back(_front(*front))
        assert reader.hold.tolist() == [_at(*hold)]
    machine.recv(0, [as_words([(7, _at(4, 1), 1)], 3)])
    machine.hold_back(_front((6, 0)))
    assert reader.hold.tolist() == [_at(3, 0)], "a row waits that is of epoch 4"
    machine.advance(NEVER)
    machine.hold_back(_front((7, 0)))
    assert reader.hold.tolist() == [_at(3, 0)], "it has not looked up yet"
    machine.work()
    machine.hold_back(_front((7, 0)))
    assert reader.hold.tolist() == [_at(6, 0)]
    machine.hold_back(NEVER)
    assert reader.is_done


def test_kept_apart_is_the_epoch_before_the_span_though_its_first_rows_are_of_a_later_one() -> None:
    machine, _, reader = _machine(strictly=False)
    machine.begin_span(_at(3, 0), _at(6, 0))
    machine.hold_back(_front((5, 0)))
    assert reader.hold.tolist() == [_at(2, 0)]
    machine.end_span()
    machine.hold_back(_front((8, 0)))
    assert reader.hold.tolist() == [_at(5, 0)], "the next span begins where this one ended"


def test_kept_is_what_is_before_although_it_was_compacted() -> None:
    """(0, 5) is before (1, 0), and would not be if it had been moved to (1, 5)."""
    machine, trace, _ = _machine(strictly=True)
    trace.add(as_words([(7, _at(0, 5), 1)], 3))
    machine.hold_back(_front((1, 0)))
    trace.compact()
    machine.recv(0, [as_words([(7, _at(1, 0), 1)], 3)])
    machine.advance(_front((1, 0)))
    assert rows_of(worked(machine)) == [(7, _at(1, 5), 1)]


def _three(flow: Dataflow) -> None:
    parts = [dd.input(flow, names, f"{names[0]}: int, {names[1]}: int") for names in ("ab", "bc", "ca")]
    dd.join_all(parts, ["a", "b", "c"]).output("result")


def _machines(cluster: Cluster) -> list[LookupMachine]:
    found = [runner.vertex for one in cluster.instances for runner in one.runners]
    machines = [vertex.machine for vertex in found if isinstance(vertex, MachineVertex)]
    return [machine for machine in machines if isinstance(machine, LookupMachine)]


def test_kept_in_a_dataflow_are_rows_that_wait_only_until_the_epoch_is_complete() -> None:
    cluster = Cluster(_three)
    for name in ("ab", "bc", "ca"):
        cluster.change(name, [((1, 1), 1), ((1, 2), 1)])
    (instance,) = cluster.instances
    for name in ("ab", "ca"):
        instance.inputs[name].seal()
    cluster.run()
    assert any(not machine.is_empty for machine in _machines(cluster)), "more may come, before them"
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("result") == {(1, 1, 1): 1}
    assert all(machine.is_empty for machine in _machines(cluster))
    assert not any(machine.traces for machine in _machines(cluster))


def test_kept_rows_end_with_the_rows_that_could_ask() -> None:
    cluster = Cluster(_three)
    for name in ("ab", "bc", "ca"):
        cluster.change(name, [((n, n), 1) for n in range(5)])
    cluster.seal()
    cluster.run()
    compact_traces(cluster)
    assert trace_rows(cluster) > 5
    cluster.close()
    cluster.run()
    assert all(cast(Reader, machine._source).is_done for machine in _machines(cluster))
    compact_traces(cluster)
    assert trace_rows(cluster) == 0, "beside what outputs keep"


# in a compiled loop


def _spans(strictly: bool, start: tuple[int, int], bound: tuple[int, int]) -> list[tuple[int, ...]]:
    """Whom a row of (2, 3) meets, of all times (e, i) of epochs 0 to 3 and iterations 2 to 4."""
    machine, trace, _ = _machine(strictly)
    machine.columns = 3
    times = [(epoch, iteration) for epoch in range(4) for iteration in range(2, 5)]
    trace.add(as_words(sorted((7, _at(*time), 1 << number) for number, time in enumerate(times)), 3))
    machine.begin_span(_at(*start), _at(*bound))
    machine.recv(0, [as_words([(7, _at(2, 3), 1)], 3)])
    machine.advance(_front((0, 0)))
    assert machine.is_done and machine.needs().tolist() == [_at(2, 3)], "its gate has not opened"
    machine.advance(np.array(sorted((_at(start[0], 4), _at(*bound)))))
    met = sum(row[-1] for row in rows_of(worked(machine)))
    assert machine.is_empty and machine.needs().tolist() == []
    return [time for number, time in enumerate(times) if met >> number & 1]


def test_loops_let_rows_meet_what_is_before_by_span_then_iteration_then_epoch() -> None:
    wide = [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (2, 2), (3, 2)]
    assert _spans(True, (1, 0), (4, 0)) == wide, "also of a later epoch, in an earlier iteration"
    assert _spans(False, (1, 0), (4, 0)) == sorted([*wide, (2, 3)])
    assert _spans(True, (1, 0), (3, 0)) == wide[:-1], "epochs behind the span come later"
    one = [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 2)]
    assert _spans(True, (2, 0), (3, 0)) == one
    assert _spans(False, (2, 0), (3, 0)) == [*one, (2, 3)]


def test_loops_tell_a_span_from_what_was_before_when_words_count_from_a_later_epoch() -> None:
    """What is past is of the anchor's epoch then, in iterations that may be later than a row's."""
    machine, trace, _ = _machine(True)
    machine.columns = 3
    trace.add(as_words([(7, _at(1, 5), 1)], 3))
    by = Rebase(2, CODE.fields[0][0])
    machine.begin_span(_at(2, 0), _at(3, 0))
    assert machine.first_asked() == _at(2, 0)
    machine.end_span()
    assert machine.first_asked() is None
    machine.rebase(by)
    trace.rebase(by)
    machine.begin_span(0, _at(4, 0))
    machine.recv(0, [as_words([(7, _at(2, 3), 1)], 3)])
    machine.advance(np.array([_at(4, 0)]))
    assert rows_of(worked(machine)) == [(7, _at(2, 5), 1)]
