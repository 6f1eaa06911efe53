"""Who in this process shares its dictionaries, and when may all of it be looked at?

Dictionaries belong to the process. Mostly that is one worker; but a program may have several embedded
clusters, in several threads. To forget what nothing refers to, all of them must stand still: none in the
middle of a *turn*, in which it may hold words that are nowhere to be seen, and no message between its
workers.

    group      workers that work in the same turns: an embedded cluster, or a process that is a worker
    turn       from when a group begins to work until it stops; turns of different groups may overlap

Where they do, or where a group within a worker's process keeps words, nothing is forgotten at that moment; it
is tried again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol
from weakref import WeakSet

from ..dictionaries import dictionaries
from ..running.core import Worker
from ..running.forgetting import forget_the_rest

__all__ = ["Group", "begin_turn", "end_turn", "forget_alone", "forget_together", "is_full", "join"]


class Group(Protocol):
    """Workers of this process that work in the same turns."""

    def at_rest(self) -> Sequence[Worker] | None:
        """Its workers between two turns; none if it is over. None if more is under way than they hold."""
        ...


class _GroupRegister:
    """Which groups there are, and which are in a turn."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.groups: WeakSet[Group] = WeakSet()
        self.at_work: set[Group] = set()
        """A turn that is begun, or ended, twice is one: whoever was interrupted (Ctrl-C) cannot know which of
        it was done.
        """
        self.is_looked_at = False
        """Whether somebody holds the lock, and looks at what all groups hold. It is said before it is asked
        who is at work, and whoever begins to work says that before asking this: so one hears of the other.
        """


_process = _GroupRegister()
_known = dictionaries()


def join(group: Group) -> None:
    """There is a new group, as long as somebody holds on to it."""
    with _process.lock:
        _process.groups.add(group)


def begin_turn(group: Group) -> None:
    """A group begins to work; waits while something is being forgotten."""
    _process.at_work.add(group)
    if _process.is_looked_at:
        with _process.lock:
            pass


end_turn: Callable[[Group], None] = _process.at_work.discard
"""A group stops, if it has begun. Who looks meanwhile sees it at work, or at rest: both are true."""


def _while_nobody_begins(look: Callable[[], bool]) -> bool:
    """What `look` says; meanwhile no turn begins. The lock is taken by `with` where it is let go of: by a
    context manager of our own it would be held, after an interrupt (Ctrl-C) as that begins, for as long as
    somebody keeps the error.
    """
    with _process.lock:
        try:
            _process.is_looked_at = True
            return look()
        finally:
            _process.is_looked_at = False


def is_full() -> bool:
    """Whether some dictionary has so much that it is worth looking for what may be forgotten."""
    for dictionary in _known:  # asked at every step: no generator, and no call
        if dictionary.is_full:
            return True
    return False


def forget_together(group: Group) -> bool:
    """Forget what no worker of any group refers to, in a turn of `group`, all of whose workers rest; False if
    some other group is at work.
    """

    def look() -> bool:
        if len(_process.at_work) > 1:
            return False
        resting = [other.at_rest() for other in _process.groups]
        workers = [worker for some in resting for worker in some or ()]
        if any(some is None for some in resting):
            return False
        _, not_known = forget_the_rest(workers)
        for worker in workers:
            worker.forgetting.not_known = not_known
        return True

    return _while_nobody_begins(look)


def forget_alone(group: Group, forget: Callable[[], object]) -> bool:
    """`forget`, in a turn of `group`; False if some other group is in this process, which may hold words."""

    def look() -> bool:
        others = [other for other in _process.groups if other is not group]
        if len(_process.at_work) > 1 or any(other.at_rest() != [] for other in others):
            return False
        forget()
        return True

    return _while_nobody_begins(look)
