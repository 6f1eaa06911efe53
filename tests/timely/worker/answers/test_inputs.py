"""What is asked of inputs, without a socket; what is refused: `test_server.py`."""

from __future__ import annotations

from one_worker import LINES, answer, serving

from timely.wire.requests import Append, Arrived


def test_sealing_with_something_missing_seals_nothing() -> None:
    server, worker, _ = serving()
    expected: list[object] = [["lines", "w", 0], ["lines", "w", 1]]
    answer(server, Append(0, "lines", 0, "w", 1, 0), LINES)
    assert answer(server, Arrived(0, 0, expected)).items("missing") == [("lines", "w", 0)]
    assert answer(server, Arrived(0, 1, expected)).items("missing") == [("lines", "w", 0), ("lines", "w", 1)]
    assert worker.instance(0).input("lines").epoch == 0
