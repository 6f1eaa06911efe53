"""Messages count as people do."""

from timely.counted import counted


def test_one_thing_is_no_plural() -> None:
    assert [counted(number, "epoch") for number in (0, 1, 2, 1_000)] == [
        "0 epochs",
        "1 epoch",
        "2 epochs",
        "1,000 epochs",
    ]
