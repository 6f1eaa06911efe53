"""Errors of the runtime, as a tree.

    TimelyError
    ├─ MisuseError                 a wrong call of the user; the message says how to mend it
    │  ├─ GraphError                  a dataflow cannot be built
    │  ├─ TimeRegressionError         a vertex has sent or requested a time without the right to it
    │  ├─ TimeOverflowError           more epochs or iterations than a time word holds
    │  ├─ InputClosedError            the epoch is sealed, or the input is closed
    │  ├─ ForgottenError              a client has let the changes be dropped
    │  ├─ UninstalledError            a client has uninstalled the dataflow
    │  ├─ ReplacedError               the new version of a dataflow does not have the input or output
   │  ├─ RestartedError              staged rows are gone, since the cluster has started again
    │  ├─ VertexError                 a user's vertex or builder raised on a worker; carries its traceback
    │  └─ RequestError                this worker cannot read the request
    ├─ WaitTimeoutError            the awaited event has not happened in time; the cluster is well
    ├─ PeerError                   another process went away or speaks another version
    │  └─ RefusedError                it does not admit this client: no key, another one, or one taken away
    ├─ StoreError                  the store of a durable cluster cannot be used, or is damaged
    │  ├─ FencedError                 a later incarnation of the cluster has taken over
    │  └─ OvertakenError              a worker that follows has read what does not count
    ├─ SpillError                  large memory cannot be put into files: the disk is full
    ├─ CaptureError                the files of a captured stream are damaged, or cannot be written
    ├─ NotRepeatableError          a dataflow has made another answer of the same rows after a restart
    └─ InternalError               a bug here; carries the state

The root is in `progress.errors`, the lowest layer. Users import all of them from `timely`, and tracebacks
show that name: `timely.WaitTimeoutError`. An error that a worker reports is raised again on the client, as
the same class (`revive`).
"""

from collections.abc import Iterable

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
    "CaptureError",
    "FencedError",
    "ForgottenError",
    "GraphError",
    "InputClosedError",
    "InternalError",
    "MisuseError",
    "NotRepeatableError",
    "OvertakenError",
    "PeerError",
    "RefusedError",
    "ReplacedError",
    "RequestError",
    "RestartedError",
    "SpillError",
    "StoreError",
    "TimeOverflowError",
    "TimeRegressionError",
    "TimelyError",
    "UninstalledError",
    "VertexError",
    "WaitTimeoutError",
    "class_names",
    "import_from",
    "revive",
]


class ForgottenError(MisuseError):
    """A call needs changes that were dropped, since a client has let them be forgotten."""


class UninstalledError(MisuseError):
    """A call needs a dataflow that a client has uninstalled; the cluster and its other dataflows go on."""


class ReplacedError(MisuseError):
    """A client has replaced a dataflow, and the new version lacks an input or output, or has another one.

    Rows read before stay right, but rows read now do not add up with them.
    """


class RestartedError(MisuseError):
    """A durable cluster has started again between two requests that belong together: rows that were staged
    before are gone, and pieces of an output that were read before do not fit those that follow.

    Nothing of the request has happened: begin again with the first request.
    """


class VertexError(MisuseError):
    """Code of the user failed on a worker. The message names stage and worker and ends in the traceback."""


class RequestError(MisuseError):
    """A client's request is malformed, or this release does not know it."""


class RefusedError(PeerError):
    """The workers and this client do not talk to each other: they are of two releases, or cannot prove their
    identities, since one side has no key, or another cluster's, or the client's key is not on the list (any
    more). The message says which, and what to do.
    """


class StoreError(TimelyError):
    """The store of a durable cluster cannot be used: the disk fails or is full, a file is damaged, or the
    store belongs to another user, cluster or format. The message says which, and what to do.
    """


class FencedError(StoreError):
    """A later incarnation of this durable cluster has taken over: this process answers nothing any more."""


class OvertakenError(StoreError):
    """A worker that follows a durable cluster has read records that do not count, or lacks some that do. It
    begins anew; the cluster goes on.
    """


class SpillError(TimelyError):
    """A worker cannot put large memory into the files of its folder: the disk is full, or fails. The message
    names the folder and the room that is needed.
    """


class CaptureError(TimelyError):
    """The files of a captured stream are damaged, or cannot be written or read. The message names the file,
    and the byte.
    """


class NotRepeatableError(TimelyError):
    """After a restart, a dataflow has made another answer of the same rows than it had shown before. The
    message names the output and the epoch.
    """


class WaitTimeoutError(TimelyError, TimeoutError):
    """The awaited event did not happen within the caller's timeout. The message says how far it has come."""


def import_from(module: str, errors: Iterable[type[BaseException]]) -> None:
    """Let tracebacks, `repr` and pickle call these errors by the module that users import them from."""
    for error in errors:
        error.__module__ = module


def class_names(error: TimelyError) -> list[str]:
    """Return the names of the classes of `error` up to the root, most special first; the wire form of its
    class.
    """
    return [class_.__name__ for class_ in type(error).__mro__ if issubclass(class_, TimelyError)]


def revive(names: list[str], message: str) -> TimelyError:
    """Return an error of the first of the classes `names` that is ours and imported in this process.

    A class that a user has derived from ours is skipped, since its constructor may take other arguments.
    """
    classes = {class_.__name__: class_ for class_ in _tree(TimelyError) if _is_ours(class_)}
    for name in names:
        if name in classes:
            return classes[name](message)
    return TimelyError(message)


def _is_ours(class_: type[TimelyError]) -> bool:
    return class_.__module__.partition(".")[0] in ("timely", "differential", "progress")


def _tree(root: type[TimelyError]) -> list[type[TimelyError]]:
    return [root, *(below for child in root.__subclasses__() for below in _tree(child))]


import_from("timely", [globals()[name] for name in __all__ if name.endswith("Error")])
