"""A folder as a store: one of several gets a name, files are whole, and other users stay out.

put_*      `put_new`
private_*  owner and mode of the folder
lock_*     two processes with one folder
file_*     files of a log
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from timely.durable import folder_store
from timely.durable.folder_store import FolderStore
from timely.errors import StoreError
from timely.wire.batch import Frame


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


def content(store: FolderStore, path: str, end: int | None = None) -> bytes:
    data = store.read(path, end)
    assert data is not None
    return bytes(data)


def test_put_new_gives_a_name_to_one_of_many(store: FolderStore) -> None:
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda n: store.put_new("members/1.json", b"%d" % n), range(8)))
    assert results.count(True) == 1
    assert content(store, "members/1.json") == b"%d" % results.index(True)
    assert store.list("members") == ["1.json"]


def test_put_leaves_no_temporary_file(store: FolderStore, tmp_path: Path) -> None:
    assert store.put_new("a/b", b"one") and not store.put_new("a/b", b"two")
    assert [file.name for file in (tmp_path / "store" / "a").iterdir()] == ["b"]


def test_put_leaves_nothing_where_the_disk_is_full(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    store.put_new("a/b", b"one")
    monkeypatch.setattr(os, "writev", full)
    with pytest.raises(OSError, match="No space"):
        store.put_new("a/c", b"two")
    assert [file.name for file in (tmp_path / "store" / "a").iterdir()] == ["b"]


def test_private_folder_and_files(store: FolderStore, tmp_path: Path) -> None:
    store.create("log/1/p0.log").close()
    store.put_new("members/1.json", b"")
    everything = [tmp_path / "store", *(tmp_path / "store").rglob("*")]
    assert {file.stat().st_mode & 0o777 for file in everything} == {0o700, 0o600}


def test_private_folder_that_others_can_write_to_is_refused(store: FolderStore, tmp_path: Path) -> None:
    (tmp_path / "store").chmod(0o770)
    with pytest.raises(StoreError, match=f"mode 0770.*chmod 700 {tmp_path / 'store'}"):
        FolderStore(tmp_path / "store")


def test_private_folder_of_another_user_is_refused(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(StoreError, match=f"belongs to user {mine}, and this process runs as user {mine + 1}"):
        FolderStore(tmp_path / "store")


def test_private_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file"):
        FolderStore(tmp_path / "file")
    with pytest.raises(StoreError, match="cannot be used: Not a directory"):
        FolderStore(tmp_path / "file" / "store")


def test_lock_is_free_even_while_a_process_has_the_file_open_by_chance(store: FolderStore) -> None:
    store.lock()
    path = Path(store.name, "lock").resolve()
    (mine,) = (int(link.name) for link in Path("/proc/self/fd").iterdir() if link.resolve() == path)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[mine]) as child:
        store.unlock()
        FolderStore(store.name).lock()
        child.communicate()


def test_file_of_a_probe_is_gone_again(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.check_room()
    before = sorted(Path(store.name).iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: _fail())
        with pytest.raises(StoreError, match="No space left"):
            store.check_room()
    assert sorted(Path(store.name).iterdir()) == before
    shutil.rmtree(store.name)
    with pytest.raises(StoreError):
        store.check_room()


def _fail() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_lock_names_the_holder(store: FolderStore) -> None:
    program = (
        "import os, sys\n"
        "from timely.durable.folder_store import FolderStore\n"
        "store = FolderStore(sys.argv[1])\n"
        "store.lock()\n"
        "if forked := not os.fork(): store.unlock()\n"  # it has nothing to unlock
        "os.write(1, b'forked\\n' if forked else b'locked\\n')\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, store.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert {holder.stdout.readline() for _ in range(2)} == {"locked\n", "forked\n"}
        with pytest.raises(StoreError, match=f"in use by process {holder.pid} on .*: end that cluster first"):
            store.lock()
        holder.kill()
        holder.wait()
        store.lock()  # a process that was killed has it no more, though one that was forked from it goes on
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()} on .* this program itself: go on"):
        FolderStore(store.name).lock()
    store.unlock()
    FolderStore(store.name).lock()


def test_waits_for_a_command_that_has_the_lock(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.lock("fold")
    begun = threading.Event()
    monkeypatch.setattr(folder_store, "time", SimpleNamespace(monotonic=time.monotonic, sleep=begun.wait))
    other = FolderStore(store.name)
    taking = threading.Thread(target=other.lock)
    taking.start()
    taking.join(0.3)
    assert taking.is_alive(), "it would be refused now, if the command were a cluster"
    store.unlock()
    begun.set()
    taking.join(5.0)
    assert not taking.is_alive()
    other.unlock()
    store.lock("fold")
    monkeypatch.setattr(folder_store, "LOCK_SECONDS_MAX", 0.2)
    with pytest.raises(StoreError, match="which carries out 'fold': wait until that has ended"):
        other.lock()
    store.unlock()


def test_waits_until_the_holder_has_said_what_it_is(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process locks the file first, and then writes that: until then it has what the last one wrote."""
    store.lock()
    store.unlock()
    other = FolderStore(store.name)
    monkeypatch.setattr(folder_store, "_is_locked", lambda file: waited == 2)
    waited, now = 0, count()

    def sleep(seconds: float) -> None:
        nonlocal waited
        waited += 1
        Path(store.name, "lock").write_text('{"host": "here", "pid": 7, "command": "fold"}')

    monkeypatch.setattr(folder_store, "time", SimpleNamespace(monotonic=lambda: next(now) / 100, sleep=sleep))
    other.lock()
    assert waited == 2
    other.unlock()


def test_file_takes_pieces_of_every_kind_and_number(store: FolderStore) -> None:
    words = memoryview(bytes(range(80))).cast("q")
    table = memoryview(bytes(range(80))).cast("B").cast("q", (2, 5))
    pieces: list[Frame] = [b"", b"a", bytearray(b"bc"), words, table, *[b"x"] * 3000]
    file = store.create("log/p0.log")
    file.write(pieces)
    file.write([])
    file.sync()
    assert file.size == 3 + 2 * 80 + 3000
    file.close()
    expected = b"abc" + 2 * bytes(range(80)) + 3000 * b"x"
    assert content(store, "log/p0.log") == expected
    assert content(store, "log/p0.log", 5) == expected[:5]
    assert content(store, "log/p0.log", 1 << 20) == expected


def test_file_takes_the_rest_where_the_system_takes_a_part(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    writev = os.writev

    def written(file: int, pieces: list[Frame]) -> int:
        return writev(file, [b"".join(pieces)[:7]])

    monkeypatch.setattr(os, "writev", written)
    file = store.create("p0.log")
    pieces = [b"12345", b"6789", b"", b"0" * 30]
    file.write(pieces)
    file.close()
    assert content(store, "p0.log") == b"".join(pieces)


def test_file_is_created_once(store: FolderStore) -> None:
    store.create("log/p0.log").close()
    with pytest.raises(FileExistsError):
        store.create("log/p0.log")
    assert store.exists("log/p0.log") and not store.exists("log/p1.log")
    assert store.read("log/p1.log") is None and store.list("none") == []
    store.remove("log/p0.log")
    assert not store.exists("log/p0.log")


def test_file_that_cannot_be_looked_for_is_not_missing(store: FolderStore, tmp_path: Path) -> None:
    (tmp_path / "store" / "members").write_text("")
    with pytest.raises(NotADirectoryError):
        store.exists("members/1.json")


@pytest.mark.parametrize("how", ["moved", "removed", "replaced"])
def test_folder_that_goes_away_hides_no_fence_and_takes_no_files(
    store: FolderStore, tmp_path: Path, how: str
) -> None:
    store.put_new("members/000001.json", b"{}")
    folder = Path(store.name)
    if how == "removed":
        shutil.rmtree(folder)
    else:
        folder.rename(tmp_path / "elsewhere")
    if how == "replaced":
        FolderStore(folder)
    for call in (
        lambda: store.exists("members/000002.json"),
        lambda: store.put_new("members/000002.json", b"{}"),
        lambda: store.create("log/000001/p0-000001.log"),
    ):
        with pytest.raises(OSError, match="was moved, removed or replaced while the cluster worked"):
            call()
    with pytest.raises(StoreError, match="was moved, removed or replaced"):
        store.check()
    assert not [*folder.iterdir()] if how == "replaced" else not folder.exists()
    if how == "moved":
        (tmp_path / "elsewhere").rename(folder)
        store.check()
        assert store.exists("members/000001.json") and not store.exists("members/000002.json")


def test_put_by_a_killed_process_leaves_a_file_that_is_removed_when_it_is_old(
    store: FolderStore, tmp_path: Path
) -> None:
    program = (
        "import os, sys\n"
        "from timely.durable.folder_store import FolderStore\n"
        "os.link = lambda *_: os.kill(os.getpid(), 9)\n"
        "FolderStore(sys.argv[1]).put_new('base/7.parquet', b'rows')\n"
    )
    subprocess.run([sys.executable, "-c", program, store.name], check=False)
    (left,) = (tmp_path / "store" / "base").iterdir()
    store.put_new("base/8.parquet", b"rows")
    others = [tmp_path / "store" / name for name in (".hidden", ".nfs0000000000000000", "." + "g" * 32)]
    for path in others:
        path.touch()
        os.utime(path, (0, 0))
    store.remove_unfinished()
    assert left.exists(), "somebody may be writing it"
    os.utime(left, (0, 0))
    os.utime(tmp_path / "store" / "base" / "8.parquet", (0, 0))
    store.remove_unfinished()
    assert not left.exists() and store.list("base") == ["8.parquet"]
    assert all(path.exists() for path in others), "these are of others"
