"""What is noted of the rows that a job has fed.

fits_*     whether a dataflow has the rows that a run would feed
file_*     what is there after a kill
digests_*  of the rows of Spark
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from timely.spark.epochs import DIGEST_MODULUS, RowsDigest, digest_before, epoch_rows
from timely.spark.errors import OutputError
from timely.spark.once.fed import Fed, joint_digest, summed_digest


def test_fits_what_was_sealed_and_what_was_sent_beyond_that(tmp_path: Path) -> None:
    fed = Fed.read(tmp_path)
    fed.begin("origin", "facts")
    assert fed.fits(0, {0: "a"}) and not fed.fits(1, {0: "a"}), "nobody knows what was sealed"
    fed.note({-1: "", 0: "a", 1: "b"})
    fed.note({1: "b", 2: "c", 3: "d"})
    now = {0: "a", 1: "b", 2: "c", 3: "d", 4: "e"}
    for opened in (2, 3, 4):
        assert fed.fits(opened, now)
    assert not fed.fits(2, {**now, 3: "x"}), "an epoch that was sent, and is not sealed, has other rows"
    assert fed.fits(4, {**now, 2: "x"}), "that of an epoch behind it is of all rows up to there"
    assert not fed.fits(4, {**now, 3: "x"}) and not fed.fits(5, now)
    del now[3]
    assert not fed.fits(3, now), "there are fewer epochs now than were sent"


def test_fits_epochs_that_were_sent_in_a_larger_chunk_before(tmp_path: Path) -> None:
    fed = Fed.read(tmp_path)
    fed.note({0: "a", 1: "b", 2: "c", 3: "d"})
    fed.note({0: "a", 1: "b"})
    assert not fed.fits(1, {0: "a", 1: "b", 2: "c", 3: "x"})


def test_file_is_read_as_it_was_written_and_a_damaged_one_says_nothing(tmp_path: Path) -> None:
    fed = Fed.read(tmp_path)
    assert fed == Fed(tmp_path)
    fed.begin("origin", "facts")
    fed.note({7: "a", 8: "b"})
    assert Fed.read(tmp_path) == Fed(tmp_path, "origin", "facts", {7: "a", 8: "b"})
    file = tmp_path / "_fed.json"
    whole = file.read_text()
    for text in (whole[:-2], "[]", "{}", "null", whole.replace('"7"', '"x"'), ""):
        file.write_text(text)
        assert Fed.read(tmp_path) == Fed(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["_fed.json"]


def test_digests_add_up() -> None:
    assert summed_digest((1, 2), (3, DIGEST_MODULUS - 4)) == (4, DIGEST_MODULUS - 2)
    assert summed_digest((1, DIGEST_MODULUS - 1), (0, 3)) == (1, 2)
    one = joint_digest({"a": (1, 2), "b": (3, 4)})
    assert one == joint_digest({"b": (3, 4), "a": (1, 2)}) != joint_digest({"a": (3, 4), "b": (1, 2)})


def digests_of(
    spark: SparkSession, rows: Sequence[tuple[object, ...]], writers: int = 2
) -> dict[int, RowsDigest]:
    frame = spark.createDataFrame(rows, "n: int, text: string, epoch: bigint, diff: bigint")
    nullable = {"n": True, "text": True}
    laid = epoch_rows(frame, diff="diff", writers=writers, nullable=nullable, has_digests=True)
    laid.release()
    last = max(laid.digests)
    total: RowsDigest = (0, 0)
    for digest in laid.digests.values():
        total = summed_digest(total, digest)
    assert digest_before(last + 1, frame, diff="diff") == total
    return dict(laid.digests)


def test_digests_are_those_of_the_rows_and_of_nothing_else(spark: SparkSession) -> None:
    rows: list[tuple[object, ...]] = [(1, "a", 0, 1), (None, "b", 0, 2), (2, None, 3, -1)]
    first = digests_of(spark, rows)
    assert set(first) == {0, 3} and first[0] != first[3]
    assert digests_of(spark, [*rows[::-1], (9, "z", 3, 1), (9, "z", 3, -1)], writers=3) == first
    assert digests_of(spark, [rows[0], (None, "b", 0, 1), (None, "b", 0, 1), rows[2]]) == first
    for other in ((1, "b", 0, 1), (1, "a", 0, 2), (None, "a", 0, 1), (1, None, 0, 1)):
        assert digests_of(spark, [other, *rows[1:]])[0] != first[0]


def test_digests_of_diffs_of_any_size_add_up(spark: SparkSession) -> None:
    many = [(1, "a", 0, 1 << 62), (1, "a", 0, -(1 << 62) + 1), (2, "b", 0, -1), (2, "b", 1, 3)]
    assert digests_of(spark, many) == digests_of(spark, [(1, "a", 0, 1), (2, "b", 0, -1), (2, "b", 1, 3)])


def test_file_that_cannot_be_written_ends_the_job_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed = Fed.read(tmp_path)
    fed.begin("origin", "facts")

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=f"{tmp_path} cannot be written: No space left .* make room"):
        fed.note({0: "a"})
    assert Fed.read(tmp_path) == Fed(tmp_path, "origin", "facts"), "the file is whole"


def test_file_has_its_name_on_disk_before_rows_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bool]] = []
    sync = os.fsync

    def note(file: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(file).st_mode), (tmp_path / "_fed.json").exists()))
        sync(file)

    monkeypatch.setattr(os, "fsync", note)
    Fed.read(tmp_path).begin("origin", "facts")
    assert synced == [(False, False), (True, True)]
