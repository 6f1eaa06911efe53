"""The first rows of groups as a vertex: what others read of it, messages. Meaning: `test_ordered.py`."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from machines import advanced
from reference.dataflow import Cluster, trace_rows, traces

import differential as dd
from differential import col
from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import MultiplicityOverflowError
from differential.operators.ordered.layout import InOrder, SortDirection
from differential.operators.ordered.machine import FirstMachine
from differential.operators.ordered.windows import WindowOrder
from differential.operators.reduce import ReduceMachine
from differential.operators.reducing.window_parts import Frame, WindowPart
from timely.building.dataflow import Dataflow
from timely.dictionaries import Mark


def _flow(dataflow: Dataflow) -> None:
    rows = dd.input(dataflow, "rows", "k: int, x: int, s: string")
    top = rows.group_by("k").top_k(1, by=[col.s.desc(), "x"])
    top.join(rows.select(k=col.k, other=col.x), on="k").output("joined")


def test_answers_are_read_as_rows_by_a_join() -> None:
    cluster = Cluster(_flow, 2)
    cluster.change("rows", [((1, 5, "a"), 1), ((1, 6, "b"), 1), ((2, 7, "c"), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("joined") == {(1, 6, "b", 5): 1, (1, 6, "b", 6): 1, (2, 7, "c", 7): 1}
    cluster.change("rows", [((1, 6, "b"), -1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("joined") == {(1, 5, "a", 5): 1, (2, 7, "c", 7): 1}
    names = [name for one in cluster.instances for name in traces(one)]
    assert any(name.startswith("top_k") for name in names) and not any("arrange" in name for name in names)


def test_nothing_is_kept_of_what_has_gone() -> None:
    cluster = Cluster(_flow)
    for diff in (1, -1):
        cluster.change("rows", [((k, x, f"{x}"), diff) for k in range(3) for x in range(40)])
        cluster.seal()
        cluster.run()
    for held in traces(cluster.instances[0]).values():
        for trace in held:
            trace.compact()
    assert cluster.snapshot("joined") == {} and trace_rows(cluster) == 0


def test_a_copy_goes_its_own_way() -> None:
    schema = Schema.of("k: int, s: string")
    order = InOrder(schema, 1, (SortDirection(),), 1)
    first = order.aggregate()
    machine = ReduceMachine(1, first.width, 1 << 62, first)
    words = np.ones((4, 1), np.int64)
    words[1], words[2] = SYMBOLS.intern_one("a"), 0
    machine.recv(0, [order.encode(words)])
    assert np.array_equal(order.decode(advanced(machine, np.array([1]))), words)
    other = copy.deepcopy(machine)
    gone = words.copy()
    gone[2], gone[3] = 1, -1
    other.recv(0, [order.encode(gone)])
    assert np.array_equal(order.decode(advanced(other, np.array([2]))), gone)
    assert advanced(machine, np.array([2])).shape[1] == 0 and machine.output.rows == 1
    other.output.compact()
    assert other.output.rows == 0


def test_a_row_that_is_there_too_often_is_named_as_it_was() -> None:
    cluster = Cluster(_flow)
    cluster.change("rows", [((1, 5, "often"), 2**62), ((1, 5, "often"), 2**62)])
    cluster.seal()
    with pytest.raises(MultiplicityOverflowError, match="often"):
        cluster.run()


class InUse:
    """A marking of one symbol."""

    def __init__(self, symbol: int) -> None:
        self.symbol = symbol
        self.is_marked = False

    def add(self, words: Int64s) -> None:
        self.is_marked |= bool((words == self.symbol).any())

    def has_between(self, low: int, high: int) -> bool:
        return low <= self.symbol <= high


@pytest.mark.parametrize("of_order", [True, False])
@pytest.mark.parametrize("rows", [1, 4_000])
def test_texts_of_rows_that_are_turned_round_are_in_use(of_order: bool, rows: int) -> None:
    schema = Schema.of("k: int, s: string, x: int" if of_order else "k: int, x: int, s: string")
    calls, frame = ((WindowPart("count"), None),), Frame("rows", 0, None)
    order = WindowOrder(schema, 1, (SortDirection(),), 1 << 62, functions=calls, frame=frame)
    assert order.is_turned
    machine = FirstMachine(order, 1 << 62)
    texts = SYMBOLS.intern([f"text {number}" for number in range(40)])
    low, symbol, high = sorted(texts[texts > 0].tolist())[
        :3
    ]  # turned they are below 0, where none of them is
    words = np.zeros((5, rows), np.int64)
    words[1], words[2], words[-1] = np.arange(rows), np.arange(rows), 1
    words[1 if of_order else 2] = np.resize([symbol, low, high], rows)
    machine.recv(0, [words])
    for frontier in ([], [9]):  # while they wait, and once they are in the trace
        marking = InUse(symbol)
        if frontier:
            machine.advance(np.array(frontier))
            while machine.work() is not None:
                pass
        machine.symbols(Mark([marking]))
        assert marking.is_marked, frontier
