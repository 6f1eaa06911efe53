"""Which release, libraries and kind of processor does this process have? An answer may differ by these in the
last bit of a float, or by what a regular expression matches.
"""

from __future__ import annotations

import functools
import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa

__all__ = ["own_build"]


@functools.cache
def own_build() -> str:
    """Return the versions of what computes answers here, and the processor, as one line."""
    release = "an unknown release"
    with suppress(metadata.PackageNotFoundError):
        release = metadata.version("naiad")
    return (
        f"release {release}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"pyarrow {pa.__version__}, {platform.system()} {platform.machine()}, {_processor()}"
    )


def _processor() -> str:
    """Return the model of the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
