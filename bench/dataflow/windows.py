"""What does a change cost in an ordered window over one large group, and what does DuckDB's recomputation?

One group with N rows: an order, a value that is uniform in 0 … 999. In turns a row comes and goes again, or a
row gets another value and its old one back. `at` says where in the order: 0.99 is the place with 99 % of the
rows before it. DuckDB gets the same change and makes the table of all answers anew, with one thread; so it
does the same work wherever the change is. Seconds are those of this process (CPU time, for the machine may
have other work), from the rows handed over to the answer being known; the load is counted apart. In some
shapes every row has another answer: these are made to lose.

    python -m bench.dataflow.windows [--rows 1000000] [--changes 8] [--only sum] [--draw FILE.svg]

One line of a Markdown table for each shape. With --draw the cost of a running sum by the place of the change
is drawn, too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

import differential as dd
import timely
from differential import Collection, col

__all__ = ["SHAPES", "Cost", "Shape", "measured", "recomputed"]

Build = Callable[[Collection], Collection]

_BEGIN = "a text of some length before the number "
_OVER = "over (partition by k order by t {})"


class Shape(NamedTuple):
    """A window, the same in SQL, where its changes are, and whether a row is replaced."""

    build: Build
    sql: str
    at: float
    replaces: bool = False


class Cost(NamedTuple):
    """CPU seconds to load, and of each change; rows of the answer that a change is, at most."""

    load: float
    each: list[float]
    rows: int


def _lag(rows: Collection) -> Collection:
    return rows.over("k", by="t").with_columns(x=dd.lag("v"))


def _sum(rows: Collection) -> Collection:
    return rows.over("k", by="t").with_columns(x=dd.sum("v"))


def _most(rows: Collection) -> Collection:
    return rows.over("k", by="t").with_columns(x=dd.max("v"))


def _number(rows: Collection) -> Collection:
    return rows.over("k", by="t").with_columns(x=dd.row_number())


def _week(rows: Collection) -> Collection:
    return rows.over("k", by="t").rows_between(-6, 0).with_columns(x=dd.avg("v"))


def _near(rows: Collection) -> Collection:
    return rows.over("k", by="t").range_between(-200, 0).with_columns(x=dd.sum("v"))


def _tenths(rows: Collection) -> Collection:
    return rows.over("k", by="t").with_columns(x=dd.ntile(10))


def _ranks(rows: Collection) -> Collection:
    return rows.over("k", by="t").with_columns(x=dd.percent_rank())


def _rest(rows: Collection) -> Collection:
    return rows.over("k", by="t").rows_between(0, None).with_columns(x=dd.sum("v"))


def _number_and_rest(rows: Collection) -> Collection:
    window = rows.over("k", by="t").rows_between(0, None)
    return window.with_columns(n=dd.row_number(), x=dd.sum("v"))


def _later(rows: Collection) -> Collection:
    return rows.over("k", by="t").range_between(200, None).with_columns(f=dd.first_value("v"), x=dd.max("v"))


def _all(rows: Collection) -> Collection:
    return rows.over("k").with_columns(x=dd.max("v"))


def _by_text(rows: Collection) -> Collection:
    named = rows.with_columns(name=dd.concat(dd.lit(_BEGIN), col.t.cast("string")))
    return named.over("k", by="name").with_columns(x=dd.lag("v"))


_TEXT = f"'{_BEGIN}' || t::varchar"
_REST = _OVER.format("rows between current row and unbounded following")
_LATER = _OVER.format("range between 200 following and unbounded following")
_SUM = f"sum(v) {_OVER.format('')}"
_NUMBER = f"row_number() {_OVER.format('')}"

SHAPES: dict[str, Shape] = {
    "lag": Shape(_lag, f"lag(v) {_OVER.format('')}", 0.5),
    "mean of 7 rows": Shape(_week, f"avg(v) {_OVER.format('rows 6 preceding')}", 0.5),
    "sum of a range of 100 rows": Shape(_near, f"sum(v) {_OVER.format('range 200 preceding')}", 0.5),
    "running sum, at 0.99": Shape(_sum, _SUM, 0.99),
    "running sum, at 0.5": Shape(_sum, _SUM, 0.5),
    "running sum, at the first row": Shape(_sum, _SUM, 0.0),
    "running maximum, at 0.5": Shape(_most, f"max(v) {_OVER.format('')}", 0.5),
    "row_number, another value at 0.5": Shape(_number, _NUMBER, 0.5, True),
    "row_number, a row more at 0.99": Shape(_number, _NUMBER, 0.99),
    "row_number, a row more at the first row": Shape(_number, _NUMBER, 0.0),
    "ntile(10)": Shape(_tenths, f"ntile(10) {_OVER.format('')}", 0.5),
    "percent_rank, another value at 0.5": Shape(_ranks, f"percent_rank() {_OVER.format('')}", 0.5, True),
    "percent_rank, a row more at 0.5": Shape(_ranks, f"percent_rank() {_OVER.format('')}", 0.5),
    "sum of all rows behind, at 0.01": Shape(_rest, f"sum(v) {_REST}", 0.01),
    "row_number and the sum of all rows behind, another value at 0.01": Shape(
        _number_and_rest, f"{_NUMBER} as n, sum(v) {_REST}", 0.01, True
    ),
    "first value and maximum from 100 rows later on": Shape(
        _later, f"first_value(v) {_LATER} as f, max(v) {_LATER}", 0.5
    ),
    "maximum of all rows": Shape(_all, "max(v) over (partition by k)", 0.5),
    "lag in an order of texts": Shape(_by_text, f"lag(v) over (partition by k order by {_TEXT})", 0.5),
}


def table(rows: int) -> pa.Table:
    """The rows, in no order; their places in it are the even numbers."""
    rng = np.random.default_rng(1)
    places = 2 * rng.permutation(rows)
    return pa.table({"k": np.zeros(rows, np.int64), "t": places, "v": rng.integers(0, 1000, rows)})


def changed(shape: Shape, rows: pa.Table, number: int) -> tuple[pa.Table, pa.Table]:
    """The rows that go and those that come in the change of that number; the next one takes it back."""
    place = 2 * min(int(shape.at * len(rows)) + number // 2, len(rows) - 1)
    old = rows.filter(pa.array(np.asarray(rows["t"]) == place)) if shape.replaces else rows.slice(0, 0)
    new = pa.table({"k": [0], "t": [place + (not shape.replaces)], "v": [500]}, rows.schema)
    return (old, new) if number % 2 == 0 else (new, old)


def measured(shape: Shape, rows: pa.Table, changes: int) -> Cost:
    """Load the rows, and change one of them, `changes` times in all."""

    def build(dataflow: timely.Dataflow) -> None:
        shape.build(dd.input(dataflow, "rows", "k: int, t: int, v: int")).output("answer")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(timely.builder(build))
        changing, answer = flow.input("rows"), flow.output("answer")
        begin = time.process_time()
        changing.insert(rows)
        loaded = flow.seal()
        flow.wait(loaded)
        load = time.process_time() - begin
        answer.forget(loaded + 1)
        each: list[float] = []
        most = 0
        for number in range(changes):
            gone, come = changed(shape, rows, number)
            begin = time.process_time()
            changing.remove(gone)
            changing.insert(come)
            flow.seal(wait=True)
            each.append(time.process_time() - begin)
            most = max(most, len(answer.changes()))
            answer.forget()
    return Cost(load, each, most)


def recomputed(shape: Shape, rows: pa.Table, changes: int) -> list[float]:
    """CPU seconds of DuckDB for each of the same changes, and all answers after it."""
    database = duckdb.connect(":memory:", config={"threads": 1})
    database.register("loaded", rows)
    database.execute("create table rows as select * from loaded")
    each: list[float] = []
    for number in range(changes):
        gone, come = changed(shape, rows, number)
        database.register("gone", gone)
        database.register("come", come)
        begin = time.process_time()
        database.execute("delete from rows using gone where rows.t = gone.t and rows.v = gone.v")
        database.execute("insert into rows select * from come")
        database.execute(f"create or replace table answer as select *, {shape.sql} as x from rows")
        each.append(time.process_time() - begin)
    return each


def draw(rows: pa.Table, changes: int, path: Path) -> None:
    """Draw what a change of a running sum costs by its place, beside DuckDB."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "windows"
    places = (0.0, 0.5, 0.9, 0.99, 0.999)
    shapes = [Shape(_sum, _SUM, place) for place in places]
    ours = [1000 * statistics.median(measured(shape, rows, changes).each) for shape in shapes]
    theirs = 1000 * statistics.median(recomputed(shapes[0], rows, changes))
    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    axes = figure.subplots()
    behind = [100 * (1 - place) for place in places]
    axes.plot(behind, ours, "o-", color="#1f6fb4", label="a change here")
    axes.axhline(theirs, color="#c0392b", label="DuckDB, all answers anew")
    axes.set(xscale="log", yscale="log", xlabel="rows behind the change, %", ylabel="CPU time, ms")
    axes.set_title(f"A running sum over one group of {len(rows):,} rows")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--draw", type=Path)
    options = parser.parse_args()
    rows, few = table(options.rows), table(200)
    print(
        "| window, and change | load, s | a change, ms: median, worst | rows of the answer | DuckDB, ms "
        "| ratio |"
    )
    print("|---|---|---|---|---|---|")
    for name, shape in SHAPES.items():
        if options.only not in name:
            continue
        measured(shape, few, 2)  # kernels are compiled, or loaded
        cost, theirs = measured(shape, rows, options.changes), recomputed(shape, rows, options.changes)
        ours, other = (1000 * statistics.median(each) for each in (cost.each, theirs))
        print(
            f"| {name} | {cost.load:.2f} | {ours:.2f}, {1000 * max(cost.each):.1f} | {cost.rows:,} "
            f"| {other:.0f} | {ours / other:.3f} |",
            flush=True,
        )
    if options.draw is not None:
        draw(rows, options.changes, options.draw)


if __name__ == "__main__":
    main()
