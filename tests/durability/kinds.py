"""Dataflows of every kind for workers that fail, and rows for their inputs.

Each input `x` has an output `same x`, which tells what has come in. That of an input whose removals are
checked has its rows less the refused ones. The last column of every row is its tag, which no other
insertion has.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import differential as dd
import timely
from differential import Collection, col
from differential.algorithms import connected_components
from progress.times.timestamp import Timestamp
from timely.routing.announcement import KEY, RoutingCell, RoutingChanges
from timely.routing.grid import Grid

__all__ = ["KINDS", "InputRows", "Kind", "Row"]

Row = tuple[object, ...]

EDGES = "a: int, b: int, tag: int"
NAMES = "a: string, b: string, tag: int"


def _edge(chance: random.Random, tag: int) -> Row:
    return chance.randrange(6), chance.randrange(6), tag


def _name(chance: random.Random, tag: int) -> Row:
    # Now and then a text that no worker has seen.
    a, b = (chance.choice(["ada", "bob", "cy", f"new {tag}"]) for _ in range(2))
    return a, b, tag


def _any(chance: random.Random, tag: int) -> Row:
    return (
        chance.randrange(4),
        chance.choice([None, 7, 2.5, "text", f"text {tag}", [1, "x"], {"k": tag}]),
        tag,
    )


@dataclass(frozen=True)
class InputRows:
    """What an input takes: "rows" of a collection, "values" by key, or "records"."""

    takes: str = "rows"
    row: Callable[[random.Random, int], Row] = _edge
    checked: bool = False


@dataclass(frozen=True)
class Kind:
    """One dataflow: its builder, its inputs, and the kind that it imports from."""

    name: str
    inputs: Mapping[str, InputRows] = field(default_factory=lambda: {"rows": InputRows()})
    reads: str = ""
    seals_apart: bool = False
    """True if the program also seals inputs by themselves."""
    has_versions: bool = False
    """True if new versions of it take its place; the output "version" tells which there is."""

    @property
    def spec(self) -> str:
        """How workers find the builder."""
        return f"{__name__}:{self.name}"

    def install(self, cluster: timely.Cluster, version: int = 0) -> timely.Flow:
        """Install it, or find it there."""
        if self.has_versions:
            return cluster.install(self.spec, version=version)
        return cluster.install(self.spec)


def _rows(flow: timely.Dataflow, schema: str = EDGES, name: str = "rows") -> Collection:
    rows = dd.input(flow, name, schema)
    rows.output(f"same {name}")
    return rows


@timely.builder
def counted(flow: timely.Dataflow) -> None:
    """Texts."""
    names = _rows(flow, NAMES)
    names.group_by("a").agg(n=dd.count(), first=dd.min("b")).output("counts")
    names.select("b").distinct().output("texts")


@timely.builder
def anything(flow: timely.Dataflow) -> None:
    """Values of any type."""
    rows = _rows(flow, "a: int, x: any?, tag: int")
    rows.group_by("a").agg(all=dd.collect("x")).output("lists")
    rows.group_by("x").agg(n=dd.count()).output("counts")


@timely.builder
def aggregated(flow: timely.Dataflow) -> None:
    rows = _rows(flow)
    by_a = rows.group_by("a")
    by_a.agg(s=dd.sum("b"), n=dd.count(), mean=dd.avg("b"), least=dd.min("b")).output("sums")
    rows.group_by("a").top_k(2, by=col.b.desc(), rank="place").output("top")
    rows.asof_join(
        rows.select("a", t=col.b, w=col.b * 7), on="a", left_time="b", right_time="t", exact=False
    ).output("as of")


def _spread(key: tuple[object, ...], rows: list[tuple[tuple[object, ...], int]]) -> list[tuple[object, ...]]:
    return [(sum(int(str(row[0])) * n for row, n in rows), len(rows))]


@timely.builder
def by_function(flow: timely.Dataflow) -> None:
    rows = _rows(flow)
    rows.select("a", "b").group_by("a").reduce(_spread, "s: int, n: int").output("reduced")


@timely.builder
def joined(flow: timely.Dataflow) -> None:
    """Two inputs."""
    left = _rows(flow, NAMES, "left")
    right = _rows(flow, "b: string, c: int, tag: int", "right")
    left.select("a", "b").join(right.select("b", "c"), on="b").output("pairs")
    left.select("b").join(right.select("b"), on="b", how="anti").output("alone")


@timely.builder
def apart(flow: timely.Dataflow) -> None:
    """Two inputs, which have epochs of their own."""
    left = _rows(flow, NAMES, "left")
    right = _rows(flow, "b: string, c: int, tag: int", "right")
    left.group_by("b").agg(n=dd.count()).output("of left")
    left.select("a", "b").join(right.select("b", "c"), on="b").output("pairs")


@timely.builder
def components(flow: timely.Dataflow) -> None:
    edges = _rows(flow)
    connected_components(edges.select(src=col.a, dst=col.b)).output("components")


@timely.builder
def prioritised(flow: timely.Dataflow) -> None:
    edges = _rows(flow)
    connected_components(edges.select(src=col.a, dst=col.b), prioritised=True).output("components")


@timely.builder
def texts_in_loop(flow: timely.Dataflow) -> None:
    """Components of texts, by a loop that is written out."""
    names = _rows(flow, NAMES).select(a=col.a, b=col.b)
    both = names.concat(names.select(a=col.b, b=col.a)).distinct()
    own = both.select("a").distinct().select(a=col.a, label=col.a)

    def spread(labels: Collection) -> Collection:
        passed_on = labels.join(both, on="a").select(a=col.b, label=col.label)
        return passed_on.concat(own).group_by("a").agg(label=dd.min("label"))

    own.iterate(spread).output("components")


@timely.builder
def nested(flow: timely.Dataflow) -> None:
    edges = _rows(flow).select("a", "b").distinct()

    def further(paths: Collection) -> Collection:
        steps = edges.select(b=col.a, c=col.b)
        return paths.join(steps, on="b").select("a", b=col.c).concat(paths).distinct()

    edges.iterate(lambda outer: further(outer.iterate(further))).output("paths")


def _value(chance: random.Random, tag: int) -> Row:
    return chance.randrange(5), chance.choice(["x", "y", f"new {tag}"]), tag


@timely.builder
def latest(flow: timely.Dataflow) -> None:
    """The last value by key."""
    values = dd.input(flow, "values", "k: int, v: string, tag: int", key="k", mode="upsert")
    values.output("same values")
    values.group_by("v").agg(n=dd.count()).output("counts")


@timely.builder
def latest_joined(flow: timely.Dataflow) -> None:
    """Values by key, and rows."""
    values = dd.input(flow, "values", "k: int, v: string, tag: int", key="k", mode="upsert")
    values.output("same values")
    rows = _rows(flow)
    rows.select(k=col.a, b=col.b).join(values.select("k", "v"), on="k").output("pairs")


@timely.builder
def checked(flow: timely.Dataflow) -> None:
    rows, refused = dd.checked_input(flow, "rows", EDGES)
    rows.concat(refused.negate()).output("same rows")
    rows.group_by("a").agg(n=dd.count()).output("counts")
    refused.output("refused")


@timely.builder
def timed(flow: timely.Dataflow) -> None:
    rows = _rows(flow)
    rows.during(col.a, col.a + col.b).group_by("b").agg(n=dd.count()).output("during")


@timely.builder
def recent(flow: timely.Dataflow) -> None:
    rows = _rows(flow)
    last = rows.last("b", 3, clock=dd.clock(0, every=1))
    last.group_by("a").agg(n=dd.count(), most=dd.max("b")).output("last")
    rows.window("b", dd.session(2, by="a")).output("sessions")


@timely.builder
def late(flow: timely.Dataflow) -> None:
    on_time, too_late = _rows(flow).split_late("b", 1, clock=dd.clock(0, every=1))
    on_time.group_by("a").agg(n=dd.count()).output("on time")
    too_late.output("late")


@timely.builder
def delayed(flow: timely.Dataflow) -> None:
    rows = _rows(flow)
    counts = rows.group_by("a").agg(n=dd.count())
    counts.delay(2).output("later")
    counts.concat(counts.delay(1).negate()).output("news")


@timely.builder
def constants(flow: timely.Dataflow) -> None:
    """Rows that the dataflow brings along: what is counted has a row before anything has come in."""
    rows = _rows(flow)
    rows.group_by().agg(n=dd.count(), all=dd.sum("b")).output("counts")
    rows.agg(n=dd.count()).output("totals")


@timely.builder
def owner(flow: timely.Dataflow) -> None:
    edges = _rows(flow)
    edges.select("a", "b").export("edges", by="a")
    edges.group_by("b").agg(n=dd.count()).output("counts")


@timely.builder
def importer(flow: timely.Dataflow) -> None:
    """With an input of its own."""
    edges = dd.imported(flow, KINDS["owner"].spec, "edges", "a: int, b: int")
    names = _rows(flow, "a: int, name: string, tag: int", "names")
    edges.join(names.select("a", "name"), on="a").output("pairs")


def _to_name(chance: random.Random, tag: int) -> Row:
    return chance.randrange(6), chance.choice(["x", "y", f"new {tag}"]), tag


def _from_name(chance: random.Random, tag: int) -> Row:
    return chance.choice(["ada", "bob", "cy", f"new {tag}"]), chance.randrange(6), tag


class LettersVertex(timely.Vertex):
    """At the end of an epoch, the totals of the words that came in it; and once more in the next epoch."""

    def __init__(self) -> None:
        self.totals: Counter[object] = Counter()
        self.added: dict[Timestamp, Counter[object]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if time not in self.added:
            self.added[time] = Counter()
            self.notify_at(time)
        self.added[time].update(record[0] for record in message)  # type: ignore[index]

    def on_notify(self, time: Timestamp) -> None:
        added = self.added.pop(time)
        self.totals.update(added)
        self.send_by(0, [(word, self.totals[word]) for word in sorted(added)], time)  # type: ignore[type-var]


def _by_letter(record: object) -> int:
    return ord(str(record[0])[-1])  # type: ignore[index]


@timely.builder
def by_hand(flow: timely.Dataflow) -> None:
    """Records, and a vertex."""
    rows = flow.input("rows")
    flow.output("same rows", rows)
    flow.output("totals", rows.stage("letters", LettersVertex, exchange=_by_letter))


def _record(chance: random.Random, tag: int) -> Row:
    return chance.choice(["ada", "bob", f"new {tag}"]), tag


@timely.builder
def routed(flow: timely.Dataflow) -> None:
    """A join whose rows move while it runs, by what is announced."""
    lines = _rows(flow, name="lines").select("a", "b")
    orders = _rows(flow, name="orders").select("a", c=col.b)
    routes = dd.announcements(flow, "routes")
    pairs = lines.join(orders, on="a", balance=dd.Routed(dd.Balance("D-JB", units=4), routes, lead=1))
    pairs.output("pairs")


@timely.builder
def spread(flow: timely.Dataflow) -> None:
    """A balanced join."""
    rows = _rows(flow)
    to = rows.select(b=col.a, c=col.b)
    rows.select("a", "b").join(to, on="b", balance=dd.Balance("D-JB", units=4)).output("pairs")


def _versioned(rows: Collection, version: int, names: Collection) -> None:
    """Export the rows, so that new versions can take their place; count them by what the version says."""
    rows.export("rows", by="a")
    rows.filter(col.tag < 0).agg(n=dd.count()).select(version=col.n + version).output("version")
    by = "a" if version % 2 == 0 else "b"
    counts = rows.group_by(by).agg(n=dd.count()).select(a=col[by], n=col.n)
    if version % 3 == 1:
        counts = counts.join(names, on="a").select("a", n=col.n + col.m)
    counts.output("counts")


@timely.builder
def versioned(flow: timely.Dataflow, version: int = 0) -> None:
    """Replaced by a version with another query."""
    rows = _rows(flow)
    _versioned(rows, version, rows.select("a", m=col.b))


@timely.builder
def versioned_values(flow: timely.Dataflow, version: int = 0) -> None:
    """With values by key, too."""
    values = dd.input(flow, "values", "k: int, v: string, tag: int", key="k", mode="upsert")
    values.output("same values")
    values.export("values", by="k")
    _versioned(_rows(flow), version, values.select(a=col.k, m=col.tag))


_VALUES = InputRows("values", _value)
_NAMES = InputRows(row=_name)

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("counted", {"rows": _NAMES}),
        Kind("anything", {"rows": InputRows(row=_any)}),
        Kind("aggregated"),
        Kind("by_function"),
        Kind("joined", {"left": _NAMES, "right": InputRows(row=_from_name)}),
        Kind("apart", {"left": _NAMES, "right": InputRows(row=_from_name)}, seals_apart=True),
        Kind("components"),
        Kind("prioritised"),
        Kind("texts_in_loop", {"rows": _NAMES}),
        Kind("nested"),
        Kind("latest", {"values": _VALUES}),
        Kind("latest_joined", {"values": _VALUES, "rows": InputRows()}),
        Kind("checked", {"rows": InputRows(checked=True)}),
        Kind("timed"),
        Kind("recent"),
        Kind("late"),
        Kind("delayed"),
        Kind("constants"),
        Kind("owner"),
        Kind("importer", {"names": InputRows(row=_to_name)}, reads="owner"),
        Kind("by_hand", {"rows": InputRows("records", _record)}),
        Kind("routed", {"lines": InputRows(), "orders": InputRows()}),
        Kind("spread"),
        Kind("versioned", has_versions=True),
        Kind("versioned_values", {"values": _VALUES, "rows": InputRows()}, has_versions=True),
    )
}


def split(key: int) -> list[Row]:
    """Announcements that spread the lines of a key over all units of `routed`."""
    hashed = dd.key_hash([key], "a: int")
    changes = RoutingChanges(None, {RoutingCell(KEY, 0, hashed): Grid.split([0, 1, 2, 3])})
    return [tuple(row) for row in changes.announcements()]
