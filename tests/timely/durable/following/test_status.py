"""Workers that follow say how far they are, as long as they live."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from timely.durable.following.status import FollowerStatus, StatusFile, followers_of

FOLLOWS = """
import os, sys
from timely.durable.following.status import StatusFile
file = StatusFile(sys.argv[1], 1)
file.write(False, {0: 2, 5: 7})
begun, begins = os.pipe()
if not os.fork():
    os.close(1)
    os.write(begins, b"+")
    sys.stdin.read()  # goes on though the other one is killed
    os._exit(0)
os.read(begun, 1)  # it has closed what it must not hold
print("follows", flush=True)
sys.stdin.read()
"""


def test_those_that_live_are_listed_by_worker(tmp_path: Path) -> None:
    assert followers_of(str(tmp_path)) == []
    file = StatusFile(str(tmp_path), 0)
    assert followers_of(str(tmp_path)) == [], "it has said nothing yet"
    file.write(True, {0: 3})
    with subprocess.Popen(
        [sys.executable, "-c", FOLLOWS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "follows\n"
        first, second = followers_of(str(tmp_path))
        assert first == FollowerStatus(0, os.getpid(), True, {0: 3})
        assert second == FollowerStatus(1, other.pid, False, {0: 2, 5: 7})
        other.kill()
        other.wait()
        assert followers_of(str(tmp_path)) == [first]
    file.remove()
    file.remove()
    assert followers_of(str(tmp_path)) == []
    StatusFile(str(tmp_path), 2).remove()
    assert not [*(tmp_path / "standby").iterdir()], "what a killed one has left is removed by the next"


def test_behind_is_the_dataflow_with_most_epochs_to_do() -> None:
    status = FollowerStatus(0, 1, True, {0: 3, 1: 10, 2: 1 << 62})
    assert [status.behind(opened) for opened in ({}, {0: 3}, {0: 5, 1: 14}, {2: 7}, {3: 6})] == [
        0,
        0,
        4,
        0,
        6,
    ]


def test_nothing_is_said_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "standby").write_text("no folder")
    file = StatusFile(str(tmp_path), 0)
    file.write(True, {})
    assert followers_of(str(tmp_path)) == []
    file.remove()


def test_what_is_no_status_is_left_out(tmp_path: Path) -> None:
    file = StatusFile(str(tmp_path), 0)
    for text in (b"", b"[1, 2", b'{"a": 1}', b"[1, 2, 3, 4]"):
        os.truncate(tmp_path / "standby" / f"{os.getpid()}.json", 0)
        os.pwrite(file._file, text, 0)
        assert followers_of(str(tmp_path)) == []
    file.remove()
