"""Which workers share the dictionaries of this process, and when may they forget words?

Dictionaries belong to the process. Usually the process is one worker; but a program may have several embedded
clusters, in several threads. Words that nothing refers to can be forgotten only while all of them stand
still: none may be in the middle of a *turn*, in which it may hold words that nobody sees, and no message may
be between its workers.

    group      workers that work in the same turns: an embedded cluster, or a process that is a worker
    turn       from when a group begins to work until it stops; turns of different groups may overlap

If another group is in its turn, or a group within a worker's process holds words, nothing is forgotten at
that moment; the caller tries again later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol
from weakref import WeakSet

from ..dictionaries import dictionaries
from ..running.core import Worker
from ..running.forgetting import forget_the_rest

__all__ = [
    "Group",
    "begin_turn",
    "end_turn",
    "forget_alone",
    "forget_together",
    "hides_words",
    "is_full",
    "join",
]


class Group(Protocol):
    """Workers of this process that work in the same turns."""

    def at_rest(self) -> Sequence[Worker] | None:
        """Return its workers, between two turns; [] if it has ended. Return None if the group is always at
        work, or if messages between its workers are under way, which no worker holds.
        """
        ...


class _GroupRegister:
    """All groups of the process, and those that are in a turn."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.groups: WeakSet[Group] = WeakSet()
        self.at_work: set[Group] = set()
        """The groups in a turn. A set: to begin or end a turn twice is the same as once, since a group that
        was interrupted (Ctrl-C) cannot know whether it has.
        """
        self.is_looked_at = False
        """True while a thread holds the lock, and looks at the words of all groups. The thread sets this
        before it reads `at_work`, and a group enters `at_work` before it reads this: so one sees the other.
        """


_process = _GroupRegister()
_dictionaries = dictionaries()


def join(group: Group) -> None:
    """Add a group, for as long as something refers to it."""
    with _process.lock:
        _process.groups.add(group)


def begin_turn(group: Group) -> None:
    """Begin the turn of a group; wait while another group forgets words."""
    _process.at_work.add(group)
    if _process.is_looked_at:
        with _process.lock:
            pass


end_turn: Callable[[Group], None] = _process.at_work.discard
"""End the turn of a group, if it has begun. A thread that looks meanwhile may see it at work or at rest; both
are true.
"""


def _while_nobody_begins(look: Callable[[], bool]) -> bool:
    """Return the result of `look`; no turn begins meanwhile. The lock is taken by `with`, in the function
    that releases it: a context manager of our own that was interrupted (Ctrl-C) as it begins would hold the
    lock for as long as somebody keeps the error.
    """
    with _process.lock:
        try:
            _process.is_looked_at = True
            return look()
        finally:
            _process.is_looked_at = False


def is_full() -> bool:
    """Return True if some dictionary has so many words that it is worth looking for some to forget."""
    for dictionary in _dictionaries:  # Fast path, at every step: no generator, and no call.
        if dictionary.is_full:
            return True
    return False


def hides_words(worker: Worker) -> bool:
    """Return True while a worker has symbols that no part of it can show: it is to forget words later. Cost:
    that of a look at each stage.
    """
    return any(runner.hides_words() for instance in worker.instances.values() for runner in instance.runners)


def forget_together(group: Group) -> bool:
    """Forget what no worker of any group refers to; return False if another group is at work, or has messages
    under way, or if some worker has words that nobody can show now. Requires: `group` is in its turn, and all
    its workers rest.
    """

    def look() -> bool:
        if len(_process.at_work) > 1:
            return False
        resting = [other.at_rest() for other in _process.groups]
        workers = [worker for members in resting for worker in members or ()]
        if any(members is None for members in resting) or any(map(hides_words, workers)):
            return False
        _, not_known = forget_the_rest(workers)
        for worker in workers:
            worker.forgetting.not_known = not_known
        return True

    return _while_nobody_begins(look)


def forget_alone(group: Group, forget: Callable[[], object]) -> bool:
    """Call `forget`; return False if another group in this process is at work, or may hold words. Requires:
    `group` is in its turn.
    """

    def look() -> bool:
        others = [other for other in _process.groups if other is not group]
        if len(_process.at_work) > 1 or any(other.at_rest() != [] for other in others):
            return False
        forget()
        return True

    return _while_nobody_begins(look)
