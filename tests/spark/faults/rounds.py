"""A round: faults by seed, the lives of a driver that they end, and the verdict on each sink.

All that is decided follows from the seed: which process is killed, in which epoch, at which point. A round is
one of two kinds, after where Spark's tasks run:

    one host     everything in the driver's Java: its death, that of its Python, of tasks' Python processes
    executors    two of them, processes of their own: their death, also where they host workers of ours. A
                 quick round has one, with as many slots; the main job (`main_job.py`) always has two
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

import differential as dd
import timely

from .model import Row, WrongAnswer, batches_of, rows_after, wanted_of
from .program import JAVA_LOST, Life, totals
from .readers import FilesReader, FlowReader, FolderReader, Reader, Watch
from .striking import DEATHS, Fault

__all__ = ["KINDS", "Kind", "Round", "faults_of", "left_of", "some_of"]

_ROOT = Path(__file__).resolve().parents[3]
_MARK = "NAIAD_FAULTS"
_LIFE_SECONDS_MAX = 400.0
_GONE_SECONDS_MAX = 20.0

_FEEDING = ("append", "appended")
_TASKS = {"source": ("stage", "task done", "read", "was read"), "stream": _FEEDING}
_ANSWERING = ("sent", "arrived", "sealed", "answered", "staged", "committed")
_DRIVERS = {
    "source": ("staged", "committed", "planned", "forgets"),
    "stream": ("written", *_ANSWERING, "done"),
    "column": _ANSWERING,
}
"""Which points there are, in tasks and in the driver."""


@dataclass(frozen=True)
class Kind:
    """Which jobs a driver does, on which master, and which faults strike: (job, victim), each as often as it
    stands here. `quick_master`: that of a quick round.
    """

    master: str
    quick_master: str
    jobs: tuple[str, ...]
    faults: tuple[tuple[str, str], ...]


KINDS = {
    "one host": Kind(
        "local",
        "local",
        ("source", "stream", "column"),
        (
            ("source", "driver"),
            *[("source", "python")] * 2,
            ("stream", "driver"),
            *[("stream", "python")] * 4,
            ("column", "java"),
            ("column", "python"),
        ),
    ),
    "executors": Kind(
        "local-cluster[2,2,1024]",
        "local-cluster[1,4,1024]",
        ("column", "scheduled"),
        (
            *[("column", "executor")] * 3,
            ("column", "python"),
            ("scheduled", "executor"),
            ("scheduled", "python"),
            ("scheduled", "task"),
            ("scheduled", "worker"),
            ("scheduled", "host"),
            ("scheduled", "driver"),
        ),
    ),
}
"""20 faults between them."""

_QUICK_FAULTS = 4
"""The number of faults of each kind in a quick round."""


_HOSTS = ("task", "worker", "host")
"""Where one of them dies, so do the others."""


def faults_of(kind: Kind, seed: int, epochs: int) -> list[Fault]:
    """The faults of a round, each with its epoch and its point."""
    choose = random.Random(f"faults {kind.master} {seed}")
    apart = choose.sample(range(epochs), epochs)
    found: list[Fault] = []
    for number, (job, victim) in enumerate(kind.faults):
        like = "stream" if job == "scheduled" else job
        in_task = victim in ("python", "executor")
        points = _TASKS.get(like, _FEEDING) if in_task else _DRIVERS[like]
        point = choose.choice(points)
        # Spark says that a batch may be forgotten when the next one begins, so never of the last one, which
        # has up to two epochs.
        epoch = choose.randrange(epochs - 2 * (point == "forgets"))
        if victim in _HOSTS:  # one that is gone already cannot be struck at a later point of that epoch
            epoch = apart.pop()
        found.append(Fault(number, victim, job, point, epoch, choose.randrange(3)))
    return found


def some_of(faults: Sequence[Fault], seed: int) -> list[Fault]:
    """The faults of a quick round: few, one of them the death of the driver or of its Java."""
    choose = random.Random(f"some faults {seed}")
    death = choose.choice([fault for fault in faults if fault.victim in DEATHS])
    others = choose.sample([fault for fault in faults if fault.victim not in DEATHS], _QUICK_FAULTS - 1)
    return [fault for fault in faults if fault is death or fault in others]


@dataclass
class Round:
    """One round; `struck` says, of each fault, in which order it was seen to have struck."""

    name: str
    seed: int
    epochs: int
    is_quick: bool = False
    rows: int = 40
    lives: int = 0
    struck: list[Fault] = field(default_factory=list)

    def run(self) -> None:
        """All of it; raises what went wrong."""
        kind = KINDS[self.name]
        faults = faults_of(kind, self.seed, self.epochs)
        if self.is_quick:
            faults = some_of(faults, self.seed)
        batches = batches_of(f"{self.name} {self.seed}", self.epochs, self.rows)
        wanted, last = wanted_of(batches), rows_after(batches)
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-")))
            for name in ("in", "struck", "done", "out", "tmp"):
                (folder / name).mkdir()
            _write(folder / "in", batches)
            readers: list[Reader] = [
                FolderReader(folder / "out" / job, wanted, last) for job in kind.jobs if job != "source"
            ]
            address, index = "", 0
            if "source" in kind.jobs:
                cluster = stack.enter_context(timely.connect(workers=2))
                flow = cluster.install(_running)
                reading = stack.enter_context(timely.connect(cluster.addresses[0]))
                readers.append(FilesReader(folder / "out" / "source", wanted))
                readers.append(FlowReader(reading.flow(flow.index), "looked at", wanted))
                address, index = cluster.addresses[0], flow.index
            master = kind.quick_master if self.is_quick else kind.master
            life = Life(str(folder), master, kind.jobs, tuple(faults), address, index)
            stack.callback(_forget_applications, folder)
            with Watch(readers) as watch:
                self._live(life, watch)
            watch.check()
            for reader in readers:
                reader.check_all()
            if missed := [fault for fault in faults if fault not in self.struck]:
                raise WrongAnswer(f"these faults have not struck: {missed}")
            if left := [path.name for path in (folder / "tmp").glob("*naiad*")]:
                raise WrongAnswer(f"{left} are left behind")

    def _live(self, life: Life, watch: Watch) -> None:
        while True:
            self.lives += 1
            before = set(self.struck)
            status, said = _lived(life)
            watch.check()
            marks = {path.name for path in (Path(life.folder) / "struck").iterdir()}
            new = [fault for fault in life.faults if fault not in before and str(fault.number) in marks]
            self.struck += new
            if status == 0:
                return
            if not any(fault.victim in DEATHS for fault in new) or status not in (-signal.SIGKILL, JAVA_LOST):
                raise WrongAnswer(f"life {self.lives} ended with status {status} after {new}:\n{said}")


def _running(dataflow: timely.Dataflow) -> None:
    """What the job "source" feeds, with an output for itself and one for whoever looks."""
    found = totals(dd.input(dataflow, "events", "key: int?, amount: int?"))
    found.output("answer")
    found.output("looked at")


def _write(folder: Path, batches: Sequence[Sequence[Row]]) -> None:
    """A file for each batch, in the order of their times."""
    for number, batch in enumerate(batches):
        columns = {
            name: [row[place] for row in batch] for place, name in enumerate(("key", "amount", "said"))
        }
        file = folder / f"{number}.parquet"
        pq.write_table(pa.table({**columns, "day": [number] * len(batch)}), file)
        os.utime(file, (1_700_000_000 + number,) * 2)


def _lived(life: Life) -> tuple[int, str]:
    """One life: its status, and the last that it said. Nothing of it is left afterwards."""
    mark = uuid.uuid4().hex
    path = os.pathsep.join([str(_ROOT), str(_ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": path, _MARK: mark, "TMPDIR": f"{life.folder}/tmp"}
    with (Path(life.folder) / "said").open("w+") as said:
        command = [sys.executable, "-m", "spark.faults.program", life.to_text()]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, cwd=life.folder
        )
        try:
            status = process.wait(_LIFE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            said.write("it did not end in time\n")
        finally:
            process.kill()
            status = process.wait()
        left = left_of(mark)
        said.seek(0)
        told = said.read()[-6000:]
    if left:
        raise WrongAnswer(f"these processes are left behind: {left}\n{told}")
    return status, told


def left_of(mark: str) -> list[str]:
    """Processes with this mark that do not end within seconds; they are ended here."""
    until = time.monotonic() + _GONE_SECONDS_MAX
    while left := dict(_marked(mark)):
        if time.monotonic() > until:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            return [f"{process}: {command}" for process, command in left.items()]
        time.sleep(0.05)
    return []


def _marked(mark: str) -> Iterator[tuple[int, str]]:
    wanted = f"{_MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                yield int(path.name), command[-200:]


def _forget_applications(folder: Path) -> None:
    """The folders that Spark keeps of executors, beside its own files."""
    for name in (folder / "applications").read_text().split():
        shutil.rmtree(Path(pyspark.__file__).parent / "work" / name, ignore_errors=True)
