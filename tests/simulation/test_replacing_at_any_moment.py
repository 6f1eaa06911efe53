"""Dataflows that are replaced again and again at random moments of a random history, among workers whose
messages are delayed at random, while somebody reads; every worker checks its progress tracking, or none.

same_*   at every epoch the answer is that of the version that was in force, or it has none there, to whoever
         reads on or begins; on all workers, also when a version ends
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from delayed_cluster import DelayedCluster, Row, answers_to, some_epoch_bits
from exporting_flows import QUERIES, SEEN, sums

from differential.errors import RowError
from differential.operators.between import imports as imports_module
from timely.client.tables import at_epoch
from timely.errors import MisuseError
from timely.wire.handshake import Switched
from timely.wire.requests import IN_EPOCH, Deliver, Read, Replace, Reply
from timely.worker.answers.later import Later


class Reader:
    """A client that asks all workers again and again for what is new, by the number that it knows."""

    def __init__(self, cluster: DelayedCluster, flow: int) -> None:
        self._cluster = cluster
        self._flow = flow
        self._answers: list[Reply | Later] = []
        self.place = 0
        self.read: list[pa.Table] = []
        self.without: set[int] = set()
        """Epochs without an answer."""

    def go_on(self) -> None:
        """Look whether the answers are there, and ask anew."""
        if not self._answers:
            request = Read(
                self._flow,
                "out",
                self.place,
                self.place + 1,
                -1.0,
                reader="me",
                is_open_ended=True,
                with_failures=True,
            )
            self._answers = [server.handle(request) for server in self._cluster.servers]
        for number, answer in enumerate(self._answers):
            if isinstance(answer, Later):
                self._answers[number] = answer.ready() or answer
        replies = [answer for answer in self._answers if isinstance(answer, Reply)]
        if len(replies) == len(self._answers):
            end = min(reply.integer("complete") for reply in replies)
            self.read += [at_epoch(reply.columns(), self.place, end) for reply in replies]
            self.without |= _without(replies, self.place, end)
            self._answers, self.place = [], end


def _without(replies: Sequence[Reply], start: int, stop: int) -> set[int]:
    """The epochs without an answer, of which all workers say the same."""
    found: set[frozenset[int]] = set()
    for reply in replies:
        failed = reply.values["failed"]
        assert isinstance(failed, list)
        stretches = [(int(each[0]), min(int(each[1]), stop)) for each in failed]  # type: ignore[index, call-overload, arg-type]
        found.add(frozenset(e for first, last in stretches for e in range(first, last) if start <= e < stop))
    (epochs,) = found
    return set(epochs)


@pytest.mark.parametrize("queries", [QUERIES, ("fails on 5", "as it is", "counted"), ("fails on 5",)])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_same_as_the_version_in_force_whoever_reads(
    workers: int, queries: Sequence[str], seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced = errors = answers = 0
    for number in range(16 * effort):
        case = seed + number
        rng = random.Random(case)
        monkeypatch.setattr(imports_module, "_PIECE_ROWS", rng.choice([1, 3, 65_536]))
        some_epoch_bits(rng, monkeypatch)
        cluster = DelayedCluster(rng, workers, checks=case % 2 == 0)
        cluster.owner = cluster.install("exporting_flows:owner")
        cluster.settle()
        switched: dict[int, int] = {}
        replacements = cluster.servers[0].replacements
        carry_out = replacements.switch

        def noted(order: Switched, switched: dict[int, int] = switched, do=carry_out) -> None:  # type: ignore[no-untyped-def]
            switched[order.new] = order.epoch
            do(order)

        monkeypatch.setattr(replacements, "switch", noted)
        reader = Reader(cluster, cluster.owner)
        versions = _at_random(cluster, reader, queries)
        cluster.settle()
        for _ in range(3):
            cluster.seal()
            cluster.settle()
            reader.go_on()
            reader.go_on()
        _check(cluster, reader, {0: "as it is", **versions}, {0: 0, **switched}, f"seed {case}")
        replaced += len(switched)
        errors += len(reader.without)
        answers += reader.place - len(reader.without)
    assert replaced > 16, "they are replaced, most of the time"
    assert answers > 16 and (errors > 16) == ("fails on 5" in queries)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_same_on_all_workers_when_a_version_fails_at_any_moment(workers: int, seed: int, effort: int) -> None:
    """Before it has the inputs it is as if it had not been; afterwards it is the dataflow that has failed."""
    outcomes: Counter[str] = Counter()
    for number in range(24 * effort):
        case = seed + number
        cluster = DelayedCluster(random.Random(case), workers, checks=case % 2 == 0)
        cluster.owner = cluster.install("exporting_flows:owner")
        cluster.settle()
        reader = Reader(cluster, cluster.owner)
        try:
            versions = _at_random(cluster, reader, ("fails on 5", "counted"), strict=True)
            cluster.settle()
            cluster.seal()
            cluster.settle()
        except RowError:
            cluster.settle()
            assert not any(worker.instances for worker in cluster.workers), f"seed {case}"
            outcomes["failed"] += 1
            continue
        outcomes["survived"] += 1
        (left,) = {frozenset(worker.instances) for worker in cluster.workers}
        if not left:
            continue
        (index,) = left
        query = {0: "as it is", **versions}[index]
        there = cluster.servers[0].replacements.outputs_of(0)
        assert there == index, f"seed {case}: asked for 0, found {there}"
        replies = [server.handle(Read(0, "out", 0, cluster.epoch, 0.0)) for server in cluster.servers]
        found = pa.concat_tables(reply.columns() for reply in replies if isinstance(reply, Reply))
        wanted = answers_to("as it is" if query == "fails on 5" else query, cluster.history, cluster.epoch)
        assert sums(found) == wanted[-1], f"seed {case}"
    assert outcomes["failed"] and outcomes["survived"], outcomes


def test_same_end_when_a_version_fails_where_it_is_not_known_yet_that_there_is_no_way_back(seed: int) -> None:
    met = 0
    for case in range(seed, seed + 30):
        cluster = DelayedCluster(random.Random(case), 2)
        cluster.owner = cluster.install("exporting_flows:owner")
        cluster.settle()
        cluster.ask(Replace(0, "exporting_flows:owner", {}, -1.0))
        first, second = (server.replacements for server in cluster.servers)
        while not first.is_switched(1):
            cluster.step()
        if second.is_switched(1):
            continue
        met += 1
        cluster.workers[1].fail(1, MisuseError("too bad"))
        cluster.settle()
        assert not any(worker.instances for worker in cluster.workers), f"seed {case}"
        for server in cluster.servers:
            with pytest.raises(MisuseError, match="too bad"):
                server.handle(Read(0, "out", 0, 1, 0.0))
    assert met > 3


@pytest.mark.parametrize("is_refused", [False, True], ids=["begun", "refused"])
def test_same_rows_of_far_epochs_are_taken_over_by_a_version_with_deeper_loops(
    is_refused: bool, seed: int
) -> None:
    """On worker 0 the new version is there, and no other worker has built it."""
    cluster = DelayedCluster(random.Random(seed), 2)
    cluster.owner = cluster.install("exporting_flows:owner")
    cluster.settle()
    cluster.ask(Replace(0, "exporting_flows:owner", {"query": "reach"}, -1.0))
    far, edge = 1 << 50, pa.table({"src": [1], "dst": [2]})
    assert isinstance(cluster.servers[0].handle(Deliver(0, "edges", "w", 0, IN_EPOCH, far, 1), edge), Reply)
    if is_refused:
        cluster.servers[0].installations.give_up(cluster.latest)
    else:
        cluster.change()
        cluster.seal()
    cluster.settle()
    (left,) = {frozenset(worker.instances) for worker in cluster.workers}
    assert left == {0 if is_refused else 1}
    for server in cluster.servers:
        assert isinstance(server.handle(Deliver(0, "edges", "w", 1, IN_EPOCH, far, 1), edge), Reply)
    found = cluster.ask(Read(0, "out", 0, cluster.epoch, 0.0))
    assert isinstance(found, Reply)


def test_same_effects_happen_before_the_old_version_ends(seed: int) -> None:
    for case in range(seed, seed + 12):
        cluster = DelayedCluster(random.Random(case), 3)
        cluster.owner = cluster.install("exporting_flows:watched")
        cluster.settle()
        SEEN.clear()
        for _ in range(12):
            cluster.change()
            cluster.seal()
        cluster.ask(Replace(0, "exporting_flows:owner", {}, -1.0))
        cluster.settle()
        assert [set(worker.instances) for worker in cluster.workers] == [{1}] * 3
        looked_at: Counter[tuple[int, Row]] = Counter()
        for row, (epoch,), diff in SEEN:
            looked_at[epoch, row] += diff
        came = {(e, edge): n for e, edges in cluster.history.items() for edge, n in edges.items() if n}
        assert {one: n for one, n in looked_at.items() if n} == came, f"seed {case}"


def _at_random(
    cluster: DelayedCluster, reader: Reader, queries: Sequence[str] = QUERIES, strict: bool = False
) -> dict[int, str]:
    """By number, what new versions ask."""
    rng, versions = cluster.rng, dict[int, str]()
    for _ in range(150):
        chance = rng.random()
        if chance < 0.2:
            cluster.change()
        elif chance < 0.3:
            cluster.seal()
        elif chance < 0.36:
            query = rng.choice(queries)
            # Of one that has not taken over yet the request would wait, and so be another one.
            known = [flow for flow in versions if not cluster.servers[0].installations.is_awaited(flow)]
            of = rng.choice([0, *known])
            try:
                asked = {"query": query, "strict": strict}
                cluster.ask(Replace(of, "exporting_flows:owner", asked, -1.0))
            except MisuseError:
                continue  # the last one has not come to its end, or is not there yet
            versions[cluster.latest] = query
        elif chance < 0.45:
            reader.go_on()
        else:
            cluster.step()
    return versions


def _check(
    cluster: DelayedCluster,
    reader: Reader,
    versions: dict[int, str],
    switched: dict[int, int],
    case: str,
) -> None:
    latest = max(switched)
    assert [set(worker.instances) for worker in cluster.workers] == [{latest}] * len(cluster.workers), case
    assert reader.place == cluster.epoch, case
    read = pa.concat_tables(reader.read)
    fresh = Read(0, "out", 0, cluster.epoch, 0.0, with_failures=True)
    replies = [reply for server in cluster.servers if isinstance(reply := server.handle(fresh), Reply)]
    assert len(replies) == len(cluster.servers)
    anew = pa.concat_tables(reply.columns() for reply in replies)
    without = _without(replies, 0, cluster.epoch)
    assert without == reader.without, case
    wanted = {query: answers_to(query, cluster.history, cluster.epoch) for query in set(versions.values())}
    for epoch in range(cluster.epoch):
        # Of several that came in one epoch the last is in force.
        in_force = max(flow for flow, begin in switched.items() if begin <= epoch)
        truth = wanted[versions[in_force]][epoch]
        assert (truth is None) == (epoch in without), f"{case}: at {epoch}, {versions} from {switched}"
        if truth is None:
            continue
        assert sums(anew, epoch) == truth, f"{case}: who begins, at {epoch}, {versions} from {switched}"
        assert sums(read, epoch) == truth, f"{case}: who reads on, at {epoch}, {versions} from {switched}"
