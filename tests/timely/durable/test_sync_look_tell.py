"""Sync, look, tell: incarnations take over from one another, stopped at any of their operations.

The code is the real one. Each incarnation is an actor: it announces itself, writes records, and notes what it
may tell. It stops before each operation on the store, and goes on when the schedule says so. At the end of a
phase all actors are killed where they are, and the machine may fail, too; another phase begins with what is
there. Meanwhile the disk may fail for some operations. A last incarnation then reads what is there:

    all that was told counts, and of each log what counts is a prefix
    what an incarnation was built on that has told anything, the last one is built on, too

two_*      all schedules of two incarnations that change between them up to twice
three_*    some schedules of three, by seed, in two phases
mutant_*   each step of the protocol that is left out or moved is found by these
"""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Semaphore, Thread
from typing import NamedTuple

import pytest
from simulated_store import Crash, SimulatedDisk, SimulatedStore

from timely.durable import incarnations
from timely.durable.bases.manifest import KeptBases
from timely.durable.incarnations import Incarnation, OldLog, announce, hello_of, read_log
from timely.durable.log import Log
from timely.durable.store import Store, begin_path, fence_path
from timely.errors import FencedError, StoreError

RECORDS = 2
SECONDS = 20.0


class Turn(NamedTuple):
    """An actor goes on for some operations; one of another kind fails meanwhile, if that is not empty."""

    actor: int
    operations: int
    failing: str = ""


class Phase(NamedTuple):
    """Turns of some actors; and the seed of the crash of the machine at their end, if it is not None."""

    actors: int
    turns: Sequence[Turn]
    crash: int | None = None


class UnstartedThread(Thread):
    def start(self) -> None:
        """Leave the work to `SteppedLog.turn`."""


@pytest.fixture(autouse=True)
def _without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.durable.log.Thread", UnstartedThread)


class WrongError(AssertionError):
    """The protocol does not hold what it promises."""


class SteppedLog(Log):
    """A log without its thread: `turn` does once what that does."""

    def turn(self) -> None:
        assert self._take()
        self._try()

    def try_again(self) -> None:
        with self._lock:
            self._hurry()
        self.turn()


class Actor:
    """An incarnation from its announcement on, which stops before each operation."""

    def __init__(self, disk: SimulatedDisk, protocol: Protocol) -> None:
        self.begun: Incarnation | None = None
        self.told = 0
        """The number of its records that it has told."""

        self.is_over = False
        self.damage: StoreError | None = None
        self._is_killed = False
        self._goes_on = Semaphore(0)
        self._has_stopped = Semaphore(0)
        self._store = protocol.store(disk, self._stop)
        self._protocol = protocol
        self._thread = Thread(target=self._run)
        self._thread.start()
        self._has_stopped.acquire()

    def go_on(self, operations: int) -> None:
        for _ in range(operations):
            if not self.is_over:
                self._goes_on.release()
                assert self._has_stopped.acquire(timeout=SECONDS)

    def kill(self) -> None:
        self._is_killed = True
        self.go_on(1)
        self._thread.join()

    def _stop(self, what: str, path: str) -> None:
        self._has_stopped.release()
        self._goes_on.acquire()
        if self._is_killed:
            raise Crash(f"before {what} {path}")

    def _run(self) -> None:
        try:
            self._live()
        except (Crash, FencedError):
            pass
        except StoreError as error:
            self.damage = error
        finally:
            self.is_over = True
            self._has_stopped.release()

    def _live(self) -> None:
        self._stop("begin", "")
        begun = announce(self._store, 1)
        log = self._protocol.log(self._store, begun.cluster, begun.number, 0)
        self.begun = begun
        heads = [hello_of(begun, 0), *[["rows", begun.number, number] for number in range(RECORDS)]]
        for head in heads:
            log.add(head)
            log.turn()
            while log.error is not None:
                if isinstance(log.error, FencedError):
                    return
                log.try_again()
            self._stop("tell", "")
            self.told = log.told


@dataclass
class Protocol:
    """The parts of which an actor is made; mutants replace some."""

    store: type[SimulatedStore] = SimulatedStore
    log: type[SteppedLog] = SteppedLog


def explore(protocol: Protocol, *phases: Phase) -> list[int]:
    """Run phases; raise `WrongError` if they lead to a wrong state. Return how many records each has told."""
    disk = SimulatedDisk()
    lives: list[Actor] = []
    for phase in phases:
        living = [Actor(disk, protocol) for _ in range(phase.actors)]
        lives += living
        try:
            for turn in phase.turns:
                disk.failing = {turn.failing: errno.EIO} if turn.failing else {}
                living[turn.actor].go_on(turn.operations)
        finally:
            disk.failing = {}
            for life in living:
                life.kill()
        if phase.crash is not None:
            disk.crash(phase.crash)
    try:
        judge(disk, lives)
    except StoreError as error:
        raise WrongError(f"the last one: {error}") from error
    return [life.told for life in lives]


def judge(disk: SimulatedDisk, lives: Sequence[Actor]) -> None:
    store = SimulatedStore(disk)
    last = announce(store, 1)
    heads = {log.incarnation: [record.head for record in read_log(store, log)] for log in last.logs}
    for life in lives:
        if life.damage is not None:
            raise WrongError(f"one on its way: {life.damage}")
        if life.begun is None or not life.told:
            continue
        number = life.begun.number
        counted = heads.get(number)
        if counted is None or len(counted) < life.told - 1:
            raise WrongError(f"incarnation {number} has told {life.told - 1} rows, and {counted} count")
        if counted != [["rows", number, row] for row in range(len(counted))]:
            raise WrongError(f"of incarnation {number} {counted} count, which is no prefix")
        before = [log for log in last.logs if log.incarnation < number]
        if before != life.begun.logs:
            raise WrongError(f"incarnation {number} was built on {life.begun.logs}, the last one on {before}")


def operations_of(protocol: Protocol) -> int:
    """Return a bound on the operations of one actor."""
    disk = SimulatedDisk()
    for _ in range(2):
        life = Actor(disk, protocol)
        count = 0
        while not life.is_over:
            life.go_on(1)
            count += 1
    return count


def two_in_turn(most: int) -> Iterator[Phase]:
    """Yield all schedules: the first begins and goes on, then the second, then one or both to the end."""
    for first in range(most // 2, most + 1):
        for second in range(1, most + 1):
            turns = [Turn(0, first), Turn(1, second), Turn(0, most), Turn(1, most)]
            yield Phase(2, turns[:3])
            yield Phase(2, turns)


def some_of(actors: int, most: int, chance: random.Random) -> Phase:
    """Return a schedule with long turns and short ones."""
    turns = [
        Turn(
            chance.randrange(actors),
            chance.choice([1, 2, 3, 5, 8, 13, most]),
            chance.choice(["", "", "", "create", "write", "sync"]),
        )
        for _ in range(chance.randint(3, 12))
    ]
    return Phase(actors, turns, chance.choice([None, chance.randrange(1000)]))


def hunt(protocol: Protocol, seed: int, count: int) -> list[int]:
    """Run schedules of two phases; return how many records the incarnations of each told in all."""
    most = operations_of(Protocol())
    told = []
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        phases = [some_of(3, most, chance), some_of(2, most, chance)]
        try:
            told.append(sum(explore(protocol, *phases)))
        except WrongError as error:
            raise WrongError(f"{error}; {phases}") from error
    return told


def test_two_incarnations_in_all_schedules() -> None:
    protocol = Protocol()
    told = {tuple(explore(protocol, phase)) for phase in two_in_turn(operations_of(protocol))}
    assert {(1, 3), (2, 3), (3, 3), (3, 0)} <= told, "schedules lead everywhere"


def test_three_incarnations_in_many_schedules(seed: int, effort: int) -> None:
    told = hunt(Protocol(), seed, 500 * effort)
    assert sum(told) > 2 * len(told), "they get somewhere"


def test_mutant_tell_without_looking() -> None:
    class Blind(SimulatedStore):
        def exists(self, path: str) -> bool:
            return path.endswith("begin.json") and super().exists(path)

    check_dies(Blind)


def test_mutant_look_before_syncing() -> None:
    class Early(SimulatedStore):
        was_fenced = False

        def operate(self, what: str, path: str) -> None:
            if what == "write":
                number = int(path.split("/")[1])
                self.was_fenced = fence_path(number + 1) in self.disk.files
            super().operate(what, path)

        def exists(self, path: str) -> bool:
            is_there = super().exists(path)
            return is_there if path.endswith("begin.json") else self.was_fenced

    check_dies(Early)


def test_mutant_tell_before_syncing() -> None:
    class Hasty(SteppedLog):
        def __init__(self, store: Store, cluster: str, incarnation: int, process: int) -> None:
            super().__init__(store, cluster, incarnation, process, syncs=False)

    check_dies(log=Hasty)


def test_mutant_begin_that_does_not_fix_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_anew(store: Store, number: int, cluster: str, bases: KeptBases) -> list[OldLog]:
        logs: list[OldLog] = []
        for other in range(1, number):
            begun = incarnations._read_begin(store, other)
            if begun is not None:
                logs += incarnations._logs_of(store, begun, bases)
        return logs

    monkeypatch.setattr(incarnations, "_logs_before", read_anew)
    check_dies()


def test_mutant_void_incarnation_that_tells() -> None:
    class WithoutBegin(SimulatedStore):
        def put_new(self, path: str, data: bytes) -> bool:
            return path == begin_path(2) or super().put_new(path, data)

    check_dies(WithoutBegin)


def test_mutant_begin_of_what_may_not_be_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incarnations, "_with_copy", lambda store, log, number: log)
    check_dies()


def test_mutant_fence_after_reading() -> None:
    class FenceLast(SimulatedStore):
        fence: tuple[str, bytes] | None = None

        def put_new(self, path: str, data: bytes) -> bool:
            if path.startswith("members/") and not path.endswith("begin.json"):
                self.fence = path, data
                return not super().exists(path)
            if path.endswith("begin.json") and self.fence is not None:
                super().put_new(*self.fence)
            return super().put_new(path, data)

    check_dies(FenceLast)


def check_dies(store: type[SimulatedStore] = SimulatedStore, log: type[SteppedLog] = SteppedLog) -> None:
    with pytest.raises(WrongError):
        hunt(Protocol(store, log), 1, 500)
