"""A vertex that calls what only the thread of its worker may call, from threads of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import timely
from progress.times.timestamp import Timestamp
from timely import Records

__all__ = ["CALLS", "threads"]

CALLS: Final[dict[str, tuple[Callable[[timely.Vertex, Timestamp], None], str]]] = {
    "send_by": (lambda vertex, time: vertex.send_by(0, ["stray"], time), "sent"),
    "send": (lambda vertex, time: vertex.send(0, Records(["stray"]), vertex.code.pack(time)), "sent"),
    "notify_at": (lambda vertex, time: vertex.notify_at(time), "asked for notification"),
    "hold": (lambda vertex, time: vertex.hold_word(vertex.code.pack(time)), "asked to hold a time"),
    "release": (lambda vertex, time: vertex.release_word(vertex.code.pack(time)), "released a time"),
    "activate": (lambda vertex, time: vertex.activate(), "asked to be activated"),
    "resume": (lambda vertex, time: vertex.resume(), "asked to be resumed"),
}
_SECONDS: Final = 30.0


class Threads(timely.Vertex):
    """Holds the time of its first message, and calls something from a thread, then and at the next one."""

    call: str = "send_by"

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.told: list[object] = []
        self.thread: threading.Thread | None = None

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if self.thread is None:
            self.hold_word(self.code.pack(time))
            at_once = threading.Thread(target=self.try_it, args=(time,), name="at once")
            at_once.start()
            at_once.join(_SECONDS)
            self.thread = threading.Thread(target=self.try_later, args=(time,), name="later")
            self.thread.start()
        else:
            self.goes_on.set()
            self.thread.join(_SECONDS)
            self.release_word(self.code.pack((0,)))
            self.send_by(0, [str(error) for error in self.told], time)

    def try_later(self, time: Timestamp) -> None:
        self.goes_on.wait(_SECONDS)
        self.try_it(time)

    def try_it(self, time: Timestamp) -> None:
        try:
            CALLS[self.call][0](self, time)
            self.told.append("nothing was refused")
        except Exception as error:
            self.told.append(error)

    def on_resume(self) -> None:
        self.told.append("resumed")


@timely.builder
def threads(dataflow: timely.Dataflow, call: str) -> None:
    """One vertex that calls `call` from threads of its own, on the worker to which all records go."""
    made = type("Threads", (Threads,), {"call": call})
    sent = dataflow.input("records").stage("threads", made, exchange=lambda record: 0)
    dataflow.output("told", sent)
