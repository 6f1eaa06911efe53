"""A program with clients, and perhaps with a cluster of its own, which may be killed at any moment.

python -m soak.durable.program

It reads its `Plan` from its standard input, and ends when that says "stop" or "finish" or ends itself. It
tells what its clients do and hear by its standard output: see `plan.py`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import timely
from timely.client.remote.resuming import DurableWorkers
from timely.client.session import Flow
from timely.counted import counted
from timely.errors import FencedError, PeerError, StoreError, TimelyError
from timely.limits import SPREAD_ROWS_MIN

from ..actors import Actor, Cast, Finished, Reader, Witness, Writer, finish, stacks
from ..model import Model, Operation, WrongAnswer
from ..queries import QUERIES
from .plan import Forgotten, Plan, Teller, ToldModel

_LOST = 3
"""The exit status of a program whose cluster is gone."""
_PAUSE_SECONDS_MAX = 0.05
"""Between two calls of an actor: many faults in a round are worth more than many rows."""


class _Program(Cast):
    """What the actors of this program share."""

    def __init__(self, plan: Plan, tell: Teller, cluster: timely.Cluster) -> None:
        models: list[Model] = []
        for at, name in enumerate(plan.queries):
            query = next(query for query in QUERIES if query.name == name)
            model = ToldModel(query, cluster.install(query.spec).index)
            model.at, model.tell = at, tell
            model.forgotten, model.shown = Forgotten(Path(plan.forgotten) / str(at)), dict(plan.shown[at])
            models.append(model)
        super().__init__(plan.seed, models, plan.kind in ("embedded", "threads"))
        self.plan = plan
        self.tags = itertools.count(plan.first_tag)
        self.unsettled: list[tuple[Model, Operation, int]] = []
        """Insertions into embedded workers that have returned, and no other call since, with their epochs."""
        self.ending = ""
        self.failure: BaseException | None = None
        """Of a rescaling."""
        epochs = [cluster.flow(model.index).epoch for model in models]
        tell("ready", [model.index for model in models], epochs, plan.sealed)

    def settle(self, before: list[tuple[Model, Operation, int]]) -> None:
        """A call has returned that began after these insertions: they are certain."""
        for model, operation, epoch in before:
            model.took(operation, epoch, epoch)
        self.unsettled = [each for each in self.unsettled if each not in before]


class _Lives(Actor):
    """An actor that goes on after errors of the disk."""

    @property
    def _own(self) -> _Program:
        assert isinstance(self.cast, _Program)
        return self.cast

    def goes_on_after(self, error: TimelyError) -> bool:
        """See `Actor`."""
        fails = isinstance(error, StoreError) and not isinstance(error, FencedError)
        return fails and Path(self._own.plan.flag).exists()


class _Writer(_Lives, Writer):
    def __init__(self, cast: _Program, name: str, cluster: timely.Cluster) -> None:
        super().__init__(cast, name, cluster)
        self._named.update(cast.plan.numbers)
        self._unanswered: list[tuple[Model, Operation, str, int]] = []
        for one in cast.plan.unanswered:
            if one.writer.startswith(f"{name} "):
                model = cast.models[one.model]
                operation = Operation(one.input, one.tag, one.rows, 1)
                self._unanswered.append((model, operation, one.writer, one.number))
        self._asked_before = [*self._unanswered]

    @property
    def _restarts(self) -> int:
        """How often this client has lost its cluster, and gone on."""
        workers = self.cluster._workers
        return workers._place.round if isinstance(workers, DurableWorkers) else 0

    def act(self, model: Model, flow: Flow) -> None:
        """Ask again what had no answer; then see `Writer`."""
        self._ask_unanswered(model, flow)
        super().act(model, flow)

    def _ask_unanswered(self, model: Model, flow: Flow) -> None:
        """Insert by name, once more if nobody knows whether that has happened. The answer to a repetition
        says how far epochs are, and no more.
        """
        for each in [each for each in self._unanswered if each[0] is model]:
            _, operation, writer, number = each
            restarts, is_first = self._restarts, each not in self._asked_before
            self._asked_before.append(each)
            with self.call(model, "named insert"):
                epoch = flow.input(operation.input).insert(operation.rows, writer=writer, sequence=number)
                if flow.is_embedded:
                    flow.refresh()
            model.took(operation, epoch if is_first and restarts == self._restarts else 0, epoch)
            self._unanswered.remove(each)
            self._asked_before.remove(each)
            if self.choose.random() < 0.5:
                with self.call(model, "repeated insert"):
                    flow.input(operation.input).insert(operation.rows, writer=writer, sequence=number)

    def _insert_by_name(
        self, model: Model, flow: Flow, operation: Operation, writer: str, number: int
    ) -> None:
        assert isinstance(model, ToldModel)
        model.name(operation, writer, number)
        self._unanswered.append((model, operation, writer, number))
        self._ask_unanswered(model, flow)

    def _note(
        self, model: Model, flow: Flow, operation: Operation, call: Callable[[], int], name: str
    ) -> None:
        if not flow.is_embedded:
            restarts, before = self._restarts, flow.epoch
            with self.call(model, name):
                first = call()
                last = flow.refresh()
            in_parts = flow.workers > 1 and len(operation.rows) > SPREAD_ROWS_MIN
            if restarts == self._restarts and in_parts:
                last = first
            # After a restart the client asks again, and then hears how far epochs are.
            model.took(operation, first if restarts == self._restarts else before, last)
            return
        with self.call(model, name):
            first = call()
        if self.choose.random() < 0.5:
            with self.call(model, "refresh"):
                model.took(operation, first, flow.refresh())
        else:
            self._own.unsettled.append((model, operation, first))

    def _seal(self, model: Model, flow: Flow) -> None:
        assert isinstance(model, ToldModel)
        before = [*self._own.unsettled]
        if self.choose.random() < 0.2:
            flow.seal(wait=False)
            durable = flow.durable_before
            model.sealed_until(durable - 1)
        else:
            model.sealed_until(flow.seal())
            self._own.settle(before)

    def _seal_and_wait(self, model: Model, flow: Flow) -> None:
        before = [*self._own.unsettled]
        super()._seal_and_wait(model, flow)
        self._own.settle(before)


class _Reader(_Lives, Reader):
    pass


class _Witness(_Lives, Witness):
    pass


_ACTORS: dict[str, type[_Writer | _Reader | _Witness]] = {
    "writer": _Writer,
    "reader": _Reader,
    "witness": _Witness,
}


def main() -> int:
    """Do what the plan says."""
    tell = Teller(os.dup(1))
    os.dup2(2, 1)
    plan = pickle.load(sys.stdin.buffer)
    assert isinstance(plan, Plan)
    has_begun = False
    try:
        with _cluster(plan) as cluster, contextlib.ExitStack() as stack:
            cast = _Program(plan, tell, cluster)
            threading.Thread(target=_listen, args=(cast, cluster), daemon=True).start()
            actors: list[Actor] = []
            for number, kind in enumerate(plan.actors):
                # Each has a connection of its own.
                own = cluster
                if plan.kind == "client":
                    own = stack.enter_context(timely.connect(random.choice(plan.addresses)))
                actor = _ACTORS[kind](cast, f"{plan.name} {kind} {number}", own)
                actor.choose = random.Random(f"{plan.seed} {actor.name} {plan.life}")
                actors.append(actor)
            has_begun = True
            if plan.kind == "embedded":
                _take_turns(actors, cast)
            else:
                _work_together(actors, cast)
            if cast.ending == "finish":
                finish(cluster, cast)
            tell("done", dict(cast.done))
    except BaseException as error:
        tell(
            "failed",
            is_lost(plan, error, has_begun),
            f"{type(error).__name__}: {error}",
            traceback.format_exc(),
        )
        return _LOST
    return 0


def is_lost(plan: Plan, error: BaseException, has_begun: bool) -> bool:
    """Return True if the error says that the cluster is gone, or cannot be reached while its disk fails."""
    if isinstance(error, StoreError):
        return plan.kind != "client" or not has_begun
    return isinstance(error, PeerError)


def _cluster(plan: Plan) -> timely.Cluster:
    if plan.kind == "client":
        return timely.connect(plan.addresses[0])
    if plan.kind == "processes":
        return timely.connect(workers=plan.workers, durable=plan.folder, sync=plan.sync, standby=plan.standby)
    return timely.connect(
        workers=plan.workers,
        embedded=True,
        threads=plan.kind == "threads",
        durable=plan.folder,
        sync=plan.sync,
    )


def _listen(cast: _Program, cluster: timely.Cluster) -> None:
    """Rescale the cluster when asked to, until a word comes that ends this program."""
    while word := sys.stdin.buffer.readline().decode().strip():
        match word.split():
            case ["rescale", number]:
                try:
                    _rescale(cast, cluster, int(number))
                except BaseException as error:
                    cast.failure = error
            case _:
                cast.ending = word
                return
    os._exit(1)  # nobody is there any more


def _rescale(cast: _Program, cluster: timely.Cluster, workers: int) -> None:
    """Let the cluster have so many workers; or as many as before, if the new ones do not start."""
    before = cluster.workers
    try:
        cluster.rescale(workers)
        wanted = workers
    except PeerError as error:
        if f"the cluster goes on with {counted(before, 'worker')}, as before" not in str(error):
            raise
        wanted = before
    if not cast.ending and len(cluster.stats()) != wanted:
        raise WrongAnswer(f"{wanted} workers were to go on, and not {len(cluster.stats())}")


def _take_turns(actors: list[Actor], cast: _Program) -> None:
    choose = random.Random(f"{cast.plan.seed} turns {cast.plan.life}")
    while not cast.ending:
        with contextlib.suppress(Finished):
            choose.choice(actors).step()
        time.sleep(choose.random() * _PAUSE_SECONDS_MAX / len(actors))


def _work_together(actors: list[Actor], cast: _Program) -> None:
    failures: list[BaseException] = []

    def act(actor: Actor) -> None:
        try:
            while not (cast.ending or failures):
                actor.step()
                time.sleep(actor.choose.random() * _PAUSE_SECONDS_MAX)
        except BaseException as error:
            error.add_note(f"{actor.name} has asked last: {', '.join(actor.asked)}")
            failures.append(error)

    threads = [threading.Thread(target=act, args=(actor,), name=actor.name, daemon=True) for actor in actors]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and not failures:
        time.sleep(0.02)
        if cast.failure is not None:
            raise cast.failure
        if late := cast.late():
            raise AssertionError("; ".join(late) + "\n" + stacks())
    if failures:
        raise failures[0]


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)
