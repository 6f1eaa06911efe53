"""What is an array of times, counts or rows to a kernel, and to whoever hands one on?

The types alone: who only talks of arrays needs no kernel.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Int32s", "Int64s"]

Int64s: TypeAlias = npt.NDArray[np.int64]
Int32s: TypeAlias = npt.NDArray[np.int32]
Bools: TypeAlias = npt.NDArray[np.bool_]
