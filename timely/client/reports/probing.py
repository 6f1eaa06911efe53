"""A probe of an installed dataflow, as a client sees it: how far a stream has come, also inside of loops."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Final

from ...errors import MisuseError, WaitTimeoutError
from ...user_code.short_traces import in_short
from ...user_code.spellings import Spelled
from ...wire.requests import Probe, Value
from ..installed import Installed
from ..other_spellings import OF_PROBES
from ..reading import seconds_of

__all__ = ["FlowProbe"]

_WORK_SECONDS: Final = 0.1
"""How long embedded workers work before they answer: a loop may never come to rest."""


@in_short
class FlowProbe(Spelled):
    """One probe of an installed dataflow. Made by `Flow.probe`.

    Times are tuples: the epoch, and within loops their counters, outermost first; outside of loops the number
    of an epoch will do.
    """

    _spellings = OF_PROBES

    def _missing(self, name: str) -> str:
        return OF_PROBES.message(f"a probe has no {name!r}", name, dir(FlowProbe))

    def __init__(self, flow: Installed, name: str) -> None:
        self._flow = flow
        self.name = name

    def __repr__(self) -> str:
        return f"FlowProbe({self.name!r} of {self._flow.name!r})"

    def less_than(self, time: int | Sequence[int]) -> bool:
        """Return True if something before `time` may still come at the stream, as far as some worker knows;
        once it is False it stays so.

        Embedded workers work first, for a tenth of a second at most. In a durable cluster this is True until
        the epochs before `time` are on disk: a restart takes no answer back.
        """
        flow, numbers = self._flow, _numbers(time, "less_than")
        if flow.is_embedded:
            request = Probe(flow.index, self.name, numbers, True, waits=True, timeout_seconds=_WORK_SECONDS)
            try:
                flow.ask_all(request, _WORK_SECONDS, explains=False)
            except WaitTimeoutError:
                if not flow.incarnation:
                    return True
            else:
                return False
        # In a durable cluster that has started again this waits for what was past before.
        replies = flow.ask_all(Probe(flow.index, self.name, numbers, is_strict=True))
        return not all(reply.values.get("is_past") is True for reply in replies)

    def wait(self, time: int | Sequence[int], timeout: float | None = None) -> None:
        """Block until nothing at or before `time` can come at the stream any more, on all workers; in a
        durable cluster also until that epoch is on disk.

        Raise `WaitTimeoutError` after `timeout` seconds; embedded workers raise it at once if no other thread
        of the program could bring it about, as `Flow.wait` does.
        """
        seconds = seconds_of(timeout)
        numbers = _numbers(time, "wait")
        request = Probe(self._flow.index, self.name, numbers, waits=True, timeout_seconds=seconds)
        self._flow.ask_all(request, seconds)


def _numbers(time: object, call: str) -> list[Value]:
    """Return a time as a request carries it; raise `MisuseError` if it is none."""
    parts = time if isinstance(time, (tuple, list)) else (time,)
    try:
        numbers: list[Value] = [index(part) for part in parts]
    except TypeError:
        numbers = []
    if not numbers or any(isinstance(part, bool) for part in parts):
        raise MisuseError(
            f"{call}(time) takes a tuple of numbers, the epoch and the counters of loops, or an epoch; not "
            f"{time!r:.80}"
        )
    return numbers
