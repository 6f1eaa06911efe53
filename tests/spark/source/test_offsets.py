"""Where a stream is, and whether it can go on there.

told_*       what Spark keeps, and hands back
goes_on_*    in the same output, and where the user says that it may
refused_*    in another one, or in front of what there is
"""

from __future__ import annotations

import pytest

from timely.errors import MisuseError
from timely.spark.source.offsets import Offset, check_offset

OUTPUT = "output 'rows' of dataflow 0"


def check(offset: Offset, there: Offset, *, may_be_another: bool = False, starting: int = -1) -> None:
    check_offset(offset, there, OUTPUT, may_be_another=may_be_another, starting=starting)


def test_told_is_what_comes_back_and_what_was_told_once_is_understood() -> None:
    offset = Offset(7, "a/0")
    assert offset.as_dict() == {"epoch": 7, "origin": "a/0"}
    assert Offset.of(offset.as_dict()) == offset
    assert Offset.of({"epoch": 7}) == Offset(7)
    first = Offset(3, "a/0", 3)
    assert first.as_dict() == {"epoch": 3, "origin": "a/0", "began": 3}
    assert Offset.of(first.as_dict()) == first


def test_told_is_with_the_end_of_the_first_batch_where_that_began() -> None:
    first = Offset(3, "a/0", 3)
    end = first.until(5, "a/0")
    assert end == Offset(5, "a/0", 3) and end.until(6, "a/0") == Offset(6, "a/0")
    assert Offset(4, "a/0", 4).start_of(end) == Offset(3, "a/0", 4), "asked again it began elsewhere"
    assert end.start_of(Offset(6, "a/0")) == end
    assert Offset(0).until(5, "a/0") == Offset(5, "a/0")


@pytest.mark.parametrize(
    "told",
    [7, [], {}, {"epoch": "7"}, {"epoch": True}, {"epoch": 1, "origin": 2}, {"epoch": 1, "began": "0"}],
)
def test_told_by_another_source_is_no_place_in_an_output(told: object) -> None:
    with pytest.raises(MisuseError, match="is no place in an output: .* give the query a new checkpoint"):
        Offset.of(told)


@pytest.mark.parametrize("epoch", [-1, 0, 2, 9])
def test_goes_on_in_the_same_output_wherever_it_is(epoch: int) -> None:
    """It may be ahead: told to begin at an epoch to come."""
    check(Offset(epoch, "a/0"), Offset(2, "a/0"))


@pytest.mark.parametrize(("epoch", "starting"), [(0, -1), (2, -1), (9, 9)])
def test_goes_on_without_an_origin_where_epochs_are_complete_or_where_it_began(
    epoch: int, starting: int
) -> None:
    check(Offset(epoch), Offset(2, "a/0"), starting=starting)


def test_goes_on_in_another_output_which_the_user_says_is_fed_the_same_and_which_is_as_far() -> None:
    check(Offset(2, "a/0"), Offset(2, "b/0"), may_be_another=True)
    with pytest.raises(MisuseError, match=r"before epoch 3, and that is complete before epoch 2 only"):
        check(Offset(3, "a/0"), Offset(2, "b/0"), may_be_another=True, starting=9)


@pytest.mark.parametrize("there", [0, 7])
def test_goes_on_in_another_output_where_nothing_was_read_of_the_first(there: int) -> None:
    check(Offset(0, "a/0"), Offset(there, "b/0"))


@pytest.mark.parametrize("there", [0, 7, 9])
def test_refused_is_another_output_however_far_it_is(there: int) -> None:
    with pytest.raises(
        MisuseError,
        match=rf"has read {OUTPUT} before epoch 7 of a dataflow that is gone. .* complete before epoch "
        rf"{there}\. .*delete the folder of .* feed it up to epoch 7, .*'restarted', 'allow'",
    ):
        check(Offset(7, "a/0"), Offset(there, "b/0"), starting=7)


def test_refused_without_an_origin_is_what_is_ahead() -> None:
    with pytest.raises(
        MisuseError, match=r"again up to epoch 7, and start the query then; or, .*delete the f"
    ):
        check(Offset(7), Offset(3, "b/0"), starting=4)
