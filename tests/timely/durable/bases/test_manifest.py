"""Manifests: whole, or an error that says what to do.

written_*   what is written comes back
damaged_*   files that have changed
kept_*      which bases count
segment_*   which segments a base stands for
"""

from __future__ import annotations

import pytest
from simulated_store import SimulatedContent, SimulatedStore

from timely.durable.bases.manifest import (
    Base,
    BaseFile,
    FlowBase,
    InputBase,
    KeptBases,
    OutputBase,
    QueryBase,
    SegmentName,
    base_numbers,
    manifest_path,
    read_base,
    write_base,
)
from timely.durable.bases.rows_form import BucketRange
from timely.errors import StoreError

FILE = BaseFile("base/000003-x-0.parquet", 123, 456, 7, BucketRange(0, 4096), (2, 9))
BASE = Base(
    3,
    {
        5: FlowBase(
            ["spec", b"arguments", "key", [1], 2, "print", ["line"], []],
            9,
            ["closed"],
            7,
            8,
            {
                "in": InputBase(
                    [FILE], [["w", 3, [[0, 4]]]], [("e", 1, [9, 10])], [QueryBase("q", 2, 30, None)], 4
                )
            },
            {"out": OutputBase([FILE._replace(is_raw=True)], 3, 9)},
            [("out", "reader", 4, 60.5, 1_795_000_000)],
        )
    },
    {(1, 0): 4, (2, 1): 0},
    {SegmentName(1, 0, 3): ("log/000001/p0-000003.log", 99)},
    {4: ("why", ["UninstalledError"])},
    6,
)


@pytest.fixture
def store() -> SimulatedStore:
    return SimulatedStore()


def test_written_base_comes_back(store: SimulatedStore) -> None:
    assert write_base(store, BASE)
    assert read_base(store, 3) == BASE
    assert not write_base(store, Base(3)), "another fold was faster"
    assert read_base(store, 3) == BASE


def test_written_base_has_names_and_errors_that_are_no_valid_text(store: SimulatedStore) -> None:
    """As the names of files are, which programs give to writers: a log takes them, so a base must, too."""
    name = "file \udc80.csv"
    flow = FlowBase(
        ["", b"", name, [], 0, "print", [name], []], inputs={name: InputBase([], [[name, 0, []]])}
    )
    base = Base(1, {0: flow}, gone={1: (name, [])})
    assert write_base(store, base)
    assert read_base(store, 1) == base


@pytest.mark.parametrize("at", [0, 5, -1])
def test_damaged_manifest_says_which_base_is_left(store: SimulatedStore, at: int) -> None:
    write_base(store, Base(2))
    write_base(store, BASE)
    path = manifest_path(3)
    data = bytearray(store.disk.files[path].durable)
    data[at] ^= 0x40
    store.disk.files[path] = SimulatedContent(bytes(data), bytes(data))
    with pytest.raises(StoreError, match=r"000003.manifest (is damaged: .* Base 2 and the logs|has format)"):
        read_base(store, 3)


def test_damaged_only_manifest_cannot_be_restored(store: SimulatedStore) -> None:
    store.put_new(manifest_path(1), b"nonsense")
    with pytest.raises(StoreError, match="start it with another folder, and feed it again"):
        KeptBases(store)


def test_kept_are_the_newest_that_can_be_read(store: SimulatedStore) -> None:
    assert KeptBases(store).bases == [] and base_numbers(store) == [] and KeptBases(store).newest == Base()
    for number in (1, 4, 12):
        write_base(store, Base(number))
    store.put_new("base/000013-left-over.parquet", b"")
    assert [base.number for base in KeptBases(store).bases] == [4, 12]
    store.disk.files[manifest_path(4)] = SimulatedContent(b"x", b"x")
    assert [base.number for base in KeptBases(store).bases] == [12]


def test_segment_names_are_those_of_files_and_of_copies() -> None:
    assert SegmentName.of("log/000007/p12-000345.log") == (7, 12, 345)
    assert SegmentName.of("log/1000007/p0-000000.log.000008") == (1_000_007, 0, 0)


def test_segment_is_covered_up_to_the_last_one() -> None:
    covered = [number for number in range(7) if BASE.covers(SegmentName(1, 0, number))]
    assert covered == [0, 1, 2, 3, 4]
    assert not BASE.covers(SegmentName(3, 0, 0)), "the base knows nothing of this incarnation"
    assert [number for number in range(7) if BASE.needs(SegmentName(1, 0, number))] == [3, 5, 6]
    assert BASE.pinned_of(1, 0) == [("log/000001/p0-000003.log", 99)] and BASE.pinned_of(1, 1) == []
