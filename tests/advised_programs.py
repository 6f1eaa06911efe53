"""Programs with one mistake, and what they answer once the advice of the error stands in its place.

`Advised("rows.«filter('x > 1')».select('x')", r"Write (.+)", [2, 3])` is a program whose mistake is marked.
The program fails, and the pattern finds the advice in the message. With the advice in place of the mistake,
the program runs and gives the answer.
"""

from __future__ import annotations

import ast
import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import differential as dd
import timely
from differential import algorithms

__all__ = ["Advised", "ask_program", "ask_query", "follows_advice", "shown", "uninstalled"]

MARK = re.compile("«(.*?)»", re.DOTALL)

ROWS = (
    "key: string, x: int, y: int, s: string, maybe: int?, f: float, t: timestamp, day: date, tags: any, "
    "money: decimal(10, 2), ok: bool"
)
A_DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
DATA: Mapping[str, list[tuple[object, ...]]] = {
    "rows": [
        ("a", 1, 10, "one", None, 0.5, A_DAY.replace(minute=3), dt.date(2024, 1, 1), [1, 2],
         Decimal("1.50"), True),
        ("a", 2, 20, "two", 7, 1.5, A_DAY.replace(minute=7), dt.date(2024, 1, 2), [3],
         Decimal("2.25"), False),
        ("b", 3, 30, "three", 9, 2.5, A_DAY.replace(hour=1), dt.date(2024, 2, 3), [],
         Decimal("0.10"), True),
    ],
    "other": [("a", 100, 1.0), ("c", 300, 3.0)],
    "texts": [("1", "a"), ("3", "c")],
    "edges": [(1, 2), (2, 3), (1, 3)],
}  # fmt: skip
SCHEMAS = {
    "rows": ROWS,
    "other": "key: string, y: int, z: float",
    "texts": "x: string, name: string",
    "edges": "src: int, dst: int",
}
MODULES: Mapping[str, object] = {
    "dd": dd,
    "timely": timely,
    "algorithms": algorithms,
    "datetime": dt.datetime,
    "date": dt.date,
    "timedelta": dt.timedelta,
    "UTC": dt.UTC,
    "dt": dt,
    "Decimal": Decimal,
    "math": math,
    "np": np,
    "pd": pd,
    "pa": pa,
    **{name: getattr(dd, name) for name in ("col", "lit", "when")},
}
"""What programs have imported. A message may leave out `dd.`; then its function is there by its bare name."""


@dataclass(frozen=True)
class Advised:
    """A program with one mistake.

    written   the program; the mistake stands between « and »
    advice    a pattern of the message, with what to write as its group
    answer    what the program answers with the advice in place of the mistake
    instead   how the advice stands there, if not as it is: groups of the pattern as \\1, \\2
    gaps      what the user writes for each `…` of the advice, in order
    reads     what the user puts for names that the advice only gives as examples
    names     what else the program has: functions, values
    bare      names of the module `dd` that the advice writes without it
    """

    written: str
    advice: str
    answer: object
    instead: str = r"\1"
    gaps: tuple[str, ...] = ()
    reads: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, object] = field(default_factory=dict)
    bare: tuple[str, ...] = ()

    @property
    def mistaken(self) -> str:
        """The program as the user wrote it first."""
        return self.written.replace("«", "").replace("»", "")

    def corrected(self, message: str) -> str:
        """Return the program with the advice of `message` in place of the mistake."""
        match = re.search(self.advice, message, re.MULTILINE)
        assert match is not None, f"no {self.advice!r} in the message:\n{message}"
        advice = match.expand(self.instead)
        for example, own in self.reads.items():
            assert example in advice, advice
            advice = advice.replace(example, own)
        assert advice.count("…") == len(self.gaps), advice
        for gap in self.gaps:
            advice = advice.replace("…", gap, 1)
        assert MARK.search(self.written)
        return MARK.sub(lambda _: advice, self.written)

    def __str__(self) -> str:
        return " ".join(self.written.split())[:90]


def evaluate(program: str, names: dict[str, object]) -> object:
    """Carry out `program`; return the value of its last line, an expression."""
    *lines, last = ast.parse(program).body
    assert isinstance(last, ast.Expr), program
    exec(compile(ast.Module(lines, []), "<program>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<program>", "eval"), names)


def shown(answer: object) -> object:
    """Return an answer as tests write it: a table as its rows in order, each a tuple or a lone value."""
    if not isinstance(answer, pa.Table):
        return answer
    rows = [tuple(row.values()) for row in answer.to_pylist()]
    return sorted((row[0] if len(row) == 1 else row for row in rows), key=repr)


def follows_advice(advised: Advised, ask: Callable[[str], object]) -> None:
    """Check that the program fails, and with the advice answers what is meant.

    `ask` carries out a program, and returns its answer.
    """
    with pytest.raises((timely.TimelyError, AttributeError, TypeError)) as caught:
        ask(advised.mistaken)
    message = str(caught.value)
    corrected = advised.corrected(message)
    try:
        answer = shown(ask(corrected))
    except Exception as error:
        raise AssertionError(f"{corrected}\nfails as advised by:\n{message}") from error
    assert answer == advised.answer, f"{corrected}\nanswers {answer}"


def ask_query(cluster: timely.Cluster, program: str, advised: Advised) -> object:
    """Return the rows of the collection that `program` ends with, over the rows of `DATA`."""
    flow: timely.Flow | None = None
    names: dict[str, object] = {
        **MODULES, **{name: getattr(dd, name) for name in advised.bare},
        **advised.names
    }  # fmt: skip

    def build(dataflow: timely.Dataflow) -> None:
        inputs = {name: dd.input(dataflow, name, schema) for name, schema in SCHEMAS.items()}
        collection = evaluate(program, {**names, **inputs, "flow": dataflow})
        assert isinstance(collection, dd.Collection), collection
        collection.output("answer")

    flow = cluster.install(build)
    with uninstalled(flow):
        for name, rows in DATA.items():
            flow.input(name).insert(rows)
        flow.seal()
        return flow.output("answer").snapshot(timeout=60)


def ask_program(cluster: timely.Cluster, program: str, advised: Advised) -> object:
    """Return what `program` ends with. It has a cluster, and a flow with some inputs and outputs.

    Input and output `numbers` hold whole numbers, `last` the last value by id, and `records` any records.
    """

    def standard(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "numbers", "n: int").output("numbers")
        dd.input(dataflow, "last", "id: int, v: string", key="id", mode="upsert").output("last")
        dataflow.output("records", dataflow.input("records"))

    flow = cluster.install(standard)
    with uninstalled(flow):
        return shown(evaluate(program, {**MODULES, **advised.names, "cluster": cluster, "flow": flow}))


@contextmanager
def uninstalled(flow: timely.Flow) -> Iterator[None]:
    try:
        yield
    finally:
        flow.uninstall()
