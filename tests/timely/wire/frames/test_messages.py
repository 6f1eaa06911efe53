"""Requests and replies as frames: there and back, and whatever else comes is refused in words.

back_*       what is written can be read
refusing_*   wrong types, unknown names, broken tables; random bytes never do anything else than raise
"""

from __future__ import annotations

import dataclasses
from typing import get_args

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import InputClosedError, PeerError, RefusedError, RequestError, TimelyError
from timely.limits import FRAME_BYTES_MAX, HEADER_BYTES_MAX, NAME_CHARS_MAX, NESTING_LEVELS_MAX
from timely.wire.frames.messages import (
    decode_reply,
    decode_request,
    encode_error,
    encode_reply,
    encode_request,
    head_of,
    life_of,
    number_of,
)
from timely.wire.handshake import PROTOCOL_VERSION
from timely.wire.requests import (
    BY_COLUMN,
    IN_EPOCH,
    IN_OPEN,
    WHEN_NAMED,
    Decide,
    Deliver,
    Describe,
    Drop,
    Hello,
    Install,
    Missing,
    Progress,
    Read,
    Replace,
    Reply,
    Request,
    Shutdown,
    Stats,
    Uninstall,
)

TABLE = pa.table({"a": [1, None], "b": ["x", "y"]})
REQUESTS: list[Request] = [
    Hello(), Install("a:b", {"depth": 3, "names": ["x"]}), Describe(2),
    Deliver(0, "in", "w", 7, IN_EPOCH, 4, -1), Deliver(0, "in", "w", -1, BY_COLUMN, 0, 0, column="at"),
    Deliver(0, "in", "w", 7, IN_OPEN, 4, 1), Deliver(0, "in", "w", 7, WHEN_NAMED, 4, 0, part=2),
    Deliver(0, "in", "w", 7, IN_OPEN, 4, 1, [[1, "x"]]), Decide(0, 4, enter=[["in", "w", 7]]),
    Missing(0, 1, [["in", "w", 0]]), Decide(0, 1, True, [["in", "w", 7]]), Decide(0, -1, close=["in"]),
    Uninstall(3, True), Replace(3, "a:b", {"depth": 3}, -1.0),
    Progress(0, "out"), Progress(0, "", 3, -1.0), Read(0, "out", 1, -1, 0.5, reader="me", is_open_ended=True),
    Read(0, "out", -1, 3, 1.0), Progress(0, "out", reader="me", keep_from=3, drops=True),
    Progress(0, "out", reader="me"), Stats(), Shutdown(),
    Progress(0, "out", 4, 0.5, reader="us", keep_from=3, keep_seconds=60.0, extent=True),
    Read(
        0, "out", -1, 3, 0.5, reader="us", first=7, part=0, parts=2, columns=["a"], filters=[["a", "=", 1]],
        origin="s/0",
    ),
    Deliver(0, "in", "q", 4, WHEN_NAMED, 0, 1, part=0, attempt="a"),
    Missing(0, -1, [["in", "q", 4, "a", 2]], [["in", "q"]]),
    Decide(0, -1, True, enter=[["in", "q", 4, ["a"], "s", False, 9]]),
    Drop(0, [["in", "q", 4]]),
]  # fmt: skip


def views(frames: list[bytes | bytearray | memoryview]) -> list[memoryview]:
    return [memoryview(bytes(frame)) for frame in frames]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
@pytest.mark.parametrize("table", [None, TABLE])
def test_back_a_request_is_what_it_was(request_: Request, table: pa.Table | None) -> None:
    frames = views(encode_request(77, request_, table))
    assert number_of(frames) == 77
    assert decode_request(frames) == (request_, table)
    number, head = head_of(frames)  # which is read once for both
    assert number == 77 and decode_request([memoryview(b"")] + frames[1:], head) == (request_, table)


def test_back_a_reply_is_what_it_was() -> None:
    for reply in (Reply(), Reply({"epoch": 3, "name": "x", "list": [1, b"\0", None]}), Reply({}, TABLE)):
        frames = views(encode_reply(5, reply))
        assert number_of(frames) == 5
        assert decode_reply(frames) == reply


def test_back_a_reply_may_say_more_than_a_request() -> None:
    """The stages of a large dataflow are megabytes of text; who did not see the number would wait in vain."""
    reply = Reply({"stages": ["x" * 4_096] * 1_100})
    frames = [memoryview(frame) for frame in encode_reply(7, reply)]
    assert len(frames[0]) > HEADER_BYTES_MAX
    assert number_of(frames) == 0 and number_of(frames, FRAME_BYTES_MAX) == 7
    assert decode_reply(frames) == reply


def test_back_an_error_keeps_its_class_its_text_and_its_notes() -> None:
    error = InputClosedError("epoch 3 is sealed")
    error.add_note("and more")
    again = decode_reply(views(encode_error(5, error)))
    assert type(again) is InputClosedError and str(again) == "epoch 3 is sealed\nand more"
    assert isinstance(again, TimelyError) and not again.ends_dataflow


OPTIONAL = {
    kind: {
        one.name
        for one in dataclasses.fields(kind)
        if (one.default, one.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
    }
    for kind in get_args(Request)
}


def test_back_an_error_says_whether_the_dataflow_has_ended_with_it() -> None:
    error = InputClosedError("it is gone")
    error.ends_dataflow = True
    again = decode_reply(views(encode_error(5, error)))
    assert type(again) is InputClosedError and again.ends_dataflow


@pytest.mark.parametrize(
    "request_", [one for one in REQUESTS if dataclasses.fields(one)], ids=lambda r: type(r).__name__
)
def test_refusing_every_field_of_another_type(request_: Request) -> None:
    name = type(request_).__name__.lower()
    good = dataclasses.asdict(request_)
    for field, value in good.items():
        wrong = "7" if not isinstance(value, str) else 7
        with pytest.raises(RequestError, match=f"the field '{field}' is"):
            decode_request([memoryview(msgpack.packb([PROTOCOL_VERSION, 1, name, {**good, field: wrong}]))])
        rest = {other: kept for other, kept in good.items() if other != field}
        packed = [memoryview(msgpack.packb([PROTOCOL_VERSION, 1, name, rest]))]
        if field in OPTIONAL[type(request_)]:
            assert decode_request(packed)[0] == type(request_)(**rest), "it has its default"
        else:
            with pytest.raises(RequestError, match="has the fields"):
                decode_request(packed)
    for other in ("no such field", 7, None):
        with pytest.raises(RequestError, match="has the fields"):
            decode_request([memoryview(msgpack.packb([PROTOCOL_VERSION, 1, name, {**good, other: 1}]))])


def test_back_a_field_that_has_its_default_takes_no_room() -> None:
    header = msgpack.unpackb(encode_request(1, Decide(3, 4, True))[0])
    assert header == [PROTOCOL_VERSION, 1, "decide", {"dataflow": 3, "epoch": 4, "seals": True}]


def test_refusing_another_version_and_an_unknown_name() -> None:
    other = PROTOCOL_VERSION + 1
    with pytest.raises(
        RequestError, match=f"the client speaks protocol version {other}, this worker {PROTOCOL_VERSION}"
    ):
        decode_request([memoryview(msgpack.packb([other, 1, "hello", {}]))])
    with pytest.raises(
        RequestError,
        match="there is no request 'destroy': there are decide, deliver, describe, drop, hello",
    ):
        decode_request([memoryview(msgpack.packb([PROTOCOL_VERSION, 1, "destroy", {}]))])


def test_refusing_the_answer_of_another_release_for_good() -> None:
    frames = views([msgpack.packb([PROTOCOL_VERSION + 1, 1, "ok", {"later": True}])])
    with pytest.raises(RefusedError, match=f"version {PROTOCOL_VERSION + 1}, this client {PROTOCOL_VERSION}"):
        decode_reply(frames)


def test_refusing_a_request_that_was_made_for_another_incarnation() -> None:
    for meant, present in ((0, 0), (0, 7), (7, 7), (7, None)):
        assert decode_request(views(encode_request(1, Stats(), None, meant)), None, present)[0] == Stats()
    for present in (0, 6, 8):
        with pytest.raises(
            PeerError, match=f"made for incarnation 7, and had no effect; this is incarnation {present}"
        ):
            decode_request(views(encode_request(1, Stats(), None, 7)), None, present)


def test_refusing_a_request_that_was_made_for_another_cluster() -> None:
    mine, other = life_of(7, "mine"), life_of(7, "other")
    assert len({mine, other, life_of(7, ""), life_of(8, "mine")}) == 4 and life_of(0, "mine") == 0
    for meant in (0, 7, mine):
        assert decode_request(views(encode_request(1, Stats(), None, meant)), None, mine)[0] == Stats()
    for present in (mine, life_of(8, "mine"), 0):
        with pytest.raises(
            PeerError, match="another cluster is at this address: this request was made for i"
        ):
            decode_request(views(encode_request(1, Stats(), None, other)), None, present)
    with pytest.raises(PeerError, match="made for incarnation 7, and had no effect; this is incarnation 8"):
        decode_request(views(encode_request(1, Stats(), None, mine)), None, life_of(8, "mine"))


@pytest.mark.parametrize("meant", [-1, True, "7", None, [7], 1.0])
def test_refusing_what_is_no_incarnation(meant: object) -> None:
    frames = [memoryview(msgpack.packb([PROTOCOL_VERSION, 1, "stats", {}, meant]))]
    with pytest.raises(RequestError, match="a request is made for incarnation 1 or a later one, not"):
        decode_request(frames, None, 7)


def test_refusing_an_argument_that_does_not_travel() -> None:
    with pytest.raises(RequestError, match="install takes None, bool, int"):
        encode_request(1, Install("a:b", {"flow": object()}))


def test_refusing_what_looks_like_another_type() -> None:
    """True is a number to Python, and no epoch."""
    good = dataclasses.asdict(Decide(0, 1, True))
    with pytest.raises(RequestError, match="the field 'epoch' is int, not bool"):
        decode_request([memoryview(msgpack.packb([PROTOCOL_VERSION, 1, "decide", {**good, "epoch": True}]))])


def test_refusing_longer_names_than_there_may_be() -> None:
    for chars, is_taken in ((NAME_CHARS_MAX, True), (NAME_CHARS_MAX + 1, False)):
        frames = views(encode_request(1, Progress(0, "x" * chars)))
        if is_taken:
            assert decode_request(frames)[0] == Progress(0, "x" * chars)
        else:
            with pytest.raises(RequestError, match=f"'output' has more than {NAME_CHARS_MAX:,} characters"):
                decode_request(frames)


def test_refusing_headers_beyond_the_limit() -> None:
    frames = views(encode_request(1, Hello()))
    size = len(frames[0])
    assert head_of(frames, size)[0] == 1 and head_of(frames, size - 1) == (0, None)


def test_refusing_answers_that_are_nested_too_deeply() -> None:
    for levels, is_taken in ((NESTING_LEVELS_MAX - 1, True), (NESTING_LEVELS_MAX, False)):
        deep: object = 7
        for _ in range(levels):
            deep = [deep]
        frames = views(encode_reply(1, Reply({"deep": deep})))  # type: ignore[dict-item]
        if is_taken:
            assert isinstance(decode_reply(frames), Reply)
        else:
            with pytest.raises(PeerError, match="answer is nested more than"):
                decode_reply(frames)


def test_back_an_error_is_told_whatever_is_in_its_text() -> None:
    """What is no UTF-8 is replaced, and what is very long cut: who asked would else hear nothing."""
    error = TimelyError("it ended")
    for note in ("a\udcffb", *["x" * 1_000] * 100):
        error.add_note(note)
    again = decode_reply(views(encode_error(5, error)))
    assert isinstance(again, TimelyError) and "it ended\na" in str(again) and len(str(again)) == 1 << 16


def test_refusing_numbers_that_fit_no_word() -> None:
    good = dataclasses.asdict(Decide(0, 1, True))
    for number in (2**62, -(2**62)):
        packed = msgpack.packb([PROTOCOL_VERSION, 1, "decide", {**good, "epoch": number}])
        assert decode_request([memoryview(packed)])[0] == Decide(0, number, True)
    for number in (2**62 + 1, -(2**62) - 1, 2**64 - 1, -(2**63)):
        with pytest.raises(RequestError, match="the field 'epoch' is a number of 62 bits"):
            decode_request(
                [memoryview(msgpack.packb([PROTOCOL_VERSION, 1, "decide", {**good, "epoch": number}]))]
            )


@pytest.mark.parametrize("number", [-1, 2**63, 2**64 - 1, 1.5, "1", None, [1], True])
def test_refusing_a_number_that_cannot_be_repeated_answers_to_number_0(number: object) -> None:
    assert number_of([memoryview(msgpack.packb([PROTOCOL_VERSION, number, "hello", {}]))]) == 0


@pytest.mark.parametrize(
    "header", [b"\x81\x90\x01", b"\x91" * 5_000, b"\x81\x80\x01", b"\xdd\xff\xff\xff\xff"]
)
def test_refusing_what_the_decoder_itself_does_not_bear(header: bytes) -> None:
    with pytest.raises(RequestError, match="the header is not"):
        decode_request([memoryview(header)])
    assert number_of([memoryview(header)]) == 0


@given(st.lists(st.binary(max_size=60), max_size=3))
def test_refusing_random_frames_is_all_that_they_do(frames: list[bytes]) -> None:
    received = [memoryview(frame) for frame in frames]
    assert isinstance(number_of(received), int)
    with pytest.raises(RequestError):
        decode_request(received)
    with pytest.raises(PeerError):
        decode_reply(received)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_refusing_tables_that_were_changed_under_way(noise: bytes, place: int) -> None:
    header, table = views(encode_request(1, Deliver(0, "in", "w", 0, IN_EPOCH, 0, 1), TABLE))
    changed = bytearray(table)
    changed[place : place + len(noise)] = noise
    try:
        request, found = decode_request([header, memoryview(bytes(changed))])
    except TimelyError:
        return
    assert found is not None and isinstance(request, Deliver)
    found.validate(full=True)
