"""How is a workload run by this checkout, by another one, or by a peer's program?

Each run is a process of its own and gives one line of JSON. A run whose answer is not the one that
`bench/recomputation.py` believes, or that is not of what was asked for, gives no figures but an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, cast

from bench import memory
from bench.cases import Case
from bench.machine import ROOT, commit_of
from bench.recomputation import believed
from bench.workloads import Check, CheckJson

__all__ = [
    "ENGINES",
    "PEER_PROGRAM",
    "PEER_PYTHON",
    "PYTHON_PEERS",
    "RUST",
    "Checkout",
    "Engine",
    "EnginePeer",
    "Figures",
    "Peer",
    "PythonPeer",
    "RunError",
    "System",
    "TooMuchError",
]

PEER_PROGRAM = ROOT / "bench/peers/differential_dataflow/target/release/ddpeer"
RUST = "Rust"
"""As that program is called in tables."""
PEER_PYTHON = ROOT / "bench/peers/python/.venv/bin/python"
PYTHON_PEERS = {
    "Pathway": ("wcc plain", "bfs", "pagerank", "count plain", "sum", "join"),
    "Bytewax": ("count plain", "sum", "join"),
}
"""What can be said in each: Pathway has no loops in loops and none with priorities, Bytewax no loops."""


@dataclass(frozen=True)
class Engine:
    """An engine for queries that are kept current, of somebody else: how its program is run and built.

    `needs` is there once `build` has been run in the folder of the checkout; `words` are the workloads that
    can be said in it.
    """

    command: tuple[str, ...]
    needs: Path
    build: str
    words: tuple[str, ...]


_FLINK_FOLDER = ROOT / "bench/peers/flink"
ENGINES = {
    "Flink": Engine(
        (sys.executable, "-m", "bench.peers.flink.on_flink"),
        _FLINK_FOLDER / "target/flinkpeer-1.jar",
        "mvn -q -B -f bench/peers/flink/pom.xml package",
        ("count plain", "sum", "join", "top", "q3"),
    ),
}
"""Flink SQL has no loops."""
_RUN_SECONDS_MAX = 3_600.0
_RUN_MIB_MAX = 12 * 1024
"""Of one process. A program that takes more of a machine of 24 GiB would soon end everybody else's."""
_LOOK_SECONDS = 0.5


class RunError(Exception):
    """A run that does not count, and why."""


@dataclass(frozen=True)
class Figures:
    """What a run gives whose answer is right. `change_ms_…` are per group of epochs in flight; `trace_…` is
    what is remembered at the end, of systems that say it.
    """

    load_seconds: float
    change_ms_median: float
    change_ms_p99: float
    idle_mib: float
    peak_mib: float
    trace_rows: float | None = None
    trace_mib: float | None = None

    @property
    def added_mib(self) -> float:
        """The most memory above that of the idle process or processes."""
        return self.peak_mib - self.idle_mib


class TooMuchError(RunError):
    """A run that has not ended within `bound`, so many seconds or so much memory."""

    def __init__(self, command: str, bound: str) -> None:
        super().__init__(f"{command} has not ended within {bound}")
        self.bound = bound


class System(Protocol):
    """Whatever runs workloads."""

    @property
    def name(self) -> str:
        """In a table's head."""
        ...

    @property
    def description(self) -> str:
        """Which system in which version."""
        ...

    def can_run(self, case: Case) -> bool:
        """Whether the workload can be said in this system."""
        ...

    def run(self, case: Case, workers: int) -> Figures:
        """Run it once; raises `RunError`."""
        ...


class Checkout:
    """A checkout of this project, run by this interpreter. A context manager.

    What is measured is `bench` of this checkout, the same for all, on the packages of `folder`; with
    `own_bench` that of `folder`, for a change that changes how queries are written. With `threads` several
    workers are threads of one process.
    """

    def __init__(
        self, folder: Path, name: str | None = None, own_bench: bool = False, threads: bool = False
    ) -> None:
        self.folder = folder.resolve()
        self._threads = threads
        self.name = name or self.folder.name
        bench = (self.folder if own_bench else ROOT) / "bench"
        for needed in (self.folder / "differential", self.folder / "timely", self.folder / "progress", bench):
            if not (needed / "__init__.py").exists():
                raise RunError(f"{self.folder} is no checkout of this project: there is no {needed}")
        if not (bench / "dataflow/measure.py").exists():
            raise RunError(f"{bench} has no dataflow/measure.py: run it without a bench of its own")
        # In a folder with nothing else in it `bench` can come before the other packages of its checkout.
        self._first_on_path = tempfile.TemporaryDirectory(prefix="bench-")
        (Path(self._first_on_path.name) / "bench").symlink_to(bench)

    def __enter__(self) -> Checkout:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._first_on_path.cleanup()

    @property
    def description(self) -> str:
        """The commit."""
        return f"commit {commit_of(self.folder)}"

    def can_run(self, case: Case) -> bool:
        """See `System`."""
        return True

    def run(self, case: Case, workers: int) -> Figures:
        """See `System`."""
        command = [*self._command("measure", case.family, case.sizes, workers), "--batch", str(case.batch)]
        result = _run(command, folder=Path(self._first_on_path.name), environment=self._environment())
        if result.get("packages") != str(self.folder):
            raise RunError(f"measured were the packages of {result.get('packages')}, not of {self.folder}")
        return _believed_figures(result, case, workers)

    def started(self, family: str, sizes: Sequence[int], workers: int) -> subprocess.Popen[str]:
        """A process of `bench/dataflow/turns.py`, which makes a step for each line that it is given."""
        return subprocess.Popen(
            self._command("turns", family, sizes, workers),
            cwd=self._first_on_path.name,
            env={**os.environ, **self._environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _command(self, module: str, family: str, sizes: Sequence[int], workers: int) -> list[str]:
        words = [sys.executable, "-m", f"bench.dataflow.{module}", family, *map(str, sizes)]
        threads = ["--threads"] if self._threads and workers > 1 else []
        return [*words, "--workers", str(workers), *threads]

    def _environment(self) -> dict[str, str]:
        return {"PYTHONPATH": os.pathsep.join([self._first_on_path.name, str(self.folder)])}


class Peer:
    """A program that has been built as `bench/peers/README.md` says."""

    def __init__(self, program: Path = PEER_PROGRAM, name: str = RUST) -> None:
        self.program = program
        self.name = name
        self.description = "differential-dataflow, release build"
        if not program.exists():
            raise RunError(
                f"{program} is not there: build it as bench/peers/README.md says, or give --against"
            )

    def can_run(self, case: Case) -> bool:
        """See `System`."""
        return True

    def run(self, case: Case, workers: int) -> Figures:
        """See `System`."""
        result = _run([str(self.program.resolve()), *_asked(case, workers)])
        self.description = f"{result.get('system')}, release build"
        return _believed_figures(result, case, workers)


class PythonPeer:
    """A system from PyPI, in the environment that has been made as `bench/peers/README.md` says."""

    def __init__(self, name: str, limit: float, python: Path = PEER_PYTHON) -> None:
        self.name = name
        self.description = name
        self._limit = limit
        self._python = python
        if not python.exists():
            raise RunError(f"{python} is not there: make it as bench/peers/README.md says")

    def can_run(self, case: Case) -> bool:
        """See `System`."""
        return case.words in PYTHON_PEERS[self.name]

    def run(self, case: Case, workers: int) -> Figures:
        """See `System`."""
        module = f"bench.peers.python.on_{self.name.lower()}"
        # Not resolved: it is by where its name stands that Python knows its environment.
        command = [str(self._python), "-m", module, *_asked(case, workers)]
        result = _run(command, environment={"PYTHONPATH": str(ROOT)}, limit=self._limit)
        self.description = str(result.get("system"))
        return _believed_figures(result, case, workers)


class EnginePeer:
    """One of `ENGINES`, built by its command."""

    def __init__(self, name: str, limit: float, engine: Engine | None = None) -> None:
        self.name = name
        self.description = name
        self._engine = engine or ENGINES[name]
        self._limit = limit
        if not self._engine.needs.exists():
            raise RunError(f"{name} is not built: {self._engine.build} (see bench/peers/README.md)")

    def can_run(self, case: Case) -> bool:
        """See `System`."""
        return case.words in self._engine.words and case.batch == 1

    def run(self, case: Case, workers: int) -> Figures:
        """See `System`."""
        command = [*self._engine.command, *_asked(case, workers)]
        result = _run(command, environment={"PYTHONPATH": str(ROOT)}, limit=self._limit)
        self.description = str(result.get("system"))
        return _believed_figures(result, case, workers)


def _asked(case: Case, workers: int) -> list[str]:
    """The arguments of a peer's program."""
    return [*case.workload.split(), "-w", str(workers), "--batch", str(case.batch)]


def _run(
    command: Sequence[str],
    folder: Path = ROOT,
    environment: dict[str, str] | None = None,
    limit: float = _RUN_SECONDS_MAX,
) -> dict[str, object]:
    """The JSON line that a program prints last."""
    words = " ".join(command)
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            output, errors = _ended(process, words, limit)
        except BaseException:
            process.kill()
            raise
    lines = output.splitlines()
    if process.returncode != 0 or not lines:
        raise RunError(f"{words} ended with {process.returncode}:\n{errors.strip()[-2000:]}")
    try:
        return cast("dict[str, object]", json.loads(lines[-1]))
    except ValueError as error:
        raise RunError(f"{words} printed {lines[-1][:200]!r}, which is no JSON") from error


def _ended(process: subprocess.Popen[str], words: str, limit: float) -> tuple[str, str]:
    """What it has printed when it ends; raises `TooMuchError` when it takes too long or too much memory."""
    end = time.monotonic() + limit
    while True:
        try:
            return process.communicate(timeout=min(_LOOK_SECONDS, max(0.0, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise TooMuchError(words, f"{limit:,.0f} s") from None
            if memory.resident_mib_of(process.pid) > _RUN_MIB_MAX:
                raise TooMuchError(words, f"{_RUN_MIB_MAX / 1024:.0f} GiB") from None


def _believed_figures(result: dict[str, object], case: Case, workers: int) -> Figures:
    """The figures, if the run was of what was asked for and its answer is right; `RunError` otherwise."""
    for key, asked in (("workload", case.workload), ("workers", workers), ("batch", case.batch)):
        if result.get(key) != asked:
            raise RunError(f"asked for {key} {asked}, but it ran {result.get(key)}")
    agreed = believed(case.workload)
    for key, right in (("check_load", agreed.load), ("check_changes", agreed.changes)):
        found = Check.from_json(cast(CheckJson, result[key]))
        if found != right:
            raise RunError(f"the answer is wrong: {key} is {found}, not {right}")
    return Figures(
        *(
            float(cast(float, result[key]))
            for key in ("load_seconds", "change_ms_median", "change_ms_p99", "idle_mib", "peak_mib")
        ),
        *(cast("float | None", result.get(key)) for key in ("trace_rows", "trace_mib")),
    )
