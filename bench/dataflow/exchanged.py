"""How many rows a second do two processes exchange, as tables of 64-bit columns and as records?

Each worker sends rows (key, value), two whole numbers of 64 bits, by an exchange by key; so half of all rows
goes to the other process. At their targets rows are counted. Rows exist before the clock starts, and one
piece of them is sent again and again.

    tables     pieces of 100,000 rows: numbers of keys by column, one Arrow IPC stream for each worker
    records    pieces of 10,000 tuples: numbers by column, msgpack. Here tables should win by far
    collection the rows as a table in the client, as an input of a collection, grouped by key and counted: a
               row is taken in, packed, exchanged and sorted. That is much more, and a mark to compare with

Estimate: a row of a table is numbered and divided in 4 ns, taken in 2, copied three times: 10 to 20 ns in
each of two processes, so 50 to 100 million rows a second. A record takes 70 ns to number and to divide; half
of them take 120 to travel: some ten million a second.

    python -m bench.dataflow.exchanged [--runs N] [--write FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

import differential as dd
import timely
from bench.machine import machine
from progress.times.timestamp import Timestamp

FORMS = ("tables", "records", "collection")
PIECE_ROWS = {"tables": 100_000, "records": 10_000}
ROWS = {"tables": 20_000_000, "records": 4_000_000, "collection": 4_000_000}


def keys(rows: int) -> list[int]:
    """Return keys of 64 bits, always the same."""
    drawn: list[int] = np.random.default_rng(7).integers(0, 1 << 62, rows).tolist()
    return drawn


class SendsVertex(timely.Vertex):
    """For each record n, sends n rows, in pieces of a table or of a list of tuples."""

    def __init__(self, form: str) -> None:
        drawn = keys(PIECE_ROWS[form])
        self._table = pa.table({"key": drawn, "value": drawn}) if form == "tables" else None
        self._records: list[object] = [(key, key) for key in drawn]

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Begin to send the rows."""
        (rows,) = message
        assert isinstance(rows, int)
        self._held, self._rows = self.hold(time), rows
        self.resume()

    def on_resume(self) -> None:
        """Send a piece: others have their turn between two."""
        count = min(len(self._records), self._rows)
        piece = self._records[:count] if self._table is None else self._table.slice(0, count)
        self.send_by(0, piece, self._held.time)
        self._rows -= count
        if self._rows:
            self.resume()
        else:
            self._held.drop()


class TakesVertex(timely.Vertex):
    """Counts the rows of each time."""

    def __init__(self) -> None:
        self._rows: dict[Timestamp, int] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Count the rows."""
        if time not in self._rows:
            self._rows[time] = 0
            self.notify_at(time)
        self._rows[time] += len(message)

    def on_notify(self, time: Timestamp) -> None:
        """Send the number of rows."""
        self.send_by(0, [self._rows.pop(time)], time)


@timely.builder
def exchanged(flow: timely.Dataflow, form: str) -> None:
    """Rows of all workers go to the workers of their keys, which count them."""
    sent = flow.input("go").broadcast().stage("send", lambda: SendsVertex(form))
    flow.output("counts", sent.stage("take", TakesVertex, exchange=timely.by(0)))


@timely.builder
def counted(flow: timely.Dataflow) -> None:
    """Rows of a client are counted by key."""
    rows = dd.input(flow, "rows", "key: int, value: int")
    rows.group_by("key").agg(n=dd.count()).filter(dd.col.n > 1).output("counts")


def seconds_of(cluster: timely.Cluster, form: str, rows: int) -> float:
    """Return how long `rows` rows take until they are counted, behind a first round of few."""
    if form == "collection":
        flow = cluster.install(counted)
        drawn = keys(rows)
        table = pa.table({"key": drawn, "value": drawn})
        flow.input("rows").insert(table.slice(0, 1_000))
        flow.seal(wait=True)
        start = time.perf_counter()
        flow.input("rows").insert(table.slice(1_000))
        flow.seal(wait=True)
        took = time.perf_counter() - start
    else:
        flow = cluster.install(exchanged, form=form)
        flow.input("go").insert([1_000])
        flow.seal(wait=True)
        workers = cluster.workers
        start = time.perf_counter()
        flow.input("go").insert([rows // workers])
        flow.seal(wait=True)
        took = time.perf_counter() - start
        arrived = sum(count for epoch, count in flow.output("counts").changes() if epoch == 1)
        assert arrived == rows // workers * workers, (arrived, rows)
    flow.uninstall()
    return took


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all forms in turn, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.dataflow.exchanged", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    took: dict[str, list[float]] = {form: [] for form in FORMS}
    with timely.connect(workers=2) as cluster:
        for _ in range(options.runs):
            for form in FORMS:
                took[form].append(seconds_of(cluster, form, ROWS[form]))
    lines = [
        "## Rows exchanged between two processes",
        "",
        f"`python -m bench.dataflow.exchanged`; medians of {options.runs} runs, forms in turn; two columns "
        "of 64 bits.",
        "",
        "| form | rows | seconds | rows a second | ns a row |",
        "|---|---|---|---|---|",
    ]
    for form, times in took.items():
        rate = ROWS[form] / median(times)
        lines.append(f"| {form} | {ROWS[form]:,} | {median(times):.2f} | {rate:,.0f} | {1e9 / rate:,.0f} |")
    lines += ["", f"{datetime.now(UTC):%Y-%m-%d}, {machine()}.", ""]
    print("\n".join(lines))
    if options.write is not None:
        options.write.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
