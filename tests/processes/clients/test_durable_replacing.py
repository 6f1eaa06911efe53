"""Dataflows of a durable cluster of real processes are replaced while workers are killed.

killed_*     clients go on, and no epoch is shown differently
standing_*   so they do with workers that follow
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from feeding_threads import Threads, supervisor_of

import timely
from timely.client.session import Flow

Changes = dict[int, Counter[tuple[int, int]]]
SPEC = "version_flows:versions"


def changes_of(flow: Flow, start: int = 0) -> Changes:
    """The changes of the output by epoch."""
    found: Changes = {}
    for row in flow.output("out").changes(start, flow.epoch).to_pylist():
        found.setdefault(row["epoch"], Counter())[row["src"], row["dst"]] += row["diff"]
    return {epoch: rows for epoch, rows in found.items() if any(rows.values())}


def answers(version: int, edges: Counter[tuple[int, int]]) -> Counter[tuple[int, int]]:
    """What the output holds in version 0, 2 or 4."""
    if version == 0:
        return edges.copy()
    if version == 4:
        return Counter({(dst, src): n for (src, dst), n in edges.items()})
    return sum_of_paths(edges)


def sum_of_paths(edges: Counter[tuple[int, int]]) -> Counter[tuple[int, int]]:
    paths: Counter[tuple[int, int]] = Counter()
    for (a, b), n in edges.items():
        for (c, d), m in edges.items():
            if b == c:
                paths[a, d] += n * m
    return paths


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Program:
    """Inserts edges, seals, and replaces, and knows what each epoch shows."""

    def __init__(self, cluster: timely.Cluster, chance: random.Random) -> None:
        self.cluster = cluster
        self.chance = chance
        self.first = self.flow = cluster.install(SPEC, version=0)
        self.version = 0
        self.edges: Counter[tuple[int, int]] = Counter()
        self.held: list[Counter[tuple[int, int]]] = []
        """What the output holds at each epoch."""

    def epoch(self) -> None:
        """Do what makes an epoch; now and then by a client that knows the first version only."""
        flow = self.chance.choice([self.first, self.flow])
        flow.refresh()
        for _ in range(self.chance.randrange(1, 4)):
            edge = self.chance.randrange(6), self.chance.randrange(6)
            self.edges[edge] += 1
            flow.input("edges").insert([edge], writer="program", sequence=sum(self.edges.values()))
        assert flow.seal() == len(self.held)
        self.held.append(answers(self.version, self.edges))

    def replace(self) -> None:
        """Let another version take over."""
        self.version = self.chance.choice([v for v in (0, 2, 4) if v != self.version])
        self.flow = self.cluster.replace(self.first, SPEC, version=self.version)

    def check(self) -> None:
        """Every epoch has changed by what it should."""
        self.first.refresh()
        total: Counter[tuple[int, int]] = Counter()
        changes = changes_of(self.first)
        for epoch, held in enumerate(self.held):
            total.update(changes.get(epoch, {}))
            assert {edge: n for edge, n in total.items() if n} == held, f"epoch {epoch}"


@pytest.mark.timeout(600)
def test_killed_while_versions_change(tmp_path: Path, seed: int, effort: int) -> None:
    chance = random.Random(seed)
    with timely.connect(workers=2, durable=tmp_path / "store", log_level="error") as cluster:
        keeper = supervisor_of(cluster)
        program = Program(cluster, chance)
        program.epoch()
        for _ in range(4 + 2 * effort):
            pids, seconds = keeper.pids, chance.uniform(0.0, 0.3)
            victims = pids if chance.random() < 0.4 else [chance.choice(pids)]
            killer = threading.Timer(seconds, kill, [victims])
            killer.start()
            began = time.monotonic()
            while not program.held or time.monotonic() - began < 0.4:
                program.replace()
                program.epoch()
            killer.join()
            program.epoch()
            program.check()
        program.first.output("out").forget(len(program.held) - 1)
    with timely.connect(workers=3, durable=tmp_path / "store", log_level="error") as cluster:
        again = cluster.install(SPEC, version=program.version)
        assert (again.index, again.epoch) == (program.flow.index, len(program.held))
        with pytest.raises(timely.MisuseError, match="the store has another one"):
            cluster.install(SPEC, version=6)
        held: Counter[tuple[int, int]] = Counter()
        for row in again.output("out").snapshot().to_pylist():
            held[row["src"], row["dst"]] += 1
        assert held == program.held[-1]


def test_standing_by_while_versions_change(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with timely.connect(workers=2, durable=tmp_path / "store", standby=True, log_level="error") as cluster:
        keeper = supervisor_of(cluster)
        program = Program(cluster, chance)
        program.epoch()
        with Threads() as threads:
            for _ in range(2):
                threads.until(lambda: keeper.is_abreast)
                program.replace()
                program.epoch()
                program.replace()
                threads.until(lambda: keeper.is_abreast)
                program.epoch()
                restarts, successors = keeper.restarts, keeper.reserve and keeper.reserve.pids
                kill([keeper.pids[1]])
                threads.until(lambda restarts=restarts: keeper.restarts > restarts)  # type: ignore[misc]
                program.epoch()
                program.check()
                assert keeper.pids == successors
