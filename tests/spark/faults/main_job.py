"""One life of the main job with a store: `python -m spark.faults.main_job LIFE`, where LIFE is JSON; see
`MainLife`. Faults strike at points of the driver, and in the tasks that send rows.

    sent       before an epoch is sealed for the first time behind rows that were sent
    answered   before the changes of an epoch go to the sink
    staged     before the rename that commits them · committed: behind that
    append     in a task, before it sends rows of an epoch
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import sys
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from pyspark import SparkContext

import timely
from timely.spark.epochs import chunks_of
from timely.spark.java import archive_options, find_java
from timely.spark.jobs import feeding, following
from timely.spark.output_folder import OutputFolder
from timely.spark.session import java_options, local_session

from .striking import Fault, Strikes, Watched

__all__ = ["MainLife"]

_ROOT = Path(__file__).resolve().parents[3]
_SCRIPT = _ROOT / "examples" / "mention_components.py"
_ROWS_PER_CHUNK = 20_000
_WORKERS = ("worker", "workers")
"""Victims that are not known before they are struck, since others take their place: one, or all."""


@dataclass(frozen=True)
class MainLife:
    """What a life is told; `struck` is the folder of the marks of faults."""

    struck: str
    master: str
    options: tuple[str, ...]
    faults: tuple[Fault, ...]

    def to_text(self) -> str:
        """For a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> MainLife:
        """What `to_text` has made."""
        told = json.loads(text)
        faults = tuple(Fault(*one) for one in told["faults"])
        return cls(told["struck"], told["master"], tuple(told["options"]), faults)


class _Life:
    def __init__(self, life: MainLife) -> None:
        java = SparkContext._gateway.proc.pid  # type: ignore[union-attr]  # it runs
        mine = tuple(fault for fault in life.faults if fault.victim not in _WORKERS)
        others = tuple(fault for fault in life.faults if fault.victim in _WORKERS)
        self.strikes = Strikes(life.struck, mine, os.getpid(), java)
        self._of_workers = replace(self.strikes, faults=others)

    def at(self, point: str, epoch: int) -> None:
        """The driver passes a point."""
        self.strikes.at(point, range(epoch, epoch + 1))
        for fault in self._of_workers.faults:
            if (fault.point, fault.epoch) == (point, epoch) and self._of_workers._is_first(fault):
                workers = _workers_below(os.getpid())
                for worker in workers if fault.victim == "workers" else workers[fault.nth :][:1]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)

    def wrap(self) -> None:
        """Have the faults strike when a point is passed."""
        self._wrap(following.AnswerFeed, "seal", 1, before="sent")
        self._wrap(following.AnswerFeed, "_hand_on", 1, before="answered")
        self._wrap(OutputFolder, "publish", 2, before="staged", after="committed")
        vars(feeding)["chunks_of"] = partial(chunks_of, rows_max=_ROWS_PER_CHUNK)
        opens = timely.Cluster.append_target

        def append_target(cluster: timely.Cluster, dataflow: int = 0) -> Watched:
            return Watched(opens(cluster, dataflow), self.strikes)

        setattr(timely.Cluster, "append_target", append_target)  # noqa: B010  mypy knows that it is a method

    def _wrap(self, owner: type, name: str, place: int, before: str = "", after: str = "") -> None:
        wrapped = getattr(owner, name)

        def passing(*given: object, **named: object) -> object:
            epoch = given[place]
            assert isinstance(epoch, int)
            self.at(before, epoch)
            result = wrapped(*given, **named)
            self.at(after, epoch)
            return result

        setattr(owner, name, passing)


def _workers_below(process: int) -> list[int]:
    """Worker processes that this process has started, in their order."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    found = sorted({int(child) for file in children for child in file.read_text().split()})
    return [child for child in found if b"timely.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


def _session(master: str) -> None:
    """Start the session that the job then finds."""
    paths = os.pathsep.join([str(_ROOT), str(_ROOT / "tests")])
    options = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": " ".join([*java_options(False), *archive_options(find_java())]),
        "spark.executorEnv.PYTHONPATH": paths,
        "spark.task.maxFailures": "8",
        "spark.local.dir": os.environ["TMPDIR"],
        "spark.deploy.maxExecutorRetries": "-1",
        **({} if master == "local" else {"spark.master": master}),
    }
    local_session(2, "mention components", attempts=8, options=options)


def main(life: MainLife) -> None:
    """Run the job, as from a command line; it finds the session."""
    _session(life.master)
    _Life(life).wrap()
    sys.argv[1:] = life.options
    sys.path.insert(0, str(_SCRIPT.parent))
    runpy.run_path(str(_SCRIPT), run_name="__main__")


if __name__ == "__main__":
    main(MainLife.from_text(sys.argv[1]))
