"""Collections on real processes, each with its own symbols: strings travel with the rows that need them."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal

import pytest

import differential as dd
import timely
from differential import algorithms, col
from timely.wire.frames.messages import encode_request
from timely.wire.requests import Stats
from timely.wire.transport.zeromq import ClientSockets


def _rows(table: object) -> Counter[tuple[object, ...]]:
    columns = [column.to_pylist() for column in table.columns]  # type: ignore[attr-defined]  # an Arrow table
    return Counter(zip(*columns, strict=True))


@pytest.mark.parametrize("workers", [1, 2])
def test_strings_arrive_where_they_were_never_seen(workers: int) -> None:
    with timely.connect(workers=workers) as cluster:
        flow = cluster.install("collection_flows:mentions")
        people = [f"person {number}" for number in range(12)]
        said = [(who, None if place % 4 == 0 else f"word {place % 3}") for place, who in enumerate(people)]
        knows = list(zip(people, people[1:], strict=False))
        flow.input("said").insert({"who": [who for who, _ in said], "text": [text for _, text in said]})
        flow.input("knows").insert({"who": [a for a, _ in knows], "whom": [b for _, b in knows]})
        flow.seal()
        _check(flow, said, knows)
        gone, said = said[3], [*said[:3], *said[4:]]
        flow.input("said").remove({"who": [gone[0]], "text": [gone[1]]})
        flow.input("said").insert({"who": ["person 5"], "text": ["late and new"]})
        flow.seal()
        _check(flow, [*said, ("person 5", "late and new")], knows)


def test_strings_that_functions_make_are_read_on_other_workers() -> None:
    """The query travels as a plan; texts come to be on one worker, and are compared on the other."""
    with timely.connect(workers=2) as cluster:

        def sold(flow: timely.Dataflow) -> None:
            items = dd.input(flow, "items", "name: string, day: date, price: decimal(9, 2), tags: any")
            made = items.select(
                label=dd.concat(col.name.str.upper(), "/", col.day.dt.format("%Y-%m")),
                tag=col.tags.list.get(0).cast("string"),
                gross=col.price * Decimal("1.19"),
            )
            counted = made.distinct().group_by("label").agg(n=dd.count())
            both = counted.join(made, on="label").filter(col.label < "P")
            both.select("n", "tag", "gross", text=dd.concat_ws("-", col.label.str.lower(), col.tag)).output(
                "texts"
            )

        flow = cluster.install(sold)
        days = [dt.date(2024, month, 1) for month in range(1, 13)]
        rows = [(f"item {n % 5}", day, Decimal(n), (f"tag {n}",)) for n, day in enumerate(days)]
        flow.input("items").insert([*rows, ("pear", days[0], Decimal(1), ("tag",))])
        flow.seal()
        expected = [
            (1, tag, price * Decimal("1.19"), f"{name}/{day:%Y-%m}-{tag}")
            for name, day, price, (tag,) in rows
        ]
        assert _rows(flow.output("texts").snapshot()) == Counter(expected)


def _check(flow: timely.Flow, said: list[tuple[str, str | None]], knows: list[tuple[str, str]]) -> None:
    heard = [(whom, text, "hearsay") for who, text in said for knower, whom in knows if knower == who]
    assert _rows(flow.output("heard").snapshot()) == Counter(heard)
    assert _rows(flow.output("counts").snapshot()) == Counter(Counter(text for _, text in said).items())
    texts: dict[str, set[str]] = {}
    for who, text in said:
        if text is not None:
            texts.setdefault(who, set()).add(text)
    lines = [(who, f"{who.upper()}: {' '.join(sorted(found))}") for who, found in texts.items()]
    assert _rows(flow.output("lines").snapshot()) == Counter(lines)
    everybody = {who for pair in knows for who in pair}
    assert _rows(flow.output("reached").snapshot()) == Counter((who,) for who in everybody)


def _deals(flow: timely.Dataflow) -> None:
    deals = dd.input(flow, "deals", "a: int, b: int")
    deals.group_by("a").agg(n=dd.count(), most=dd.max("b")).output("groups")
    deals.join(deals.select(b=col.a, c=col.b), on="b").select("a", "c").distinct().output("steps")
    edges = deals.select(src=col.a, dst=col.b)
    algorithms.connected_components(edges).output("components")


def test_removing_everything_leaves_nothing_behind_once_workers_have_rested() -> None:
    """In traces, too, and in those of loops; nobody asks for it."""
    choose = random.Random(3)
    rows = list({(choose.randrange(900), choose.randrange(900)) for _ in range(6_000)})
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(_deals)
        flow.input("deals").insert(rows)
        flow.seal()
        flow.wait()
        full = _trace_rows(cluster)
        for first in range(0, len(rows), 1_700):
            flow.input("deals").remove(rows[first : first + 1_700])
            flow.seal()
        flow.wait()
        assert full > 50_000
        until = time.monotonic() + 60
        while (left := _trace_rows(cluster)) > full // 100 and time.monotonic() < until:
            time.sleep(0.1)
        assert left <= full // 100


def test_workers_that_are_asked_without_a_pause_give_back_what_cancels() -> None:
    """Sixteen questions wait at each worker at any time."""
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(_deals)
        rows = [(number % 60_000, number) for number in range(90_000)]
        flow.input("deals").insert(rows)
        flow.seal()
        flow.wait()
        left = [_trace_rows(cluster)]
        # Asked from before the rows go: a worker that nobody asks may have given them back at the first look.
        with asked_all_the_time(cluster.addresses, at_once=16) as answered:
            flow.input("deals").remove(rows)
            flow.seal()
            flow.wait()
            until, many = time.monotonic() + 100, 5 * 16 * 2
            while (now := _trace_rows(cluster)) > 1_000 and time.monotonic() < until:
                time.sleep(0.2)
            left.append(now)
            while len(answered) <= many and time.monotonic() < until:
                time.sleep(0.01)
    assert left[0] > 80_000 and left[-1] <= 1_000, left
    assert len(answered) > many, "each was asked again and again"


@contextlib.contextmanager
def asked_all_the_time(addresses: list[str], at_once: int) -> Iterator[list[int]]:
    """Somebody asks each worker for its counters, so often at once, and again at each answer: a list of who
    has answered.
    """
    answered: list[int] = []
    is_over = threading.Event()

    def ask() -> None:
        sockets = ClientSockets(addresses)
        try:
            for worker in (*range(len(addresses)),) * at_once:
                sockets.send(worker, encode_request(0, Stats()))
            while not is_over.is_set():
                sockets.wait(1)
                for worker in range(len(addresses)):
                    while sockets.recv_nowait(worker) is not None:
                        answered.append(worker)
                        sockets.send(worker, encode_request(0, Stats()))
        finally:
            sockets.close()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield answered
    finally:
        is_over.set()
        asking.join()


def _trace_rows(cluster: timely.Cluster) -> int:
    return sum(_found("trace_rows", cluster.stats()))


def _found(name: str, within: object) -> Iterator[int]:
    if isinstance(within, Mapping):
        for key, value in within.items():
            yield from [int(value)] if key == name else _found(name, value)
    elif isinstance(within, list):
        for value in within:
            yield from _found(name, value)
