"""A client's lines to workers of its host: when each is used, and when it is given up. Real sockets."""

from __future__ import annotations

import pytest

from timely.limits import DIRECT_TABLE_BYTES_MAX
from timely.wire.transport import direct
from timely.wire.transport.direct import DirectDoor, DirectLine, DirectLines, direct_path
from timely.wire.transport.socket_options import Poller


def texts(message: list[memoryview]) -> list[bytes]:
    return [bytes(frame) for frame in message]


def test_a_line_is_used_once_it_is_chosen_after_its_greeting_and_not_for_large_tables(
    door: DirectDoor, address: str
) -> None:
    poller = Poller()
    lines = DirectLines([address], poller)
    lines.choose(0)
    assert not lines.send(0, [b"?"]), "not greeted yet"
    door.recv_nowait(9)
    assert lines.recv_nowait(0) is None
    assert not lines.send(0, [b"?"]), "what is outstanding may have gone another way"
    lines.choose(0)
    large = bytes(DIRECT_TABLE_BYTES_MAX + 1)
    assert lines.send(0, [b"?"]) and not lines.send(0, [b"?", large])
    ((client, frames),) = door.recv_nowait(9)
    assert texts(frames) == [b"?"]
    assert lines.send(0, [b"?", large[1:]])
    heard: list[list[bytes]] = []
    while not heard:
        heard += [texts(frames) for _, frames in door.recv_nowait(9)]
        lines.flush()
    assert heard == [[b"?", large[1:]]]
    door.send(client, [b"1"])
    door.send(client, [b"2"])
    assert poller.wait(5)
    assert [texts(lines.recv_nowait(0) or []) for _ in range(2)] == [[b"1"], [b"2"]]
    assert lines.recv_nowait(0) is None
    lines.close()


def test_what_a_look_finds_is_taken_once_and_who_has_said_it_is_known_while_his_line_is_there(
    door: DirectDoor, address: str
) -> None:
    """The number of a descriptor goes to the next one that is opened."""
    poller = Poller()
    lines = DirectLines([address + "-nobody", address], poller)
    lines.choose(1)
    door.recv_nowait(9)
    lines.choose(1)
    ((descriptor, worker),) = lines.speakers.items()
    assert worker == 1
    assert lines.send(1, [b"?"])
    ((client, _),) = door.recv_nowait(9)
    door.send(client, [b"1"], [b"2", b"more"])
    assert poller.wait(5) == [descriptor]
    assert [texts(message) for message in lines.take(1)] == [[b"1"], [b"2", b"more"]]
    assert lines.take(1) == [] and not lines.has_arrived()
    door.send(client, [b"3"], [b"4"])
    assert poller.wait(5) == [descriptor]
    assert texts(lines.recv_nowait(1) or []) == [b"3"]
    assert lines.has_arrived(), "read, and not asked for"
    assert [texts(message) for message in lines.take(1)] == [[b"4"]]
    assert not lines.has_arrived()
    door.close()
    assert lines.take(1) == []
    assert lines.speakers == {}
    lines.close()


def test_a_line_that_breaks_is_given_up_and_what_has_come_is_still_read(
    door: DirectDoor, address: str
) -> None:
    lines = DirectLines([address], Poller())
    lines.choose(0)
    door.recv_nowait(9)
    lines.choose(0)
    assert lines.send(0, [b"?"])
    ((client, _),) = door.recv_nowait(9)
    door.send(client, [b"farewell"])
    door.close()
    assert texts(lines.recv_nowait(0) or []) == [b"farewell"]
    assert lines.recv_nowait(0) is None
    assert not lines.send(0, [b"?"])
    lines.choose(0)
    assert not lines.send(0, [b"?"]) and lines.recv_nowait(0) is None
    lines.close()


def test_a_request_at_which_a_line_breaks_goes_the_other_way(door: DirectDoor, address: str) -> None:
    poller = Poller()
    lines = DirectLines([address], poller)
    lines.choose(0)
    door.recv_nowait(9)
    lines.choose(0)
    door.close()
    assert not lines.send(0, [b"?"])
    assert poller.wait(0) == [], "nobody waits for what is closed"
    lines.flush()
    assert lines.recv_nowait(0) is None
    lines.close()


def test_a_line_that_breaks_while_a_request_is_half_sent_is_waited_for_no_more(
    door: DirectDoor, address: str
) -> None:
    poller = Poller()
    lines = DirectLines([address], poller)
    lines.choose(0)
    door.recv_nowait(9)
    lines.choose(0)
    assert lines.send(0, [bytes(1 << 22)])
    door.close()
    lines.flush()
    assert not lines.send(0, [b"?"]) and poller.wait(0) == []
    lines.flush()
    lines.close()


def test_a_worker_that_listens_later_is_found_and_one_that_never_does_is_not_tried_for_ever(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    monkeypatch.setattr(direct, "connect", lambda at: tried.append(at))
    lines = DirectLines([address], Poller())
    for _ in range(100):
        lines.choose(0)
    assert 2 <= len(tried) <= 50
    monkeypatch.undo()
    lines = DirectLines([address], Poller())
    lines.choose(0)
    path = direct_path(address)
    assert path is not None
    later = DirectDoor(path)
    lines.choose(0)
    later.recv_nowait(9)
    lines.choose(0)
    assert lines.send(0, [b"?"])
    lines.close()
    later.close()


def test_a_request_that_does_not_fit_goes_on_when_there_is_room(door: DirectDoor, address: str) -> None:
    poller = Poller()
    lines = DirectLines([address], poller)
    lines.choose(0)
    door.recv_nowait(9)
    lines.choose(0)
    asked = bytes(range(256)) * 8_000
    assert lines.send(0, [b"?"]) and not lines.has_unsent(0)
    door.recv_nowait(9)
    assert lines.send(0, [asked]) and lines.send(0, [b"next"])
    assert lines.has_unsent(0)
    heard: list[list[bytes]] = []
    while len(heard) < 2:
        heard += [texts(frames) for _, frames in door.recv_nowait(9)]
        if not heard:
            assert poller.wait(5), "there is room now"
        lines.flush()
    assert heard == [[asked], [b"next"]]
    assert not lines.has_unsent(0)
    assert poller.wait(0) == [], "it waits for what may be read, no more for room"
    lines.close()


@pytest.mark.parametrize("call", ["recv", "send", "flush"])
def test_a_line_at_which_somebody_was_interrupted_is_given_up(
    door: DirectDoor, address: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Nobody knows how much of a message was read or sent."""
    lines = DirectLines([address], Poller())
    lines.choose(0)
    door.recv_nowait(9)
    lines.choose(0)
    lines.send(0, [bytes(1 << 20)])
    doing = {
        "recv": lambda: lines.recv_nowait(0),
        "flush": lines.flush,
        "send": lambda: lines.send(0, [b"?"]),
    }

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DirectLine, call, interrupted)
        with pytest.raises(KeyboardInterrupt):
            doing[call]()
    assert not lines.send(0, [b"?"])
    lines.flush()
    assert lines.recv_nowait(0) is None
    for _ in range(2):
        lines.choose(0)
        door.recv_nowait(9)
    assert not lines.send(0, [b"?"]), "nor is another one begun"
    lines.close()


def test_who_is_interrupted_as_a_line_is_made_has_none(
    door: DirectDoor, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(self: Poller, source: object) -> None:
        raise KeyboardInterrupt

    lines = DirectLines([address], Poller())
    with monkeypatch.context() as patched:
        patched.setattr(Poller, "add", add)
        with pytest.raises(KeyboardInterrupt):
            lines.choose(0)
    door.recv_nowait(9)
    lines.choose(0)
    assert lines.recv_nowait(0) is None and not lines.send(0, [b"?"])
    lines.close()
