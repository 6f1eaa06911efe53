"""Errors of all three packages: who was wrong, and what to do about it.

    TimelyError
    ├─ MisuseError            you called us wrongly; the message says how to mend it
    │  ├─ GraphError              a loop without feedback, a port that does not exist
    │  ├─ TimeRegressionError     sent or asked for a time that is already past
    │  ├─ TimeOverflowError       more epochs or iterations than the time layout has room for
    │  └─ InputClosedError        wrote to an input after closing it
    ├─ PeerError              another process went away, or broke the protocol
    └─ InternalError          a bug here; the message carries the state

`timely` and `differential` hang their own errors below these branches.
"""

from __future__ import annotations


class TimelyError(Exception):
    """Root of the tree: everything that this repository raises on purpose.

    `ends_dataflow`: True if the error says that a dataflow has ended, so that later calls to the dataflow
    raise the same error.
    """

    ends_dataflow = False


class MisuseError(TimelyError):
    """The caller broke a rule. The message names the rule, the place and the remedy."""


class GraphError(MisuseError):
    """The dataflow cannot be built: a cycle that does not advance, a port that does not exist."""


class TimeRegressionError(MisuseError):
    """Something was sent, or asked for, at a time that is already complete there."""


class TimeOverflowError(MisuseError):
    """A coordinate of a time does not fit its field. The message names the field and its limit."""


class InputClosedError(MisuseError):
    """An input was written to, or advanced, after it had been closed."""


class PeerError(TimelyError):
    """Another worker broke the protocol or is gone. The message names the worker and the fault."""


class InternalError(TimelyError):
    """A bug in this repository: an invariant does not hold. The message carries the state."""
