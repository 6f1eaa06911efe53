"""Dataflows of every kind, random histories of their inputs, and runs of them with and without folds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

import differential as dd
import timely
from differential import col
from differential.algorithms import connected_components
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.folding import fold
from timely.durable.bases.manifest import Base
from timely.durable.bases.pruning import prune
from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import announce
from timely.wire.requests import Read

Row = tuple[int, ...]
Update = tuple[Row, int]
History = list[list[Update]]
"""The rows of each epoch, with their diffs; in an upsert input 1 sets a value, and -1 deletes the key."""

Query = Callable[[timely.Dataflow], None]


def wcc(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    connected_components(edges.select(src=col.a, dst=col.b)).output("out")


def wcc_prioritised(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    connected_components(edges.select(src=col.a, dst=col.b), prioritised=True).output("out")


def bfs(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    start = edges.select(node=col.a).distinct().filter(col.node == 0).select("node", hops=0)

    def further(known: dd.Collection) -> dd.Collection:
        steps = known.join(edges, on={"node": "a"}).select(node=col.b, hops=col.hops + 1)
        return steps.concat(start).group_by("node").agg(hops=dd.min("hops"))

    start.iterate(further).output("out")


def sums(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.group_by("a").agg(
        s=dd.sum("b"), n=dd.count(), m=dd.avg("b"), lo=dd.min("b"), v=dd.variance("b")
    ).output("out")


def top(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.group_by("a").top_k(2, by=col.b.desc(), rank="place").output("out")


def reduced(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.group_by("a").reduce(
        lambda key, rows: [(sum(int(str(values[0])) * count for values, count in rows), len(rows))],
        "s: int, n: int",
    ).output("out")


def joined(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.join(edges.select(b=col.a, c=col.b), on="b").output("out")


def balanced(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.join(edges.select(b=col.a, c=col.b), on="b", balance=dd.Balance("D-JB", units=6)).output("out")


def during(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.during(col.a, col.a + col.b).group_by("b").agg(n=dd.count()).output("out")


def last(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    recent = edges.last("b", 4, clock=dd.clock(0, every=1))
    recent.group_by("a").agg(n=dd.count(), hi=dd.max("b")).output("out")


def sessions(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.window("b", dd.session(3, by="a")).output("out")


def asof(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    prices = edges.select("a", t=col.b, w=col.b * 7)
    edges.asof_join(prices, on="a", left_time="b", right_time="t", exact=False).output("out")


def on_time(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    on, late = edges.split_late("b", 2, clock=dd.clock(0, every=1))
    on.group_by("a").agg(n=dd.count()).output("out")
    late.output("late")


def on_time_twice(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    on, late = edges.filter(col.a > 2).split_late("b", 1, clock=dd.clock(0, every=1))
    other, _ = edges.with_columns(c=col.a - 1).split_late("c", 3, clock=dd.clock(0, every=1))
    on.select("a").concat(other.select("a")).group_by("a").agg(n=dd.count()).output("out")
    late.output("late")


def late_behind_state(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    on, late = edges.distinct().split_late("b", 2, clock=dd.clock(0, every=1))
    on.output("out")
    late.output("late")


def delayed(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.group_by("a").agg(n=dd.count()).delay(2).join(edges.delay(1), on="a").output("out")


def delayed_by_function(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.delay(lambda epoch: epoch // 3 * 3 + 3).group_by("a").agg(n=dd.count()).output("out")


def checked(flow: timely.Dataflow) -> None:
    edges, refused = dd.checked_input(flow, "edges", "a: int, b: int")
    edges.output("out")
    refused.output("refused")


def upserted(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int", key="a", mode="upsert")
    edges.group_by("b").agg(n=dd.count()).output("out")


def upserted_late(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int", key="a", mode="upsert")
    on, late = edges.split_late("b", 2, clock=dd.clock(0, every=1))
    on.output("out")
    late.output("late")


def with_constant(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    edges.agg(n=dd.count()).output("out")


PLAIN: Sequence[Query] = (
    wcc, wcc_prioritised, bfs, sums, top, reduced, joined, balanced, during, last, sessions, asof,
    on_time, on_time_twice, late_behind_state, delayed, delayed_by_function, with_constant,
)  # fmt: skip
CHECKED: Sequence[Query] = (checked,)
UPSERTED: Sequence[Query] = (upserted, upserted_late)
QUERIES: Sequence[Query] = (*PLAIN, *CHECKED, *UPSERTED)


def history_for(query: Query, seed: int, epochs: int) -> History:
    """Return what comes in; plain inputs may be owed rows, which are removed before they are inserted."""
    rng = random.Random(f"{query.__name__} {seed}")
    present: Counter[Row] = Counter()
    history: History = []
    for _ in range(epochs):
        rows: list[Update] = []
        for _ in range(rng.randrange(10)):
            row: Row = (rng.randrange(12), rng.randrange(12))
            diff = 1
            if query in UPSERTED:
                row = (row[0], rng.randrange(14))
                diff = 1 if rng.random() < 0.8 else -1
            elif query in CHECKED:
                diff = rng.choice([1, 1, 2, -1, -1, -2])
            elif present and rng.random() < 0.4:
                row, diff = rng.choice(sorted(present.elements())), -1
            elif rng.random() < 0.05:
                diff = -1
            present[row] += diff
            if present[row] <= 0:
                present.pop(row)
            rows.append((row, diff))
        history.append(rows)
    return history


def give(flow: timely.Flow, epoch: int, rows: Sequence[Update], seed: int, calls: int | None = None) -> None:
    """Insert the rows of an epoch in one of several ways, which follows from the seed and the epoch. `calls`:
    no more than so many calls; later the same rows may come once more.
    """
    rng = random.Random(f"{seed} {epoch}")
    handle = flow.input("edges")
    if rng.random() < 0.5:
        columns = [[row[0] for row, _ in rows], [row[1] for row, _ in rows], [diff for _, diff in rows]]
        table = pa.table([pa.array(each, pa.int64()) for each in columns], ["a", "b", "diff"])
        handle.append(table, epoch=epoch, writer="w", sequence=epoch)
        return
    for number, (row, diff) in enumerate(rows[:calls]):
        writer, sequence = "one", 1_000 * epoch + number
        if is_upsert(flow):
            if diff > 0:
                handle.upsert([row], writer=writer, sequence=sequence)
            else:
                handle.delete([row[:1]], writer=writer, sequence=sequence)
        elif diff > 0:
            handle.insert([row] * diff, writer=writer, sequence=sequence)
        else:
            handle.remove([row] * -diff, writer=writer, sequence=sequence)


def is_upsert(flow: timely.Flow) -> bool:
    return ") by " in repr(flow.input("edges"))


def run(flow: timely.Flow, history: History, seed: int, first: int = 0, until: int | None = None) -> None:
    """Give and seal the epochs from `first` on and before `until`."""
    for epoch in range(first, len(history) if until is None else until):
        give(flow, epoch, history[epoch], seed)
        flow.seal(through=epoch)


def changes_by_epoch(flow: timely.Flow, start: int, stop: int) -> dict[int, Counter[object]]:
    """Return the changes of all outputs, by epoch."""
    by_epoch: dict[int, Counter[object]] = {epoch: Counter() for epoch in range(start, stop)}
    for name in flow.outputs:
        for row in flow.output(name).changes(start, stop).to_pylist():
            epoch, diff = row.pop("epoch"), row.pop("diff")
            by_epoch[epoch][name, *row.values()] += diff
    return {epoch: Counter({row: n for row, n in c.items() if n}) for epoch, c in by_epoch.items()}


def collected(flow: timely.Flow, epoch: int) -> Counter[object]:
    """Return the rows of all outputs at an epoch, as workers have them; some may be owed."""
    total: Counter[object] = Counter()
    for name in flow.outputs:
        for reply in flow.ask_all(Read(flow.index, name, -1, epoch + 1, -1.0)):
            for row in reply.columns().to_pylist():
                diff = row.pop("diff")
                total[name, *row.values()] += diff
    return Counter({row: n for row, n in total.items() if n})


def accumulated(changes: dict[int, Counter[object]], until: int) -> Counter[object]:
    """Return the rows of all outputs at an epoch."""
    total: Counter[object] = Counter()
    for epoch, counts in changes.items():
        if epoch <= until:
            for row, count in counts.items():
                total[row] += count
    return Counter({row: n for row, n in total.items() if n})


def undisturbed(query: Query, history: History, seed: int, workers: int) -> dict[int, Counter[object]]:
    """Return the changes of all epochs of a cluster that is not durable."""
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(query)
        run(flow, history, seed)
        return changes_by_epoch(flow, 0, len(history))


def folded(folder: Path | str, forgets: bool, bytes_max: int = 1 << 29, count: int = 2) -> Base:
    """Fold a stopped store, and remove what is not needed any more."""
    store = FolderStore(folder)
    incarnation = announce(store, 1, 1)
    base = fold(logs_of(store, incarnation), forgets=forgets, bytes_max=bytes_max)
    assert base is not None
    prune(store, incarnation.number, count=count)
    return base
