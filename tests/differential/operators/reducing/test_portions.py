"""Rows of very many epochs in portions: the same rows, in order of epochs, and the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import advanced, pieces_of
from reference.words import Row, as_words, rows_of
from strategies_words import CODES

import differential as dd
import timely
from differential.operators import reduce as reduce_module
from differential.operators.reduce import Aggregates, FirstRows, GroupFunction, ReduceMachine, portions
from differential.trace.shared import SharedTrace
from timely.building.dataflow import Dataflow

Words = np.typing.NDArray[np.int64]
EPOCHS, LOOP = CODES[1].guards, CODES[2].guards
END = np.empty(0, np.int64)


def history(keys: int, epochs: int, each: int = 1) -> Words:
    """Every key has another value at each epoch, so many times."""
    rows = [(k, e * 7 % 5, e, each) for k in range(keys) for e in range(epochs)]
    return as_words(sorted(rows), 4)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 9)), min_size=1),
    st.integers(1, 4),
)
def test_portions_have_each_row_once_behind_the_frontiers_before_and_up_to_their_own(
    some: list[tuple[int, int, int]], at_once: int
) -> None:
    rows: list[Row] = sorted({(*row, 1) for row in some})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduce_module, "TIMES_AT_ONCE", at_once)
        parts = list(portions(as_words(rows, 4), 1, EPOCHS, END))
    assert sorted(row for part, _ in parts for row in rows_of(part)) == rows
    assert parts[-1][1] is END
    begin = -1
    for index, (part, until) in enumerate(parts):
        stop = int(until[0]) if index + 1 < len(parts) else 10
        assert rows_of(part) == sorted(rows_of(part)) and part.flags.c_contiguous
        assert all(begin <= row[2] < stop for row in rows_of(part)) and part.shape[1]
        begin = stop


def test_each_row_meets_few_times_of_its_key() -> None:
    rows = history(3, 2000)
    parts = list(portions(rows, 1, EPOCHS, END))
    assert len(parts) == 2000 // reduce_module.TIMES_AT_ONCE + 1
    assert all(len(set(part[2].tolist())) <= reduce_module.TIMES_AT_ONCE for part, _ in parts)


@pytest.mark.parametrize(
    ("rows", "guards"),
    [
        (history(1, reduce_module.TIMES_AT_ONCE - 1), EPOCHS),
        (history(2000, 2), EPOCHS),
        (as_words([(k, v, 3, 1) for k in range(2) for v in range(2000)], 4), EPOCHS),
        (history(1, 2000), LOOP),
    ],
    ids=["few rows", "few times of each key", "one epoch", "times of a loop"],
)
def test_all_is_one_portion_where_no_square_is_to_be_feared(rows: Words, guards: int) -> None:
    ((part, until),) = portions(rows, 1, guards, END)
    assert part is rows and until is END


@pytest.mark.parametrize(
    "aggregate",
    [
        Aggregates((("count", 0), ("min", 0))),
        Aggregates((("max", 0),)),
        Aggregates(()),
        FirstRows(1, 2),
    ],
)
def test_a_machine_says_of_a_long_history_what_it_says_epoch_by_epoch(
    aggregate: Aggregates | FirstRows,
) -> None:
    rows = history(2, 900)
    rows[3, ::3] = -1  # what is owed comes and goes, too
    at_once, by_epoch = (ReduceMachine(1, 1, EPOCHS, aggregate) for _ in range(2))
    at_once.recv(0, [rows])
    parts = list(pieces_of(at_once, END))
    assert len(parts) > 1
    by_epoch.recv(0, [rows])
    wanted = [advanced(by_epoch, np.array([epoch])) for epoch in range(1, 901)]
    assert sorted(map(tuple, np.concatenate(parts, axis=1).T.tolist())) == sorted(
        map(tuple, np.concatenate(wanted, axis=1).T.tolist())
    )
    at_once.check_invariants()


@pytest.mark.parametrize(
    ("aggregate", "vw"),
    [
        (Aggregates((("count", 0), ("min", 0))), 1),
        (Aggregates((("max", 0),)), 1),
        (Aggregates(()), 1),
        (Aggregates((("count", 0),)), 0),
        (GroupFunction(lambda key, rows: [(len(rows), key[0])], 2), 1),
    ],
)
def test_what_is_read_of_others_is_told_whole_though_it_was_merged_with_what_came_before(
    aggregate: Aggregates | GroupFunction, vw: int
) -> None:
    """A trace that others fill has rows of later portions, too, which an earlier one finds there."""

    def some(begin: int, end: int) -> Words:
        made = [
            (k, *(e * 7 % 5,) * vw, e, -1 if e % 3 == 0 else 1) for k in range(2) for e in range(begin, end)
        ]
        return as_words(sorted(made), 3 + vw)

    filled = SharedTrace(1, vw, EPOCHS)
    machine = ReduceMachine(1, vw, EPOCHS, aggregate, (filled, filled.read("it", by_position=False)))
    other = filled.read("another, that has not come as far", by_position=False)
    begun, stop, parts = 60, 1500, []
    for epoch in range(begun):
        filled.add(some(epoch, epoch + 1))
        machine.recv(0, [some(epoch, epoch + 1)])
        parts += pieces_of(machine, np.array([epoch + 1]))
        other.set_frontier(np.array([epoch]))
    for epoch in range(begun, stop, 96):
        filled.add(some(epoch, min(epoch + 96, stop)))
        machine.recv(0, [some(epoch, min(epoch + 96, stop))])
    while filled.settle(1 << 40):
        pass
    assert filled.exact_from > 0, "what was advanced is in one run with what is to come"
    more = list(pieces_of(machine, np.array([stop])))
    assert len(more) > 1 and machine.needs().tolist() == []
    alone = ReduceMachine(1, vw, EPOCHS, aggregate)
    alone.recv(0, [some(0, stop)])
    wanted = [advanced(alone, np.array([epoch])) for epoch in range(1, stop + 1)]
    assert sorted(map(tuple, np.concatenate([*parts, *more], axis=1).T.tolist())) == sorted(
        map(tuple, np.concatenate(wanted, axis=1).T.tolist())
    )


def _counted(flow: Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int, v: int").arrange("k")
    rows.group_by("k").agg(n=dd.count()).output("counts")
    rows.group_by("k").agg(most=dd.max("v")).output("most")
    rows.join(rows.filter(dd.col.v < 0).select("k"), on="k").output("pairs")


@pytest.mark.parametrize("workers", [1, 2])
def test_epochs_of_an_arrangement_that_others_read_come_to_an_end(workers: int) -> None:
    begun, epochs, each = 1500, 900, 9
    with timely.connect(embedded=True, workers=workers) as cluster:
        flow = cluster.install(_counted)
        for epoch in range(begun):
            flow.input("rows").insert([(0, epoch), (1, epoch)])
            flow.seal()
            if epoch % 50 == 0:
                flow.wait(epoch)
        flow.wait(begun - 1)
        comes = [(begun + row // each, row % 3, row * 7 % 50, 1) for row in range(epochs * each)]
        columns = dict(zip(("epoch", "k", "v", "diff"), map(list, zip(*comes, strict=True)), strict=True))
        flow.input("rows").append(pa.table(columns), epoch="epoch")
        flow.wait(flow.seal(through=begun + epochs - 1))
        found = flow.output("counts").snapshot().sort_by("k").to_pydict()
    assert found == {"k": [0, 1, 2], "n": [begun + epochs * 3, begun + epochs * 3, epochs * 3]}


def _greatest(rows: dd.Collection) -> dd.Collection:
    return rows.group_by("k").agg(most=dd.max("v"))


def _several(rows: dd.Collection) -> dd.Collection:
    return rows.group_by("k").agg(most=dd.max("v"), least=dd.min("v"))


def _made(rows: dd.Collection) -> dd.Collection:
    return rows.group_by("k").reduce(
        lambda key, group: [sum(values[0] * times for values, times in group)], "s: int"
    )


def _first(rows: dd.Collection) -> dd.Collection:
    return rows.group_by("k").top_k(2, by="v")


def _different(rows: dd.Collection) -> dd.Collection:
    return rows.select("k", v=dd.col.v % 3).distinct()


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("asked", [_greatest, _several, _made, _first, _different])
def test_vertices_answer_by_portions_and_the_next_one_knows_what_was_answered_before(
    asked: Callable[[dd.Collection], dd.Collection], shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where others read the answers, which are theirs to insert between two portions."""
    counts: list[int] = []

    def counted(ready: Words, key_words: int, guards: int, frontier: Words) -> Iterator[tuple[Words, Words]]:
        parts = list(portions(ready, key_words, guards, frontier))
        counts.append(len(parts))
        yield from parts

    def build(flow: Dataflow) -> None:
        answers = asked(dd.input(flow, "rows", "k: int, v: int"))
        if shares:
            answers = answers.join(dd.input(flow, "names", "k: int, name: string"), on="k")
        answers.output("answers")

    monkeypatch.setattr(reduce_module, "portions", counted)
    epochs = 60
    comes = [(epoch, epoch % 2, epoch * 7 % 11, 1) for epoch in range(epochs)]
    goes = [(epoch + 5, k, v, -1) for epoch, k, v, _ in comes[: epochs - 5]]
    columns = dict(zip(("epoch", "k", "v", "diff"), map(list, zip(*comes, *goes, strict=True)), strict=True))
    found = []
    for at_once in (1 << 40, 2):
        monkeypatch.setattr(reduce_module, "TIMES_AT_ONCE", at_once)
        counts.clear()
        with timely.connect(embedded=True) as cluster:
            flow = cluster.install(build)
            if shares:
                flow.input("names").insert([(0, "even"), (1, "odd")])
            flow.input("rows").append(pa.table(columns), epoch="epoch")
            flow.seal(through=epochs - 1)
            changes = flow.output("answers").changes()
        found.append(sorted(zip(*(column.to_pylist() for column in changes.columns), strict=True)))
        assert (max(counts) > 1) == (at_once == 2)
    assert found[0] == found[1] and len(found[0]) > epochs / 2
