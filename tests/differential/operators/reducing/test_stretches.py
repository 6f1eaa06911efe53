"""stretches.py: changes of a window follow from the stretches that they touch, whatever these are."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.ordered_windows import By, windowed
from strategies_collections import examples
from windows_drawn import NAMES, calls, frames, held_changes, query

import timely
from differential.columns.column_types import Int64s
from differential.kernels.rows.sort import sort_consolidate
from differential.operators.ordered import places
from differential.operators.ordered.window_machine import WindowMachine
from differential.operators.reducing import stretches
from differential.operators.reducing.window_parts import (
    Frame,
    FrameUnit,
    WindowFunctions,
    WindowKind,
    WindowPart,
)

EPOCHS = 1 << 62
Line = tuple[int, int, int, int, int]

BY = st.builds(By, st.sampled_from(["t", "v", "w", "note"]), st.booleans(), st.booleans())
LONG = "a text that begins as others do, for more than one word: "
TEXTS = [None, "a", "a\0", "a\0\0", "", "b", *(LONG + letter for letter in "abcdefghijkl")]
"""Some that words do not put in order: these end in zeros, and places of long ones are used up."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks and stretches of a few rows, so that groups of some dozens have many."""
    monkeypatch.setattr(stretches, "MARK_ROWS", 3)
    monkeypatch.setattr(stretches, "LIMITS", (1, 5, 1 << 62))
    monkeypatch.setattr(places, "_TOP", 1 << 6)
    monkeypatch.setattr(places, "_STEP", 4)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("keys", [(), ("k",)])
def test_law_the_stretches_of_changes_decide(keys: tuple[str, ...]) -> None:
    @examples(1)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        order = data.draw(st.lists(BY, max_size=2, min_size=1, unique_by=lambda by: by.column))
        frame = data.draw(frames(order))
        functions = data.draw(calls())
        rng = random.Random(data.draw(st.integers(0, 1 << 30)))
        numbers = [None, *range(-9, 9)]
        texts = TEXTS if "note" in [by.column for by in order] else ["a"]

        def some(count: int) -> list[tuple[object, ...]]:
            return [
                (
                    rng.randrange(2), rng.choice(numbers), rng.choice(numbers), rng.randrange(9) / 2,
                    rng.choice(texts),
                )
                for _ in range(count)
            ]  # fmt: skip

        there = Counter(some(40))
        with timely.connect(workers=1, embedded=True) as cluster:
            flow = cluster.install(query(keys, order, functions, frame))
            flow.input("rows").insert(list(there.elements()))
            flow.seal(wait=True)
            for turn in range(8):
                come = some(rng.randrange(3)) + rng.choices(list(there), k=rng.randrange(2))
                go = rng.sample(sorted(there, key=repr), rng.randrange(3)) + some(rng.randrange(2))
                flow.input("rows").insert(come)
                flow.input("rows").remove(go)  # some are not there, and then less than once
                there.update(come)
                there.subtract(go)
                flow.seal(wait=turn % 3 > 0)  # some epochs come together
                if turn % 3 == 0:
                    continue
                rows = [dict(zip(NAMES, each, strict=True)) for each in there.elements()]
                expected = windowed(rows, keys, order, functions, frame)
                assert held_changes(flow) == Counter(tuple(each.values()) for each in expected)

    holds()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("unit", ["rows", "range", "groups"])
@pytest.mark.parametrize("ends", ["with the group", "begins", "neither"])
def test_windows_of_several_functions_are_those_of_a_fresh_one(unit: FrameUnit, ends: str) -> None:
    rng = random.Random(7)
    kinds: list[WindowKind] = ["max", "count", "lag", "lag", "last_value", "row_number", "dense_rank"]
    kinds += ["ntile", "percent_rank", "cume_dist", "nth_value"]
    for number in range(40):
        start = rng.randrange(-4, 3) if ends == "neither" else None
        stop = rng.randrange(-4, 4)
        frame = Frame(unit, start, stop)
        if ends == "with the group":
            frame = Frame(unit, rng.choice([None, stop]), None)
        parts = [
            WindowPart(
                kind,
                value=1,
                amount=rng.randrange(1, 6) if kind in ("ntile", "nth_value") else rng.randrange(-4, 5),
            )
            for kind in rng.sample(kinds, rng.randrange(1, 4))
        ]
        functions = WindowFunctions(tuple(parts), frame, 2, 1, (-1, 0))
        lines = some_lines(rng, 50)
        one = WindowMachine(1, 2, EPOCHS, functions)
        held = [corrected(one, lines, 1)]
        for time in range(1, 9):
            gone, come = rng.sample(lines, rng.randrange(3)), some_lines(rng, rng.randrange(3))
            for line in gone:
                lines.remove(line)
            lines += come
            changes = [(*line[:3], time, -1) for line in gone] + [(*line[:3], time, 1) for line in come]
            held.append(corrected(one, changes, time + 1))
            all_held = np.concatenate(held, axis=1)
            all_held[-2] = 0
            anew = corrected(WindowMachine(1, 2, EPOCHS, functions), lines, 1)
            assert np.array_equal(sort_consolidate(all_held), anew), (number, functions)


@pytest.mark.usefixtures("small")
def test_law_buckets_move_by_the_rows_at_their_bounds() -> None:
    rng = random.Random(3)
    for number in range(30):
        buckets = [WindowPart("ntile", amount=rng.randrange(2, 9)) for _ in range(rng.randrange(1, 3))]
        functions = WindowFunctions((*buckets, WindowPart("lag", value=1, amount=1)), Frame(), 2, 1)
        lines = [(0, *line[1:]) for line in some_lines(rng, 200)]
        one = WindowMachine(1, 2, EPOCHS, functions)
        held = [corrected(one, lines, 1)]
        for time in range(1, 12):
            gone = rng.sample(lines, rng.randrange(3))
            come = [(0, *line[1:]) for line in some_lines(rng, rng.randrange(3))]
            for line in gone:
                lines.remove(line)
            lines += come
            changes = [(*line[:3], time, -1) for line in gone] + [(*line[:3], time, 1) for line in come]
            held.append(corrected(one, changes, time + 1))
        all_held = np.concatenate(held, axis=1)
        all_held[-2] = 0
        anew = corrected(WindowMachine(1, 2, EPOCHS, functions), lines, 1)
        assert np.array_equal(sort_consolidate(all_held), anew), (number, functions)


@pytest.mark.usefixtures("small")
def test_no_mark_is_at_a_row_whose_order_is_unclear() -> None:
    """Its state would lack rows that are before it in the table, and behind it in the order."""
    symbols = {3: 2, 5: 1}  # in the order of texts, 5 is before 3
    functions = WindowFunctions(
        (WindowPart("row_number"),), Frame(), 2, 2, symbols=((1, 1),),
        rank_of=lambda words: np.array([symbols.get(word, word) for word in words.tolist()], np.int64),
    )  # fmt: skip
    lines: list[Line] = [(0, 1, 7, 0, 1), (0, 2, 3, 0, 1), (0, 2, 5, 0, 1), (0, 3, 7, 0, 1), (0, 4, 7, 0, 1)]
    lines += [(0, at, 7, 0, 1) for at in range(5, 9)]
    machine = WindowMachine(1, 2, EPOCHS, functions)
    numbers = corrected(machine, lines, 1)
    assert numbers[3, numbers[1] == 2].tolist() == [3, 2], "the one with symbol 5 comes first"
    assert machine._marks is not None and machine._marks.words[1].tolist() == [5, 8]
    changes = corrected(machine, [(0, 3, 7, 1, -1)], 2)
    assert sorted(changes[[1, 3, 5]].T.tolist()) == sorted(
        [[3, 4, -1], *([at, at + 1, -1] for at in range(4, 9)), *([at, at, 1] for at in range(4, 9))]
    )


def test_law_marks_are_replaced_within_their_spans() -> None:
    rng = random.Random(4)
    functions = WindowFunctions((WindowPart("sum", value=1),), Frame(), 2, 1)
    for _ in range(200):
        marks = stretches.Marks(1, functions)
        bounds = sorted(rng.choices(range(21), k=2 * rng.randrange(1, 5)))
        firsts, lasts = bounds[::2], bounds[1::2]
        is_same = rng.random() < 0.5
        counts = [
            last - first if is_same else rng.randrange(4) for first, last in zip(firsts, lasts, strict=True)
        ]
        marks.words = np.arange(20).repeat(8).reshape(20, 8).T.copy()
        spans = np.zeros((9, len(firsts)), np.int64)
        spans[4], spans[5] = firsts, lasts
        of = np.arange(len(firsts)).repeat(counts)
        new = np.ascontiguousarray((100 + np.arange(of.shape[0])).repeat(8).reshape(-1, 8).T)
        expected: list[int] = []
        end = 0
        for at, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
            expected += [*range(end, first), *new[0, of == at].tolist()]
            end = last
        marks.renew(spans, new, of)
        assert marks.words.T.tolist() == [[each] * 8 for each in [*expected, *range(end, 20)]]


def some_lines(rng: random.Random, count: int) -> list[Line]:
    """Rows (key, order, value, epoch, diff)."""
    return [(rng.randrange(2), rng.randrange(60), rng.randrange(9), 0, 1) for _ in range(count)]


def corrected(machine: WindowMachine, lines: list[Line], until: int) -> Int64s:
    """The corrections for some rows."""
    machine.recv(0, [sort_consolidate(np.array(lines, np.int64).reshape(-1, 5).T.copy())])
    machine.advance(np.array([until]))
    parts = []
    while (part := machine.work()) is not None:
        parts.append(part)
    return np.concatenate(parts, axis=1)
