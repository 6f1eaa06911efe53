"""One round of the soak: a cluster, dataflows, clients that do what they like, a mishap, and a verdict.

Everything that is decided follows from the seed of the round; how threads and processes take turns does not.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from fuzz.strangers import connect_and_go, odd_messages, raw_bytes

import timely
from timely.errors import InputClosedError, PeerError, TimelyError
from timely.wire.requests import Describe

from .actors import Actor, Cast, Finished, Reader, Witness, Writer, finish, stacks
from .clusters import children, environment, is_alive, started
from .model import STRANGERS_FROM, Model, WrongAnswer
from .queries import QUERIES

__all__ = ["Round", "Verdict"]

_MISHAPS = ("none", "poison", "poison", "close", "kill", "stop", "exit")


class Hang(AssertionError):
    """A call took longer than any may."""


@dataclass
class Verdict:
    """What a round was, and what was checked."""

    title: str
    epochs: int = 0
    calls: int = 0
    what: dict[str, int] = field(default_factory=dict)


class Round:
    """One round, decided by its seed; `seconds` is how long clients work before it ends."""

    def __init__(self, seed: int, seconds: float) -> None:
        self.choose = random.Random(seed)
        self.seed = seed
        self.seconds = seconds
        self.workers = self.choose.choice([1, 2, 2, 3])
        self.is_embedded = self.choose.random() < 0.25
        self.mishap = self.choose.choice(_MISHAPS[:4] if self.is_embedded else _MISHAPS)
        self.queries = self.choose.sample(QUERIES, self.choose.randint(1, 3))
        self.has_threads = (
            self.is_embedded and self.workers > 1 and random.Random(f"{seed} threads").random() < 0.5
        )
        self.failures: list[BaseException] = []
        self._stop = threading.Event()

    @property
    def title(self) -> str:
        """What it is about."""
        kind = "threads" if self.has_threads else "embedded" if self.is_embedded else "processes"
        names = ", ".join(query.name for query in self.queries)
        return f"{self.workers} workers, {kind}: {names}; {self.mishap}"

    def run(self) -> Verdict:
        """All of it; raises what went wrong."""
        if self.is_embedded:
            with timely.connect(workers=self.workers, embedded=True, threads=self.has_threads) as cluster:
                return self._play(cluster, [], None)
        with started(self.workers) as (process, addresses):
            with timely.connect(addresses[0]) as cluster:
                verdict = self._play(cluster, addresses, process)
            pids = children(process.pid)
            process.send_signal(signal.SIGTERM)
        if left := [pid for pid in (process.pid, *pids) if is_alive(pid)]:
            raise WrongAnswer(f"the processes {left} were left behind")
        return verdict

    def _play(
        self, cluster: timely.Cluster, addresses: list[str], process: subprocess.Popen[str] | None
    ) -> Verdict:
        models = [Model(query, cluster.install(query.spec).index) for query in self.queries]
        cast = Cast(self.seed, models, self.is_embedded)
        with contextlib.ExitStack() as stack:

            def client() -> timely.Cluster:
                if self.is_embedded:
                    return cluster
                return stack.enter_context(timely.connect(self.choose.choice(addresses)))

            actors: list[Actor] = [Writer(cast, f"writer {number}", client()) for number in range(2)]
            actors += [Reader(cast, f"reader {number}", client()) for number in range(2)]
            witness = Witness(cast, "witness", client())
            if self.is_embedded:
                self._take_turns([*actors, witness], cast)
            else:
                self._let_loose([*actors, witness], cast, addresses, process)
            if self.failures:
                raise self.failures[0]
            if not cast.is_killed:
                finish(cluster, cast)
        epochs = sum(model.check() for model in models)
        return Verdict(self.title, epochs, cast.done.total(), dict(cast.done))

    # How clients take turns.

    def _take_turns(self, actors: list[Actor], cast: Cast) -> None:
        until = time.monotonic() + self.seconds
        mishap_at = time.monotonic() + self.seconds * self.choose.uniform(0.3, 0.8)
        while time.monotonic() < until and actors:
            if time.monotonic() > mishap_at:
                mishap_at = until
                self._let_happen(actors[0].cluster, cast, None)
            actor = self.choose.choice(actors)
            try:
                actor.step()
            except Finished:
                actors = [other for other in actors if other is not actor]

    def _let_loose(
        self, actors: list[Actor], cast: Cast, addresses: list[str], process: subprocess.Popen[str] | None
    ) -> None:
        threads = [threading.Thread(target=self._act, args=(actor,), name=actor.name) for actor in actors]
        threads.append(threading.Thread(target=self._bother, args=(addresses, cast), name="strangers"))
        threads.append(threading.Thread(target=self._be_killed, args=(addresses[0], cast), name="mortals"))
        for thread in threads:
            thread.daemon = True
            thread.start()
        begun = time.monotonic()
        mishap_at = begun + self.seconds * self.choose.uniform(0.3, 0.8)
        has_happened = False
        while not self._stop.wait(0.05) and not (has_happened and time.monotonic() > begun + self.seconds):
            self._look_for_hangs(cast)
            # On a busy machine clients begin late; there is to be something that can go wrong.
            is_late = time.monotonic() > begun + self.seconds + 30
            if not has_happened and time.monotonic() > mishap_at and (self._has_begun(cast) or is_late):
                has_happened = True
                try:
                    with timely.connect(addresses[0]) as cluster:
                        self._let_happen(cluster, cast, process)
                except BaseException as error:
                    self.failures.append(error)
                if cast.is_killed:
                    break
        if not cast.is_killed:
            self._stop.set()
        until = time.monotonic() + 90
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
                self._look_for_hangs(cast)
                if time.monotonic() > until:
                    raise Hang(f"{thread.name} does not end\n{stacks()}")
                if cast.is_killed and all(not other.is_alive() for other in threads[:-2]):
                    self._stop.set()
        self._stop.set()

    def _has_begun(self, cast: Cast) -> bool:
        return cast.done.total() > 50 and all(any(model.complete.values()) for model in cast.models)

    def _look_for_hangs(self, cast: Cast) -> None:
        if late := cast.late():
            raise Hang("; ".join(late) + "\n" + stacks())

    def _act(self, actor: Actor) -> None:
        try:
            while not self._stop.is_set():
                actor.step()
        except Finished:
            pass
        except BaseException as error:
            error.add_note(f"{actor.name} has asked last: {', '.join(actor.asked)}")
            self.failures.append(error)
            self._stop.set()

    # What happens to them.

    def _bother(self, addresses: list[str], cast: Cast) -> None:
        choose = random.Random(f"{self.seed} strangers")
        while not self._stop.wait(choose.random() * 0.3) and not cast.is_killed:
            address = choose.choice(addresses)
            what = choose.random()
            try:
                if what < 0.4:
                    odd_messages(address, choose, 60)
                elif what < 0.7:
                    raw_bytes(address, choose)
                else:
                    connect_and_go(address, 30)
            except OSError:
                pass  # whom nobody listens to any more

    def _be_killed(self, address: str, cast: Cast) -> None:
        """Clients in processes of their own, killed in the middle of what they do."""
        choose = random.Random(f"{self.seed} mortals")
        for number in itertools.count():
            if self._stop.wait(choose.random()) or cast.is_killed:
                return
            model = choose.choice(cast.models)
            tag = STRANGERS_FROM + number * 10_000
            command = [sys.executable, "-m", "soak.client", address, str(model.index), str(tag)]
            with subprocess.Popen(
                [*command, choose.choice(model.query.inputs), "large" if model.query.takes_many else "small"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(),
            ) as child:
                self._stop.wait(choose.uniform(1.0, 3.0))
                child.kill()

    def _let_happen(self, cluster: timely.Cluster, cast: Cast, process: subprocess.Popen[str] | None) -> None:
        model = self.choose.choice(cast.models)
        if self.mishap == "poison":
            self._poison(cluster, model, 0)
            self._check_ended(cluster, model)
        elif self.mishap == "close":
            model.is_closed = True
            flow = cluster.flow(model.index)
            for name in model.query.inputs:
                flow.input(name).close()
        elif self.mishap in ("kill", "stop", "exit"):
            assert process is not None
            cast.is_killed = True
            pids = children(process.pid)
            if self.mishap == "exit" and model.query.is_records:
                self._poison(cluster, model, -1)
            else:
                os.kill(self.choose.choice(pids), signal.SIGSTOP if self.mishap == "stop" else signal.SIGKILL)
            self._check_lost(cluster, model)

    def _poison(self, cluster: timely.Cluster, model: Model, value: int) -> None:
        """A row that the dataflow cannot bear. It is none of those that may be read afterwards."""
        model.is_poisoned = value == 0
        flow = cluster.flow(model.index)
        rows = [(1, value, -1)]
        model.begin(name := model.query.inputs[0], -1, rows, 1)
        try:
            flow.input(name).insert(rows)
            for _ in range(3):
                flow.seal()
                flow.wait(timeout=20)
        except TimelyError as error:
            if value == 0 and "has ended with this error" not in str(error):
                raise
            return
        raise WrongAnswer(f"{model.query.name} bore a row that is an error")

    def _check_ended(self, cluster: timely.Cluster, model: Model) -> None:
        """Every worker tells the same error; other dataflows go on."""
        told: list[str] = []
        until = time.monotonic() + 20
        for worker in range(self.workers):
            said = ""
            # The news may be on its way still, though no dataflow goes on without one of its workers.
            while not said and time.monotonic() < until:
                try:
                    cluster._workers.ask([(worker, Describe(model.index), None)])
                except TimelyError as error:
                    said = f"{type(error).__name__}: {error}"
            told.append(said)
        if len(set(told)) != 1 or "has ended with this error" not in told[0]:
            raise WrongAnswer(f"{model.query.name} was ended, and workers say of it: {told}")

    def _check_lost(self, cluster: timely.Cluster, model: Model) -> None:
        """A lost worker is told within seconds."""
        started = time.monotonic()
        while time.monotonic() < started + 15:
            try:
                cluster.flow(model.index).seal()
            except PeerError:
                return
            except InputClosedError:
                pass
            time.sleep(0.05)
        raise Hang(f"nobody has told that a worker is lost ({self.mishap})\n{stacks()}")
