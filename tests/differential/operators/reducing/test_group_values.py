"""group_values.py: percentiles by search and by a pass, lists and texts in order.

search_*   a change of a large group gives what a pass gives, whatever has come and gone before
lists_*    values of one type and of several
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from decimal import Decimal
from typing import cast

import numpy as np
import pytest
from reference import statistics

from differential.columns.column_types import ColumnType, Int64s, integer
from differential.columns.float_words import words_to_floats
from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import MultiplicityOverflowError
from differential.kernels.rows.sort import sort_consolidate
from differential.operators.reduce import ReduceMachine
from differential.operators.reducing.group_values import CollectedValues, Percentiles, are_plain

CALLS = (("percentile", 0.5), ("percentile_disc", 0.9), ("percentile", 1.0), ("percentile", 0.037))
GUARDS = 1 << 62

Answer = tuple[float | None, ...]
Group = Counter[int | None]


def _plain(group: Group) -> Answer | None:
    there = {value: count for value, count in group.items() if count > 0}
    values = statistics.values_there({value: count for value, count in there.items() if value is not None})
    if not there:
        return None
    if not values:
        return (None,) * len(CALLS)
    return tuple(
        statistics.percentile([*values], fraction)
        if kind == "percentile"
        else statistics.percentile_disc(values, fraction)
        for kind, fraction in CALLS
    )


class _Run:
    """A machine of one key word and values that may be null, beside plain groups."""

    def __init__(self) -> None:
        self.machine = ReduceMachine(1, 2, GUARDS, Percentiles(integer.or_null(), CALLS))  # type: ignore[arg-type]  # kinds
        self.groups: dict[int, Group] = {}
        self.held: Counter[tuple[int, ...]] = Counter()
        self.epoch = 0

    def change(self, rows: list[tuple[int, int | None, int]]) -> None:
        lines = [(k, int(v is not None), v or 0, self.epoch, diff) for k, v, diff in rows]
        words = sort_consolidate(np.array(lines, np.int64).reshape(-1, 5).T.copy())
        if words.shape[1]:
            self.machine.recv(0, [words])
        self.epoch += 1
        self.machine.advance(np.array([self.epoch], np.int64))
        while (changes := self.machine.work()) is not None:
            for *row, _, diff in changes.T.tolist():
                self.held[tuple(row)] += diff
        for key, value, diff in rows:
            self.groups.setdefault(key, Counter())[value] += diff

    def check(self) -> None:
        found = {row: count for row, count in self.held.items() if count}
        assert set(found.values()) <= {1}
        have = {row[0]: self._answer(row[1:]) for row in found}
        wanted = {key: _plain(group) for key, group in self.groups.items()}
        assert have == {key: answer for key, answer in wanted.items() if answer is not None}

    def _answer(self, words: tuple[int, ...]) -> Answer:
        answer: list[float | None] = []
        for (kind, _), has, word in zip(CALLS, words[::2], words[1::2], strict=True):
            value = float(words_to_floats(np.array([word], np.int64))[0]) if kind == "percentile" else word
            answer.append(value if has else None)
        return tuple(answer)


@pytest.mark.parametrize("seed", range(3))
def test_search_gives_what_a_pass_gives(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ties, nulls, rows that come several times at once, removals, keys that go, and merges."""
    chance = random.Random(seed)
    run = _Run()
    searched = []
    changes = Percentiles.changes

    def counted(*arguments: object) -> Int64s | None:
        found = changes(*arguments)  # type: ignore[arg-type]  # as it is called
        searched.append(found is not None)
        return found

    monkeypatch.setattr(Percentiles, "changes", counted)
    wide = [3, 50, 10**6][seed]

    def value() -> int | None:
        return None if chance.random() < 0.1 else chance.randrange(-wide, wide)

    run.change([(chance.randrange(3), value(), chance.randrange(1, 4)) for _ in range(3000)])
    for _ in range(60):
        rows = [(chance.randrange(4), value(), chance.randrange(1, 3)) for _ in range(chance.randrange(6))]
        for _ in range(chance.randrange(6)):
            key = chance.choice(list(run.groups))
            going = Counter(v for k, v, diff in rows if k == key and diff < 0)
            there = [v for v, count in run.groups[key].items() if count > going[v]]
            if there:
                rows.append((key, chance.choice(there), -1))
        run.change(rows)
        run.machine.check_invariants()
        run.check()
    run.change([(0, v, -count) for v, count in run.groups[0].items()])
    run.check()
    assert sum(searched) > 40


def test_search_gives_way_to_a_pass_where_a_row_is_there_less_than_not_at_all() -> None:
    run = _Run()
    run.change([(0, v, 1) for v in range(100)])
    for value, diff in ((200, -2), (5, -1), (200, 3), (None, -1), (None, 2)):
        run.change([(0, value, diff)])
        run.check()


@pytest.mark.parametrize(
    ("count", "is_searched"), [((1 << 31) - 1, True), (1 << 31, False), (-(1 << 31), False)]
)
def test_search_gives_way_to_a_pass_where_a_row_is_there_very_often(
    count: int, is_searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums of a search are of one word: of 2³¹ rows, each there less than 2³¹ times."""
    run = _Run()
    run.change([(0, v, 1) for v in range(3000)])
    if count < 0:
        run.change([(0, 5000, -count)])
    searched = []
    changes = Percentiles.changes

    def noted(*arguments: object) -> Int64s | None:
        found = changes(*arguments)  # type: ignore[arg-type]  # as it is called
        searched.append(found is not None)
        return found

    monkeypatch.setattr(Percentiles, "changes", noted)
    run.machine._is_plain = True  # what the change itself says is asked first
    run.change([(0, 5000, count)])
    assert searched == [is_searched]
    assert sum(run.held.values()) == 1, "one answer, after the change as before"


@pytest.mark.parametrize(
    ("counts", "is_plain"), [([1, (1 << 31) - 1], True), ([1, 1 << 31], False), ([0], False), ([-1], False)]
)
def test_rows_that_are_there_very_often_are_not_plain(counts: list[int], is_plain: bool) -> None:
    assert are_plain(np.array(counts, np.int64)) == is_plain


def test_search_more_rows_than_can_be_counted_are_an_error() -> None:
    machine = ReduceMachine(0, 1, GUARDS, Percentiles(integer, CALLS))  # type: ignore[arg-type]  # kinds
    machine.recv(0, [np.array([[1, 2], [0, 0], [1 << 61, 1 << 61]], np.int64)])
    machine.advance(np.array([1], np.int64))
    with pytest.raises(MultiplicityOverflowError, match="2⁶² or more"):
        machine.work()


def _lists(values: list[tuple[object, int]], kind: str, once: bool) -> object:
    type_ = ColumnType(kind)  # type: ignore[arg-type]  # a kind
    words = encode_rows(Schema.of({"v": type_}), [(value,) for value, _ in values], SYMBOLS)
    rows = np.concatenate([words, np.array([[count for _, count in values]], np.int64)])
    answers = CollectedValues(type_, once=once).answers(rows, np.array([[0], [len(values)]], np.int64))
    ((found,),) = decode_rows(Schema.of("v: any"), answers, SYMBOLS)
    return found


def test_lists_of_one_type_are_in_their_order() -> None:
    texts: list[tuple[object, int]] = [("b", 1), ("a", 2), ("c", -1), ("a much longer text " * 3, 1)]
    assert _lists(texts, "string", once=False) == ("a", "a", "a much longer text " * 3, "b")
    assert _lists([(9, 2), (10, 1)], "int", once=True) == (9, 10)
    assert _lists([(b"b", 1), (b"", 2)], "bytes", once=False) == (b"", b"", b"b")


def test_lists_of_several_types_are_in_some_order_that_holds() -> None:
    members: list[tuple[object, int]] = [(1, 1), ("a", 1), (2.5, 1)]
    assert _lists(members, "any", once=False) == _lists(members[::-1], "any", once=False)


WIDE = "1 2 -3 18446744073709551617 -99999999999999999999999999 -9223372036854775809"


def test_lists_of_wide_decimals_are_in_the_order_of_values_of_two_words() -> None:
    rng = random.Random(3)
    values = [Decimal(text) for text in WIDE.split()]
    schema = Schema.of("by: decimal(30, 0)?, v: decimal(30, 0)?")
    by, of = (column.type for column in schema)
    for descends, nulls_last, once in itertools.product((False, True), repeat=3):
        rows = sorted(
            {
                (rng.choice([*values, None]), rng.choice([*values, None])): rng.randint(-1, 2)
                for _ in range(9)
            }.items(),
            key=repr,
        )
        words = encode_rows(schema, [row for row, _ in rows], SYMBOLS)
        lines = np.concatenate([words, np.array([[count for _, count in rows]], np.int64)])
        function = CollectedValues(of, ((by, descends, nulls_last),), once=once)
        answers = function.answers(lines, np.array([[0], [len(rows)]], np.int64))
        ((found,),) = decode_rows(Schema.of("v: any"), answers, SYMBOLS)

        def place(row: tuple[Decimal | None, Decimal]) -> tuple[bool, Decimal, Decimal]:
            first = row[0] or Decimal(0)
            return (row[0] is None) == nulls_last, -first if descends else first, row[1]  # noqa: B023

        there = [(row, 1 if once else count) for row, count in rows if row[1] is not None and count > 0]
        wanted = sorted(
            (cast("tuple[Decimal | None, Decimal]", row) for row, n in there for _ in range(n)), key=place
        )
        assert found == tuple(value for _, value in wanted)
