"""The workloads of `bench/workloads.py` on Pathway, as one of its users would write them.

    python -m bench.peers.python.on_pathway wcc plain 100000 200000 100 [-w WORKERS] [--batch EPOCHS]

Rows go in through `pw.io.python.ConnectorSubject`, the connector for values of Python that takes changes, with a
commit at the end of each epoch and none in between; each row's number is its primary key, for rows that are alike
have to be told apart to be deleted. (A frame of pandas takes no changes, and a million rows of it take no less of the
processor.) They come out through `pw.io.subscribe`. An epoch is over when `on_time_end` says so.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version

from bench import memory
from bench.peers.python.harness import (
    NOBODY,
    Inputs,
    Measured,
    NumberedRow,
    Run,
    drawn,
    given,
    printed,
    ready,
)
from bench.workloads import DAMPING, ITERATIONS, UNIT

FAMILIES = ("wcc plain", "bfs", "pagerank", "count plain", "sum", "join")
RUN = given("pathway", FAMILIES)
os.environ["PATHWAY_THREADS"] = str(RUN.workers)  # read when Pathway is imported
os.environ["PATHWAY_PROCESSES"] = "1"

import pathway as pw  # noqa: E402

Tables = dict[str, pw.Table]
Query = Callable[[Tables], pw.Table]


FEW = 16
"""An epoch that replaces no more rows may change nothing of the result, and Pathway does not say then that it is
over.
"""
TICKS = "ticks"
"""The input that a workload of such epochs has besides: a row more in each epoch, which comes out with its result."""


class One(pw.Schema):
    """Rows of a workload with one input of one column."""

    row: int = pw.column_definition(primary_key=True)
    a: int


class Two(One):
    """With two columns."""

    b: int


class Several(Two):
    """Of several inputs: an epoch is of one connector, so they share one, and are told apart by a number."""

    input: int


def components(tables: Tables) -> pw.Table:
    """Every node takes the least label among its own and its neighbours', until nothing changes."""
    nodes = tables["nodes"].select(node=pw.this.a).with_id_from(pw.this.node)
    edges = tables["edges"]
    there = edges.select(u=nodes.pointer_from(pw.this.a), v=nodes.pointer_from(pw.this.b))
    back = there.select(u=pw.this.v, v=pw.this.u)
    both = pw.Table.concat_reindex(there, back)
    own = nodes.select(label=pw.this.node)

    def step(labels: pw.Table, both: pw.Table, own: pw.Table) -> pw.Table:
        offered = both.select(v=pw.this.v, label=labels.ix(both.u).label)
        mine = own.select(v=own.id, label=own.label)
        every = pw.Table.concat_reindex(offered, mine)
        return every.groupby(id=every.v).reduce(label=pw.reducers.min(every.label)).with_universe_of(own)

    labels = pw.iterate(step, labels=own, both=both, own=own)
    return nodes.select(pw.this.node, label=labels.label)


def distances(tables: Tables) -> pw.Table:
    """Every node takes the least of what its predecessors offer, their distance and one more."""
    edges = tables["edges"].select(src=pw.this.a, dst=pw.this.b)
    first = tables["nodes"].select(node=pw.this.a, distance=0)

    def step(reached: pw.Table, edges: pw.Table, first: pw.Table) -> pw.Table:
        further = reached.join(edges, reached.node == edges.src).select(
            node=edges.dst, distance=reached.distance + 1
        )
        every = pw.Table.concat_reindex(further, first)
        return (
            every.groupby(every.node)
            .reduce(every.node, distance=pw.reducers.min(every.distance))
            .with_id_from(pw.this.node)
        )

    reached = pw.iterate(
        step, reached=pw.iterate_universe(first.with_id_from(pw.this.node)), edges=edges, first=first
    )
    return reached.select(pw.this.node, pw.this.distance)


def ranks(tables: Tables) -> pw.Table:
    """What `pw.stdlib.graphs.pagerank` does, with 20 steps one after the other and ranks of whole numbers."""
    edges = tables["edges"].select(src=pw.this.a, dst=pw.this.b)
    nodes = pw.Table.concat_reindex(edges.select(node=pw.this.src), edges.select(node=pw.this.dst))
    nodes = nodes.groupby(nodes.node).reduce(nodes.node).with_id_from(pw.this.node)
    links = edges.select(u=nodes.pointer_from(pw.this.src), v=nodes.pointer_from(pw.this.dst))
    out = links.groupby(id=links.u).reduce(degree=pw.reducers.count())
    degrees = nodes.select(degree=0).update_rows(out).with_universe_of(nodes)
    numerator, denominator = DAMPING
    rest = UNIT - UNIT * numerator // denominator
    rank = nodes.select(rank=UNIT)
    for _ in range(ITERATIONS):
        flow = degrees.select(
            flow=pw.if_else(
                degrees.degree == 0,
                0,
                (rank.rank * numerator) // (pw.if_else(degrees.degree == 0, 1, degrees.degree) * denominator),
            )
        )
        inflow = links.groupby(id=links.v).reduce(rank=pw.reducers.sum(flow.ix(links.u).flow) + rest)
        rank = nodes.select(rank=rest).update_rows(inflow).with_universe_of(nodes)
    return nodes.select(pw.this.node, rank=rank.rank)


def counts(tables: Tables) -> pw.Table:
    """Rows by key."""
    rows = tables["rows"]
    return rows.groupby(rows.a).reduce(key=rows.a, n=pw.reducers.count())


def totals(tables: Tables) -> pw.Table:
    """Totals of a value by key."""
    rows = tables["rows"]
    return rows.groupby(rows.a).reduce(key=rows.a, total=pw.reducers.sum(rows.b))


def pairs(tables: Tables) -> pw.Table:
    """Pairs of rows with equal keys."""
    left, right = tables["left"], tables["right"]
    return left.join(right, left.a == right.a).select(key=left.a, left_row=left.b, right_row=right.b)


QUERIES: dict[str, Query] = {
    "wcc": components,
    "bfs": distances,
    "pagerank": ranks,
    "count": counts,
    "sum": totals,
    "join": pairs,
}


class Feed(pw.io.python.ConnectorSubject):
    """The input of a run, which drives it: it hands rows over, and waits until their epochs are over."""

    def __init__(self, run: Run, inputs: Inputs, measured: Measured) -> None:
        super().__init__()
        self._run = run
        self._measured = measured
        self._names = [*inputs.fixed, *inputs.changing]
        if inputs.schedule.step <= FEW:
            self._names.append(TICKS)
        self._inputs = inputs
        self._epochs_over = threading.Semaphore(0)

    @property
    def schema(self) -> type[pw.Schema]:
        """Of all that is handed over."""
        if len(self._names) > 1:
            return Several
        return One if self._run.family == "count" else Two

    def tables(self) -> Tables:
        """The inputs by name."""
        every = pw.io.python.read(self, schema=self.schema, autocommit_duration_ms=None)
        if len(self._names) == 1:
            return {self._names[0]: every}
        return {name: every.filter(every.input == place) for place, name in enumerate(self._names)}

    def epoch_is_over(self, _time: int) -> None:
        """Called by the engine when all that a commit has changed has come out."""
        self._epochs_over.release()

    def run(self) -> None:
        """See `ConnectorSubject`: in a thread of its own."""
        inputs, measured = self._inputs, self._measured
        loaded = self._messages([*inputs.loaded(), *self._tick(-1)])
        gc.collect()
        gc.freeze()
        begin = time.perf_counter()
        for message in loaded:
            self.next(**message)
        self.commit()
        self._wait(1)
        measured.load_seconds = time.perf_counter() - begin
        measured.loaded = len(measured.output)
        changes = inputs.schedule.changes
        for first in range(0, changes, self._run.batch):
            group = [self._change(number) for number in range(first, min(first + self._run.batch, changes))]
            begin = time.perf_counter()
            for gone, come in group:
                for message in gone:
                    self.delete(**message)
                for message in come:
                    self.next(**message)
                self.commit()
            self._wait(len(group))
            measured.change_ms.append((time.perf_counter() - begin) * 1e3)
        measured.peak_mib = memory.peak_mib()

    def _wait(self, epochs: int) -> None:
        for _ in range(epochs):
            self._epochs_over.acquire()

    def _change(self, number: int) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
        gone, come = self._inputs.changed(number)
        return self._messages(gone), self._messages([*come, *self._tick(number)])

    def _tick(self, change: int) -> list[NumberedRow]:
        """What comes with a change, or with the load, which is change -1."""
        return [(TICKS, change + 1, (NOBODY,))] if TICKS in self._names else []

    def _messages(self, rows: Sequence[NumberedRow]) -> list[dict[str, int]]:
        """As `next` takes them."""
        names = [name for name in self.schema.column_names() if name not in ("row", "input")]
        places = {name: place for place, name in enumerate(self._names)}
        several = len(places) > 1
        messages = []
        for name, number, row in rows:
            message = dict(zip(names, row))
            if several:
                message.setdefault("b", 0)
                message["input"] = places[name]
            message["row"] = number * len(places) + places[name]
            messages.append(message)
        return messages


def main() -> None:
    """The command line."""
    idle_mib = ready()
    measured = Measured()
    feed = Feed(RUN, drawn(RUN), measured)
    tables = feed.tables()
    result = QUERIES[RUN.family](tables)
    if TICKS in tables:
        names = dict.fromkeys(result.column_names(), pw.this.a)
        result = pw.Table.concat_reindex(result, tables[TICKS].select(**names))
    output = measured.output

    def on_change(key: pw.Pointer, row: dict[str, int], time: int, is_addition: bool) -> None:
        output.append((tuple(row.values()), 1 if is_addition else -1))

    pw.io.subscribe(result, on_change, on_time_end=feed.epoch_is_over)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)
    print(printed(f"pathway {version('pathway')}", RUN, measured, idle_mib))


if __name__ == "__main__":
    main()
