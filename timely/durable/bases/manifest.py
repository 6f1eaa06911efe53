"""A base: what it has of each dataflow, and the files in which it is.

One base has all dataflows of a store, because a log has the rows of all of them: once a base is there, whole
segments can go. It stands for the logs up to certain segments (`coverage.py`). Of each input it has

    the rows      those up to the epoch `summed` as one change, the others with their own epochs
    the names     of all deliveries that must not count twice

and of each output the changes that somebody may still read. Answers are right from the epoch `right_from` on.

Paths: `base/000012.manifest`, and its files `base/000012-UNIQUE-…`. The manifest comes last, by `put_new`, so
there is a whole base under a number, or none. Files never change; a later base may use those of an earlier
one again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast
from zlib import crc32

import msgpack

from ...errors import StoreError
from ...wire.batch import UNPACK_ERRORS
from ..digests import DigestNote
from ..records import FORMAT, TEXT_ERRORS
from ..store import Store
from .rows_form import BucketRange

__all__ = [
    "BASES_KEPT_DEFAULT",
    "BASE_FOLDER",
    "Base",
    "BaseFile",
    "FlowBase",
    "InputBase",
    "KeptBases",
    "OutputBase",
    "QueryBase",
    "SegmentName",
    "advice_for",
    "base_numbers",
    "file_path",
    "manifest_path",
    "read_base",
    "write_base",
]

BASES_KEPT_DEFAULT: Final = 2
"""So many bases are kept, and the logs since the oldest of them: if a file of the newest is damaged, the one
before and the logs have the same."""

_PARTS_OF_FLOW: Final = 9
"""How many a base of an older release has of a dataflow, which has no sources."""

BASE_FOLDER: Final = "base"
_MANIFEST: Final = re.compile(r"(\d{6,})\.manifest")
_SEGMENT: Final = re.compile(r"log/(\d{6,})/p(\d+)-(\d{6,})\.log(?:\.\d{6,})?")


class SegmentName(NamedTuple):
    """A segment of a log."""

    incarnation: int
    process: int
    number: int

    @classmethod
    def of(cls, path: str) -> SegmentName:
        """Return which segment is in this file, or has its copy there."""
        match = _SEGMENT.fullmatch(path)
        assert match is not None, path
        return cls(*map(int, match.groups()))


class BaseFile(NamedTuple):
    """A file of a base: its path, size, CRC-32, number of rows, the buckets that its rows are of, and the
    first and last of their epochs.

    `is_raw`: records with batches as they were logged, and not Parquet.
    """

    path: str
    size_bytes: int
    crc: int
    rows: int
    buckets: BucketRange
    epochs: tuple[int, int]
    is_raw: bool = False


class QueryBase(NamedTuple):
    """The last committed batch of a query, the number of its rows, and the stream that it came from."""

    query: str
    batch: int
    rows: int
    stream: str | None


@dataclass
class InputBase:
    """What a base has of one input.

    names     writer, last epoch and intervals of deliveries for whichever epoch was open
    appends   writer, number and epochs of deliveries for epochs that were not sealed, or were sealed last
    calls     how many calls have their order, where that counts
    """

    files: list[BaseFile] = field(default_factory=list)
    names: list[list[object]] = field(default_factory=list)
    appends: list[tuple[str, int, list[int]]] = field(default_factory=list)
    queries: list[QueryBase] = field(default_factory=list)
    calls: int = 0

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return sum(file.rows for file in self.files)


@dataclass
class OutputBase:
    """What a base has of one output: its changes of the epochs `kept_from` ≤ epoch < `kept_before`."""

    files: list[BaseFile] = field(default_factory=list)
    kept_from: int = 0
    kept_before: int = 0


@dataclass
class FlowBase:
    """What a base has of one dataflow.

    facts       as `past.PastFlow` lists them
    sealed      the last sealed epoch
    closed      its closed inputs
    summed      the epoch up to which rows are one change; -1: there is none
    right_from  the first epoch at which its answers are as they were; -1: all are
    places      output, reader, epoch and patience of each reader, and when it was heard of
    digests     of what each output has shown, of epochs behind `summed`
    sources     how far each source has come: see `positions.SourcePositions`
    sealed_alone  the last sealed epoch of inputs that were sealed by themselves
    """

    facts: list[object]
    sealed: int = -1
    closed: list[str] = field(default_factory=list)
    summed: int = -1
    right_from: int = -1
    inputs: dict[str, InputBase] = field(default_factory=dict)
    outputs: dict[str, OutputBase] = field(default_factory=dict)
    places: list[tuple[str, str, int, float, int]] = field(default_factory=list)
    digests: dict[str, list[DigestNote]] = field(default_factory=dict)
    sources: dict[str, list[list[object]]] = field(default_factory=dict)
    sealed_alone: dict[str, int] = field(default_factory=dict)

    def files(self) -> Iterable[BaseFile]:
        """Yield the files of all inputs and outputs."""
        for each in self.inputs.values():
            yield from each.files
        for output in self.outputs.values():
            yield from output.files


@dataclass
class Base:
    """What inputs held when the logs were cut.

    covered   by incarnation and process: the last segment that this base stands for
    pinned    covered segments with parts about which nothing was decided by then: these count if a decision
              behind the cut names them. With each, its file and how many bytes of it count
    gone      why dataflows have ended for good: number, message and classes; of the last that there were
    switches  new versions that have taken the place of others: see `versions.PastSwitch`. Of such a version,
              as long as its answers are not right from its first epoch on, the files of outputs have what
              these held in the old version, too, changes that are forgotten as if of one epoch
    ended_before   all dataflows with lower numbers have ended, unless they are there
    """

    number: int = 0
    flows: dict[int, FlowBase] = field(default_factory=dict)
    covered: dict[tuple[int, int], int] = field(default_factory=dict)
    pinned: dict[SegmentName, tuple[str, int]] = field(default_factory=dict)
    gone: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    next_number: int = 0
    switches: list[list[object]] = field(default_factory=list)
    ended_before: int = 0

    def has_known(self, number: int) -> bool:
        """Return True if the base has a dataflow, or it had ended."""
        return number in self.flows or number in self.gone or number < self.ended_before

    def files(self) -> dict[str, BaseFile]:
        """Return all its files, by path."""
        return {file.path: file for flow in self.flows.values() for file in flow.files()}

    def covers(self, segment: SegmentName) -> bool:
        """Return True if this base stands for a segment."""
        return segment.number <= self.covered.get(segment[:2], -1)

    def needs(self, segment: SegmentName) -> bool:
        """Return True if a restart from this base reads a segment."""
        return not self.covers(segment) or segment in self.pinned

    def pinned_of(self, incarnation: int, process: int) -> list[tuple[str, int]]:
        """Return the files of the pinned segments of a log, and the bytes of each that count."""
        return [file for name, file in sorted(self.pinned.items()) if name[:2] == (incarnation, process)]


def manifest_path(number: int) -> str:
    """Return the path of the manifest of a base."""
    return f"{BASE_FOLDER}/{number:06}.manifest"


def file_path(number: int, unique: str, name: str) -> str:
    """Return the path of a file of a base; `unique` tells folds apart that make the same base."""
    return f"{BASE_FOLDER}/{number:06}-{unique}-{name}"


def base_numbers(store: Store) -> list[int]:
    """Return the numbers of all bases, ascending."""
    return sorted(int(match[1]) for name in store.list(BASE_FOLDER) if (match := _MANIFEST.fullmatch(name)))


def write_base(store: Store, base: Base) -> bool:
    """Put the manifest of a base, whose files are there; return False if there is a base of this number."""
    plain = [
        base.number,
        [[number, *_plain_flow(flow)] for number, flow in base.flows.items()],
        [[*key, number] for key, number in base.covered.items()],
        [[*name, *file] for name, file in sorted(base.pinned.items())],
        [[number, *why] for number, why in base.gone.items()],
        base.next_number,
        base.switches,
        base.ended_before,
    ]
    packed = cast("bytes", msgpack.packb(plain, unicode_errors=TEXT_ERRORS))
    return store.put_new(
        manifest_path(base.number), cast("bytes", msgpack.packb([FORMAT, crc32(packed), packed]))
    )


class KeptBases:
    """The bases of a store that are kept, oldest first, and which segments of logs may be gone for them.

    A segment may be gone if all of them stand for it. As long as there are fewer bases than shall be kept,
    whatever is there counts: if a file of the only base is damaged, all logs together have the same.
    """

    def __init__(self, store: Store) -> None:
        """Raise `StoreError` if the newest base cannot be read; an older one is left out then."""
        self._store = store
        self.bases: list[Base] = []
        numbers = base_numbers(store)[-BASES_KEPT_DEFAULT:]
        for number in numbers:
            try:
                self.bases.append(read_base(store, number))
            except StoreError:
                if number == numbers[-1]:
                    raise

    @property
    def newest(self) -> Base:
        """The newest base; one with the number 0 if there is none."""
        return self.bases[-1] if self.bases else Base()

    def needs(self, path: str) -> bool:
        """Return True if a restart may need a segment."""
        segment = SegmentName.of(path)
        if not self.bases or any(base.needs(segment) for base in self.bases):
            return True
        return len(self.bases) < BASES_KEPT_DEFAULT and self._store.exists(path)

    def covered(self, incarnation: int, process: int) -> int:
        """Return the last segment of a log that all bases stand for; -1: there is none."""
        return min([base.covered.get((incarnation, process), -1) for base in self.bases], default=-1)

    def pinned_of(self, incarnation: int, process: int) -> list[tuple[str, int]]:
        """Return the pinned segments of a log, which are those of the oldest base, with their ends."""
        return self.bases[0].pinned_of(incarnation, process) if self.bases else []


def read_base(store: Store, number: int) -> Base:
    """Return a base. Raise `StoreError` if its manifest is damaged."""
    path = manifest_path(number)
    data = store.read(path)
    try:
        version, crc, packed = msgpack.unpackb(b"" if data is None else data)
        if version != FORMAT:
            raise StoreError(
                f"{store.name}/{path} has format {version}, and this release reads format {FORMAT}: start "
                "the cluster with the release that wrote it, or with another folder"
            )
        if crc32(packed) != crc:
            raise ValueError("its CRC is another one")
        return _base_of(msgpack.unpackb(packed, strict_map_key=False, unicode_errors=TEXT_ERRORS))
    except (*UNPACK_ERRORS, AttributeError) as error:
        raise StoreError(f"{store.name}/{path} is damaged: {error}. {advice_for(store, number)}") from error


def advice_for(store: Store, number: int) -> str:
    """Return what to do if something of a base is damaged."""
    earlier = [other for other in base_numbers(store) if other < number]
    if earlier:
        return (
            f"Base {earlier[-1]} and the logs since then have the same: remove {store.name}/"
            f"{manifest_path(number)} to begin with them, or put a whole copy of the file in its place"
        )
    return (
        "Put a whole copy of the file in its place; without one, what this cluster held cannot be restored: "
        "start it with another folder, and feed it again"
    )


def _plain_flow(flow: FlowBase) -> list[object]:
    inputs = [
        [name, _plain_files(each.files), each.names, each.appends, each.queries, each.calls]
        for name, each in flow.inputs.items()
    ]
    outputs = [
        [name, _plain_files(each.files), each.kept_from, each.kept_before]
        for name, each in flow.outputs.items()
    ]
    return [
        flow.facts,
        flow.sealed,
        flow.closed,
        flow.summed,
        flow.right_from,
        inputs,
        outputs,
        flow.places,
        list(flow.digests.items()),
        list(flow.sources.items()),
        list(flow.sealed_alone.items()),
    ]


def _plain_files(files: Sequence[BaseFile]) -> list[object]:
    return [[*file[:4], list(file.buckets), list(file.epochs), file.is_raw] for file in files]


def _base_of(plain: list[object]) -> Base:
    number, flows, covered, pinned, gone, next_number, switches, *ended_before = plain
    return Base(
        cast("int", number),
        {one[0]: _flow_of(one[1:]) for one in cast("list[list[object]]", flows)},  # type: ignore[misc]
        {
            (incarnation, process): segment
            for incarnation, process, segment in cast("list[list[int]]", covered)
        },
        {
            SegmentName(incarnation, process, segment): (path, end)
            for incarnation, process, segment, path, end in cast(
                "list[tuple[int, int, int, str, int]]", pinned
            )
        },
        {one: (reason, classes) for one, reason, classes in cast("list[tuple[int, str, list[str]]]", gone)},
        cast("int", next_number),
        cast("list[list[object]]", switches),
        cast("int", ended_before[0] if ended_before else 0),
    )


def _flow_of(plain: Sequence[object]) -> FlowBase:
    facts, sealed, closed, summed, right_from, inputs, outputs, places, digests = cast(
        "tuple[list[object], int, list[str], int, int, list[list[object]], list[list[object]], "
        "list[list[object]], list[tuple[str, list[DigestNote]]]]",
        tuple(plain[:_PARTS_OF_FLOW]),
    )
    sources = cast("list[list[tuple[str, list[list[object]]]]]", plain[_PARTS_OF_FLOW:])
    sealed_alone = cast("list[list[tuple[str, int]]]", plain[_PARTS_OF_FLOW + 1 :])
    now = int(time.time())  # for bases that do not say when a reader was heard of
    return FlowBase(
        facts,
        sealed,
        closed,
        summed,
        right_from,
        {cast("str", name): _input_of(each) for name, *each in inputs},
        {cast("str", name): _output_of(each) for name, *each in outputs},
        [cast("tuple[str, str, int, float, int]", (*each, now)[:5]) for each in places],
        dict(digests),
        dict(sources[0]) if sources else {},
        dict(sealed_alone[0]) if sealed_alone else {},
    )


def _input_of(plain: Sequence[object]) -> InputBase:
    files, names, appends, queries, calls = cast(
        "tuple[list[object], list[list[object]], list[list[object]], list[list[object]], int]", plain
    )
    return InputBase(
        _files_of(files),
        names,
        [cast("tuple[str, int, list[int]]", tuple(each)) for each in appends],
        [QueryBase._make(each) for each in queries],
        calls,
    )


def _output_of(plain: Sequence[object]) -> OutputBase:
    files, kept_from, kept_before = cast("tuple[list[object], int, int]", plain)
    return OutputBase(_files_of(files), kept_from, kept_before)


def _files_of(plain: Iterable[object]) -> list[BaseFile]:
    files = []
    for path, size, crc, rows, buckets, (first, last), is_raw in cast(
        "Iterable[tuple[str, int, int, int, list[int], list[int], bool]]", plain
    ):
        files.append(BaseFile(path, size, crc, rows, BucketRange(*buckets), (first, last), is_raw))
    return files
