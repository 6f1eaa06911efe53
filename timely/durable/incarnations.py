"""How does an incarnation take over, and what counts of those before it?

    announce   puts the fence of the next incarnation; *then* reads the logs of the newest incarnation that
               has a `begin`; *then* puts its own `begin`, which fixes what counts
    joined     for the other processes of that incarnation: reads the `begin`
    newest     what counts now, for people
    begun      which incarnations have a `begin` that is still there
    read_log   yields the records that count of one old log

Laws:

- A `begin` names every log that counts, with the segments of each and their bytes. Later incarnations take
  these ends from it, and do not read the older logs anew: what an old process writes later counts nowhere.
- A fence without a `begin` is void: that incarnation tells nobody anything, and nothing of it counts. A
  `begin` that comes after the fence of a later incarnation does no harm, since every look finds that fence.
- What counts is durable before the `begin` that names it. A process that has died may have written records
  and not synced them, and this incarnation builds on them. So it copies the last segment of each log; the
  others were synced before the next one was begun. It does not sync the old file instead: if that has failed
  once, success proves nothing.
- Every process syncs a `hello` record before it greets another one. So if a log has records beside its
  `hello`, the logs of all processes of its incarnation have theirs, or a log is lost. Process 0 also puts a
  file that says so (`note_hello`): its log, which may be the only one, cannot be lost unnoticed.
- A process writes its log behind the `begin` of its incarnation. So a log with records has a `begin`, or that
  is lost.
- Only the newest `begin` is read by later incarnations: a fold removes older ones (`bases/pruning.py`).
- A `begin` names the base from which its incarnation goes on (`bases/manifest.py`), and leaves out segments
  that no kept base needs. They may be gone: a fold removes them after it has put its base, and after it has
  looked that no later incarnation has put its fence. So this incarnation, which looks for bases after it has
  put its fence, knows every base for which something was removed.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final
from uuid import uuid4
from zlib import crc32

from ..errors import FencedError, StoreError
from .bases.manifest import KeptBases
from .records import FORMAT, Record, records_in
from .store import Store, begin_path, fence_path, hello_path, log_folder, segment_path, store_errors

__all__ = [
    "Incarnation",
    "OldLog",
    "announce",
    "begun",
    "hello_of",
    "joined",
    "newest",
    "newest_fence",
    "note_hello",
    "read_log",
    "read_segment",
]

_log = logging.getLogger("timely")

_ADVICE: Final = (
    "Put a whole copy of this file in its place; without one, what this cluster held cannot be restored: "
    "start it with another folder, and feed it again"
)
_OPENING_BYTES: Final = 4_096
"""The first bytes of a segment, which have its header, and the `hello` of the first segment."""

_CLUSTER: Final = "cluster.json"
_WITHOUT_CRC: Final = ({"cluster"}, {"cluster", "incarnation", "workers", "processes", "base", "logs"})
"""The values of files that were written before they had a checksum."""
_FENCE: Final = re.compile(r"(\d{6,})\.json")
_BEGIN: Final = re.compile(r"(\d{6,})\.begin\.json")
_SEGMENT: Final = re.compile(r"p(\d+)-(\d{6,})\.log")


@dataclass(frozen=True)
class OldLog:
    """What counts of the log of one process of an incarnation: its segments, with the bytes of each."""

    incarnation: int
    process: int
    workers: int
    segments: list[tuple[str, int]]


@dataclass(frozen=True)
class Incarnation:
    """An incarnation that has begun, and all logs that count from before it, oldest first. `base`: the number
    of the base from which it goes on; 0: there is none.
    """

    number: int
    cluster: str
    workers: int
    processes: int
    logs: list[OldLog]
    base: int = 0


def hello_of(incarnation: Incarnation, process: int) -> list[object]:
    """Return the head of the first record of a process."""
    return ["hello", incarnation.number, incarnation.workers, process]


def announce(store: Store, workers: int, processes: int | None = None) -> Incarnation:
    """Stop the incarnation before, and begin the next one; return it. `processes`: by default one for each
    of the workers.

    Raises `StoreError` if the store cannot be used, or is damaged; `FencedError` if another process has
    announced a later incarnation meanwhile.
    """
    with store_errors(store):
        cluster = _cluster_of(store)
        number = _put_fence(store)
        bases = KeptBases(store)
        logs = _logs_before(store, number, cluster, bases)
        begun = Incarnation(number, cluster, workers, processes or workers, logs, bases.newest.number)
        store.put_new(begin_path(number), _begin_text(begun))
        if store.exists(fence_path(number + 1)):
            raise FencedError(
                f"incarnation {number + 1} of the durable cluster in {store.name} was announced while "
                f"incarnation {number} began: two programs start this cluster at the same time; start one"
            )
        return begun


def joined(store: Store, incarnation: int) -> Incarnation:
    """Return an incarnation that another process has announced."""
    with store_errors(store):
        cluster = _cluster_of(store)
        begun = _read_begin(store, incarnation)
    if begun is None:
        raise StoreError(
            f"incarnation {incarnation} has no `begin` in the store {store.name}: announce it first"
        )
    if begun.cluster != cluster:
        raise _is_foreign(store, begin_path(incarnation))
    return begun


def note_hello(store: Store, incarnation: int) -> None:
    """Put the file that says that process 0 has synced its `hello`."""
    with store_errors(store):
        store.put_new(hello_path(incarnation), _text({}))


def read_log(store: Store, log: OldLog) -> Iterator[Record]:
    """Yield the records that count of an old log, in order, without headers and `hello`.

    Raises `StoreError` where a segment is damaged.
    """
    for path, end in log.segments:
        for record in islice(read_segment(store, path, end), 1, None):
            if record.head[0] != "hello":
                yield record


def read_segment(store: Store, path: str, end: int) -> Iterator[Record]:
    """Yield the records in the first `end` bytes of a segment, its header first; raise `StoreError` if it is
    damaged.
    """
    with store_errors(store):
        data = _read(store, path, end)
    yield from records_in(data, f"{store.name}/{path}", end, False)


# The files in `members`.


def _cluster_of(store: Store) -> str:
    """Return the identity of the cluster in a store. A new store gets one; if its file is lost, the newest
    `begin` has it.
    """
    if not store.exists(_CLUSTER):
        begun = _read_begin(store, max(_numbers(store, _BEGIN), default=0))
        store.put_new(_CLUSTER, _text({"cluster": uuid4().hex if begun is None else begun.cluster}))
    return str(_json(store, _CLUSTER)["cluster"])


def _put_fence(store: Store) -> int:
    """Put the fence of the next incarnation, and return its number."""
    number = max([*_numbers(store, _FENCE), *_numbers(store, _BEGIN)], default=0) + 1
    fence = {"incarnation": number, "host": socket.gethostname(), "pid": os.getpid()}
    while not store.put_new(fence_path(number), _text(fence)):
        number += 1
        fence["incarnation"] = number
    return number


def _numbers(store: Store, pattern: re.Pattern[str]) -> list[int]:
    return [int(match[1]) for name in store.list("members") if (match := pattern.fullmatch(name))]


def _begin_text(begun: Incarnation) -> bytes:
    logs = [[log.incarnation, log.process, log.workers, log.segments] for log in begun.logs]
    values = {
        "cluster": begun.cluster,
        "incarnation": begun.number,
        "workers": begun.workers,
        "processes": begun.processes,
        "base": begun.base,
        "logs": logs,
    }
    return _text(values)


def _read_begin(store: Store, number: int) -> Incarnation | None:
    path = begin_path(number)
    if not store.exists(path):
        return None
    values = _json(store, path)
    cluster, there, workers, processes, logs, base = (
        values.get(key) for key in ("cluster", "incarnation", "workers", "processes", "logs", "base")
    )
    numbers = (workers, processes, base)
    if there != number or not (all(isinstance(each, int) for each in numbers) and isinstance(logs, list)):
        raise _is_damaged(store, path)
    assert isinstance(workers, int) and isinstance(processes, int) and isinstance(base, int)
    old = [
        OldLog(incarnation, process, workers_then, [(segment, end) for segment, end in segments])
        for incarnation, process, workers_then, segments in logs
    ]
    return Incarnation(number, str(cluster), workers, processes, old, base)


def _text(values: Mapping[str, object]) -> bytes:
    """Return the content of a file that has these values."""
    crc = crc32(json.dumps(values).encode())
    return json.dumps({"format": FORMAT, "crc": crc, **values}).encode()


def _json(store: Store, path: str) -> dict[str, object]:
    """Return the values in a file; `StoreError` if it is damaged, or of another format."""
    data = store.read(path)
    try:
        values = json.loads(bytes(data or b""))
    except ValueError as error:
        raise _is_damaged(store, path) from error
    if not isinstance(values, dict) or "format" not in values:
        raise _is_damaged(store, path)
    number, crc = values.pop("format"), values.pop("crc", None)
    if number != FORMAT:
        raise _is_of_another_format(f"{store.name}/{path}", number)
    is_of_before = crc is None and set(values) in _WITHOUT_CRC
    if not is_of_before and crc32(json.dumps(values).encode()) != crc:
        raise _is_damaged(store, path)
    return values


# The logs.


def newest(store: Store) -> Incarnation | None:
    """Return the newest incarnation, with all logs that count after it, as the next one would read them; None
    if there is none. Writes nothing; the incarnation may be at work.
    """
    with store_errors(store):
        begun = _numbers(store, _BEGIN)
        present = _read_begin(store, max(begun)) if begun else None
        if present is None:
            return None
        bases = KeptBases(store)
        logs = _needed([*present.logs, *_logs_of(store, present, bases)], bases)
        return replace(present, logs=logs, base=bases.newest.number)


def begun(store: Store) -> list[int]:
    """Return the numbers of the incarnations whose `begin` is there, ascending."""
    with store_errors(store):
        return sorted(_numbers(store, _BEGIN))


def newest_fence(store: Store) -> int:
    """Return the number of the last incarnation that was announced; 0: none was."""
    with store_errors(store):
        return max(_numbers(store, _FENCE), default=0)


def _logs_before(store: Store, number: int, cluster: str, bases: KeptBases) -> list[OldLog]:
    """Return what counts for incarnation `number`, whose fence stands, without what no base needs."""
    begun = [other for other in _numbers(store, _BEGIN) if other < number]
    _check_begun(store, max(begun, default=0), number, cluster, bases)
    if not begun:
        return []
    before = _read_begin(store, max(begun))
    assert before is not None, "it was listed, and nobody removes the newest one"
    if before.cluster != cluster:
        raise _is_foreign(store, begin_path(before.number))
    own = [_with_copy(store, log, number) for log in _logs_of(store, before, bases)]
    return _needed([*before.logs, *own], bases)


def _needed(logs: Sequence[OldLog], bases: KeptBases) -> list[OldLog]:
    """Return the logs without the segments that no base needs."""
    needed = [replace(log, segments=[each for each in log.segments if bases.needs(each[0])]) for log in logs]
    return [log for log in needed if log.segments]


def _with_copy(store: Store, log: OldLog, number: int) -> OldLog:
    """Return a log whose last segment is a durable copy of what counts of it."""
    *others, (path, end) = log.segments
    copy = f"{path}.{number:06}"
    data = _read(store, path)
    if torn := len(data) - end:
        _log.warning(
            "%s/%s ends with %d bytes that are no whole record, as a process leaves them that is killed "
            "while it writes: no call has returned for them, and they count for nothing",
            store.name, path, torn,
        )  # fmt: skip
    store.put_new(copy, bytes(data[:end]))
    return replace(log, segments=[*others, (copy, end)])


def _logs_of(store: Store, old: Incarnation, bases: KeptBases) -> list[OldLog]:
    """Return the logs of an incarnation, as far as they are whole and may be needed; `StoreError` if one is
    lost.
    """
    numbers: dict[int, list[int]] = {process: [] for process in range(old.processes)}
    numbers |= _segments_of(store, old.number)
    logs = []
    silent = []
    has_more = False
    for process in sorted(numbers):
        log, has_records = _log_of(store, old, process, sorted(numbers[process]), bases)
        has_more |= has_records
        if log is None:
            silent.append(process)
        else:
            logs.append(log)
    if silent and (has_more or (silent[0] == 0 and store.exists(hello_path(old.number)))):
        raise StoreError(
            f"the log of process {silent[0]} of incarnation {old.number} is lost: {store.name}/"
            f"{segment_path(old.number, silent[0], 0)} is missing, or has no whole record, and had "
            f"one. {_ADVICE}"
        )
    return logs


def _check_begun(store: Store, newest: int, number: int, cluster: str, bases: KeptBases) -> None:
    """Raise `StoreError` if a `begin` is lost: that of an incarnation between the newest one that has a
    `begin` and `number`, if it has records; or that of one whose logs a base stands for.
    """
    folded = max([incarnation for incarnation, _ in bases.newest.covered], default=0)
    if folded > newest:
        raise StoreError(
            f"{store.name}/{begin_path(folded)} is missing, as are those after it, and base "
            f"{bases.newest.number} stands for logs of incarnation {folded}. {_ADVICE}"
        )
    for lost in range(newest + 1, number + 1):
        old = Incarnation(lost, cluster, 1, 1, [])
        for process, numbers in _segments_of(store, lost).items():
            _, has_records = _log_of(store, old, process, sorted(numbers), bases)
            # Looked for once more: the incarnation may have put it since, too late to do harm.
            if has_records and not store.exists(begin_path(lost)):
                raise StoreError(
                    f"{store.name}/{begin_path(lost)} is missing, and {log_folder(lost)} has records that "
                    f"count by it. {_ADVICE}"
                )


def _segments_of(store: Store, incarnation: int) -> dict[int, list[int]]:
    """Return the numbers of the segments in the folder of an incarnation, by process."""
    numbers: dict[int, list[int]] = {}
    for name in store.list(log_folder(incarnation)):
        if match := _SEGMENT.fullmatch(name):
            numbers.setdefault(int(match[1]), []).append(int(match[2]))
    return numbers


def _log_of(
    store: Store, old: Incarnation, process: int, numbers: Sequence[int], bases: KeptBases
) -> tuple[OldLog | None, bool]:
    """Return the log of a process, None without a whole `hello`, and whether it has records beside that.

    The last segment with a whole header says how many bytes count of the segment before it, and so on back to
    the first one, or the first one that may be needed. A segment that none of these names was given up, and
    its records were written again.
    """
    segments: list[tuple[str, int]] = []
    following = _last_segment(store, old, process, numbers)
    covered = bases.covered(old.number, process)
    if covered >= 0 and (following is None or following[0] <= covered):
        raise StoreError(
            f"{store.name}/{segment_path(old.number, process, covered + 1)} is lost: base "
            f"{bases.newest.number} stands for the segments before it. {_ADVICE}"
        )
    while following is not None:
        number, end = following
        path = segment_path(old.number, process, number)
        name = f"{store.name}/{path}"
        opening = list(islice(records_in(_read(store, path, _OPENING_BYTES), name, None, True), 2))
        if not opening:
            raise StoreError(f"{name} is damaged: its header is not as it was written. {_ADVICE}")
        following = _check_header(opening[0], name, (old.cluster, old.number, process, number))
        segments.insert(0, (path, end))
        if following is not None and following[0] <= covered:
            path = segment_path(old.number, process, following[0])
            if not bases.needs(path):
                pinned = [each for each in bases.pinned_of(old.number, process) if each not in segments]
                return OldLog(old.number, process, old.workers, [*pinned, *segments]), True
        if following is None and end > opening[0].end:
            hello = opening[-1]
            if hello.head[0] != "hello":
                raise StoreError(f"{name} is damaged: there is no `hello` behind its header. {_ADVICE}")
            return OldLog(old.number, process, old.workers, segments), len(segments) > 1 or end > hello.end
    return None, False


def _last_segment(
    store: Store, old: Incarnation, process: int, numbers: Sequence[int]
) -> tuple[int, int] | None:
    """Return the last segment with a whole header, and where it ends; None if there is none."""
    for number in reversed(numbers):
        path = segment_path(old.number, process, number)
        end = 0
        for record in records_in(_read(store, path), f"{store.name}/{path}", None, True):
            end = record.end
        if end:
            return number, end
    return None


def _check_header(record: Record, name: str, of: tuple[str, int, int, int]) -> tuple[int, int] | None:
    """Return which segment is before that with this header, and how many of its bytes count."""
    kind, number, *values = record.head
    if kind != "segment":
        raise StoreError(f"{name} is damaged: it begins with another record than a header. {_ADVICE}")
    if number != FORMAT:
        raise _is_of_another_format(name, number)
    *there, _, before = values
    if tuple(there) != of:
        raise StoreError(f"{name} belongs to another log, {there}, not {list(of)}. {_ADVICE}")
    if not isinstance(before, list):
        return None
    number_before, end = before
    return number_before, end


def _read(store: Store, path: str, end: int | None = None) -> memoryview:
    data = store.read(path, end)
    if data is None:
        raise StoreError(f"{store.name}/{path} is missing. {_ADVICE}")
    return data


def _is_damaged(store: Store, path: str) -> StoreError:
    advice = "Remove it: it is made again from the other files" if path == _CLUSTER else _ADVICE
    return StoreError(f"{store.name}/{path} is damaged. {advice}")


def _is_foreign(store: Store, path: str) -> StoreError:
    return StoreError(f"{store.name}/{path} belongs to another cluster than {_CLUSTER} there. {_ADVICE}")


def _is_of_another_format(name: str, number: object) -> StoreError:
    return StoreError(
        f"{name} has format {number}, and this release reads format {FORMAT}: start the cluster with the "
        "release that wrote it, or with another folder"
    )
