"""Dataflows whose right answers are obvious, as workers install them, and those answers.

Every collection has the columns `key`, `value` and `tag`; a tag names the insertion that a row came with.
Every dataflow has, beside its answers, an output per input that repeats the input: what it says is the truth
from which the answers are computed anew, by the plain definition.

A row with the value 0 fails in the middle of the work, and ends the dataflow, whose answers are strict. Of
records one with -1 ends the process.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import timely
from differential import col, count, input, lit, min, sum
from progress.times.timestamp import Timestamp
from timely.limits import SPREAD_ROWS_MIN

__all__ = ["QUERIES", "Query", "Row", "rows_of", "rows_of_stranger"]

Row = tuple[object, ...]
Rows = Counter[Row]
Inputs = Mapping[str, Rows]

SCHEMA = "key: int, value: int, tag: int"


@dataclass(frozen=True)
class Query:
    """A dataflow and its plain definition.

    answers: for each output the changes that an epoch brings, from what was there before and what came in.
    """

    name: str
    inputs: tuple[str, ...]
    answers: Mapping[str, Callable[[Inputs, Inputs], Rows]]
    is_records: bool = False
    takes_many: bool = True

    @property
    def spec(self) -> str:
        """By which workers find it."""
        return f"soak.queries:{self.name}"


def rows_of(tag: int) -> list[tuple[int, int, int]]:
    """The rows of an insertion, which its tag determines."""
    size = (1, 2, 3, 5, 8, 13, 1, 2)[tag * 31 % 8]
    return [((tag * 7 + at * 3) % 12, 1 + (tag * 13 + at * 5) % 97, tag) for at in range(size)]


def rows_of_stranger(tag: int) -> list[tuple[int, int, int]]:
    """The rows that a client in a process of its own inserts: sometimes so many that they come in parts."""
    return rows_of(tag) * (SPREAD_ROWS_MIN if tag % 16 == 15 else 1)


def _accumulated(answer: Callable[[Inputs], Rows]) -> Callable[[Inputs, Inputs], Rows]:
    """The changes of an answer that is a function of all rows."""

    def changes(before: Inputs, added: Inputs) -> Rows:
        now = {name: _sum(before[name], added[name]) for name in before}
        return _sum(answer(now), answer(before), -1)

    return changes


def _sum(one: Rows, other: Rows, sign: int = 1) -> Rows:
    total = Counter(one)
    for row, times in other.items():
        total[row] += sign * times
    return Counter({row: times for row, times in total.items() if times})


_LEAST_SHARE = -1_000_000
"""Below all shares: asked for, so that each is worked out. What nobody reads is not, and cannot fail."""


@timely.builder
def filtered(dataflow: timely.Dataflow) -> None:
    """A filter, a projection, and the different keys."""
    rows = input(dataflow, "rows", SCHEMA)
    rows.output("same rows")
    rows.filter(col.value > 50).select("key", half=lit(1_000) // col.value).output("answer", strict=True)
    shares = rows.select("key", share=lit(1_000) // col.value)
    shares.filter(col.share > _LEAST_SHARE).select("key").distinct().output("keys", strict=True)


def _filtered(rows: Inputs) -> Rows:
    answer: Rows = Counter()
    for (key, value, _), times in rows["rows"].items():
        if cast(int, value) > 50:
            answer[key, 1_000 // cast(int, value)] += times
    return answer


def _keys(rows: Inputs) -> Rows:
    return Counter({(row[0],): 1 for row, times in rows["rows"].items() if times > 0})


@timely.builder
def grouped(dataflow: timely.Dataflow) -> None:
    """Sums, counts and least values."""
    rows = input(dataflow, "rows", SCHEMA)
    rows.output("same rows")
    shares = rows.with_columns(share=lit(1_000) // col.value)
    shares.group_by("key").agg(total=sum("value"), n=count(), least=min("share")).output(
        "answer", strict=True
    )


def _grouped(rows: Inputs) -> Rows:
    groups: dict[object, list[int]] = {}
    for (key, value, _), times in rows["rows"].items():
        groups.setdefault(key, []).extend([cast(int, value)] * times)
    return Counter(
        {
            (key, _total(values), len(values), sorted(1_000 // value for value in values)[0]): 1
            for key, values in groups.items()
            if values
        }
    )


def _total(values: list[int]) -> int:
    total = 0
    for value in values:
        total += value
    return total


@timely.builder
def joined(dataflow: timely.Dataflow) -> None:
    """Two inputs, joined by key."""
    rows, more = input(dataflow, "rows", SCHEMA), input(dataflow, "more", SCHEMA)
    rows.output("same rows")
    more.output("same more")
    left = rows.select("key", share=lit(1_000) // col.value)
    left.join(more.select("key", other=lit(1_000) // col.value), on="key").output("answer", strict=True)


def _joined(rows: Inputs) -> Rows:
    right: dict[object, Rows] = {}
    for (key, value, _), times in rows["more"].items():
        right.setdefault(key, Counter())[1_000 // cast(int, value),] += times
    answer: Rows = Counter()
    for (key, value, _), times in rows["rows"].items():
        for (other,), again in right.get(key, {}).items():
            answer[key, 1_000 // cast(int, value), other] += times * again
    return answer


@timely.builder
def reached(dataflow: timely.Dataflow) -> None:
    """Edges from `key` to `value` modulo 20: what can be reached from where."""
    rows = input(dataflow, "rows", SCHEMA)
    rows.output("same rows")
    checked = rows.with_columns(share=lit(1_000) // col.value)
    edges = checked.filter(col.share > _LEAST_SHARE).select(src=col.key, dst=col.value % 20).distinct()
    edges.iterate(
        lambda x: (
            x.join(edges.select(dst=col.src, last=col.dst), on="dst")
            .select("src", dst=col.last)
            .concat(edges)
            .distinct()
        )
    ).output("answer", strict=True)


def _reached(rows: Inputs) -> Rows:
    beside: dict[int, set[int]] = {}
    for (key, value, _), times in rows["rows"].items():
        if times > 0:
            beside.setdefault(cast(int, key), set()).add(cast(int, value) % 20)
    answer: Rows = Counter()
    for start, first in beside.items():
        found: set[int] = set()
        ahead = list(first)
        while ahead:
            node = ahead.pop()
            if node not in found:
                found.add(node)
                ahead.extend(beside.get(node, ()))
        answer.update({(start, node): 1 for node in found})
    return answer


class CountVertex(timely.Vertex):
    """At the end of an epoch, the totals of the words that came in it."""

    def __init__(self) -> None:
        self.totals: Counter[object] = Counter()
        self.added: dict[Timestamp, Counter[object]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Raise or end at the words for that."""
        for _, value, _ in cast(list[Row], message):
            if value == 0:
                raise ValueError("poison was swallowed")
            if value == -1:
                os._exit(17)
        if time not in self.added:
            self.added[time] = Counter()
            self.notify_at(time)
        self.added[time].update(row[0] for row in cast(list[Row], message))

    def on_notify(self, time: Timestamp) -> None:
        """Tell the new totals."""
        added = self.added.pop(time)
        self.totals.update(added)
        self.send_by(0, [(word, self.totals[word]) for word in added], time)


@timely.builder
def counted(dataflow: timely.Dataflow) -> None:
    """Records: how often each key was there, in vertices of Python."""
    rows = dataflow.input("rows")
    dataflow.output("same rows", rows)
    dataflow.output(
        "answer", rows.stage("count", CountVertex, exchange=lambda row: cast(int, cast(Row, row)[0]))
    )


def _counted(before: Inputs, added: Inputs) -> Rows:
    totals: Counter[object] = Counter()
    fresh: set[object] = set()
    for (key, _, _), times in before["rows"].items():
        totals[key] += times
    for (key, _, _), times in added["rows"].items():
        totals[key] += times
        fresh.add(key)
    return Counter({(key, totals[key]): 1 for key in fresh})


QUERIES = (
    Query("filtered", ("rows",), {"answer": _accumulated(_filtered), "keys": _accumulated(_keys)}),
    Query("grouped", ("rows",), {"answer": _accumulated(_grouped)}),
    Query("joined", ("rows", "more"), {"answer": _accumulated(_joined)}, takes_many=False),
    Query("reached", ("rows",), {"answer": _accumulated(_reached)}),
    Query("counted", ("rows",), {"answer": _counted}, is_records=True),
)
