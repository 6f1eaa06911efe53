"""Errors of the runtime, as a tree.

    TimelyError
    ├─ MisuseError                 you called us wrongly; the message says how to mend it
    │  ├─ GraphError                  a dataflow that cannot be built
    │  ├─ TimeRegressionError         sent or asked for a time without the right to it
    │  ├─ TimeOverflowError           more epochs or iterations than a time word holds
    │  ├─ InputClosedError            an epoch that is sealed, an input that is closed
    │  ├─ ForgottenError              changes that a client has said nobody needs any more
    │  ├─ UninstalledError            a dataflow that a client has uninstalled
    │  ├─ ReplacedError               an input or output that the new version of a dataflow does not have
    │  ├─ VertexError                 a user's vertex or builder raised on a worker; carries its traceback
    │  └─ RequestError                a request that this worker cannot read
    ├─ WaitTimeoutError            what was waited for has not happened in time; the cluster is well
    ├─ PeerError                   another process went away or speaks another version
    │  └─ RefusedError                it does not let this client in: no key, another one, or one taken away
    └─ InternalError               a bug here; carries the state

The root is in `progress.errors`, the lowest layer; this module is where to import from. An error that a
worker reports is raised again on the client, as the same class (`revive`).
"""

from progress.errors import (
    GraphError,
    InputClosedError,
    InternalError,
    MisuseError,
    PeerError,
    TimelyError,
    TimeOverflowError,
    TimeRegressionError,
)

__all__ = [
    "ForgottenError",
    "GraphError",
    "InputClosedError",
    "InternalError",
    "MisuseError",
    "PeerError",
    "RefusedError",
    "ReplacedError",
    "RequestError",
    "TimeOverflowError",
    "TimeRegressionError",
    "TimelyError",
    "UninstalledError",
    "VertexError",
    "WaitTimeoutError",
    "class_names",
    "revive",
]


class ForgottenError(MisuseError):
    """Changes that were dropped, since a client said that they may be forgotten, are asked for."""


class UninstalledError(MisuseError):
    """A dataflow is asked for that a client has uninstalled; the cluster and its other dataflows go on."""


class ReplacedError(MisuseError):
    """An input or output of a dataflow that a client has replaced is not there any more, or not as it was.

    What was read before stays right, but nothing that is read now adds up with it.
    """


class VertexError(MisuseError):
    """Code of the user failed on a worker. The message names stage and worker and ends in the traceback."""


class RequestError(MisuseError):
    """A client's request is malformed, or asks for something that this release does not know."""


class RefusedError(PeerError):
    """The workers and this client do not prove to each other who they are: one has no key, or another
    cluster's, or the client's is not on the list (any more). The message says which, and what to do.
    """


class WaitTimeoutError(TimelyError, TimeoutError):
    """Something did not happen in the time that the caller gave. The message says how far it has come."""


def class_names(error: TimelyError) -> list[str]:
    """Names of the classes of `error` up to the root, most special first: how its class travels."""
    return [known.__name__ for known in type(error).__mro__ if issubclass(known, TimelyError)]


def revive(names: list[str], message: str) -> TimelyError:
    """An error of the first of the classes `names` that this process has imported; one that a user derived
    from ours counts as ours, for nobody knows what it takes to make it.
    """
    known = {found.__name__: found for found in _tree(TimelyError) if _is_ours(found)}
    for name in names:
        if name in known:
            return known[name](message)
    return TimelyError(message)


def _is_ours(known: type[TimelyError]) -> bool:
    return known.__module__.partition(".")[0] in ("timely", "differential", "progress")


def _tree(root: type[TimelyError]) -> list[type[TimelyError]]:
    return [root, *(below for child in root.__subclasses__() for below in _tree(child))]
