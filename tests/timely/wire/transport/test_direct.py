"""Connections of clients without threads in between: real sockets, both sides in one process."""

from __future__ import annotations

import os
import resource
import select
import socket
import struct
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from timely.limits import DIRECT_UNSENT_BYTES_MAX, HEADER_BYTES_MAX
from timely.wire.transport import direct
from timely.wire.transport.direct import BrokenLineError, DirectDoor, DirectLine, connect, direct_path

_lines: list[DirectLine] = []


@pytest.fixture(autouse=True)
def _hang_up() -> Iterator[None]:
    yield
    for line in _lines:
        line.close()
    _lines.clear()


def let_in(door: DirectDoor, address: str) -> DirectLine:
    """A line that is greeted."""
    line = connect(address)
    assert line is not None
    _lines.append(line)
    assert door.recv_nowait(9) == []
    assert line.recv() == [[]]
    return line


def texts(message: list[memoryview]) -> list[bytes]:
    return [bytes(frame) for frame in message]


def is_awake(door: DirectDoor) -> bool:
    """Whether who waits for the door would come back at once."""
    return bool(select.select([door.descriptor], [], [], 0)[0])


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Whoever wants a file, or a connection, is refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_messages_of_each_go_there_and_answers_come_back(door: DirectDoor, address: str) -> None:
    ada, bob = let_in(door, address), let_in(door, address)
    ada.send([b"one"])
    ada.send([b"two", b"", memoryview(b"and more")])
    bob.send([])
    heard = door.recv_nowait(9)
    assert [texts(frames) for _, frames in heard] == [[b"one"], [b"two", b"", b"and more"], []]
    assert heard[0][0] == heard[1][0] != heard[2][0]
    assert heard[0][0] in door and b"another" not in door
    door.send(heard[2][0], [b"to bob"])
    door.send(b"another", [b"to nobody"])
    assert [texts(message) for message in bob.recv()] == [[b"to bob"]]
    assert ada.recv() == []


def test_frames_count_by_their_bytes_whatever_they_are_made_of(door: DirectDoor, address: str) -> None:
    line = let_in(door, address)
    words = memoryview(array("q", [1, 2, 3]))
    nothing = memoryview(array("q"))
    line.send([words, bytearray(b"abc"), nothing, words.cast("B").cast("q", (3, 1)), b"end"])
    ((_, frames),) = door.recv_nowait(9)
    assert texts(frames) == [words.tobytes(), b"abc", b"", words.tobytes(), b"end"]


def test_what_does_not_fit_is_sent_as_the_other_side_reads(door: DirectDoor, address: str) -> None:
    line = let_in(door, address)
    sent = bytes(range(256)) * 8_000
    assert len(sent) <= HEADER_BYTES_MAX
    line.send([sent])
    line.send([b"behind it"])
    assert line.unsent_bytes > 0
    heard: list[list[bytes]] = []
    while len(heard) < 2:
        heard += [texts(frames) for _, frames in door.recv_nowait(9)]
        line.flush()
    assert heard == [[sent], [b"behind it"]] and line.unsent_bytes == 0


def test_an_answer_of_any_size_arrives_whole_and_wakes_the_door_until_it_is_gone(
    door: DirectDoor, address: str
) -> None:
    line = let_in(door, address)
    line.send([b"?"])
    ((client, _),) = door.recv_nowait(9)
    answer = bytes(range(251)) * 40_000
    assert not door.is_sending
    door.send(client, [b"head", answer])
    heard: list[list[memoryview]] = []
    while not heard:
        assert door.is_sending
        assert door.recv_nowait(9) == []
        heard += line.recv()
    assert texts(heard[0]) == [b"head", answer]
    assert door.recv_nowait(9) == [] and not is_awake(door), "it does not wait for room that it does not need"
    assert not door.is_sending


def test_who_does_not_read_is_not_heard_until_he_does(door: DirectDoor, address: str) -> None:
    line = let_in(door, address)
    line.send([b"?"])
    ((client, _),) = door.recv_nowait(9)
    answer = bytes(DIRECT_UNSENT_BYTES_MAX + (4 << 20))
    door.send(client, [answer])
    line.send([b"and this?"])
    for _ in range(3):
        assert door.recv_nowait(9) == [] and not is_awake(door)
    heard: list[list[memoryview]] = []
    for _ in range(4):  # he reads a little: there is room, but far too much is left
        heard += line.recv()
        assert door.recv_nowait(9) == []
    asked: list[bytes] = []
    while not (heard and asked):
        heard += line.recv()
        asked += [bytes(frames[0]) for _, frames in door.recv_nowait(9)]
    assert bytes(heard[0][0]) == answer and asked == [b"and this?"]


def test_a_message_in_pieces_is_one(door: DirectDoor, address: str) -> None:
    whole = struct.pack("<3q", 2, 5, 3) + b"firstend"
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    raw.connect(str(direct_path(address)))
    door.recv_nowait(9)
    heard: list[tuple[bytes, list[memoryview]]] = []
    for byte in whole + whole[:20]:
        assert heard == [] or byte in whole[:20]
        raw.sendall(bytes([byte]))
        heard += door.recv_nowait(9)
    assert [texts(frames) for _, frames in heard] == [[b"first", b"end"]]
    raw.close()


def test_messages_that_come_with_half_of_the_next_one_lose_nothing_of_it(
    door: DirectDoor, address: str
) -> None:
    whole = struct.pack("<2q", 1, 5) + b"first" + struct.pack("<q", 0) + struct.pack("<2q", 1, 6) + b"second"
    for cut in range(1, len(whole)):
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        raw.connect(str(direct_path(address)))
        door.recv_nowait(9)
        heard: list[tuple[bytes, list[memoryview]]] = []
        for part in (whole[:cut], whole[cut:] + whole[:cut], whole[cut:]):
            raw.sendall(part)
            heard += door.recv_nowait(9)
        assert [texts(frames) for _, frames in heard] == 2 * [[b"first"], [], [b"second"]]
        raw.close()


def test_a_message_may_have_as_many_and_as_large_frames_as_the_limits_say(
    door: DirectDoor, address: str
) -> None:
    line, sent = let_in(door, address), [b"%d" % place for place in range(8)]
    line.send(sent)
    assert [texts(frames) for _, frames in door.recv_nowait(9)] == [sent]
    line.send([bytes(HEADER_BYTES_MAX)])
    heard: list[list[memoryview]] = []
    while not heard:
        heard += [frames for _, frames in door.recv_nowait(9)]
        line.flush()
    assert [len(frame) for frame in heard[0]] == [HEADER_BYTES_MAX]


@pytest.mark.parametrize(
    "noise",
    [
        struct.pack("<q", -1),
        struct.pack("<q", 9) + bytes(80),
        struct.pack("<2q", 1, -5),
        struct.pack("<2q", 1, HEADER_BYTES_MAX + 1),
        struct.pack("<3q", 2, 1, 1 << 62),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 4_000,
    ],
    ids=lambda noise: f"{noise[:12]!r}",
)
def test_who_sends_what_no_client_sends_is_hung_up_on_and_others_go_on(
    door: DirectDoor, address: str, noise: bytes
) -> None:
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    raw.connect(str(direct_path(address)))
    ada = let_in(door, address)
    assert len(raw.recv(100)) == 8, "the greeting"
    raw.sendall(noise)
    assert door.recv_nowait(9) == []
    assert raw.recv(100) == b""
    ada.send([b"still here"])
    ((_, frames),) = door.recv_nowait(9)
    assert texts(frames) == [b"still here"]
    raw.close()


def test_who_has_gone_is_forgotten_and_an_answer_to_him_is_no_error(door: DirectDoor, address: str) -> None:
    line = let_in(door, address)
    line.send([b"?"])
    ((client, _),) = door.recv_nowait(9)
    line.close()
    door.send(client, [b"!"])
    door.recv_nowait(9)
    assert client not in door
    door.send(client, [b"!"])


def test_who_comes_after_somebody_has_gone_is_heard_though_he_has_the_same_descriptor(
    door: DirectDoor, address: str
) -> None:
    for _ in range(5):
        line = let_in(door, address)
        line.send([b"?"])
        assert is_awake(door)
        ((client, _),) = door.recv_nowait(9)
        door.send(client, [b"!"])
        assert [texts(message) for message in line.recv()] == [[b"!"]]
        line.close()
        assert door.recv_nowait(9) == [] and client not in door


def test_what_was_sent_before_the_end_is_read_and_then_the_end_is_told(
    door: DirectDoor, address: str
) -> None:
    line = let_in(door, address)
    line.send([b"?"])
    ((client, _),) = door.recv_nowait(9)
    door.send(client, [b"farewell"])
    door.close()
    door.close()
    assert [texts(message) for message in line.recv()] == [[b"farewell"]]
    with pytest.raises(BrokenLineError, match="hung up"):
        line.recv()
    with pytest.raises(BrokenLineError):
        line.send([b"?"])
    assert connect(address) is None, "the door is gone"
    assert not Path(str(direct_path(address))).exists(), "so the folder can be removed"


def test_of_too_many_the_last_is_not_greeted(
    door: DirectDoor, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "DIRECT_COUNT_MAX", 2)
    lines = [let_in(door, address) for _ in range(2)]
    third = connect(address)
    assert third is not None
    _lines.append(third)
    assert door.recv_nowait(9) == []
    with pytest.raises(BrokenLineError):
        third.recv()
    lines[0].close()
    assert door.recv_nowait(9) == []
    assert let_in(door, address)


def test_a_client_without_a_descriptor_for_a_line_has_none(door: DirectDoor, address: str) -> None:
    del door
    with no_descriptor_left():
        assert connect(address) is None


def test_addresses_of_other_kinds_have_no_door(tmp_path: Path) -> None:
    assert direct_path("tcp://127.0.0.1:5") is None and connect("tcp://127.0.0.1:5") is None
    assert connect(f"ipc://{tmp_path}/nobody") is None


def test_without_a_descriptor_nobody_is_let_in_and_nobody_is_woken_and_later_he_is(
    door: DirectDoor, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "_FULL_SECONDS", 0.2)
    ada = let_in(door, address)
    bob = connect(address)
    assert bob is not None
    _lines.append(bob)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        assert connect(address) is None, "there is another way"
        assert door.recv_nowait(9) == []
        assert select.select([door.descriptor], [], [], 0)[0] == []
        ada.send([b"?"])
        assert [texts(frames) for _, frames in door.recv_nowait(9)] == [[b"?"]]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    heard: list[list[memoryview]] = []
    while not heard:
        assert door.recv_nowait(9) == []
        time.sleep(0.01)
        heard = bob.recv()
    assert heard == [[]]


def test_who_has_gone_wakes_nobody_though_another_process_has_a_copy_of_his_line(
    door: DirectDoor, address: str
) -> None:
    """As one that user code has forked; here it is a copy of the descriptor."""
    line = let_in(door, address)
    copies = [os.dup(each.descriptor) for each in door._lines.values()]
    line.close()
    assert door.recv_nowait(9) == [] and not door._lines
    try:
        assert select.select([door.descriptor], [], [], 0)[0] == []
    finally:
        for copy in copies:
            os.close(copy)
