"""A dataflow is replaced while workers are at work, and rows and seals come; then the machine fails.

Workers step, and their disks take what is written, in an order by seed. What was shown stays, each row counts
once, and a version that was told to have taken over is the one that a restart has.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from durable_workers import SECONDS, DurableWorkers, survivors
from simulated_store import SimulatedDisk, SimulatedStore

from timely.durable.bases.coverage import logs_of
from timely.durable.bases.folding import fold
from timely.durable.bases.pruning import prune
from timely.durable.incarnations import announce
from timely.wire.requests import IN_OPEN, Decide, Deliver, Install, Progress, Read, Replace, Reply
from timely.worker.answers.later import Later

SPEC = "version_flows:versions"

Changes = Counter[tuple[int, int, int]]
"""By epoch, src and dst."""


class Program:
    """Clients of the cluster, which ask again after a restart what had no answer."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = SimulatedDisk()
        self.rows: list[tuple[int, Reply | Later | None]] = []
        """The worker to which each row goes, by its number, and the answer."""
        self.shown: list[Changes] = []
        """By epoch: its changes, as they were shown first."""
        self.complete = 0
        self.seals = 0
        self.replacing: Reply | Later | None = None

    def run(self, workers: DurableWorkers) -> None:
        """Do this and that, and replace the dataflow meanwhile."""
        acts = (
            [self.work] * 12
            + [self.sync] * 4
            + [self.insert] * 3
            + [self.seal] * 2
            + [self.look] * 2
            + [self.forget]
        )
        for _ in range(self.rng.randrange(80)):
            self.rng.choice(acts)(workers)
        self.replacing = workers.take(Replace(0, SPEC, {"version": 4}, -1.0))
        goes_on = self.rng.randrange(60)
        for _ in range(300):
            self.rng.choice(acts)(workers)
            if isinstance(self.replacing, Later):
                self.replacing = self.replacing.ready() or self.replacing
            is_decided = any(one.is_decided for one in workers.servers[0].replacements._under_way.values())
            goes_on -= is_decided or isinstance(self.replacing, Reply)
            if goes_on < 0:
                break

    def work(self, workers: DurableWorkers) -> None:
        self.rng.choice(workers.workers).step()

    def sync(self, workers: DurableWorkers) -> None:
        number = self.rng.randrange(len(workers.logs))
        workers.logs[number].wait(workers.logs[number].position, SECONDS)
        workers.durable[number].look()

    def insert(self, workers: DurableWorkers) -> None:
        worker = self.rng.randrange(len(workers.workers))
        self.rows.append((worker, None))
        self.deliver(workers, len(self.rows) - 1)

    def deliver(self, workers: DurableWorkers, number: int) -> None:
        """Send the row of this number, perhaps again."""
        worker, _ = self.rows[number]
        request = Deliver(0, "edges", f"w{worker}", number, IN_OPEN, 0, 1, [[number, number + 1]])
        worker = min(worker, len(workers.workers) - 1)
        self.rows[number] = worker, workers.take(request, worker=worker)

    def seal(self, workers: DurableWorkers) -> None:
        workers.take(Decide(0, self.seals, seals=True))
        self.seals += 1

    def look(self, workers: DurableWorkers) -> None:
        """Read all that is complete."""
        complete = min(server._outputs.complete(0, "out") for server in workers.servers)
        assert complete >= self.complete, "it goes back"
        self.complete = complete
        kept = [server.replacements.instance(0).output("out").extent()[0] for server in workers.servers]
        first = max(kept)
        if complete <= first or not all(server._outputs.is_restored(0, "out") for server in workers.servers):
            return
        changes = Changes()
        for index in range(len(workers.workers)):
            reply = workers.take(Read(0, "out", first, complete, 0.0), worker=index)
            if not isinstance(reply, Reply):  # one that has taken over answers for the other version
                return
            for row in reply.columns().to_pylist():
                changes[row["epoch"], row["src"], row["dst"]] += row["diff"]
        for epoch in range(first, complete):
            now = Changes({key: n for key, n in changes.items() if n and key[0] == epoch})
            if epoch < len(self.shown):
                assert now == self.shown[epoch], f"epoch {epoch}"
            elif epoch == len(self.shown):
                self.shown.append(now)

    def forget(self, workers: DurableWorkers) -> None:
        """Let one worker forget some of what was shown."""
        stop = self.rng.randrange(len(self.shown) // 2 + 1)
        worker = self.rng.randrange(len(workers.workers))
        workers.take(Progress(0, "out", keep_from=stop, drops=True), worker=worker)

    def fail(self) -> None:
        """Let the machine fail; perhaps somebody folds the logs then."""
        self.disk, self.complete = survivors(self.disk), 0
        if self.rng.randrange(2):
            store = SimulatedStore(self.disk)
            incarnation = announce(store, 1, 1)
            fold(logs_of(store, incarnation))
            prune(store, incarnation.number, count=1)


@pytest.mark.parametrize("seed", range(24))
def test_one_version_has_all_rows_once_and_shows_what_was_shown(seed: int) -> None:
    program = Program(seed)
    counts = [program.rng.randint(1, 3) for _ in range(2)]
    with DurableWorkers(program.disk, counts[0], seed) as workers:
        workers.ask(Install(SPEC, {"version": program.rng.choice([0, 2, 3])}))
        program.run(workers)
        was_told = isinstance(program.replacing, Reply)
        program.fail()
    with DurableWorkers(program.disk, counts[1], seed) as workers:
        is_new = 1 in workers.durable[0].past.flows
        assert is_new or not was_told
        workers.settle()
        for number in range(len(program.rows)):
            program.deliver(workers, number)
        program.look(workers)
        if not is_new:
            assert workers.ask(Replace(0, SPEC, {"version": 4}, -1.0)).integer("dataflow") > 0
        workers.settle()
        assert all(isinstance(answer, Reply) for _, answer in program.rows)
        opened = workers.ask(Decide(0, program.seals, seals=True)).integer("open")
        workers.settle()
        rows = Changes()
        for index in range(len(workers.workers)):
            for row in workers.ask(Read(0, "out", -1, opened, SECONDS), worker=index).columns().to_pylist():
                rows[0, row["src"], row["dst"]] += row["diff"]
        assert {key: n for key, n in rows.items() if n} == {
            (0, number + 1, number): 1 for number in range(len(program.rows))
        }
        program.look(workers)
        assert len(program.shown) == opened
        program.fail()
    with DurableWorkers(program.disk, counts[0], seed) as workers:
        workers.settle()
        program.look(workers)
        assert program.complete == opened
