"""Notes on an interrupt (Ctrl-C) of a call that waits: what it waited for, for which dataflow and how long,
and which workers had not answered.

An interrupt itself says nothing. A user who does not see what a call waits for cannot see why it does not
end: an epoch that nobody has sealed, one worker that computes, or the wrong dataflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..failure import add_note
from ..operators.capture import FOREVER
from ..wire.requests import Decide, Deliver, Install, Probe, Progress, Read, Replace, Request, Value

__all__ = ["SENT", "description_of", "missing", "note_awaited"]

SENT: Final = "the answer to what this thread has sent before, as rows or a seal"
_SHOWN_MAX: Final = 8
"""How many workers that have not answered a note names."""


def note_awaited(error: KeyboardInterrupt, what: Request | str, seconds: float, why: str) -> None:
    """Note on an interrupt what the call waited for, how many seconds, and `why` in vain."""
    if not isinstance(what, str):
        # A client that follows an output sends request after request.
        seconds += what.waited_seconds if isinstance(what, Probe | Progress) else 0.0
        what = description_of(what)
    add_note(error, f"interrupted after {seconds:.1f} s of waiting for {what}; {why}")


def missing(workers: Sequence[int], addresses: Sequence[str]) -> str:
    """Return, for a note, which workers have not answered, and where they are."""
    listed = ", ".join(f"worker {worker} at {addresses[worker]}" for worker in workers[:_SHOWN_MAX])
    more = f" and {len(workers) - _SHOWN_MAX} more" if len(workers) > _SHOWN_MAX else ""
    return f"no answer yet from {listed}{more}"


def description_of(request: Request) -> str:
    """Describe a request in the words of users."""
    match request:
        case Install(spec, arguments):
            return f"the install of {_name(spec, arguments)!r}"
        case Replace(dataflow, spec, arguments):
            return f"{_name(spec, arguments)!r} to take the place of dataflow {dataflow}"
        case Deliver(dataflow, name):
            return f"rows for input {name!r} of dataflow {dataflow} to be taken"
        case Decide(dataflow, epoch, seals):
            if not seals or epoch < 0:
                return f"what becomes of epochs and staged rows of dataflow {dataflow} to be decided"
            where = f"input {request.only!r} of " if request.only else ""
            return f"epoch {epoch} of {where}dataflow {dataflow} to be sealed"
        case Progress(dataflow, output, epoch) if epoch >= 0:
            return f"{_epoch(epoch)} of {_output(output)}dataflow {dataflow} to be complete"
        case Probe(dataflow, name, time) if request.waits:
            return f"the probe {name!r} of dataflow {dataflow} to be past {tuple(time)}"
        case Read(dataflow, output, -1, stop) if request.first < 0:
            return f"a snapshot of {_output(output)}dataflow {dataflow} as of {_epoch(stop - 1)}"
        case Read(dataflow, output, start, stop) if request.first < 0:
            end = f" before epoch {stop}" if stop > start else ""
            return f"changes of {_output(output)}dataflow {dataflow} from epoch {start} on{end}"
    kind = type(request).__name__.lower()
    number = getattr(request, "dataflow", None)
    return f"the answer to {kind!r}" + ("" if number is None else f" of dataflow {number}")


def _name(spec: str, arguments: dict[str, Value]) -> Value:
    """Return the name of a dataflow. A query that travels has that of its function: our own code builds
    it.
    """
    return arguments.get("name", spec) if "token" in arguments else spec


def _epoch(epoch: int) -> str:
    return "the last epoch" if epoch >= FOREVER - 1 else f"epoch {epoch}"


def _output(name: str) -> str:
    return f"output {name!r} of " if name else ""
