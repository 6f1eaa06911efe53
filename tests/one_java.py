"""A process that runs Python programs one after the other, and keeps the Java of the first that starts Spark.

A Java that has just started needs ten seconds of a processor and more until it has loaded and compiled what
the first jobs of each kind need. Each program still has a session of its own: what the one before has left is
stopped. Each also has its own `__main__`, and imports the modules of the folder anew. All are in one folder,
since Java takes relative paths from where it was started.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from threading import Timer

__all__ = ["OneJava"]


class OneJava:
    """Such a process, started with its first program; `folder` is where all programs are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[str] | None = None

    def run(
        self, command: Sequence[str], environment: dict[str, str], seconds: float
    ) -> tuple[int, str, str]:
        """Run a program: its file and its arguments. Return its status, output and errors, as a shell has
        them; one that takes longer than `seconds` is killed.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(list(command)) + "\n")
        process.stdin.flush()
        late = Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        answer = process.stdout.readline()
        late.cancel()
        if not answer:
            self.end()
        output, errors = ((self.folder / name).read_text(errors="replace") for name in _PRINTED)
        return int(answer) if answer else process.returncode, output, errors

    def end(self) -> None:
        """End the process, and Java with it."""
        if self._process is not None:
            self._process.communicate()  # it reads no further command
            self._process = None


_PRINTED = ("printed.out", "printed.err")
"""Files in the folder: what the last program has printed."""


def _status_of(command: Sequence[str]) -> int:
    """Run a program as Python does that is given this command line."""
    sys.argv[:] = command
    try:
        runpy.run_path(command[0], run_name="__main__")
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _leave_java_alone(folder: Path) -> None:
    """Stop the session, and forget the modules of the folder."""
    from pyspark.sql import SparkSession

    if (session := SparkSession._instantiatedSession) is not None:
        session.stop()
    for name, module in list(sys.modules.items()):
        if name != "__main__" and Path(getattr(module, "__file__", None) or "/").parent == folder:
            del sys.modules[name]


def _serve() -> None:
    folder = Path.cwd()
    sys.path[0] = str(folder)
    standard = (os.dup(1), os.dup(2))
    with os.fdopen(os.dup(1), "w") as answers:
        for line in sys.stdin:
            for number, name in enumerate(_PRINTED, 1):
                with (folder / name).open("wb") as printed:
                    os.dup2(printed.fileno(), number)
            status = _status_of(json.loads(line))
            _leave_java_alone(folder)
            for number, (stream, before) in enumerate(
                zip((sys.stdout, sys.stderr), standard, strict=True), 1
            ):
                stream.flush()
                os.dup2(before, number)
            answers.write(f"{status}\n")
            answers.flush()


if __name__ == "__main__":
    _serve()
