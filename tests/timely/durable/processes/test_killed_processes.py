"""A real process and a real folder: killed, it has lost nothing that it told; woken, it tells no more."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import announce, read_log

PROGRAM = """
import sys
from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import announce, hello_of
from timely.durable.log import Log
from timely.errors import FencedError

store = FolderStore(sys.argv[1])
begun = announce(store, 1)
log = Log(store, begun.cluster, begun.number, 0, segment_bytes=500)
log.add(hello_of(begun, 0))
number = 0
try:
    while True:
        for _ in range(number % 7 + 1):
            log.add(["rows", number], [b"x" * number])
            number += 1
        log.wait(log.position, 60)
        print(number, flush=True)
except FencedError:
    print("fenced", flush=True)
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "store")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def told_by(process: subprocess.Popen[str], lines: int) -> int:
    assert process.stdout is not None
    return int([process.stdout.readline() for _ in range(lines)][-1])


def counted(folder: Path) -> list[object]:
    store = FolderStore(folder)
    (log,) = announce(store, 1).logs
    numbers = [record.head[1] for record in read_log(store, log)]
    assert numbers == list(range(len(numbers)))
    return numbers


def test_killed_it_has_lost_nothing_that_it_told(process: subprocess.Popen[str], tmp_path: Path) -> None:
    told = told_by(process, 30)
    process.kill()
    assert process.stdout is not None
    told = int((process.stdout.read().splitlines() or [str(told)])[-1])
    assert len(counted(tmp_path / "store")) >= told


def test_stopped_and_woken_it_tells_no_more(process: subprocess.Popen[str], tmp_path: Path) -> None:
    told_by(process, 5)
    process.send_signal(signal.SIGSTOP)
    before = len(counted(tmp_path / "store"))
    process.send_signal(signal.SIGCONT)
    assert process.stdout is not None
    *numbers, last = process.stdout.read().splitlines()
    assert last == "fenced" and all(int(number) <= before for number in numbers)
