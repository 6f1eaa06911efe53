"""Compile the kernels before worker processes start: once, and not in each of them at the same time.

A run of a small dataflow in this process calls every kernel that most queries use. The compiled kernels are
stored in the user's cache folder (`progress/compiled/cache_folder.py`), beside a list of their files, so that
later starts only check if all of them are there.

Most of the time goes into four kernels and what these alone call. So the first process that has to compile,
here or because of a query of its own, starts two *helpers*: other processes that begin with those, and end
with the one that started them. A process that needs a kernel which another one is compiling waits for it
(`progress/compiled/one_process.py`). So helpers begin at different ends: the largest kernel, which runs
loops, has two halves, joins and barriers, and each is first compiled by another process. Both are large
kernels, as are the reduces in the second: so three processes make the machine code of that one. There are two
helpers even on two cores, because the process that started them soon waits for what they compile. Kernels
that few queries need come last, when no other process wants the core.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from differential.aggregates import count
from differential.aggregates import max as greatest
from differential.algorithms.components import connected_components
from differential.collections.sources import input as table_input
from differential.expressions.expression import col
from differential.kernels.compiled_loops.barriers import next_barrier, open_barrier
from differential.kernels.compiled_loops.joining import take_in
from differential.kernels.compiled_loops.rounds import run_rounds
from differential.kernels.compiled_loops.run import run_loop
from differential.kernels.history.first import reduce_first
from differential.kernels.least.least import reduce_least
from differential.kernels.loading import MERGES, prepare
from differential.kernels.sums.reduce_sums import go_the_long_way, reduce_few, reduce_into
from progress.compiled.kernel import (
    COMPILE_NOTICE,
    compile_for,
    compile_part_for,
    has_all_of_list,
    is_cache_shared,
    keep_list_of_used,
    kernels_compiled,
    on_compile,
    on_ready,
    say,
)
from timely.building.dataflow import Dataflow
from timely.client.cluster import connect
from timely.client.installed import after_work
from timely.cores import cores
from timely.worker.launcher import before_launch

__all__ = ["help_to_warm", "warm", "warm_once"]

_ROOT = Path(__file__).resolve().parent.parent
_HELPERS = 2
_HELPER = "import sys, differential.warming; differential.warming.help_to_warm(sys.stdin, {number})"
_SECONDS_BETWEEN = 10.0
_NICE_MAX = 19
"""The greatest niceness, by which the system prefers all other processes."""
_EDGES_ENOUGH = 20_000
"""Enough rows for the kernels that only large runs need."""


@before_launch
def warm_once() -> None:
    """Call `warm`, unless this machine has the same kernels already, or no process could use the result.

    If nothing can be stored, each worker compiles for itself.
    """
    if not _is_warm() and is_cache_shared():
        warm()


def warm() -> None:
    """Run the kernels that most queries need.

    The kernels of other queries (sessions, as-of joins, upsert and checked inputs, joins of many) are
    compiled when a query first needs them, some seconds each, and stored, too.
    """
    with _notices.warming():
        _run_kernels()
    keep_list_of_used(_LIST, *_LARGE)


def _run_kernels() -> None:
    generator = np.random.default_rng(0)
    with connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(_every_operator)
        edges = flow.input("edges")
        ends = generator.integers(0, _EDGES_ENOUGH, (2, _EDGES_ENOUGH))
        many = pa.table({"src": ends[0], "dst": ends[1]})
        few = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]})
        edges.insert(many)
        for _ in range(2):
            edges.insert(few)
            flow.seal()
            edges.remove(few)
            flow.seal()
        flow.output("components").snapshot()  # with much in it, and with nothing
        edges.remove(many)
        flow.seal(wait=True)
        flow.output("components").snapshot()
    _compile_loops()
    _compile_large_sums()


def help_to_warm(caller: IO[str], number: int) -> None:
    """Compile a helper's share of the slowest kernels; end at once when the other end of
    `caller` is closed.
    """
    assert 0 <= number < _HELPERS
    on_compile(None)
    threading.Thread(target=lambda: os._exit(len(caller.read())), daemon=True).start()
    (_compile_barriers, _compile_joins)[number]()


def _compile_barriers() -> None:
    """Compile barriers, and other kernels: those that more queries need come first.

    Kernels that an install waits for come before this process gives way. Otherwise a process that waits for a
    kernel which this one has in hand would wait for one that the system lets wait.
    """
    line, table = np.empty(0, np.int64), np.empty((0, 0), np.int64)
    compile_part_for(reduce_least, table, table, table, table, line, line)
    compile_part_for(open_barrier, 0, table, table, table, table, table, line, table)
    _compile_loops()
    _compile_large_sums()
    _give_way()
    compile_for(reduce_first, table, table, table, table, line, line, table, table)


def _compile_joins() -> None:
    """Compile joins, the other half of the kernel for loops, then sums that few keys need, and merges.

    Last comes what only loops of several workers call.
    """
    line, table = np.empty(0, np.int64), np.empty((0, 0), np.int64)
    compile_part_for(take_in, 0, table, table, table, table, table, line, table)
    compile_part_for(next_barrier, table, table, table, line)
    compile_part_for(go_the_long_way, table, table, table, line, table, table, table, table)
    compile_for(reduce_few, table, table, table, line, line, table)
    for kernel, shape in MERGES:
        prepare(kernel, shape)
    _give_way()
    compile_for(run_rounds, table, line)


def _give_way() -> None:
    """Give way to the process that was started with a query, and to those that help it."""
    with suppress(AttributeError, OSError):  # Windows has no such thing
        os.nice(_NICE_MAX)


def _compile_loops() -> None:
    """Compile the kernel that runs loops."""
    line, table = np.empty(0, np.int64), np.empty((0, 0), np.int64)
    compile_for(run_loop, table, table, table, table, table, table, line, table)


def _compile_large_sums() -> None:
    """Compile what sums of a large load call, and no small one."""
    line, table = np.empty(0, np.int64), np.empty((0, 0), np.int64)
    compile_for(reduce_into, table, table, table, line, line, table, table, table)


class _Notices:
    """Notices on the error stream while kernels are compiled; and the helpers."""

    def __init__(self) -> None:
        self.helpers: list[subprocess.Popen[str] | None] = []
        self.begin = 0.0
        self.next = 0.0
        self.compiled = 0
        self.seconds = self.noted_seconds = 0.0
        self.is_warming = False

    def first(self) -> None:
        """Announce that a first kernel has to be compiled, and start the helpers."""
        say(COMPILE_NOTICE)
        self.begin = time.monotonic()
        self.next = self.begin + _SECONDS_BETWEEN
        after_work.append(self.worked)
        if is_cache_shared() and (len(cores()) or os.cpu_count() or 1) > 1 and not _is_warm():
            self.helpers = [_start_helper(number) for number in range(_HELPERS)]

    def each(self, ready: int, total: int) -> None:
        """Announce progress, now and then, when one more kernel can be called.

        Kernels that were there already are not announced: a process that has compiled two, and loads others
        for a minute because its work takes that long, does not compile for a minute.
        """
        now, before = time.monotonic(), self.compiled
        self.compiled = kernels_compiled()
        if now >= self.next and self.compiled > before:
            self.noted_seconds = now - self.begin
            say(f"{ready} of {total} kernels after {self.noted_seconds:.0f} s")
            self.next = now + _SECONDS_BETWEEN

    def worked(self, began: float, is_all: bool) -> None:
        """Note that a call of embedded workers is over, which began at `began`.

        The kernels are there behind the first call that has done all its work; say so once. The time that
        calls took counts, not what a notebook did between them.
        """
        if self.is_warming:
            return
        self.seconds += time.monotonic() - max(began, self.begin)
        if is_all and self._stop_listening():
            # Calls that inserted rows and sealed, and had to compile for that, are not noted here.
            self._say_compiled(max(self.seconds, self.noted_seconds))

    @contextmanager
    def warming(self) -> Iterator[None]:
        """Within this context, runs are for their kernels only: these are there once it ends."""
        self.is_warming = True
        try:
            yield
        finally:
            self.is_warming = False
        self.warmed()

    def warmed(self) -> None:
        """Announce that all kernels are there."""
        if self.begin:
            self._stop_listening()
            self._say_compiled(time.monotonic() - self.begin)

    def _stop_listening(self) -> bool:
        """Stop noting calls; return True if they were noted until now: of two threads one stops,
        and says so.
        """
        try:
            after_work.remove(self.worked)
        except ValueError:
            return False
        return True

    def _say_compiled(self, seconds: float) -> None:
        say(f"kernels are compiled, after {seconds:.0f} s")


def _start_helper(number: int) -> subprocess.Popen[str] | None:
    """Start a helper; None if no other process can be started: then this one compiles everything."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    try:
        helper = subprocess.Popen(
            [sys.executable, "-c", _HELPER.format(number=number)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except (OSError, ValueError):  # an interpreter within another program does not know its own name
        return None
    atexit.register(_end, helper)
    return helper


def _end(helper: subprocess.Popen[str]) -> None:
    assert helper.stdin is not None
    helper.stdin.close()
    helper.wait()


_notices = _Notices()
on_compile(_notices.first)
on_ready(_notices.each)


def _every_operator(dataflow: Dataflow) -> None:
    edges = table_input(dataflow, "edges", "src: int, dst: int")
    connected_components(edges.filter(col.src < _EDGES_ENOUGH // 8)).output("components")
    grouped = edges.group_by("src")
    grouped.agg(n=count(), top=greatest("dst")).output("aggregates")
    grouped.top_k(2, by="dst").output("first")
    few = edges.filter(col.src < 8).select(src=col.src + 0, dst=col.dst)
    few.group_by("src").reduce(lambda key, rows: [len(rows)], "n: int").consolidate().output("reduced")


_LIST = "differential.warming"
_LARGE = (run_loop, run_rounds, reduce_into, reduce_few, reduce_first)
"""Nearly all kernels are parts of these: if one of these is another one than before,
`warm` has work to do.
"""


def _is_warm() -> bool:
    """Return True if all is there that `warm` compiles."""
    return has_all_of_list(_LIST, *_LARGE)
