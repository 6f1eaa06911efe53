"""What does a change cost in one large group, where the first rows of it are wanted?

One group of N rows of three columns: a number, a text of 12 characters, a payload. In turns a row is changed
that is an answer (the least number and the least text at once: the worst place) and a row at random. Seconds
are those of this process (CPU time, for the machine may have other work), from the rows handed over to the
answer being known; the load is not counted. `reduce(fn)` goes through the whole group. Text of which all 32
first bytes are alike is ordered by numbers that are given to it.

    python -m bench.dataflow.ordered [--rows 200000 1000000] [--changes 40] [--no-function]

One line of a Markdown table for each operator and size.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

import differential as dd
import timely
from differential import Collection, col

Build = Callable[[Collection], Collection]


def least(key: object, rows: list[tuple[tuple[object, ...], int]]) -> list[object]:
    """The least number, as a function of the group."""
    del key
    return [min(row[0] for row, count in rows if count > 0)]  # type: ignore[type-var]  # numbers


OPERATORS: dict[str, Build] = {
    "min of int": lambda c: c.group_by("g").agg(x=dd.min("x")),
    "min of text": lambda c: c.select("g", "name").group_by("g").first(by="name"),
    "max of text": lambda c: c.select("g", "name").group_by("g").last(by="name"),
    "row of the least int": lambda c: c.group_by("g").first(by="x"),
    "top 10 by int": lambda c: c.group_by("g").top_k(10, by=col.x.desc()),
    "top 10 by int, ranked": lambda c: c.group_by("g").top_k(10, by=col.x.desc(), rank="place"),
    "top 10 by text": lambda c: c.group_by("g").top_k(10, by="name"),
    "min of text, all begin alike": lambda c: c.select("g", "name").group_by("g").first(by="name"),
    "reduce(fn), min of int": lambda c: c.select("g", "x").group_by("g").reduce(least, "x: int"),
}


def table(numbers: Sequence[int], begin: str) -> pa.Table:
    """Rows whose numbers and texts have the same order; all texts have one beginning."""
    return pa.table(
        {
            "g": np.zeros(len(numbers), np.int64),
            "x": np.array(numbers, np.int64),
            "name": [f"{begin}{number:08}" for number in numbers],
            "payload": np.array(numbers, np.int64) * 31,
        }
    )


def measured(build: Build, rows: int, changes: int, begin: str) -> tuple[list[float], list[float]]:
    """Seconds of each change: of the row that is the answer, and of one at random."""

    @timely.builder
    def flow(dataflow: timely.Dataflow) -> None:
        build(dd.input(dataflow, "rows", "g: int, x: int, name: string, payload: int")).output("answer")

    generator = np.random.default_rng(1)
    with timely.connect(workers=1, embedded=True) as cluster:
        installed = cluster.install(flow)
        source = installed.input("rows")
        source.insert(table(generator.permutation(rows).tolist(), begin))
        installed.seal(wait=True)
        seconds: tuple[list[float], list[float]] = ([], [])
        for change in range(2 * changes):
            number = 0 if change % 2 == 0 else int(generator.integers(rows // 10, rows - rows // 10))
            for add in (False, True):
                one = table([number], begin)
                start = time.process_time()
                (source.insert if add else source.remove)(one)
                installed.seal(wait=True)
                seconds[change % 2].append(time.process_time() - start)
    return seconds


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--no-function", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| operator | rows | the answer changes: ms, median, worst | another row: ms, median |")
    print("|---|---|---|---|")
    for name, build in OPERATORS.items():
        is_function = name.startswith("reduce")
        begin = "name" * (12 if "alike" in name else 1)
        if (is_function and options.no_function) or options.only not in name:
            continue
        for rows in options.rows[:1] if is_function else options.rows:
            answer, other = measured(build, rows, 2 if is_function else options.changes, begin)
            print(
                f"| {name} | {rows:,} | {1000 * statistics.median(answer):.2f}, {1000 * max(answer):.1f} "
                f"| {1000 * statistics.median(other):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
