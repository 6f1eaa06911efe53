"""examples/mention_components.py, the main job: worker processes, Spark in and Spark out.

reproduces_*   the verified tables of the data sets; every window of a generated stream against recomputing it
output_*       what is in the folder: one commit per epoch, and the last snapshot
refuses_*      bad input ends in one clear message and a non-zero exit, with nothing left behind
ended_*        by a signal, without Java: what was shown is committed, the same command goes on

Runs share a process and its Spark; the one that is ended by a signal has its own, and shows what a shell gets
of an error. Data sets are read where they lie beside the checkout; on a machine without them the generated
stream stands alone.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from house import ROOT
from reference.windows import WindowFacts, component_of, windows

import differential as dd
import timely
from bench.dataflow import sliding
from differential.algorithms import connected_components
from examples.component_sizes import ComponentSizes
from examples.mentions.mention_stream import generate

DATA = ROOT.parent / "shared" / "data"
SCRIPT = ROOT / "examples" / "mention_components.py"
DAY_SECONDS = 86_400
TIMEOUT_SECONDS = 300

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS + 30)


class Done(NamedTuple):
    """How a run of the example ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


RUNS = """
import contextlib, io, json, runpy, sys
import timely.spark.lost
from pyspark import SparkContext
end_session = timely.spark.lost.end_session
def end_lost_session():  # the next run takes it over, unless its Java is gone
    if java := getattr(SparkContext._gateway, "proc", None):
        java.poll() is None or end_session()
timely.spark.lost.end_session = end_lost_session
script, answers = sys.argv[1], sys.stdout
for line in sys.stdin:
    sys.argv[1:], code = json.loads(line), None
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as ended:
            code = ended.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]), file=answers, flush=True)
end_session()
"""


class Job:
    """Runs the example again and again in one process: to start Spark takes longer than most of the runs."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUNS, str(SCRIPT)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(SCRIPT.parent)])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, *options: str) -> None:
        """Begin a run with these options."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(options) + "\n")
        self.process.stdin.flush()

    def done(self) -> Done:
        """Wait for the end of the run."""
        assert self.process.stdout is not None
        return Done(*json.loads(self.process.stdout.readline()))

    def __call__(self, *options: str) -> Done:
        """Both."""
        self.start(*options)
        return self.done()


@pytest.fixture(scope="module")
def job() -> Iterator[Job]:
    made = Job()
    with made.process:
        yield made
        assert made.process.stdin is not None
        made.process.stdin.close()
        assert made.process.wait(60) == 0


def reported(done: Done) -> list[WindowFacts]:
    """The facts on the `--json` lines of a run that ended well."""
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    wanted = ["epoch", "end", "interactions", "nodes", "components", "largest", "changes", "seconds"]
    assert all(list(line) == wanted for line in lines)
    assert [line["epoch"] for line in lines] == list(range(len(lines)))
    fields = WindowFacts._fields
    return [WindowFacts(*(line[field] for field in fields)) for line in lines]


def table(data_set: str, heading: str) -> list[WindowFacts]:
    """The window table below `heading` in the data set's own description."""
    text = (DATA / data_set / "README.md").read_text().split(f"### {heading}\n")[1].split("\n###")[0]
    found: list[WindowFacts] = []
    for line in text.splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        if cells[0].isdigit():
            end, interactions, nodes, _, components, largest = map(int, cells[:6])
            found.append(WindowFacts(end, interactions, nodes, components, largest))
    assert found
    return found


HIGGS = DATA / "higgs-activity" / "higgs-activity_time.txt.gz"
HIGGS_HERE = [HIGGS] if HIGGS.exists() else []


@pytest.mark.parametrize("file", HIGGS_HERE, ids=["higgs"])
def test_reproduces_the_verified_windows_of_mentions(job: Job, file: Path, tmp_path: Path) -> None:
    options = ["--kind", "MT", "--slide-minutes", "1440", "--json", "--output", str(tmp_path / "out")]
    done = job("--input", str(file), *options)
    assert reported(done) == table("higgs-activity", "24 h windows, `MT` rows only")


DAYS_BEFORE = 10
"""So many daily slides lead to each window that is looked at; what lies further back is slid over at once."""


def small_labels_first(dataflow: timely.Dataflow) -> None:
    """The components of the windows as `sliding.build` has them, found in another order."""
    interactions = dd.input(dataflow, "interactions", "source: int, target: int")
    found = connected_components(interactions, src="source", dst="target", prioritised=True)
    found.output("components")


def windows_followed(
    file: Path, looked_at: Sequence[int], build: Callable[[timely.Dataflow], None]
) -> list[WindowFacts]:
    """Facts of the daily windows that end at these times, from one embedded worker that follows them."""
    rows, first, last = sliding.read(file, None)
    everything = pa.table(rows._asdict()).drop_columns(["time"])
    days = {(end - first) // DAY_SECONDS - back for end in looked_at for back in range(DAYS_BEFORE)}
    ends = [first + day * DAY_SECONDS for day in sorted(days) if day > 0]
    assert set(looked_at) <= set(ends) and ends[-1] <= last + DAY_SECONDS
    sizes = ComponentSizes()
    found: list[WindowFacts] = []
    held = (0, 0)
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        output = flow.output("components")
        for end in ends:
            start, stop = (int(np.searchsorted(rows.time, at, "right")) for at in (end - DAY_SECONDS, end))
            entered, left = max(start, held[1]), min(start, held[1])
            flow.input("interactions").insert(everything.slice(entered, stop - entered))
            flow.input("interactions").remove(everything.slice(held[0], left - held[0]))
            flow.seal()
            sizes.apply(output.changes())
            output.forget()
            held = (start, stop)
            found.append(WindowFacts(end, stop - start, sizes.nodes, sizes.components, sizes.largest))
    return found


EMBEDDED = [
    ("higgs-activity", "higgs-activity_time.txt.gz", "24 h windows, all interactions", small_labels_first),
    ("collegemsg", "CollegeMsg.txt.gz", "24 h windows", sliding.build),
    ("sx-mathoverflow", "sx-mathoverflow.txt.gz", "24 h windows", sliding.build),
]


@pytest.mark.parametrize(
    ("data_set", "file", "heading", "build"),
    [run for run in EMBEDDED if (DATA / run[0]).exists()],
    ids=lambda given: given[:8] if isinstance(given, str) else "",
)
def test_reproduces_the_verified_windows_embedded(
    data_set: str, file: str, heading: str, build: Callable[[timely.Dataflow], None]
) -> None:
    verified = table(data_set, heading)
    looked_at = [facts.end for facts in verified]
    followed = {facts.end: facts for facts in windows_followed(DATA / data_set / file, looked_at, build)}
    assert [followed.get(facts.end) for facts in verified] == verified


def test_reproduces_every_window_of_a_generated_stream_on_three_workers(job: Job, tmp_path: Path) -> None:
    stream = tmp_path / "mentions.txt"
    generate(4_000, seed=7).write(stream)
    rows = [line.split() for line in stream.read_text().splitlines() if not line.startswith("#")]
    chosen = [
        (int(source), int(target), int(seconds)) for source, target, seconds, kind in rows if kind == "MT"
    ]
    times = [int(row[2]) for row in rows]
    options = ["--kind", "MT", "--workers", "3", "--slide-minutes", "360", "--window-hours", "30"]
    folder = tmp_path / "out"
    done = job("--input", str(stream), *options, "--json", "--output", str(folder))
    assert reported(done) == list(windows(chosen, min(times), max(times), 30 * 3600, 360 * 60))

    changes = pq.read_table(folder / "changes").to_pylist()
    current: Counter[tuple[int, int]] = Counter()
    for change in changes:
        current[change["node"], change["component"]] += change["diff"]
    assert set(current.values()) <= {0, 1}
    last = {row["node"]: row["component"] for row in pq.read_table(folder / "snapshot").to_pylist()}
    assert last == {node: component for (node, component), count in current.items() if count}
    end = min(times) + len(done.stdout.splitlines()) * 360 * 60
    assert last == component_of((s, t) for s, t, seconds in chosen if end - 30 * 3600 < seconds <= end)


def test_output_of_the_screen_is_one_line_per_epoch(job: Job, tmp_path: Path) -> None:
    done = job("--epochs", "3", "--slide-minutes", "720", "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "components" in line and "largest" in line]
    assert len(lines) == 3
    commits = sorted(path.name for path in (tmp_path / "out" / "changes").glob("epoch-*"))
    assert len(commits) == 3


def mention_file(folder: Path, text: str) -> str:
    """A file of interactions with `text`."""
    path = folder / "mentions.txt"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("1 2 1000 MT\n1 two 1010 MT\n", [r"mentions.txt", r"line 2", r"1 two 1010 MT"]),
        ("1 2 1000\n-4 2 1010\n", [r"mentions.txt", r"line 2", r"-4"]),
        ("# nobody\n", [r"mentions.txt"]),
        ("1 2 1000\n1\0 2 3\n", [r"line 2: it has the control character 0x00"]),
        (
            "1 2 1341100800\n3 4 0\n5 6 1341100900\n",
            [r"for 372,52\d epochs", r"2 \| 3 4 0", r"--allow-gap"],
        ),
    ],
    ids=["malformed", "negative", "empty", "control", "stray"],
)
def test_refuses_a_bad_line_by_file_line_and_text(
    job: Job, text: str, named: Sequence[str], tmp_path: Path
) -> None:
    done = job("--workers", "1", "--input", mention_file(tmp_path, text), "--output", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for pattern in named:
        assert re.search(pattern, done.stderr), done.stderr
    assert done.stderr.count("Error") == 1, done.stderr
    assert done.stderr.endswith("Nothing was written.\n")


def test_refuses_no_gap_that_it_is_told_of(job: Job, tmp_path: Path) -> None:
    options = ["--allow-gap", "--epochs", "2", "--json", "--output", str(tmp_path / "out")]
    done = job("--input", mention_file(tmp_path, "1 2 1341100800\n3 4 0\n"), *options)
    assert [(line.end, line.interactions) for line in reported(done)] == [(3600, 1), (7200, 1)]


def test_refuses_a_missing_file(job: Job, tmp_path: Path) -> None:
    done = job("--input", str(tmp_path / "nowhere.txt"), "--output", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "nowhere.txt" in done.stderr and "Traceback" not in done.stderr


def worker_processes(parent: int) -> list[int]:
    """Worker processes below `parent`."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            mother = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        if "timely.worker" in command and (mother == parent or mother in worker_processes_of(parent)):
            found.append(int(entry.name))
    return found


def worker_processes_of(parent: int) -> list[int]:
    """Children of `parent`."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(child) for child in children.read_text().split()] if children.exists() else []


def descendants(parent: int) -> dict[int, str]:
    """All processes below `parent`, with their programs."""
    found: dict[int, str] = {}
    for child in worker_processes_of(parent):
        try:
            found[child] = Path(f"/proc/{child}/comm").read_text().strip()
        except OSError:
            continue
        found |= descendants(child)
    return found


def ended(options: Sequence[str], end: Callable[[int], None], lines: int) -> tuple[int, list[str], str]:
    """Start the job, call `end` with its process id after `lines` lines: its status, lines, and error stream.

    Asserts that it ends with all its processes.
    """
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, str(SCRIPT), *options],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as running,
    ):
        assert running.stdout is not None
        shown = [running.stdout.readline() for _ in range(lines)]
        below = descendants(running.pid)
        end(running.pid)
        shown += running.stdout.readlines()
        running.wait(60)
        errors.seek(0)
        said = errors.read()
    assert all(shown), said
    await_end(below)
    return running.returncode, shown, said


def is_running(process: int) -> bool:
    """Whether the process is there, and not only a name that nobody has asked about yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_ended_by_a_signal_what_was_shown_is_committed_and_the_same_command_goes_on(
    job: Job, tmp_path: Path
) -> None:
    stream = tmp_path / "mentions.txt"
    generate(6_000, seed=3).write(stream)
    folder = tmp_path / "out"
    options = ["--input", str(stream), "--slide-minutes", "120", "--json", "--output", str(folder)]
    code, lines, errors = ended(options, lambda driver: os.kill(driver, signal.SIGTERM), lines=5)
    committed = len(list((folder / "changes").glob("epoch-*")))
    assert code == 143, errors
    assert 5 <= len(lines) <= committed < 84, "what was shown is committed"
    assert len(lines) >= committed - 1, "of what is committed on the way out one line at most is not shown"
    assert re.search(rf"^stopped by SIGTERM\.\n{goes_on_behind(committed)}", errors), errors
    assert errors.count("\n") == 2, errors
    before = {file.name: file.read_bytes() for file in (folder / "changes").glob("epoch-*")}
    rows = [tuple(map(int, row.split()[:3])) for row in stream.read_text().splitlines()]
    times = [row[2] for row in rows]
    assert reported(job(*options)) == list(windows(rows, min(times), max(times), DAY_SECONDS, 7_200))
    assert {name: (folder / "changes" / name).read_bytes() for name in before} == before
    assert len(list((folder / "changes").glob("epoch-*"))) == 84


def goes_on_behind(committed: int) -> str:
    """What is said behind an error, as a pattern."""
    return rf"Epochs 0 to {committed - 1} are committed in .*; the same command, .* behind them\.\n$"


def await_epochs(job: Job, folder: Path) -> None:
    """Wait until a run of the job has committed a few."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(list((folder / "changes").glob("epoch-*"))) < 5:
        assert time.monotonic() < deadline and job.process.poll() is None
        time.sleep(0.02)


def await_end(processes: Collection[int]) -> None:
    """Wait until none of them runs."""
    deadline = time.monotonic() + 60
    while any(is_running(process) for process in processes):
        assert time.monotonic() < deadline, f"processes are left behind: {processes}"
        time.sleep(0.1)


def test_refuses_to_go_on_without_a_worker_and_keeps_what_is_committed(job: Job, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    stream = tmp_path / "mentions.txt"
    generate(6_000, seed=3).write(stream)
    job.start("--input", str(stream), "--slide-minutes", "10", "--json", "--output", str(folder))
    await_epochs(job, folder)
    victims = worker_processes(job.process.pid)
    assert victims, "no worker process was found"
    os.kill(victims[-1], signal.SIGKILL)
    killed = time.monotonic()
    code, _, errors = job.done()
    assert code == 1
    assert time.monotonic() - killed < 30, "it took too long to notice"
    assert "PeerError" in errors and "Traceback" not in errors, errors
    assert "worker" in errors and "the same command, given again, goes on behind" in errors
    committed = pq.read_table(folder / "changes")
    epochs = sorted(path.name for path in (folder / "changes").glob("epoch-*"))
    assert len(epochs) >= 1 and set(committed.column("epoch").to_pylist()) <= set(range(len(epochs)))
    await_end(victims)


def test_ended_without_java_what_was_shown_is_committed(job: Job, tmp_path: Path) -> None:
    """Java is killed, as a machine without memory does; the next run would start another one."""
    folder = tmp_path / "out"
    stream = tmp_path / "mentions.txt"
    generate(6_000, seed=3).write(stream)
    job.start("--input", str(stream), "--slide-minutes", "10", "--json", "--output", str(folder))
    await_epochs(job, folder)
    below = descendants(job.process.pid)
    (java,) = (process for process, program in below.items() if program == "java")
    os.kill(java, signal.SIGKILL)
    code, out, errors = job.done()
    committed = len(list((folder / "changes").glob("epoch-*")))
    assert code == 1, errors
    assert 4 <= len(out.splitlines()) <= committed < 1_008, "what was shown is committed"
    said = rf"^SparkLostError: the Java process of Spark \(process {java}\) was killed by SIGKILL\.\n"
    assert re.search(said + goes_on_behind(committed), errors) and errors.count("\n") == 2, errors
    await_end(below)
