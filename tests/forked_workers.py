"""Processes that begin with everything imported: forked from a process that has done nothing else.

Of the second of a processor that a worker takes to start, nine tenths are imports and machine code that is
loaded, alike each time, and the tests start some hundreds of workers. A forked process is like any other: it
has its own number, pipes, sockets and end; it reads its settings, works and leaves as one that was started
by its command (`process.main`), and it has the same interface (`Popen`).

There are two such *nurseries*, used in turn, so that workers of one cluster have objects at different
addresses, as they do otherwise: `hash(None)` tells them. Both hash text by the seed that a launcher gives.
These start by their command: the first few workers of a process that runs tests alone, so that one test waits
for no nursery; workers in another environment than that of the tests, since modules may look at it while they
are imported; and those of tests that ask for the fixture `workers_by_command`.

The folds that workers start are forked, too: nine tenths of one are imports. So are programs of documents
(`Forking.program`), and what forked processes start.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple, NoReturn

from forked_processes import CAN_FORK, Forked, Nursery, fork, run_program, serve

from timely.worker.launcher import HASH_SEED

__all__ = ["Forking", "Nurseries", "Starts"]

_BY_COMMAND = 0 if "PYTEST_XDIST_WORKER" in os.environ else 4
_NOT_OF_IMPORTS = ("COLUMNS", "PATH", "PYTEST_CURRENT_TEST", "PYTHONPATH", "TMPDIR")
_SEED = "PYTHONHASHSEED"


class Starts(NamedTuple):
    """How processes are started by their command."""

    worker: Callable[[Mapping[str, str]], Popen[str]]
    python: Callable[[Sequence[str], Mapping[str, str]], Popen[str]]


class Forking:
    """Starts processes from nurseries, in turn.

    Args:
        names: those of the nurseries.
        environment: that in which they were started.
        by_command: for all that cannot be forked.
        count: how many workers start by their command at first.
    """

    def __init__(
        self,
        names: Callable[[], Sequence[str]],
        environment: Mapping[str, str],
        by_command: Starts,
        count: int = 0,
    ) -> None:
        self.by_command = by_command
        self.first = count
        self._names = names
        self._environment = _comparable(environment)
        self._count = 0

    def start(self, environment: Mapping[str, str]) -> Popen[str]:
        """Start a worker, as `launcher.start_process` does."""
        if self.first > 0 or not self._is_as_here(environment):
            self.first -= 1
            return self.by_command.worker(environment)
        return self._fork(environment, Path.cwd())

    def python(self, command: Sequence[str], environment: Mapping[str, str]) -> Popen[str]:
        """Start a program, as `fold_process.start_python` does."""
        if not self._is_as_here(environment):
            return self.by_command.python(command, environment)
        return self.program(command, environment, Path.cwd())

    def program(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Popen[str]:
        """Fork a program, by its file or module and its arguments, which runs in this folder, in a session of
        its own, and has nothing to read.
        """
        process = self._fork(environment, folder, command)
        assert process.stdin is not None
        process.stdin.close()
        return process

    def _is_as_here(self, environment: Mapping[str, str]) -> bool:
        return CAN_FORK and _comparable(environment) == self._environment

    def _fork(self, environment: Mapping[str, str], folder: Path, command: Sequence[str] = ()) -> Forked:
        self._count += 1
        names = self._names()
        return fork(names[self._count % len(names)], environment, folder, command, names)


def _comparable(environment: Mapping[str, str]) -> dict[str, str]:
    """What imports may depend on; where modules are looked for is set anew in each process."""
    kept = [name for name in environment if name not in _NOT_OF_IMPORTS and not name.startswith("SPARK_")]
    return {_SEED: HASH_SEED, **{name: environment[name] for name in kept}}


class Nurseries(Forking):
    """Two of them, which start with the first process that is forked."""

    def __init__(self, by_command: Starts) -> None:
        super().__init__(self._started, os.environ, by_command, _BY_COMMAND)
        self._all: list[Nursery] = []

    def _started(self) -> list[str]:
        if not self._all:
            environment = {_SEED: HASH_SEED, **os.environ}
            self._all = [Nursery(__file__, environment, "timely.worker") for _ in range(2)]
        return [each.name for each in self._all]

    def end(self) -> None:
        """No more processes."""
        for each in self._all:
            each.end()
        self._all = []


def _prepare() -> None:
    """Import what workers, folds and programs need."""
    from differential.warming import warm

    for name in ("timely.worker.process", "timely.durable.commands"):
        importlib.import_module(name)
    warm()  # machine code is loaded where it is called


def _fork_what_starts_here(names: Sequence[str]) -> None:
    from timely.worker import launcher
    from timely.worker.durability.folds import fold_process

    by_command = Starts(launcher.start_process, fold_process.start_python)
    forking = Forking(lambda: names, _begun_in, by_command)
    vars(launcher)["start_process"] = forking.start
    vars(fold_process)["start_python"] = forking.python


def _work() -> NoReturn:
    """Be a worker: what `python -m timely.worker.process` is, from here on."""
    from timely.worker import process

    sys.argv[:] = [str(process.__file__)]
    sys.modules["__main__"] = process
    process._end(process.main())


if __name__ == "__main__":
    _begun_in = dict(os.environ)
    _prepare()
    asked_for = serve(sys.argv, _fork_what_starts_here)
    if asked_for:
        run_program(asked_for)
    elif asked_for is not None:
        _work()
