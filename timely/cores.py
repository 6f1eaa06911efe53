"""Which core does each worker process have to itself, on a host with as many cores as workers?

The system wakes a process on the core of its waker if it expects the waker to sleep soon. So both workers of
a host with two cores may run on one of them, in the middle of a change, while the other core is idle. With
fewer workers than cores the system has other cores to choose from, and the choice is left to it: two clusters
that pinned their workers might choose the same cores.
"""

from __future__ import annotations

import logging
import os
from typing import Final

__all__ = ["ANY_CORE", "cores", "keep_to", "shared_out"]

ANY_CORE: Final = -1
"""No core of its own: the system chooses."""

_log = logging.getLogger("timely")


def cores() -> list[int]:
    """Return the cores that this thread may run on; empty if the system does not report them."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def shared_out(workers: int) -> list[int]:
    """Return for each worker process of this host the core that it has to itself, or `ANY_CORE`.

    With `NAIAD_OWN_CORES=0` in the environment it is always `ANY_CORE`.
    """
    usable = cores()
    is_enabled = os.environ.get("NAIAD_OWN_CORES", "1") not in ("", "0")
    return usable if is_enabled and len(usable) == workers > 1 else [ANY_CORE] * workers


def keep_to(core: int) -> None:
    """Pin this thread, and those that it starts later, to `core`; do nothing for `ANY_CORE`."""
    if core == ANY_CORE:
        return
    try:
        os.sched_setaffinity(0, {core})
    except OSError as error:  # the host has taken that core away meanwhile
        _log.info("core %d is not to be had: %s", core, error)
