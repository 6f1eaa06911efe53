"""How many components are there and how large are they, given only what changes?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


class ComponentSizes:
    """Counts nodes per component from changes (node, component, diff)."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self.nodes = 0

    def apply(self, changes: pa.Table) -> None:
        """Add the changes of an epoch."""
        if changes.num_rows == 0:
            return
        diffs = changes.column("diff").to_numpy()
        touched, position = np.unique(changes.column("component").to_numpy(), return_inverse=True)
        moved = np.bincount(position, weights=diffs).astype(np.int64)
        for component, change in zip(touched.tolist(), moved.tolist(), strict=True):
            size = self._sizes.get(component, 0) + change
            if size:
                self._sizes[component] = size
            else:
                self._sizes.pop(component, None)
        self.nodes += int(diffs.sum())

    @property
    def components(self) -> int:
        """The number of components."""
        return len(self._sizes)

    @property
    def largest(self) -> int:
        """The number of nodes of the largest component; 0 if there is none."""
        return max(self._sizes.values(), default=0)
