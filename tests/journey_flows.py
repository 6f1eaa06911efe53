"""Dataflows whose changes are profiled (`profiled_changes.py`), and a builder that makes a worker profile
itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from unittest import mock

import differential as dd
import timely
from differential.algorithms import connected_components
from timely.wire.transport import zeromq

__all__ = ["Passed", "components", "counts", "listen_rarely", "profiles_itself"]


class Passed:
    """The functions that a thread calls while this is on, in the order of their first calls."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], int] = {}
        self.calls_of_c = 0

    def start(self) -> None:
        """Begin to count the calls of this thread."""
        sys.setprofile(self._note)

    def stop(self) -> None:
        """Count no more."""
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            code = frame.f_code
            function = code.co_filename, code.co_qualname
            self.functions[function] = self.functions.get(function, 0) + 1
        elif event == "c_call":
            self.calls_of_c += 1

    def to_json(self) -> str:
        """As `from_json` reads it."""
        functions = [[file, name, calls] for (file, name), calls in self.functions.items()]
        return json.dumps({"functions": functions, "calls_of_c": self.calls_of_c})

    @classmethod
    def from_json(cls, text: str) -> Passed:
        """The inverse of `to_json`."""
        read = json.loads(text)
        passed = cls()
        passed.functions = {(file, name): calls for file, name, calls in read["functions"]}
        passed.calls_of_c = read["calls_of_c"]
        return passed


@timely.builder
def counts(dataflow: timely.Dataflow) -> None:
    """A count by key."""
    rows = dd.input(dataflow, "rows", "key: int, value: int")
    rows.group_by("key").agg(n=dd.count()).output("answers")


@timely.builder
def components(dataflow: timely.Dataflow) -> None:
    """Connected components of the edges in `rows`."""
    edges = dd.input(dataflow, "rows", "src: int, dst: int")
    connected_components(edges).output("answers")


@timely.builder
def profiles_itself(dataflow: timely.Dataflow, folder: str) -> None:
    """Make each worker add a folder to `folder`, named after its process number. At each signal SIGUSR1 the
    worker begins to profile its thread and writes the file `began` there, or ends that and writes
    `passed.json`.
    """
    dd.input(dataflow, "rows", "key: int").output("answers")
    own = Path(folder, str(os.getpid()))
    passed: list[Passed] = []

    def switch(_number: int, _frame: FrameType | None) -> None:
        if passed:
            recorded = passed.pop()
            recorded.stop()
            _write(own / "passed.json", recorded.to_json())
        else:
            passed.append(Passed())
            _write(own / "began", "")
            passed[0].start()

    listen_rarely().start()
    own.mkdir()
    signal.signal(signal.SIGUSR1, switch)


def listen_rarely() -> mock._patch[float]:
    """Return a patch: connections do not check every tenth of a second whether bytes come. On a busy machine
    each change takes longer, and would pass that, too.
    """
    return mock.patch.object(zeromq, "_LISTEN_SECONDS", 1e9)


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)
