"""Questions to each worker of its own: why is an epoch not complete, and what is the worker at?

Other requests need the answers of all workers. Here the client takes what it gets within a second. A worker
that does not answer at its address gets the question at the one beside it, where a thread answers that is
never in a call of the user's code.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import PeerError, TimelyError
from ...failure import full_text_of
from ...limits import BUSY_SECONDS_MAX, FRAME_BYTES_MAX, REASONS_SECONDS_MAX
from ...wire.addresses import aside
from ...wire.frames.messages import decode_reply, encode_request, head_of
from ...wire.keys import ClientKeys
from ...wire.requests import Reply, Why
from ...wire.transport.zeromq import ClientSockets

__all__ = ["Asker"]


class Asker:
    """Connections to all workers, and beside them, for one question at a time."""

    def __init__(self, addresses: Sequence[str], keys: ClientKeys | None, silence_seconds: float) -> None:
        self.addresses = tuple(addresses)
        self._count = len(addresses)
        beside = [aside(address) for address in addresses]
        self._beside = {
            worker: self._count + number
            for number, worker in enumerate(worker for worker in range(self._count) if beside[worker])
        }
        self._sockets = ClientSockets(
            [*addresses, *(address for address in beside if address)], keys, silence_seconds
        )
        self._number = 0
        self._lock = threading.Lock()

    def ask(self, request: Why, life: int = 0, processes: Sequence[int] = ()) -> list[Reply | str]:
        """Return the answer of each worker, or why it has given none within a second. `life`: see `Members`.
        `processes`: the numbers of their processes, if they are of this host and known. Raise what has ended
        the dataflow.
        """
        if not self._lock.acquire(timeout=REASONS_SECONDS_MAX):
            return ["another thread of this program asks it the same"] * self._count
        try:
            return self._ask(request, life, processes)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._sockets.close()

    def _ask(self, request: Why, life: int, processes: Sequence[int]) -> list[Reply | str]:
        self._number += 1
        frames = encode_request(self._number, request, None, life)
        for worker in range(self._count):
            self._sockets.send(worker, frames)
        began = time.monotonic()
        answers: dict[int, Reply | TimelyError] = {}
        is_asked_beside = False
        while (left := began + REASONS_SECONDS_MAX - time.monotonic()) > 0:
            self._take(answers)
            missing = [worker for worker in range(self._count) if worker not in answers]
            if not missing:
                break
            soon = began + BUSY_SECONDS_MAX - time.monotonic()
            if soon <= 0 and not is_asked_beside:
                is_asked_beside = True
                for worker in missing:
                    if worker in self._beside:
                        self._sockets.send(self._beside[worker], frames)
            self._sockets.wait(min(left, soon) if soon > 0 else left)
        return [self._answer(worker, answers.get(worker), processes) for worker in range(self._count)]

    def _take(self, answers: dict[int, Reply | TimelyError]) -> None:
        workers = {worker: worker for worker in range(self._count)}
        workers |= {source: worker for worker, source in self._beside.items()}
        for source, worker in workers.items():
            while (frames := self._sockets.recv_nowait(source)) is not None:
                number, head = head_of(frames, FRAME_BYTES_MAX)
                if number != self._number or worker in answers:
                    continue
                answer = decode_reply(frames, head)
                if isinstance(answer, Reply) and not self._is_of(answer, worker):
                    continue  # another cluster listens there
                if source == worker or isinstance(answer, Reply):
                    answers[worker] = answer

    def _is_of(self, answer: Reply, worker: int) -> bool:
        """Return True if an answer is that of the worker at this port, whatever its host is called here."""
        own, here = answer.text("address"), self.addresses[worker]
        return own.rpartition(":")[2] == here.rpartition(":")[2] or own.startswith("ipc://")

    def _answer(
        self, worker: int, answer: Reply | TimelyError | None, processes: Sequence[int]
    ) -> Reply | str:
        who = f"worker {worker} at {self.addresses[worker]}"
        if isinstance(answer, Reply):
            return answer
        if answer is not None:
            if not isinstance(answer, PeerError):
                raise answer
            return f"{who} says: {full_text_of(answer)}"
        if refusal := self._sockets.refusal(worker):
            return f"{who}: {refusal}"
        number = processes[worker] if worker < len(processes) else 0
        state = _state_of(number)
        if state in ("T", "t"):
            return f"worker {worker} is stopped: `kill -CONT {number}` lets its process go on"
        within = f"{who} has not answered within {REASONS_SECONDS_MAX:g} s"
        if state:
            return (
                f"{within}, and its process {number} is there (state {state}): it is in a call of C that "
                "lets no other thread of the process run, or has not begun"
            )
        return (
            f"{within}: it is stopped, it cannot be reached, or it is in a call of C that lets no other "
            "thread of its process run"
        )


def _state_of(process: int) -> str:
    """Return the state of a process of this host as Linux writes it; empty if it is not known."""
    if process <= 0:
        return ""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    return ""
