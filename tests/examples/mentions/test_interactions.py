"""read_interactions: a file of timed interactions becomes a DataFrame, or one clear error.

form_*     what a line may look like
twin_*     Spark and `parse_line` accept the same lines
kind_*     choosing one kind
error_*    what is wrong, in which file and line, and how to mend it
real_*     the data sets, where they are on this machine: rows of the windows in their READMEs
"""

from __future__ import annotations

import gzip
import re
import shutil
from itertools import accumulate
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from examples.mentions.interactions import Interactions, parse_line, read_interactions
from examples.mentions.mention_stream import generate
from timely.spark.errors import InputFormatError
from timely.spark.windows import SlidingWindow

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
HIGGS = DATA / "higgs-activity" / "higgs-activity_time.txt.gz"
GOOD = "1 2 100 MT\n3 4 101 RT\n3 4 101 RT\n5 5 99 MT\n"
DAY_S = 86_400


def rows_of(interactions: Interactions) -> list[tuple[int, int, int]]:
    return sorted((row[0], row[1], row[2]) for row in interactions.rows.collect())


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "# mentions\n\n  1 2 100 MT\n3\t4\t101\tRT  \n3  4 \t 101 RT\r\n5 5 99 MT",
        "+1 2 100 MT\r\n03 4 101 RT\r\n#5 6\r\n3 4 101 RT\r\n5 5 0099 MT\r\n",
        "\ufeff1 2 100 MT\n3 4 101 RT\n3 4 101 RT\n5 5 99 MT",
        "\ufeff# a mark in front of a comment\r1 2 100 MT\r3 4 101 RT\r\r3 4 101 RT\r5 5 99 MT\r",
        " \t \n\t1 2 100 \t\n3 4 101 \u2028\u00e9\n3 4 101 \ufffd\n#\x00\x01\n5 5 " + "0" * 40 + "99\n\n\n",
    ],
)
def test_form_blanks_comments_and_line_ends_do_not_matter(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    for file, content in (("plain.txt", text.encode()), ("packed.txt.gz", gzip.compress(text.encode()))):
        (tmp_path / file).write_bytes(content)
        found = read_interactions(spark, tmp_path / file)
        assert rows_of(found) == [(1, 2, 100), (3, 4, 101), (3, 4, 101), (5, 5, 99)]
        assert (found.first_time, found.last_time, found.count, found.total) == (99, 101, 4, 4)
        assert found.rows.dtypes == [("source", "bigint"), ("target", "bigint"), ("time", "bigint")]


def test_form_the_kind_may_be_left_out_and_ids_may_be_as_large_as_63_bits(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "a file, [odd]*{name}?.txt"
    file.write_text(f"{2**63 - 1} 0 5\n1 2 6 x\n")
    assert rows_of(read_interactions(spark, str(file))) == [(1, 2, 6), (2**63 - 1, 0, 5)]


MALFORMED = {
    "1 2": "it has 2 fields, not 3 or 4",
    "7": "it has 1 field, not 3 or 4",
    "1 2 3 MT 5": "it has 5 fields, not 3 or 4",
    "-5 2 100 MT": "the source -5 is negative",
    "5 -2 100 MT": "the target -2 is negative",
    "5 2 -100": "the time -100 is negative",
    "null 2 100 MT": "the source 'null' is not a whole number",
    "1 \\N 100 MT": "the target '\\\\N' is not a whole number",
    "1 2 12.5 MT": "the time '12.5' is not a whole number",
    "1 2 1e3 MT": "the time '1e3' is not a whole number",
    "1,2,100,MT": "it has 1 field, not 3 or 4",
    "٣ 2 100": "the source '٣' is not a whole number",
    f"{2**63} 2 100": f"the source {2**63} is beyond {2**63 - 1}",
    "MT 1 2 100": "the source 'MT' is not a whole number",
    "1_000 2 100": "the source '1_000' is not a whole number",
    "+-1 2 100": "the source '+-1' is not a whole number",
    "+ 2 100": "the source '+' is not a whole number",
    "-0 2 100": "the source -0 is negative",
    "0x1 2 100": "the source '0x1' is not a whole number",
    "1L 2 100": "the source '1L' is not a whole number",
    "1 2 100. MT": "the time '100.' is not a whole number",
    "1\u00a02 100": "it has 2 fields, not 3 or 4",
    "1\u00a0 2 100": r"the source '1\xa0' is not a whole number",
    "1 2 100\u0085": r"the time '100\x85' is not a whole number",
    "1 2 100\u2028": r"the time '100\u2028' is not a whole number",
    "1\ufeff 2 100": r"the source '1\ufeff' is not a whole number",
    "1 2 \uff11\uff10": "the time '\uff11\uff10' is not a whole number",
    f"1 2 {10**30}": f"the time {10**30} is beyond {2**63 - 1}",
    **{
        text: f"it has the control character {ord(character):#04x}"
        for character in "\x00\x01\x0b\x0c\x1a\x1b\x1c\x1f\x7f"
        for text in (
            f"1{character} 2 3",
            f"{character}1 2 3",
            f"1 2 3{character}",
            f"1 2{character}3 4",
            f"1 2 3 M{character}T",
            f"1 2 3 {character}",
        )
    },
}


def test_twin_every_malformed_line_is_malformed_for_spark_too(spark: SparkSession, tmp_path: Path) -> None:
    for text, reason in MALFORMED.items():
        with pytest.raises(ValueError, match=re.escape(reason)):
            parse_line(text)
    file = tmp_path / "all.txt"
    file.write_text(GOOD + "".join(f"{text}\n" for text in MALFORMED), newline="")
    with pytest.raises(InputFormatError, match=f"{len(MALFORMED) - 1} more after it are malformed too"):
        read_interactions(spark, file)


def test_error_of_a_line_behind_a_byte_order_mark_is_counted_as_editors_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "marked.txt").write_text("\ufeff1 2 100\r\n\r\n1\0 2 3\r\n")
    with pytest.raises(
        InputFormatError, match=r"line 3: it has the control character 0x00\.\n  3 \| 1\ufffd 2 3\n"
    ):
        read_interactions(spark, tmp_path / "marked.txt")


@pytest.mark.parametrize("name", ["_x.txt", ".x.txt", "_x=1.txt", "x.txt._COPYING_"])
def test_error_of_a_name_that_spark_passes_over_says_why(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(GOOD)
    with pytest.raises(InputFormatError, match="has a name that Spark passes over"):
        read_interactions(spark, tmp_path / name)
    (tmp_path / "link.txt").symlink_to(tmp_path / name)
    assert read_interactions(spark, tmp_path / "link.txt").total == 4, "the mend that is proposed is one"
    hidden = tmp_path / "_folder" / ".deeper"
    hidden.mkdir(parents=True)
    assert read_interactions(spark, Path(shutil.copy(tmp_path / name, hidden / "x.txt"))).total == 4


def test_error_of_a_malformed_line_names_the_file_the_line_its_text_and_the_mend(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "mentions.txt.gz"
    file.write_bytes(gzip.compress(b"# by hand\n" + GOOD.encode() + b"\n-5 2 100 MT\n6 7 101 MT\n"))
    with pytest.raises(InputFormatError) as raised:
        read_interactions(spark, file, kind="MT")
    assert str(raised.value) == (
        f"{file}, line 7: the source -5 is negative.\n"
        "  7 | -5 2 100 MT\n"
        "Expected: source target unix_seconds [kind], separated by spaces or tabs, "
        f"whole numbers from 0 to {2**63 - 1}.\n"
        "Mend the line, or begin it with # to leave it out."
    )


@pytest.mark.parametrize(
    "name", ["missing.txt", "missing.txt.gz", "folder", "empty.txt", "comments.txt", "hidden.txt", "*.txt"]
)
def test_error_of_a_file_that_cannot_be_read_says_which_and_why(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.txt").touch()
    (tmp_path / "comments.txt").write_text("# nothing\n\n")
    (tmp_path / "hidden.txt").write_bytes(gzip.compress(GOOD.encode()))
    reasons = {
        "missing.txt": "there is no file",
        "missing.txt.gz": "there is no file",
        "*.txt": "Give the path of one file, not a pattern",
        "folder": "is not a file",
        "empty.txt": "is empty",
        "comments.txt": "holds no interactions: it has only comments and empty lines",
        "hidden.txt": "is compressed with gzip, but its name does not end in .gz",
    }
    with pytest.raises(InputFormatError) as raised:
        read_interactions(spark, tmp_path / name)
    assert reasons[name] in str(raised.value)
    assert str(tmp_path / name) in str(raised.value)


def test_error_of_a_damaged_archive_says_after_which_line(spark: SparkSession, tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"{n} {n * 7919 % 1000} {n} MT\n" for n in range(20_000)).encode())
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputFormatError, match=r"cut\.gz is damaged after line \d\d+"):
        read_interactions(spark, tmp_path / "cut.gz")
    (tmp_path / "plain.gz").write_text(GOOD)
    with pytest.raises(InputFormatError, match="is not compressed with gzip, but its name ends in .gz"):
        read_interactions(spark, tmp_path / "plain.gz")


def test_kind_filters_rows_but_not_the_first_and_last_time(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "mentions.txt"
    file.write_text(GOOD)
    found = read_interactions(spark, file, kind="RT")
    assert rows_of(found) == [(3, 4, 101), (3, 4, 101)]
    assert (found.first_time, found.last_time, found.count, found.total) == (99, 101, 2, 4)


def test_kind_that_does_not_occur_is_an_error_with_those_that_do(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "mentions.txt"
    file.write_text(GOOD)
    with pytest.raises(InputFormatError, match=r"no interaction of kind 'mt'\. Kinds in it: MT, RT\."):
        read_interactions(spark, file, kind="mt")
    file.write_text("1 2 3\n")
    with pytest.raises(InputFormatError, match="its lines have three fields"):
        read_interactions(spark, file, kind="MT")


def test_form_what_the_generator_writes_is_read_back(spark: SparkSession, tmp_path: Path) -> None:
    stream = generate(rows=500, seed=3)
    found = read_interactions(spark, stream.write(tmp_path / "made.txt.gz"))
    columns = zip(stream.source.tolist(), stream.target.tolist(), stream.time.tolist(), strict=True)
    assert rows_of(found) == sorted(columns)


@pytest.mark.skipif(not HIGGS.exists(), reason="the data set is not on this machine")
@pytest.mark.parametrize(
    ("kind", "rows_in_window"),
    [
        (None, [4_179, 16_107, 33_497, 356_539, 98_520, 37_428, 16_797]),
        ("MT", [1_756, 5_611, 11_854, 101_331, 29_291, 14_780, 6_613]),
    ],
)
def test_real_windows_of_higgs_have_the_rows_of_its_readme(
    spark: SparkSession, kind: str | None, rows_in_window: list[int]
) -> None:
    found = read_interactions(spark, HIGGS, kind)
    assert (found.total, found.first_time, found.last_time) == (563_069, 1_341_100_972, 1_341_705_593)
    window = SlidingWindow(found.first_time, found.last_time, window=DAY_S, slide=DAY_S)
    assert window.end(window.epochs - 1) == 1_341_705_772
    changes = window.changes(found.rows).groupBy("epoch").agg(F.sum("diff")).orderBy("epoch").collect()
    assert list(accumulate(row[1] for row in changes)) == rows_in_window
