"""Which core a worker process has to itself, on a host that has as many cores as workers.

The system wakes a process on the core of the one that woke it, if it takes that one to sleep soon; so both
workers of a host with two cores may find themselves on one of them, in the midst of a change, while the other
core rests. With fewer workers than cores there is a choice of cores to be woken on, and it is left to the
system: two clusters that chose cores for themselves might choose the same ones.
"""

from __future__ import annotations

import logging
import os
from typing import Final

__all__ = ["ANY_CORE", "cores", "keep_to", "shared_out"]

ANY_CORE: Final = -1
"""As the system likes."""

_log = logging.getLogger("timely")


def cores() -> list[int]:
    """Those that this thread may run on; none where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def shared_out(workers: int) -> list[int]:
    """For each of all worker processes of this host the core that it has to itself, or `ANY_CORE`.

    The environment may ask for the latter: `NAIAD_OWN_CORES=0`.
    """
    found = cores()
    is_wanted = os.environ.get("NAIAD_OWN_CORES", "1") not in ("", "0")
    return found if is_wanted and len(found) == workers > 1 else [ANY_CORE] * workers


def keep_to(core: int) -> None:
    """Let this thread, and those that it begins from now on, run on this core alone, if it is one."""
    if core == ANY_CORE:
        return
    try:
        os.sched_setaffinity(0, {core})
    except OSError as error:  # the host has taken that core away since
        _log.info("core %d is not to be had: %s", core, error)
