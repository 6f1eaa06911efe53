"""What the explorer goes through, by kinds: each has a small scenario for the tests, and larger ones for the
long form, `./scripts/explore KIND`.

    nested       loops in loops, in both orders
    routed       routes with versions: rows wait for the version of their epoch
    flows        two dataflows at once on the same workers
    installed    a dataflow that reads another one is installed while that one works
    uninstalled  both are ended by a client at any moment
    failed       a dataflow fails, on one worker or on two at the same time
    replaced     a new version takes the place of a dataflow
    divided      a large insertion in parts, which enter in several pieces and are sent in several messages
    rings        two workers send each other messages by rings, and by sockets if the rings are full
    rounds       compiled loops of two and three workers
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import exporting_flows
import pyarrow as pa
import pytest
import served_flows
from labelled_flows import Pair, changes_of, countdown, countdown_plainly, labels, labels_plainly
from low_limits import everything_is_much
from reference.loops.loop_explorer import LoopExplorer, TableClient
from reference.served_explorer import Asks, ServedExplorer
from simulation.kinds.ring_explorer import RingExplorer, RingTraffic

from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex
from timely.building.exchange import RecordRoute
from timely.building.loop import LoopOrder
from timely.client.tables import records_of
from timely.operators.capture import FOREVER
from timely.running.checking.explorer import Explorer
from timely.running.checking.reached import Act, Client, Explorable, Explored, Move, Reached
from timely.running.instance import Instance
from timely.wire.requests import IN_OPEN, WHEN_NAMED, Decide, Deliver, Install, Replace, Uninstall

__all__ = ["KINDS", "Kind"]


Records = Sequence[int]


@dataclass(frozen=True)
class Kind:
    """How scenarios of a kind are explored.

    Args:
        explorer: the class.
        small: goes to its end in the tests: who is next is free, and which messages come before. None: even a
            small one takes minutes.
        large: the nearest states first; of the first one some in the tests, the rest in the long form.
        way: which actions of the large ones are free, as arguments of the explorer.
        states: in the tests: what takes at most ten seconds of processor time.
    """

    explorer: type[Explorer]
    small: Explorable | None
    large: Sequence[Explorable]
    way: Mapping[str, bool]
    states: int = 10_000

    def all_of_small(self, reduced: bool = False) -> Explored:
        """Go through the small scenario."""
        assert self.small is not None
        return self.explorer(self.small, whole=True, reduced=reduced).run()

    def some_of(self, scenario: Explorable, most: int, reduced: bool = False) -> Explored:
        """Go through the nearest states of a large scenario, so many at most. `reduced`: and visit one of
        those that differ in the order of independent actions, or in the names of workers that are alike.
        """
        orderly, whole = self.way.get("orderly", False), self.way.get("whole", False)
        alike = scenario.alike if reduced else ()
        is_reduced = reduced and self.small is not None  # what no small scenario proves is visited as it is
        return self.explorer(scenario, orderly, most + 100, is_reduced, whole, most, alike).run()


@dataclass(frozen=True)
class RingKind:
    """The same for rings between two workers. Nothing is reduced there.

    Args:
        small: goes to its end in the tests.
        large: the nearest states first.
        states: in the tests.
    """

    small: RingTraffic
    large: Sequence[RingTraffic]
    states: int

    def all_of_small(self, reduced: bool = False) -> Explored:
        """Go through the small traffic."""
        del reduced
        return self._explored(self.small, 0)

    def some_of(self, scenario: RingTraffic, most: int, reduced: bool = False) -> Explored:
        """Go through the nearest states of a large traffic, so many at most."""
        del reduced
        return self._explored(scenario, most)

    def _explored(self, traffic: RingTraffic, enough: int) -> Explored:
        explorer = RingExplorer(traffic, enough)
        try:
            return explorer.run()
        finally:
            explorer.close()


def records_in(*names: str) -> Callable[[Sequence[Instance]], object]:
    """What these outputs have by (name, epoch, record), with all epochs."""

    def result(instances: Sequence[Instance]) -> Counter[tuple[object, ...]]:
        found: Counter[tuple[object, ...]] = Counter()
        for instance in instances:
            for name in names:
                if name in instance.frozen.outputs:
                    changes = records_of(instance.output(name).log.changes(0, FOREVER))
                    found.update((name, *change) for change in changes)
        return found

    return result


# nested


class SpinVertex(Vertex):
    """Pairs (turns outside, turns inside): at the end of each time the inner number goes down, and where it
    is zero the outer one, which begins anew inside.
    """

    def __init__(self) -> None:
        self.waiting: dict[Timestamp, list[tuple[int, int]]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if time not in self.waiting:
            self.waiting[time] = []
            self.notify_at(time)
        self.waiting[time] += map(_pair, message)

    def on_notify(self, time: Timestamp) -> None:
        pairs = self.waiting.pop(time)
        self.send_by(0, [(outer, inner - 1) for outer, inner in pairs if inner], time)
        self.send_by(1, [(outer - 1, outer - 1) for outer, inner in pairs if outer and not inner], time)

    def compared(self) -> object:
        return sorted((time, sorted(pairs)) for time, pairs in self.waiting.items())


def _pair(record: object) -> tuple[int, int]:
    assert isinstance(record, tuple)
    outer, inner = record
    return int(outer), int(inner)


def nested(outer: LoopOrder, inner: LoopOrder) -> Callable[[Dataflow], None]:
    """A loop in a loop, each with its order."""

    def build(dataflow: Dataflow) -> None:
        records = dataflow.input("records")
        with dataflow.loop("outer", order=outer) as around:
            again = around.feedback()
            both = around.enter(records).concat(again.stream)
            with around.loop("inner", order=inner) as within:
                back = within.feedback()
                feeds = [
                    stream.feed(0, route=RecordRoute(lambda record: sum(_pair(record))))
                    for stream in (within.enter(both), back.stream)
                ]
                down, over = dataflow.stage("spin", SpinVertex, feeds, outputs=2)
                back.connect(down)
                left = within.leave(over)
            again.connect(left)
            dataflow.output("over", around.leave(left))

    return build


def spun(*clients: Sequence[tuple[int, int]], orders: tuple[LoopOrder, LoopOrder]) -> Explorable:
    """Pairs of clients, all of one epoch."""
    over: Counter[tuple[object, ...]] = Counter()
    for outer, _ in (pair for pairs in clients for pair in pairs):
        over.update(("over", 0, (n, n)) for n in range(outer))
    acts = [[Client(tuple(pairs), is_last=True)] for pairs in clients]
    return Explorable(nested(*orders), acts, records_in("over"), over)


# routed


class ArrivedVertex(Vertex):
    """Tells of each number on which worker it is."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, [(number, self.worker) for number in message], time)


def routed(lead: int) -> Callable[[Dataflow], None]:
    """Numbers go where the version of their epoch says."""

    def build(dataflow: Dataflow) -> None:
        control = dataflow.routing(lead=lead)
        arrived = control.stage(
            "arrived", ArrivedVertex, dataflow.input("records"), exchange=served_flows.to_number
        )
        dataflow.output("arrived", arrived)

    return build


def moves(lead: int, epochs: Sequence[Sequence[Records]], moved: Sequence[int]) -> Explorable:
    """By worker and epoch the numbers that clients insert, and by epoch the worker to which all even numbers
    go from then on, -1 for no change. Only worker 0 is told of changes.
    """
    acts: list[list[Client]] = []
    arrived: Counter[tuple[object, ...]] = Counter()
    for worker, listed in enumerate(epochs):
        acts.append([])
        for epoch, numbers in enumerate(listed):
            is_last = epoch == len(listed) - 1
            change = () if worker or moved[epoch] < 0 else ((0, moved[epoch]), (2, moved[epoch]))
            acts[-1].append(Client(change, is_last, "routing"))
            acts[-1].append(Client(tuple(numbers), is_last))
            here = max(0, epoch - lead + 1)
            told = [target for target in moved[:here] if target >= 0]
            for number in numbers:
                where = told[-1] if told and not number % 2 else number % len(epochs)
                arrived["arrived", epoch, (number, where)] += 1
    return Explorable(routed(lead), acts, records_in("arrived"), arrived)


# flows


def of_both(first: Sequence[Records], second: Sequence[Records]) -> Explorable:
    """Two dataflows. Clients at each worker insert numbers of one epoch into both."""
    acts = [
        [Client(tuple(here), is_last=True), Client(tuple(there), is_last=True, dataflow=1)]
        for here, there in zip(first, second, strict=True)
    ]
    expected: Counter[tuple[object, ...]] = Counter()
    for numbers, name in ((first, "numbers"), (second, "sums")):
        listed = [number for part in numbers for number in part]
        if name == "numbers":
            expected.update((name, 0, number) for number in listed)
            continue
        for worker in range(len(first)):
            mine = [number for number in listed if number % len(first) == worker]
            expected.update([(name, 0, sum(mine))] if mine else [])
    return Explorable(
        served_flows.numbers, acts, records_in("numbers", "sums"), expected, beside=[served_flows.sums]
    )


# installed, uninstalled, failed


def reading(installs: bool, *clients: Sequence[Records]) -> Explorable:
    """A dataflow, and another one that reads it: a client installs that at any moment, or it is there from
    the start.
    """
    acts: list[list[Act]] = []
    expected: Counter[tuple[object, ...]] = Counter()
    for epochs in clients:
        acts.append([Client(tuple(n), is_last=e == len(epochs) - 1) for e, n in enumerate(epochs)])
    for epoch in range(len(clients[0])):
        listed = [number for epochs in clients for number in epochs[epoch]]
        for worker in range(len(clients)):
            mine = [number for number in listed if number % len(clients) == worker]
            expected.update([("sums", epoch, sum(mine))] if mine else [])
    if installs:
        acts[0].insert(0, Asks(Install("served_flows:counts", {"owner": 0})))
        return Explorable(served_flows.numbers, acts, records_in("sums"), expected)
    return Explorable(served_flows.numbers, acts, records_in("sums"), expected, beside=[served_flows.counts])


def ended(*clients: Sequence[Records]) -> Explorable:
    """The same, and a client ends both after the first epoch that it has sent."""
    scenario = reading(False, *clients)
    acts = [list(listed) for listed in scenario.clients]
    acts[0].insert(1, Asks(Uninstall(0, True)))
    return replace(scenario, clients=acts, expected=Counter())


def failing(*clients: Sequence[Records]) -> Explorable:
    """The same, and numbers come that no worker can bear."""
    return replace(reading(False, *clients), expected=Counter())


# replaced


def edges_in(instances: Sequence[Instance]) -> object:
    """The edges that are there at the end, whatever epoch they came in, and how many versions run."""
    found: Counter[tuple[object, ...]] = Counter()
    for instance in instances:
        for row in instance.output("out").log.changes(0, FOREVER).to_pylist():
            found[row["src"], row["dst"]] += row["diff"]
    return found, {instance.index for instance in instances}


class ReplacingExplorer(ServedExplorer):
    """Inputs of a dataflow that is to be replaced are not closed."""

    closes: ClassVar[bool] = False


def replacing(*clients: Sequence[Pair | None]) -> Explorable:
    """Edges that clients insert; None: a seal. The first client also asks for a new version."""
    acts: list[list[Act]] = []
    edges: Counter[tuple[object, ...]] = Counter()
    for worker, listed in enumerate(clients):
        acts.append([])
        epoch = 0
        for number, edge in enumerate(listed):
            if edge is None:
                acts[-1].append(Asks(Decide(0, epoch, seals=True)))
                epoch += 1
                continue
            table = pa.table({"src": [edge[0]], "dst": [edge[1]]})
            acts[-1].append(Asks(Deliver(0, "edges", f"w{worker}", number + 1, IN_OPEN, 0, 1), table))
            edges[edge] += 1
    acts[0].insert(0, Asks(Replace(0, "exporting_flows:owner", {}, -1.0)))
    return Explorable(exporting_flows.owner, acts, edges_in, (edges, {1}))


# divided


class DividedExplorer(ReplacingExplorer):
    """An insertion in parts, by a client that decides once all parts are staged. Limits are low: each part
    enters in pieces, which are sent one by one.
    """

    def run(self) -> Explored:
        """Visit all states, the nearest first."""
        with pytest.MonkeyPatch.context() as limits:
            everything_is_much(limits)
            return super().run()

    def _moves(self, state: Reached) -> list[Move]:
        to_do = [act for acts in state.acts for act in self._to_do[acts]]
        is_staging = any(isinstance(act, Asks) and isinstance(act.request, Deliver) for act in to_do)
        return [
            move
            for move in super()._moves(state)
            if not (is_staging and isinstance(move[1], Asks) and isinstance(move[1].request, Decide))
        ]


def divided(*parts: tuple[int, Sequence[Pair]], repeats: int = -1) -> Explorable:
    """Parts of one insertion, each with the worker that a client of two sends it to; `repeats`: this part is
    sent twice. Worker 0 decides that all enter, and seals.
    """
    acts: list[list[Act]] = [[], []]
    edges: Counter[tuple[object, ...]] = Counter()
    for number, (worker, pairs) in enumerate(parts):
        table = pa.table({"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]})
        for _ in range(1 + (number == repeats)):
            acts[worker].append(Asks(Deliver(0, "edges", "w", 1, WHEN_NAMED, 0, 1, part=number), table))
        edges.update(pairs)
    acts[0].append(Asks(Decide(0, 0, enter=[["edges", "w", 1, len(parts)]], seals=True)))
    return Explorable(exporting_flows.owner, acts, edges_in, (edges, {0}))


# rounds


def found_in(instances: Sequence[Instance]) -> Counter[tuple[int, ...]]:
    """What a compiled loop has put out."""
    found: Counter[tuple[int, ...]] = Counter()
    for instance in instances:
        found.update(changes_of(instance))
    return Counter({row: diff for row, diff in found.items() if diff})


Build = tuple[Callable[[Dataflow], None], Callable[[Sequence[Pair]], set[Pair]]]
LABELS: Final[Build] = labels, labels_plainly
COUNTDOWN: Final[Build] = countdown, countdown_plainly


def looping(how: Build, *clients: Sequence[Sequence[Pair]]) -> Explorable:
    """A compiled loop, of whose pairs each client inserts some epoch by epoch."""
    build, plainly = how
    epochs = len(clients[0])
    acts = [
        [
            TableClient(tuple(pairs), is_last=epoch == epochs - 1, input="edges")
            for epoch, pairs in enumerate(client)
        ]
        for client in clients
    ]
    expected: Counter[tuple[int, ...]] = Counter()
    edges: list[Pair] = []
    before: set[Pair] = set()
    for epoch in range(epochs):
        edges += [pair for client in clients for pair in client[epoch]]
        now = plainly(edges)
        expected.update({(*row, epoch): 1 for row in now - before})
        expected.update({(*row, epoch): -1 for row in before - now})
        before = now
    return Explorable(build, acts, found_in, expected)


def of_two_bits(how: Build) -> Build:
    """The same with epochs of two bits, so that the anchor moves on each worker when it may."""
    build, plainly = how

    def built(dataflow: Dataflow) -> None:
        dataflow.level_bits = (2, 8)
        build(dataflow)

    return built, plainly


_STEPS: Final = {"orderly": True}
_WHOLE: Final = {"whole": True}

KINDS: Final[Mapping[str, Kind | RingKind]] = {
    "nested": Kind(
        Explorer,
        spun([(1, 1)], [(1, 0)], orders=("product", "lexicographic")),
        [
            spun([(1, 1)], [(1, 0)], [(0, 2)], orders=("lexicographic", "product")),
            spun([(1, 1)], [(1, 0)], [(0, 2)], orders=("product", "lexicographic")),
            spun([(2, 1), (0, 1)], [(1, 0)], orders=("product", "lexicographic")),
        ],
        _STEPS,
    ),
    "routed": Kind(
        Explorer,
        moves(0, [[[0]], [[2]]], [1]),
        [moves(0, [[[0], [2]], [[0], [1]]], [1, 0]), moves(1, [[[0], [2]], [[0], [1]]], [1, -1])],
        _STEPS,
    ),
    "flows": Kind(
        Explorer,
        of_both([[1], []], [[], [2]]),
        [
            of_both([[1], [0]], [[1], [2]]),
            of_both([[1], [], []], [[], [2], []]),
            replace(of_both([[0], [3], [3]], [[], [0], [0]]), alike=(1, 2)),
        ],
        _STEPS,
    ),
    "installed": Kind(
        ServedExplorer,
        reading(True, [[1]], [[2]]),
        [reading(True, [[1], [2]], [[2], []]), reading(True, [[1]], [[2]], [[]])],
        _STEPS,
    ),
    "uninstalled": Kind(
        ServedExplorer,
        ended([[1]], [[]]),
        [ended([[1], [2]], [[2], []]), ended([[1]], [[2]], [[]])],
        _STEPS,
    ),
    "failed": Kind(
        ServedExplorer,
        failing([[1], [served_flows.BAD]], [[served_flows.BAD + 1], []]),
        [
            failing([[1], [served_flows.BAD]], [[served_flows.BAD + 1], [0]]),
            failing([[1], [0], [served_flows.BAD]], [[2], [served_flows.BAD + 1], []]),
            failing([[served_flows.BAD]], [[served_flows.BAD + 1]], [[1]]),
        ],
        _STEPS,
    ),
    "replaced": Kind(
        ReplacingExplorer,
        None,
        [
            replacing([(1, 2), None], []),
            replacing([(1, 2), None, None], [(3, 4)]),
            replacing([(1, 2), None], [(3, 4)], []),
        ],
        _WHOLE,
        states=1_000,
    ),
    "divided": Kind(
        DividedExplorer,
        None,
        [
            divided((0, [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)]), (1, [(7, 8), (8, 9)])),
            divided((0, [(n, n + 1) for n in range(20)]), (1, [(7, 8), (8, 9)]), (1, [(9, 9)]), repeats=1),
        ],
        _STEPS,
        states=150,
    ),
    "rings": RingKind(
        RingTraffic(((100, 450, 600), (450, 30))),
        [
            RingTraffic(((460,) * 10 + (600,), (460, 30)), sleeps=2),
            RingTraffic(((460,) * 20 + (600, 100), (460,) * 12), sleeps=2),
        ],
        states=4_000,
    ),
    "rounds": Kind(
        LoopExplorer,
        looping(of_two_bits(COUNTDOWN), [[(0, 1)], []], [[], []]),
        [
            looping(COUNTDOWN, [[(0, 1)], [(0, 2)]], [[(3, 1)], []]),
            looping(of_two_bits(COUNTDOWN), [[(0, 1)], [], [(5, 1)]], [[], [(1, 0)], []]),
            looping(LABELS, [[(0, 1)], [(2, 1)]], [[(1, 2)], []]),
            looping(COUNTDOWN, [[(0, 1)]], [[]], [[]]),
        ],
        _WHOLE,
        states=7_000,
    ),
}
"""All of them, by name."""
