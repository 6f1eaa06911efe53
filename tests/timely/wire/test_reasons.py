"""What holds an epoch, on its way and as a line."""

from __future__ import annotations

import msgpack
import pytest

from timely.limits import REASON_CHARS_MAX
from timely.wire.reasons import KINDS, Reason, shown_seconds

HELD = Reason(
    "capability",
    "shop",
    "late",
    3,
    "shop.py:9",
    (0, 4),
    2,
    "late.py:5",
    1.5,
    "so",
    is_first=False,
    workers=(0, 1),
)


@pytest.mark.parametrize("kind", KINDS)
def test_read_is_what_was_sent(kind: str) -> None:
    for reason in (Reason(kind), Reason(kind, "shop", "late", 3, "shop.py:9", (0,), 1, "", 0.5, "so")):
        assert Reason.read(msgpack.unpackb(msgpack.packb(reason.values()))) == reason
        assert "\n" not in str(reason)


def test_read_is_the_whole_of_it_and_no_more_of_a_text_than_allowed() -> None:
    assert Reason.read(HELD.values()) == HELD
    long = Reason.read(Reason("call", detail="x" * (2 * REASON_CHARS_MAX)).values())
    assert long is not None and len(long.detail) == REASON_CHARS_MAX


@pytest.mark.parametrize(
    "odd",
    [
        None,
        [],
        {},
        {"kind": "odd"},
        {"kind": 1},
        {"kind": "rows", "time": [0, "a"]},
        {"kind": "rows", "time": 3},
        {"kind": "rows", "count": "many"},
        {"kind": "rows", "workers": [None]},
        {"kind": "rows", "is_first": 1},
        {"kind": "rows", "seconds": 1},
    ],
)
def test_read_is_nothing_of_what_no_worker_sends(odd: object) -> None:
    assert Reason.read(odd) is None


def test_a_line_names_the_stage_the_time_the_workers_and_both_lines_of_the_user() -> None:
    assert str(HELD) == (
        "'late' holds time (0, 4), by a capability made at late.py:5 (workers 0, 1; built at shop.py:9)"
    )


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        (
            Reason(
                "call",
                "shop",
                "slow",
                2,
                "shop.py:9",
                where="slow.py:4",
                seconds=3.0,
                detail="in f",
                workers=(1,),
            ),
            "worker 1 is in a call for 3.0 s: in f at slow.py:4, of 'slow' in 'shop', built at shop.py:9",
        ),
        (Reason("call", detail="in f", workers=(1,)), "worker 1 is in a call: in f"),
        (
            Reason("input", "shop", "orders", 0, "shop.py:2", (7,), seconds=2.0, workers=(0,)),
            "input 'orders' of 'shop' is open at epoch 7: nobody has sealed it; open for 2.0 s (worker 0; "
            "built at shop.py:2)",
        ),
        (
            Reason("rows", "shop", "sums", 4, time=(1,), count=3),
            "3 messages wait in front of 'sums' at epoch 1",
        ),
        (
            Reason("message", "shop", "sums", 4, "a.py:1", (1,), 1, detail="'a' → 'sums'"),
            "a message is on the way at epoch 1: 'a' → 'sums' ('sums' was built at a.py:1)",
        ),
        (Reason("silent", detail="worker 1 is stopped", workers=(1,)), "worker 1 is stopped"),
    ],
)
def test_a_line_says_what_happens(reason: Reason, line: str) -> None:
    assert str(reason) == line


def test_seconds_are_shown_as_people_say_them() -> None:
    assert [shown_seconds(number) for number in (0.25, 59.0, 90.0, 7_300.0)] == [
        "0.2 s",
        "59.0 s",
        "2 min",
        "2 h",
    ]
