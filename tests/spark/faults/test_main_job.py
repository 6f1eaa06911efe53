"""Kill -9 of workers, the driver and an executor in the main job with a store, on a real data set.

verified_*   every epoch is in the change log once, and is what its window gives when it is computed from
             scratch; windows of the data set's own table are among them: those of the first forty days, or
             all with the thorough profile
"""

from __future__ import annotations

import gzip
import os
import random
import signal
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from house import ROOT
from reference.windows import Interaction, component_of
from spark.faults.main_job import MainLife
from spark.faults.rounds import left_of
from spark.faults.striking import Fault

from timely.durable.folder_store import FolderStore

DATA = ROOT.parent / "shared" / "data" / "collegemsg"
DAY_SECONDS = 86_400
EPOCHS = 194
QUICK_EPOCHS = 40
LIFE_SECONDS_MAX = 300

POINTS = ("sent", "answered", "staged", "committed")
VICTIMS = ("executor", "worker", "workers", "driver")
"""What is killed, each once."""

MASTERS = {True: "local-cluster[1,2,1024]", False: "local-cluster[2,1,1024]"}
"""Spark's master, of a quick run or not: each executor is a Java of its own, and is started in both lives."""

Changes = Counter[tuple[int, int]]
"""How often (node, component) comes."""


def faults_of(seed: int, epochs: int) -> tuple[Fault, ...]:
    """The faults of one round; an executor is killed where it sends the rows of an epoch."""
    choose = random.Random(f"main job {seed}")
    found = []
    for number, victim in enumerate(VICTIMS):
        point = "append" if victim == "executor" else choose.choice(POINTS)
        found.append(Fault(number, victim, "", point, choose.randrange(1, epochs), choose.randrange(2)))
    return tuple(fault._replace(nth=0) if fault.victim == "executor" else fault for fault in found)


@pytest.fixture(scope="module")
def master(effort: int) -> str:
    """Which Spark the job runs on."""
    return MASTERS[effort == 1]


@pytest.fixture(scope="module")
def epochs(effort: int) -> int:
    """How many days the job reads."""
    return QUICK_EPOCHS if effort == 1 else EPOCHS


@pytest.fixture(scope="module")
def rows(epochs: int) -> list[Interaction]:
    with gzip.open(DATA / "CollegeMsg.txt.gz", "rt") as lines:
        rows = [(int(one), int(other), int(at)) for one, other, at in map(str.split, lines)]
    return [row for row in rows if row[2] <= rows[0][2] + epochs * DAY_SECONDS]


@pytest.fixture(scope="module")
def answers(rows: list[Interaction], epochs: int) -> list[dict[int, int]]:
    """The component of each node, of each window."""
    first = rows[0][2]
    ends = [first + (epoch + 1) * DAY_SECONDS for epoch in range(epochs)]
    assert ends[-2] < rows[-1][2] <= ends[-1]
    return [component_of((a, b) for a, b, at in rows if end - DAY_SECONDS < at <= end) for end in ends]


def verified() -> dict[int, tuple[int, int, int]]:
    """Nodes, components and the largest component of windows, by their ends: the data set's own table."""
    text = (DATA / "README.md").read_text().split("### 24 h windows\n")[1]
    cells = [
        [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return {int(c[0]): (int(c[2]), int(c[4]), int(c[5])) for c in cells if c[0].isdigit()}


def written(rows: list[Interaction], file: Path) -> str:
    """The path of a file with these rows, as the data set has them."""
    with gzip.open(file, "wt") as lines:
        lines.writelines(f"{one} {other} {at}\n" for one, other, at in rows)
    return str(file)


def lived(life: MainLife, folder: Path) -> int:
    """The status of one life; nothing of it is left afterwards."""
    mark = uuid.uuid4().hex
    paths = [ROOT, ROOT / "tests"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "NAIAD_FAULTS": mark,
        "TMPDIR": str(folder / "tmp"),
    }
    with (folder / "said").open("a") as said:
        status = subprocess.run(
            [sys.executable, "-m", "spark.faults.main_job", life.to_text()],
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, cwd=folder,
            timeout=LIFE_SECONDS_MAX, check=False,
        ).returncode  # fmt: skip
    assert left_of(mark) == []
    return status


def committed(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((folder / "out" / "changes").glob("epoch-*"))}


@pytest.mark.skipif(not DATA.exists(), reason="the data set is not beside this checkout")
@pytest.mark.timeout(2 * LIFE_SECONDS_MAX)
def test_verified_windows_are_committed_once_each_whatever_is_killed(
    master: str,
    seed: int,
    epochs: int,
    tmp_path: Path,
    answers: list[dict[int, int]],
    rows: list[Interaction],
) -> None:
    for name in ("struck", "tmp"):
        (tmp_path / name).mkdir()
    options = ["--input", written(rows, tmp_path / "messages.txt.gz"), "--slide-minutes", "1440", "--json"]
    options += ["--output", str(tmp_path / "out"), "--durable", str(tmp_path / "store")]
    life = MainLife(str(tmp_path / "struck"), master, tuple(options), faults_of(seed, epochs))
    status = lived(life, tmp_path)
    assert status == -signal.SIGKILL, (life.faults, (tmp_path / "said").read_text()[-3000:])
    before = committed(tmp_path)
    status = lived(life, tmp_path)
    assert status == 0, (life.faults, (tmp_path / "said").read_text()[-3000:])
    assert {path.name for path in (tmp_path / "struck").iterdir()} == set(map(str, range(len(life.faults))))
    after = committed(tmp_path)
    assert {name: after[name] for name in before} == before, "what is committed stays as it is"
    assert len(after) == epochs
    held, facts = Changes(), dict[int, tuple[int, int, int]]()
    for epoch, answer in enumerate(answers):
        changes = pq.ParquetFile(tmp_path / "out" / "changes" / f"epoch-{epoch:08}.parquet").read()
        for change in changes.to_pylist():
            assert change["epoch"] == epoch
            held[change["node"], change["component"]] += change["diff"]
        assert Changes({row: count for row, count in held.items() if count}) == Changes(answer.items()), epoch
        sizes = Counter(answer.values())
        end = rows[0][2] + (epoch + 1) * DAY_SECONDS
        facts[end] = (len(answer), len(sizes), max(sizes.values(), default=0))
    table = {end: fact for end, fact in verified().items() if end in facts}
    assert len(table) == (2 if epochs == QUICK_EPOCHS else len(verified()))
    assert {end: facts[end] for end in table} == table
    names = [name for name in FolderStore(tmp_path / "store").list("members") if ".begin" in name]
    newest = max(int(name.partition(".")[0]) for name in names)  # a fold has perhaps removed older ones
    assert newest >= 3, "workers have started again in a life, and in the next one"
