"""Which workloads are compared, in which sizes?

`CASES` are those of the table of `bench/workloads.py` that the operators allow, two of them with 1,000
epochs in flight at once, and the shape in which we lose most; top and q3 are first rows of groups, and
several operators behind one another. `SMALL` are the same in little: what they
take means nothing, what they answer does. `MODEST` are sizes that the peers in Python can run, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["CASES", "MODEST", "SMALL", "Case", "chosen"]


@dataclass(frozen=True)
class Case:
    """One workload in one size; `words` as the peers call it, `batch` epochs in flight at once."""

    words: str
    sizes: tuple[int, ...]
    batch: int = 1

    @property
    def family(self) -> str:
        """The workload as `bench/dataflow/measure.py` knows it: "wcc" for "wcc plain", "wcc-prioritised"."""
        return "-".join(word for word in self.words.split() if word != "plain")

    @property
    def workload(self) -> str:
        """As it is printed by who runs it, and as `bench/workloads.py` knows it."""
        return f"{self.words} {' '.join(map(str, self.sizes))}"

    @property
    def _loaded_sizes(self) -> int:
        """How many of the sizes say what is loaded: nodes or keys and rows; of q3 the orders."""
        return 1 if self.family == "q3" else 2

    @property
    def changes(self) -> int:
        """The number of changes."""
        return self.sizes[self._loaded_sizes]

    def with_changes(self, changes: int) -> Case:
        """The same workload with another number of changes."""
        at = self._loaded_sizes
        return replace(self, sizes=(*self.sizes[:at], changes, *self.sizes[at + 1 :]))

    @property
    def name(self) -> str:
        """As in wcc-100k-1M: how many nodes or keys, then how much is loaded; q3-250k: how many orders."""
        in_flight = "-in-flight" if self.batch > 1 else ""
        return f"{self.family}-{'-'.join(map(_short, self.sizes[: self._loaded_sizes]))}{in_flight}"


def _short(size: int) -> str:
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


CASES = (
    Case("wcc plain", (100_000, 200_000, 100)),
    Case("wcc plain", (100_000, 1_000_000, 100)),
    Case("wcc plain", (1_000_000, 2_000_000, 100)),
    Case("wcc prioritised", (100_000, 200_000, 100)),
    Case("wcc prioritised", (100_000, 1_000_000, 100)),
    Case("wcc prioritised", (1_000_000, 2_000_000, 100)),
    Case("bfs", (100_000, 200_000, 100)),
    Case("bfs", (100_000, 1_000_000, 100)),
    Case("bfs", (1_000_000, 2_000_000, 100)),
    Case("scc plain", (100_000, 200_000, 20)),
    Case("scc written", (100_000, 200_000, 20)),
    Case("pagerank", (100_000, 200_000, 5)),
    Case("count plain", (1_000_000, 10_000_000, 1_000, 1_000)),
    Case("sum", (1_000_000, 10_000_000, 1_000, 1_000)),
    Case("join", (1_000_000, 1_000_000, 1_000, 1_000)),
    Case("top", (100_000, 1_000_000, 1_000, 1_000)),
    Case("q3", (250_000, 1_000, 1_000)),
    Case("wcc plain", (100_000, 200_000, 1_000), batch=1_000),
    Case("bfs", (100_000, 200_000, 1_000), batch=1_000),
    # Here we should lose most: nothing to do in an epoch but to begin it and to end it.
    Case("count plain", (10_000, 100_000, 1_000, 2)),
)

MODEST = (
    Case("wcc plain", (10_000, 20_000, 20)),
    Case("bfs", (10_000, 20_000, 20)),
    Case("pagerank", (10_000, 20_000, 5)),
    Case("count plain", (100_000, 1_000_000, 100, 1_000)),
    Case("count plain", (10_000, 100_000, 1_000, 2)),
    Case("sum", (100_000, 1_000_000, 100, 1_000)),
    Case("join", (100_000, 100_000, 100, 1_000)),
)

SMALL = (
    Case("wcc plain", (300, 500, 20)),
    Case("bfs", (300, 900, 20)),
    Case("wcc prioritised", (300, 500, 20)),
    Case("scc plain", (200, 400, 10)),
    Case("scc written", (200, 400, 10)),
    Case("pagerank", (200, 400, 5)),
    Case("count plain", (1_000, 10_000, 10, 40)),
    Case("sum", (1_000, 10_000, 10, 40)),
    Case("join", (200, 300, 10, 20)),
    Case("top", (100, 600, 10, 40)),
    Case("q3", (2_000, 10, 200)),
    Case("wcc plain", (300, 500, 20), batch=8),
    Case("bfs", (300, 900, 20), batch=8),
)


def chosen(cases: Sequence[Case], names: Sequence[str]) -> list[Case]:
    """The cases that are meant by `names`, each a name or, if it is none, how some begin; all without names.

    Raises `ValueError` for what is neither.
    """
    if not names:
        return list(cases)
    meant: set[Case] = set()
    for name in names:
        exactly = {case for case in cases if case.name.lower() == name.lower()}
        found = exactly or {case for case in cases if case.name.lower().startswith(f"{name.lower()}-")}
        if not found:
            known = ", ".join(case.name for case in cases)
            raise ValueError(f"there is no workload {name!r}; there are {known}")
        meant |= found
    return [case for case in cases if case in meant]
