"""Times that are far off all others are refused by name; pauses of real data are not.

refuses_*   a stray time at either end, with its line and the way out
allows_*    pauses that are long only in epochs, or only in comparison; the data sets
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.mentions.interactions import read_interactions
from examples.mentions.stray_times import GAP_EPOCHS_MAX, refuse_stray_times
from timely.spark.errors import InputFormatError
from timely.spark.windows import SlidingWindow

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
HERE = sorted(
    file
    for name in ("collegemsg", "higgs-activity", "sx-mathoverflow")
    for file in (DATA / name).glob("*.txt.gz")
)
WEEK = [1_341_100_800 + 3_600 * hour for hour in range(168)]


def check(spark: SparkSession, folder: Path, times: list[int], slide: int = 3_600) -> None:
    """Look at a file with these times."""
    file = folder / "times.txt"
    file.write_text("# by hand\n" + "".join(f"1 2 {time} MT\n" for time in times))
    source = read_interactions(spark, file)
    refuse_stray_times(source, SlidingWindow(source.first_time, source.last_time, 86_400, slide))


def test_refuses_a_stray_zero_and_says_in_which_line(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputFormatError) as raised:
        check(spark, tmp_path, [*WEEK[:5], 0, *WEEK[5:]])
    assert str(raised.value) == (
        f"{tmp_path / 'times.txt'}: between the times 0 (1970-01-01 00:00:00) and 1341100800 (2012-07-01 "
        "00:00:00) there is nothing for 372,526 epochs of 3600 s.\n"
        "  1 interaction is before it; the first of them:\n"
        "  7 | 1 2 0 MT\n"
        "If that time is wrong, mend the line, or begin it with # to leave it out; if it is right, say so by "
        "--allow-gap, or use a longer slide."
    )


def test_refuses_stray_times_behind_all_others(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputFormatError, match="  2 interactions are after it.*\n  4 | 1 2 1441100801 MT"):
        check(spark, tmp_path, [*WEEK[:2], 1_441_100_801, *WEEK[2:], 1_441_100_800])
    with pytest.raises(InputFormatError, match=r"253402300800 \(beyond the year 9999\)"):
        check(spark, tmp_path, [253_402_300_800 - 3_600 * 900_000, 253_402_300_800])


@pytest.mark.parametrize(("empty", "refused"), [(GAP_EPOCHS_MAX, False), (GAP_EPOCHS_MAX + 1, True)])
def test_refuses_from_one_epoch_more_than_are_allowed(
    spark: SparkSession, tmp_path: Path, empty: int, refused: bool
) -> None:
    # Times 0 and 1 are in epoch 0; the others `empty` epochs behind it.
    times = [0, 1, 1 + 10 * (empty + 1), 1 + 10 * (empty + 1)]
    if refused:
        with pytest.raises(InputFormatError, match=f"nothing for {empty:,} epochs of 10 s"):
            check(spark, tmp_path, times, slide=10)
    else:
        check(spark, tmp_path, times, slide=10)


def test_allows_a_pause_that_is_not_longer_than_the_rest(spark: SparkSession, tmp_path: Path) -> None:
    half = [0, *range(20_000, 40_001, 10)]
    check(spark, tmp_path, half, slide=10)
    with pytest.raises(InputFormatError, match="nothing for 1,999 epochs"):
        check(spark, tmp_path, [0, *range(20_010, 40_001, 10)], slide=10)


@pytest.mark.parametrize("file", HERE, ids=lambda file: file.parent.name)
@pytest.mark.parametrize("slide", [60, 3_600, 86_400])
def test_allows_the_data_sets_at_any_slide(spark: SparkSession, file: Path, slide: int) -> None:
    source = read_interactions(spark, file)
    try:
        window = SlidingWindow(source.first_time, source.last_time, 86_400, slide)
    except InputFormatError:
        assert (file.parent.name, slide) == ("sx-mathoverflow", 60), (
            "six years of minutes are too many epochs"
        )
        return
    refuse_stray_times(source, window)
