"""events.py: an event of a monitor has two frames, and Ctrl-C may come between them."""

from __future__ import annotations

import pytest
import zmq

from timely.wire.transport.events import MonitorEvents


@pytest.mark.parametrize(("call", "nth"), [("recv", 2), ("recv", 4), ("get", 1), ("get", 2)])
def test_an_interrupted_look_loses_no_event(monkeypatch: pytest.MonkeyPatch, call: str, nth: int) -> None:
    with zmq.Context() as context, context.socket(zmq.PAIR) as one:
        monitor = one.get_monitor_socket(zmq.EVENT_LISTENING | zmq.EVENT_CLOSED)
        events, calls, whole = MonitorEvents(monitor), 0, getattr(zmq.Socket, call)

        def interrupted(socket: zmq.Socket[bytes], what: int = 0) -> object:
            nonlocal calls
            calls += socket is monitor and what != zmq.EVENTS
            if calls == nth:
                calls += 1
                raise KeyboardInterrupt
            return whole(socket, what)

        for _ in range(2):
            one.bind("tcp://127.0.0.1:*")
        monkeypatch.setattr(zmq.Socket, call, interrupted)
        heard: list[int] = []
        interrupts = 0
        while len(heard) < 2:
            assert monitor.poll(5_000)
            try:
                for event, _ in events.take():
                    heard.append(event)
            except KeyboardInterrupt:
                interrupts += 1
        assert heard == [zmq.EVENT_LISTENING] * 2 and interrupts == 1
        one.disable_monitor()
        monitor.close(linger=0)
