"""Embedded workers that are durable: one log for all, since one process has them all.

    insert   takes rows, and does not wait for the disk, as it does not wait for work
    seal     waits for the disk, unless its caller does not want that: everything before it is durable then
    others   wait for the disk before they answer; answers about outputs show what is durable by then

Only the program itself can build its dataflows again. So a dataflow that the log holds begins when the
program installs it, as it did before.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final

from ...building.builders import Builder, build_dataflow, is_marked, spec_of
from ...durable.folder_store import FolderStore
from ...durable.incarnations import announce, hello_of, note_hello
from ...durable.log import Log
from ...errors import MisuseError, WaitTimeoutError
from ...limits import REPLY_SECONDS_MAX
from ...running.core import Worker
from ...wire.requests import Reply, Request
from ...worker.durability.durability import Durability, check_same_query
from ...worker.durability.fold_turns import EmbeddedFolds
from ...worker.durability.replies import rests_on_log
from ...worker.server import Server
from ..installed import OwnProcess

__all__ = ["EmbeddedLog", "work_to_the_end"]

_ROUNDS_MAX: Final = 4
"""Shares of digests go to worker 0, and what it has found comes back: each takes a round, or two."""


class EmbeddedLog:
    """The store and the log of workers in this process. It has the store for itself until `close`, or until
    nobody refers to it any more.
    """

    def __init__(
        self, folder: str | Path, sync: str, workers: Sequence[Worker], servers: Sequence[Server]
    ) -> None:
        self._store = FolderStore(folder)
        self._store.lock()
        try:
            incarnation = announce(self._store, len(workers), processes=1)
            self.log = Log(
                self._store, incarnation.cluster, incarnation.number, 0, syncs=sync == "disk", by="callers"
            )
            self._finalizer = weakref.finalize(self, _close, self.log, self._store, OwnProcess())
            self.log.wait(self.log.add(hello_of(incarnation, 0)), REPLY_SECONDS_MAX)
            note_hello(self._store, incarnation.number)
            self._all = [
                Durability(
                    worker, self._store, incarnation, self.log, begins_together=False, cuts=worker.index == 0
                )
                for worker in workers
            ]
        except BaseException:
            if hasattr(self, "_finalizer"):
                self._finalizer()
            self._store.unlock()
            raise
        for durability, server in zip(self._all, servers, strict=True):
            durability.of_process = self._all
            server.make_durable(durability)
        self.folds = EmbeddedFolds(workers, self._all, self._store.name)
        self.first = self._all[0]
        self._workers, self._servers = workers, servers

    def wait(self) -> None:
        """Wait until all is on the disk that was logged; any thread may call this. Raise `StoreError` if the
        disk fails: what was taken is written once there is room.
        """
        self.log.wait(self.log.position, REPLY_SECONDS_MAX)

    def wait_for(self, requests: Iterable[Request]) -> None:
        """Do `wait` if the answer to one of these requests rests on the log."""
        if any(rests_on_log(request) for request in requests):
            self.wait()

    def look(self) -> bool:
        """Let epochs be shown that have become durable by now; return True if there are any. Like all that
        follows, it is called by the thread that has the turn.
        """
        news = [durability.look() for durability in self._all]  # each has to look
        return any(news)

    def settle(self) -> bool:
        """Do `wait`, then `look`."""
        self.wait()
        return self.look()

    def prepare(self, name: str, builder: Builder, is_version: bool) -> str:
        """Make ready for an install, and return the key of what is installed under a name. What is new under
        this key, or a new version of something, begins with what the dataflows of the log have, so these have
        their rows by then.
        """
        key = self._key_of(name, builder)
        if is_version or self.first.number_of(key) not in self.first.past.flows:
            self.first.feed_all()
        return key

    def _key_of(self, name: str, builder: Builder) -> str:
        """Return the key of what is to be installed under a name. If workers in processes have installed it,
        that is the name by which they import the builder.
        """
        if is_marked(builder) and not self.first.has_key(name):
            with suppress(MisuseError):  # it has no such name
                imported = spec_of(builder)
                return imported if self.first.has_key(imported) else name
        return name

    def settle_and_fold(self) -> None:
        """Do `wait`, then `look_behind_work`."""
        self.wait()
        self.look_behind_work()

    def look_behind_work(self) -> None:
        """Do `look`, and begin a fold if much was logged since the last one. Call it while the workers are at
        rest.
        """
        self.look()
        if self.folds.is_to_look:
            self.folds.look(REPLY_SECONDS_MAX)

    def await_switch(self, dataflow: int, step: Callable[[float], bool]) -> None:
        """Work, in steps, while a new version is about to have the inputs of a dataflow: a call has ended
        before it had them. Raise `StoreError` if the disk fails.
        """
        server = self._servers[0]
        while server.holds_inputs_of(dataflow):
            if not (step(inf) or self.look() or self.settle()):
                raise WaitTimeoutError(f"dataflow {dataflow} is being replaced, and that does not go on")

    def known(
        self, key: str, builder: Builder, arguments: Mapping[str, object], replaces: int | None
    ) -> Reply | None:
        """Return the description of the dataflow that is installed under this key, or that has replaced
        another one; None if the program has to install it. Raise `MisuseError` if the store has another query
        under the key.
        """
        if replaces is not None:
            frozen = build_dataflow(builder, key, arguments).freeze()
            if not self._servers[0].new_versions.is_there(replaces, frozen):
                return None
            return self._servers[0].describe(
                self._workers[0].instance(self._servers[0].replacements.inputs_of(replaces)), key
            )
        number = self.first.number_of(key)
        if number is None:
            return None
        frozen = build_dataflow(builder, key, arguments).freeze()
        instance = self._workers[0].instances.get(number)
        if instance is None:
            self.first.check_same(number, frozen)
            return None
        check_same_query(key, instance.frozen, frozen)
        return self._servers[0].describe(instance, key)

    def number(self, key: str, replaces: int) -> int:
        """Return the number of the dataflow that is about to be installed under this key, perhaps as a new
        version of another one.
        """
        if replaces >= 0:
            version = self._servers[0].installations.reserve()
            self._servers[0].installations.note_key(version, key, replaces=replaces)
            return version
        number = self.first.number_of(key)
        if number is None:
            number = self._servers[0].installations.reserve()
        elif number in self._workers[0].ended:
            for server in self._servers:
                server.installations.forget_refusal(number)
        self._servers[0].installations.note_key(number, key)
        return number

    def store_answers(self, work: Callable[[], object]) -> None:
        """Store what stored outputs hold, at the end of the program. All that is sealed is complete; `work`
        lets workers hear what others have told.
        """
        self.settle()
        rounds = 0
        while not self.folds.store(REPLY_SECONDS_MAX) and rounds < _ROUNDS_MAX:
            rounds += 1
            work()
            self.settle()

    def close(self) -> None:
        """Write what is left, and leave the store to others."""
        self.folds.close()
        self._finalizer()


def work_to_the_end(work: Callable[[], object], log: EmbeddedLog | None) -> None:
    """Do all work, and store what stored outputs hold then."""
    work()
    if log is not None:
        log.store_answers(work)


def _close(log: Log, store: FolderStore, process: OwnProcess) -> None:
    """Close the log, and then leave the store, unless this process was forked from the one that has them."""
    if process.is_here:
        log.close()
        store.unlock()
