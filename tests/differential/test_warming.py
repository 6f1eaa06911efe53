"""Kernels are compiled once, before workers start, and that they are is remembered."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from fresh_processes import cache_without
from house import ROOT

from differential import warming
from progress.compiled import cache_folder, kernel
from progress.compiled.kernel import COMPILE_NOTICE, Kernel
from progress.compiled.machine_code import code_files
from timely.client.installed import after_work


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("NAIAD_CACHE", str(tmp_path))
    return tmp_path / "kernels"


@pytest.fixture(autouse=True)
def nobody_is_told() -> Iterator[None]:
    """Behind a test, of what calls of other tests have done."""
    before = after_work[:]
    yield
    after_work[:] = before


@pytest.fixture
def runs(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each time that kernels are run to have them, in place of which a file is kept."""
    done: list[None] = []

    def run() -> None:
        done.append(None)
        code_files.keep_bytes("one.machine", "stamp", b"")

    monkeypatch.setattr(warming, "_run_kernels", run)
    monkeypatch.setattr(kernel, "_used", [SimpleNamespace(file="one.machine")])
    return done


def test_the_second_start_does_nothing(runs: list[None]) -> None:
    warming.warm_once()
    warming.warm_once()
    assert len(runs) == 1


def test_what_was_removed_from_the_cache_is_compiled_before_workers_start(
    cache: Path, runs: list[None]
) -> None:
    warming.warm_once()
    (cache / "one.machine").unlink()
    warming.warm_once()
    assert len(runs) == 2
    (listed,) = cache.glob("differential.warming-*.list")
    listed.write_bytes(listed.read_bytes()[:-1])
    warming.warm_once()
    assert len(runs) == 3


def test_another_cache_of_machine_code_is_another_first_start(
    tmp_path: Path, runs: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    warming.warm_once()
    monkeypatch.setenv("NAIAD_CACHE", str(tmp_path / "elsewhere"))
    warming.warm_once()
    assert len(runs) == 2


def test_where_no_worker_could_read_it_nothing_is_compiled_for_workers(
    tmp_path: Path, runs: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("NAIAD_CACHE", str(blocked))
    monkeypatch.setattr(cache_folder, "_reasons", [])
    warming.warm_once()
    assert not runs


def test_warming_runs_every_operator_to_its_end() -> None:
    warming.warm()


def test_what_the_helper_compiles_is_what_the_dataflow_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of other shapes would be another signature: machine code that nobody asks for."""
    monkeypatch.setattr(warming, "_give_way", lambda: None)
    warming.warm()
    warming._compile_barriers()
    warming._compile_joins()
    parts = (warming.open_barrier, warming.take_in, warming.next_barrier, warming.go_the_long_way)
    reduces = (warming.reduce_few, warming.reduce_first, warming.reduce_least)
    for large in (*reduces, warming.run_loop, *parts):
        assert len(cast("Kernel", large).signatures) == 1


@pytest.mark.parametrize("refuses", [False, True])
def test_helpers_give_way_before_they_compile_what_few_queries_need(
    refuses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first query on two cores would share them with kernels that only loops of several workers call."""
    done: list[str] = []

    def nice(by: int) -> int:
        done.append(f"nice {by}")
        if refuses:
            raise OSError
        return by

    def compile_one(kernel: Kernel, *_: object) -> None:
        done.append(kernel.py_func.__name__)

    monkeypatch.setattr(warming.os, "nice", nice)
    monkeypatch.setattr(warming, "compile_for", compile_one)
    monkeypatch.setattr(warming, "compile_part_for", compile_one)
    monkeypatch.setattr(warming, "prepare", compile_one)
    warming._compile_barriers()
    assert done == ["reduce_least", "open_barrier", "run_loop", "reduce_into", "nice 19", "reduce_first"]
    done.clear()
    warming._compile_joins()
    assert done[0] == "take_in" and done[-4:] == ["merge_runs", "merge_words", "nice 19", "run_rounds"]


HELPER = """
import sys, time
from differential import warming
from progress.compiled.kernel import Kernel
warming._compile_barriers = lambda: (print("here", flush=True), time.sleep(1000))
warming.help_to_warm(sys.stdin, 0)
"""


def test_a_helper_ends_with_the_one_that_it_helps() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", HELPER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as helper:
        assert helper.stdin is not None and helper.stdout is not None
        assert helper.stdout.readline() == b"here\n"
        helper.stdin.close()
        assert helper.wait(60) == 0


@pytest.mark.parametrize(
    ("is_warm", "cores", "is_shared", "helpers"),
    [(False, 2, True, 2), (True, 2, True, 0), (False, 1, True, 0), (False, 2, False, 0)],
)
def test_helpers_are_started_where_they_can_help(
    is_warm: bool, cores: int, is_shared: bool, helpers: int, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    monkeypatch.setattr(warming, "_start_helper", lambda number: started.append(number))
    monkeypatch.setattr(warming, "cores", lambda: list(range(cores)))
    monkeypatch.setattr(warming, "is_cache_shared", lambda: is_shared)
    if is_warm:
        monkeypatch.setattr(warming, "_run_kernels", lambda: None)
        monkeypatch.setattr(kernel, "_used", [])
        warming.warm()
    warming._Notices().first()
    assert started == list(range(helpers))


def test_while_kernels_are_compiled_a_line_now_and_then_says_how_many_there_are(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told, clock = warming._Notices(), iter([100.0, 101.0, 110.5, 111.0, 121.0, 122.0])
    monkeypatch.setattr(warming.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(warming, "_start_helper", lambda number: None)
    compiled = count(1)
    monkeypatch.setattr(warming, "kernels_compiled", lambda: next(compiled))
    told.warmed()
    assert capsys.readouterr().err == "", "nothing had to be compiled"
    told.first()
    for ready in (1, 2, 3, 4):
        told.each(ready, 200)
    told.warmed()
    said = capsys.readouterr().err.splitlines()
    assert said[1:] == [
        "2 of 200 kernels after 10 s",
        "4 of 200 kernels after 21 s",
        "kernels are compiled, after 22 s",
    ]


def test_kernels_that_are_loaded_are_not_told_of_as_if_they_were_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told, compiled = warming._Notices(), 0
    monkeypatch.setattr(warming, "kernels_compiled", lambda: compiled)
    monkeypatch.setattr(warming, "_SECONDS_BETWEEN", 0.0)
    for compiled, ready in ((1, 1), (1, 2), (1, 3), (2, 4)):  # noqa: B007  # read by the lambda above
        told.each(ready, 9)
    assert [line.split(" after ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "1 of 9 kernels",
        "4 of 9 kernels",
    ]


EMBEDDED = """
import sys
from differential import warming
import differential as dd, timely
warming._start_helper = lambda number: None
said = lambda what: print(what, file=sys.stderr, flush=True)

def passed_on(flow):
    dd.input(flow, "rows", "k: int").output("rows")

with timely.connect(embedded=True) as cluster:
    flow = cluster.install(passed_on)
    flow.input("rows").insert([(1,)])
    said("before")
    flow.wait(flow.seal())
    said("behind")
    flow.input("rows").insert([(2,)])
    flow.output("rows").snapshot()
    flow.wait(flow.seal())
    cluster.install(passed_on)
"""


def test_embedded_workers_say_once_that_kernels_are_compiled_behind_the_first_call_that_waited(
    tmp_path: Path,
) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NAIAD_CACHE": str(cache_without(tmp_path, "sort_words")),
    }
    told = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", EMBEDDED], env=environment, capture_output=True, text=True, check=True
        )
        told.append([line for line in done.stderr.splitlines() if " of " not in line.split(" kernels")[0]])
    first, second = told
    assert [line.partition(", after ")[0] for line in first] == [
        COMPILE_NOTICE,
        "before",
        "kernels are compiled",
        "behind",
    ]
    assert second == ["before", "behind"], "nothing had to be compiled"


def test_what_a_notebook_does_between_calls_is_no_time_of_compiling(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told, now = warming._Notices(), 100.0
    monkeypatch.setattr(warming.time, "monotonic", lambda: now)
    monkeypatch.setattr(warming, "_start_helper", lambda number: None)
    told.first()
    now = 103.0
    told.worked(99.0, False)  # an install, which began before
    now = 1_009.0
    told.worked(1_000.0, True)
    assert capsys.readouterr().err.splitlines() == [COMPILE_NOTICE, "kernels are compiled, after 12 s"]
    assert told.worked not in after_work


def test_what_is_run_to_have_kernels_says_it_behind_all_of_them(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = warming._Notices()
    monkeypatch.setattr(warming, "_start_helper", lambda number: None)
    monkeypatch.setattr(warming, "_notices", told)
    monkeypatch.setattr(warming, "_run_kernels", lambda: (told.first(), told.worked(0.0, True)))
    warming.warm()
    assert capsys.readouterr().err.splitlines() == [COMPILE_NOTICE, "kernels are compiled, after 0 s"]
    assert told.worked not in after_work


class Closed:
    def write(self, text: str) -> None:
        raise BrokenPipeError(text)


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, Closed(), closed()], ids=["none", "nobody reads", "closed"])
def test_a_program_whose_error_stream_takes_nothing_works_on(
    stream: object, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told in the midst of work, which an error would end, and of calls that have their answers."""
    told = warming._Notices()
    monkeypatch.setattr(warming, "_start_helper", lambda number: None)
    monkeypatch.setattr(sys, "stderr", stream)
    told.first()
    told.next = 0.0
    monkeypatch.setattr(warming, "kernels_compiled", lambda: 1)
    told.each(1, 2)
    told.worked(0.0, True)
    assert told.worked not in after_work


def test_of_two_threads_whose_calls_end_together_one_says_that_kernels_are_compiled(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = warming._Notices()
    monkeypatch.setattr(warming, "_start_helper", lambda number: None)
    told.first()
    for _ in range(2):  # the second had begun before the first ended
        told.worked(0.0, True)
    assert capsys.readouterr().err.splitlines() == [COMPILE_NOTICE, "kernels are compiled, after 0 s"]


def test_kernels_are_not_compiled_sooner_than_has_been_said_before(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told, now = warming._Notices(), 100.0
    monkeypatch.setattr(warming.time, "monotonic", lambda: now)
    monkeypatch.setattr(warming, "_start_helper", lambda number: None)
    monkeypatch.setattr(warming, "kernels_compiled", lambda: 1)
    told.first()
    now = 112.0
    told.each(3, 9)  # as epochs were sealed, of which it is not told
    now = 114.0
    told.worked(113.0, True)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "3 of 9 kernels after 12 s",
        "kernels are compiled, after 12 s",
    ]
