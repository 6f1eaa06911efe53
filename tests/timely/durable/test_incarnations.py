"""How an incarnation takes over: what it counts is fixed, and nothing of it is missing.

announced_*   fence and `begin`
fixed_*       the ends that a `begin` fixes
void_*        a fence without a `begin`
crashed_*     an incarnation that dies as it begins
lost_*        logs that are missing
foreign_*     files of others, and of other formats
damaged_*     files that have changed
"""

from __future__ import annotations

import copy
import errno
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from simulated_store import Crash, SimulatedContent, SimulatedDisk, SimulatedStore, crash_at

from timely.durable.bases.manifest import Base, write_base
from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import Incarnation, announce, hello_of, joined, note_hello, read_log
from timely.durable.log import Log
from timely.durable.records import packed
from timely.durable.store import Store, begin_path, fence_path, segment_path
from timely.errors import FencedError, StoreError

SECONDS = 20.0


def work(
    store: Store, begun: Incarnation, records: int, processes: int = 1, segment_bytes: int = 100
) -> None:
    """Let all processes of an incarnation write records, and end."""
    for process in range(processes):
        log = Log(store, begun.cluster, begun.number, process, segment_bytes=50)
        log.add(hello_of(begun, process))
        for number in range(records):
            log.add(["rows", begun.number, process, number])
        log.wait(log.position, SECONDS)
        log.close()


def counted(store: Store, begun: Incarnation) -> list[object]:
    """Return what counts from before an incarnation."""
    return [record.head for log in begun.logs for record in read_log(store, log)]


def rows(incarnation: int, records: int, processes: int = 1) -> list[object]:
    return [
        ["rows", incarnation, process, number] for process in range(processes) for number in range(records)
    ]


@pytest.fixture
def store() -> SimulatedStore:
    return SimulatedStore()


def test_announced_in_a_new_store_nothing_counts(store: SimulatedStore) -> None:
    first = announce(store, 2)
    assert (first.number, first.workers, first.processes, first.logs) == (1, 2, 2, [])
    assert store.disk.files.keys() == {"cluster.json", "members/000001.json", "members/000001.begin.json"}
    assert joined(SimulatedStore(store.disk), 1) == first


def test_announced_after_a_kill_says_which_record_is_torn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = FolderStore(tmp_path / "store")
    work(store, announce(store, 1), 3)
    assert counted(store, announce(store, 1)) == rows(1, 3) and not caplog.records
    work(store, joined(store, 2), 3, segment_bytes=1 << 20)
    path = sorted((tmp_path / "store/log/000002").glob("p0-*.log"))[-1]
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    begun = announce(store, 1)
    assert counted(store, begun) == [*rows(1, 3), *rows(2, 2)]
    (record,) = caplog.records
    assert f"{path} ends with" in record.message and "no call has returned for them" in record.message
    assert path.read_bytes() == whole[:-5], "a process that wakes up may yet write there"


def test_announced_one_after_another_each_counts_all_before(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    expected: list[object] = []
    for number, processes in ((1, 2), (2, 1), (3, 3)):
        begun = announce(store, processes + 1, processes)
        assert (begun.number, begun.workers, begun.processes) == (number, processes + 1, processes)
        assert counted(store, begun) == expected
        assert joined(FolderStore(tmp_path / "store"), number) == begun
        work(store, begun, 5, processes)
        expected += rows(number, 5, processes)
    last = announce(store, 1)
    assert counted(store, last) == expected
    assert [(log.incarnation, log.process, log.workers) for log in last.logs] == [
        (1, 0, 3),
        (1, 1, 3),
        (2, 0, 2),
        (3, 0, 4),
        (3, 1, 4),
        (3, 2, 4),
    ]
    assert all(len(log.segments) > 1 for log in last.logs)


def test_announced_at_once_by_several_processes_the_last_one_begins(tmp_path: Path) -> None:
    first = announce(FolderStore(tmp_path / "store"), 1)
    work(FolderStore(tmp_path / "store"), first, 3)

    def begin(_: int) -> Incarnation | FencedError:
        try:
            return announce(FolderStore(tmp_path / "store"), 1)
        except FencedError as error:
            assert "two programs start this cluster at the same time" in str(error)
            return error

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(begin, range(8)))
    begun = {result.number: result for result in results if isinstance(result, Incarnation)}
    assert max(begun) == 9
    for incarnation in begun.values():
        assert counted(FolderStore(tmp_path / "store"), incarnation) == rows(1, 3)


def test_announced_by_another_in_between_is_fenced(store: SimulatedStore) -> None:
    work(store, announce(store, 1), 3)
    slow = SimulatedStore(store.disk)
    others: list[Incarnation] = []

    def before(what: str, path: str) -> None:
        if path == begin_path(2) and what == "put_new":
            others.append(announce(store, 1))
            work(store, others[0], 2)

    slow.before = before
    with pytest.raises(FencedError, match="incarnation 3 .* was announced while incarnation 2 began"):
        announce(slow, 1)
    assert store.exists(begin_path(2)), "late, and without effect:"
    assert counted(store, others[0]) == rows(1, 3)
    assert counted(store, announce(store, 1)) == rows(1, 3) + rows(3, 2)


def test_fixed_ends_do_not_move_when_an_old_process_writes_more(store: SimulatedStore) -> None:
    first = announce(store, 1)
    old = Log(store, first.cluster, 1, 0, segment_bytes=100)
    for head in (hello_of(first, 0), *rows(1, 3)):
        assert isinstance(head, list)
        old.add(head)
    old.wait(4, SECONDS)
    second = announce(store, 1)
    old.add(["rows", 1, 0, 3])
    with pytest.raises(FencedError):
        old.wait(5, SECONDS)
    old.close()
    whole = [store.disk.files[path].written for path, _ in second.logs[0].segments]
    assert any(len(data) > end for data, (_, end) in zip(whole, second.logs[0].segments, strict=True)) or (
        len(store.list("log/000001")) > len(whole)
    ), "it has written"
    third = announce(store, 1)
    assert third.logs == second.logs and counted(store, third) == rows(1, 3)


def test_void_incarnations_count_nothing(store: SimulatedStore) -> None:
    work(store, announce(store, 1), 3)
    store.put_new(fence_path(2), b"{}")
    work(store, Incarnation(2, joined(store, 1).cluster, 1, 1, []), 0)
    third = announce(store, 1)
    assert third.number == 3 and counted(store, third) == rows(1, 3)
    with pytest.raises(StoreError, match="incarnation 2 has no `begin`"):
        joined(store, 2)


@pytest.mark.parametrize("seed", range(3))
def test_crashed_at_each_operation_of_an_announcement(seed: int) -> None:
    for operation in range(40):
        disk = SimulatedDisk()
        store = SimulatedStore(disk)
        work(store, announce(store, 2), 4, 2)
        dying = crash_at(operation, disk)
        try:
            announce(dying, 1)
        except Crash:
            disk.crash(seed)
        else:
            assert operation > 10
            break
        number = 3 if fence_path(2) in disk.files else 2
        after = announce(SimulatedStore(disk), 1)
        assert after.number == number
        assert counted(SimulatedStore(disk), after) == rows(1, 4, 2)
    else:
        raise AssertionError("an announcement has fewer operations")


def test_crashed_before_any_record_nothing_is_lost(store: SimulatedStore) -> None:
    """Processes without a `hello` have not greeted the others, so there is nothing yet."""
    first = announce(store, 3)
    work(store, first, 0)
    store.disk.files[segment_path(1, 1, 0)] = SimulatedContent(b"torn", b"torn")
    second = announce(store, 3)
    assert [log.process for log in second.logs] == [0] and counted(store, second) == []


def test_lost_log_of_a_process(store: SimulatedStore) -> None:
    work(store, announce(store, 2), 3, 2)
    for path in [path for path in store.disk.files if path.startswith("log/000001/p1-")]:
        store.remove(path)
    with pytest.raises(StoreError, match=r"log of process 1 of incarnation 1 is lost: .*/p1-000000\.log "):
        announce(store, 2)


def test_lost_hello_of_a_process(store: SimulatedStore) -> None:
    work(store, announce(store, 2), 3, 2)
    for path in [path for path in store.disk.files if path.startswith("log/000001/p1-")]:
        store.disk.files[path] = SimulatedContent()
    with pytest.raises(StoreError, match="log of process 1 of incarnation 1 is lost"):
        announce(store, 2)


@pytest.mark.parametrize("content", [None, SimulatedContent(), SimulatedContent(b"torn", b"torn")])
def test_lost_log_of_the_only_process(store: SimulatedStore, content: SimulatedContent | None) -> None:
    begun = announce(store, 1)
    work(store, begun, 0)
    note_hello(store, begun.number)
    path = segment_path(1, 0, 0)
    if content is None:
        store.remove(path)
    else:
        store.disk.files[path] = content
    with pytest.raises(StoreError, match=r"log of process 0 of incarnation 1 is lost: .*/p0-000000\.log "):
        announce(store, 1)


@pytest.mark.parametrize("lost", [[begin_path(2)], [begin_path(2), fence_path(2)]])
def test_lost_begin_of_records(store: SimulatedStore, lost: list[str]) -> None:
    work(store, announce(store, 1), 3)
    work(store, announce(store, 1), 3)
    for path in lost:
        store.remove(path)
    with pytest.raises(StoreError, match=r"members/000002\.begin\.json is missing, and log/000002 has"):
        announce(store, 1)


def test_lost_begins_of_logs_that_a_base_stands_for(store: SimulatedStore) -> None:
    """Without them the cluster would begin anew, as that of an empty store."""
    for _ in range(2):
        work(store, announce(store, 1), 3)
    write_base(store, Base(1, covered={(1, 0): 9, (2, 0): 0}))
    for path in [path for path in store.disk.files if path.startswith(("members/", "log/"))]:
        store.remove(path)
    with pytest.raises(
        StoreError, match=r"members/000002\.begin\.json is missing, as are .* and base 1 stands"
    ):
        announce(store, 1)


def test_lost_fence_of_a_begin_does_no_harm(store: SimulatedStore) -> None:
    work(store, announce(store, 1), 3)
    work(store, announce(store, 1), 3)
    store.remove(fence_path(2))
    third = announce(store, 1)
    assert third.number == 3 and counted(store, third) == [*rows(1, 3), *rows(2, 3)]


@pytest.mark.parametrize("number", [0, 1])
def test_lost_segment_that_others_follow(store: SimulatedStore, number: int) -> None:
    work(store, announce(store, 1), 9)
    store.remove(segment_path(1, 0, number))
    with pytest.raises(StoreError, match=rf"p0-00000{number}\.log is missing\. Put a whole copy"):
        announce(store, 1)


def test_lost_segment_that_a_begin_names(store: SimulatedStore) -> None:
    work(store, announce(store, 1), 9)
    second = announce(store, 1)
    store.remove(segment_path(1, 0, 1))
    with pytest.raises(StoreError, match=r"p0-000001\.log is missing"):
        counted(store, second)


def test_foreign_segment_is_refused(store: SimulatedStore) -> None:
    work(store, announce(store, 2), 9, 2)
    store.disk.files[segment_path(1, 0, 1)] = store.disk.files[segment_path(1, 1, 1)]
    with pytest.raises(StoreError, match=r"p0-000001\.log belongs to another log, \['\w+', 1, 1, 1\], not "):
        announce(store, 2)


def test_foreign_begin_is_refused(store: SimulatedStore) -> None:
    announce(store, 1)
    other = SimulatedStore()
    announce(other, 1)
    store.disk.files["cluster.json"] = other.disk.files["cluster.json"]
    message = r"000001\.begin\.json belongs to another cluster than cluster\.json"
    with pytest.raises(StoreError, match=message):
        announce(store, 1)
    with pytest.raises(StoreError, match=message):
        joined(store, 1)


@pytest.mark.parametrize("path", ["cluster.json", begin_path(1)])
def test_foreign_format_is_refused(store: SimulatedStore, path: str) -> None:
    work(store, announce(store, 1), 3)
    values = json.loads(store.disk.files[path].written)
    values["format"] = 2
    put(store, path, json.dumps(values).encode())
    with pytest.raises(StoreError, match=f"{path} has format 2, and this release reads format 1: start the"):
        announce(store, 1)


def test_foreign_format_of_a_segment_is_refused(store: SimulatedStore) -> None:
    first = announce(store, 1)
    pieces, crc, _ = packed(["segment", 2, first.cluster, 1, 0, 0, "something else"], (), 0)
    pieces += packed(hello_of(first, 0), (), crc)[0]
    put(store, segment_path(1, 0, 0), b"".join(pieces))
    with pytest.raises(StoreError, match=r"p0-000000\.log has format 2"):
        announce(store, 1)


@pytest.mark.parametrize(
    ("path", "advice"), [("cluster.json", "Remove it"), (begin_path(1), "Put a whole copy")]
)
@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 1', b'{"format": 1}', b"\xff"])
def test_damaged_files_of_members_are_refused(
    store: SimulatedStore, path: str, advice: str, content: bytes
) -> None:
    announce(store, 1)
    put(store, path, content)
    with pytest.raises(StoreError, match=f"{path} is damaged. {advice}"):
        announce(store, 1)


@pytest.mark.parametrize("path", ["cluster.json", begin_path(2)])
def test_damaged_bit_in_a_file_of_members_is_found(store: SimulatedStore, path: str) -> None:
    work(store, announce(store, 1), 3)
    work(store, announce(store, 1), 3)
    for bit in range(8 * len(store.disk.files[path].written)):
        changed = SimulatedStore(copy.deepcopy(store.disk))
        changed.disk.flip(path, bit)
        with pytest.raises(StoreError, match=f"{path} (is damaged|has format)"):
            announce(changed, 1)


def test_files_of_members_that_were_written_without_a_checksum_are_read(store: SimulatedStore) -> None:
    first = announce(store, 1)
    work(store, first, 3)
    for path in ("cluster.json", begin_path(1)):
        values = json.loads(store.disk.files[path].written)
        del values["crc"]
        put(store, path, json.dumps(values).encode())
    second = announce(store, 1)
    assert second.cluster == first.cluster and counted(store, second) == rows(1, 3)


def test_damaged_begin_is_that_of_another_incarnation(store: SimulatedStore) -> None:
    work(store, announce(store, 1), 3)
    work(store, announce(store, 1), 3)
    store.disk.files[begin_path(2)] = store.disk.files[begin_path(1)]
    with pytest.raises(StoreError, match=r"000002\.begin\.json is damaged"):
        announce(store, 1)


def test_lost_identity_of_the_cluster_is_made_again(store: SimulatedStore) -> None:
    first = announce(store, 1)
    work(store, first, 3)
    store.remove("cluster.json")
    second = announce(store, 1)
    assert second.cluster == first.cluster and counted(store, second) == rows(1, 3)


def test_damaged_bit_anywhere_but_in_the_last_segment_is_found(store: SimulatedStore) -> None:
    work(store, announce(store, 1), 5)
    path = segment_path(1, 0, 0)
    assert store.exists(segment_path(1, 0, 1))
    for bit in range(8 * len(store.disk.files[path].written)):
        changed = SimulatedStore(copy.deepcopy(store.disk))
        changed.disk.flip(path, bit)
        with pytest.raises(StoreError, match=r"log/000001/p0-000000\.log is damaged"):
            counted(changed, announce(changed, 1))


def test_damaged_segment_that_begins_with_another_record(store: SimulatedStore) -> None:
    announce(store, 1)
    put(store, segment_path(1, 0, 0), b"".join(packed(["rows", 1], (), 0)[0]))
    with pytest.raises(StoreError, match="begins with another record than a header"):
        announce(store, 1)


@pytest.mark.parametrize("what", ["put_new", "list", "read", "exists"])
def test_damaged_disk_is_a_store_error(store: SimulatedStore, what: str) -> None:
    work(store, announce(store, 1), 3)
    store.disk.failing[what] = errno.EIO
    with pytest.raises(StoreError, match="the store simulated cannot be used: EIO"):
        announce(store, 1)


def put(store: SimulatedStore, path: str, data: bytes) -> None:
    store.disk.files[path] = SimulatedContent(data, data)
