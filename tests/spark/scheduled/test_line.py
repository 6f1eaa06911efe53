"""line.py: the line between a task and the driver.

known_*     both ends show that they know the token
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from timely.spark.scheduled.line import Line, connected, is_proof, proof

TOKEN = "a token"


@pytest.fixture
def ends() -> Iterator[tuple[Line, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        line = Line(socket.create_connection(door.getsockname()), bytes_max=100)
        other, _ = door.accept()
        with other:
            yield line, other
        line.close()


def test_messages_arrive_whole_however_they_are_cut(ends: tuple[Line, socket.socket]) -> None:
    line, other = ends
    other.sendall(b'{"a": 1}\n{"b"')
    assert line.wait(60) == {"a": 1}
    other.sendall(b": 2}\n")
    assert line.wait(60) == {"b": 2}
    line.say(c=[3])
    assert json.loads(other.recv(100)) == {"c": [3]}


@pytest.mark.parametrize("odd", [b"no json\n", b"[1]\n", b"[" * 200, b"\xff\xfe\n"])
def test_what_is_no_message_is_the_end(ends: tuple[Line, socket.socket], odd: bytes) -> None:
    line, other = ends
    other.sendall(odd)
    with pytest.raises(EOFError):
        line.wait(60)


def test_an_end_that_is_gone_is_found_at_once(ends: tuple[Line, socket.socket]) -> None:
    line, other = ends
    other.close()
    with pytest.raises(EOFError):
        line.hear()


def test_an_end_that_says_nothing_is_waited_for_in_vain(ends: tuple[Line, socket.socket]) -> None:
    line, _ = ends
    with pytest.raises(EOFError, match="no word within"):
        line.wait(0.05)


def driver(answers: Callable[[dict[str, object], str], dict[str, object]]) -> Iterator[tuple[str, int]]:
    """A door behind which one caller is answered by `answers`, from its words and the driver's nonce."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            stream, _ = door.accept()
            line = Line(stream)
            line.say(nonce="n")
            line.say(**answers(line.wait(60), "n"))
            line.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield ("127.0.0.1", door.getsockname()[1])
        thread.join(60)


def test_known_is_a_driver_that_has_the_token_and_it_learns_who_calls() -> None:
    heard: list[dict[str, object]] = []

    def answers(words: dict[str, object], nonce: str) -> dict[str, object]:
        heard.append(words)
        assert words["proof"] == proof(TOKEN, "task", nonce, str(words["nonce"]))
        return {"proof": proof(TOKEN, "driver", str(words["nonce"]), nonce)}

    for address in driver(answers):
        connected(address, TOKEN, {"task": 3}).close()
    assert heard[0]["task"] == 3 and TOKEN not in json.dumps(heard)


def test_known_is_no_other_program_that_listens_there() -> None:
    def repeats(words: dict[str, object], nonce: str) -> dict[str, object]:
        return {"proof": words["proof"]}

    for address in driver(repeats):
        with pytest.raises(EOFError, match="another program"):
            connected(address, TOKEN, {})


def test_known_is_who_says_the_proof_of_these_nonces_in_this_part() -> None:
    said = proof(TOKEN, "task", "a", "b")
    assert is_proof(said, TOKEN, "task", "a", "b")
    for other in ((TOKEN, "driver", "a", "b"), (TOKEN, "task", "b", "a"), ("another", "task", "a", "b")):
        assert not is_proof(said, *other)
    for odd in (None, 1, "", "\ud800", said + "0", ["x"]):
        assert not is_proof(odd, TOKEN, "task", "a", "b")
    assert not is_proof(proof(TOKEN, "task", "a"), TOKEN, "task", "a", 5)
