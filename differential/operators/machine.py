"""The protocol of machines, the verbs of every operator: words and frontiers in, words out.

A machine is the logic of an operator. It knows no stage, no worker and no clock, so one driver runs all of
them in a dataflow (`MachineVertex` in `vertices.py`), and one step runs all of them in a compiled loop
(`MachineStep` in `differential/compiled_loops/steps.py`).

    recv       rows come in at a port; they wait, or are worked off by the next `work`
    advance    no row comes in any more that is not at or after its port's frontier
    work       the next rows to send; None: there is nothing to send before more comes in
    needs      the minimal times at which something may still be sent before more comes in
    traces     the traces that the machine writes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from differential.columns.packed.parts import Part
from differential.operators.reducing.overflowing import FailedGroup
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

__all__ = ["Machine"]


class Machine(Protocol):
    """See above. A class that inherits this takes over what most machines do."""

    pauses: ClassVar[bool] = False
    """True if others have their turn between two pieces of `work`. A piece may be there as soon as rows
    are."""

    times: Sequence[int] = ()
    """Indexes of the words of rows at port 0 that are times, too."""

    def recv(self, port: int, parts: list[Part]) -> None:
        """Take rows in. The machine may keep the parts, and changes none; the list is the machine's own."""
        ...

    def advance(self, *frontiers: Int64s) -> None:
        """Learn the frontier of each port: every later row is at or after one of its times."""
        ...

    def work(self) -> Int64s | None:
        """Return the next rows to send, perhaps none; None if no rows are left to send."""
        ...

    @property
    def is_done(self) -> bool:
        """True if `work` has nothing left to do before more rows come in."""
        return True

    def needs(self) -> Int64s:
        """Return the minimal times at which something may still be sent, ascending."""
        ...

    @property
    def traces(self) -> list[Trace]:
        """The traces that the machine writes."""
        return []

    def first_asked(self) -> int | None:
        """Return the first time word that must stay different from earlier ones; None if there is none."""
        return None

    def take_failed(self) -> list[FailedGroup]:
        """Return the changes of groups without an answer since the last call."""
        return []

    def set_since(self, *frontiers: Int64s) -> None:
        """Ask, from now on, only about times at or after an element of the frontier of their port."""
        return

    def let_look(self, look: Callable[[], None]) -> None:
        """Call `look` before a merge of a trace begins: see `Trace.look`."""
        return

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch; the driver moves `traces`."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show all words that the machine keeps."""
        ...

    def hides_words(self, waits: bool) -> bool:
        """Return True while it has symbols that it cannot show: see `HidesWords`."""
        del waits
        return False
