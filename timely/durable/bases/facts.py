"""What does a fold have to know about a dataflow? Whoever installs it says so, and the log keeps it.

A fold runs in a process of its own, without the program that has built the dataflow. So these facts are plain
data: for each input how its rows are summed, or why they are not; for each output the form of its rows; and
how far answers look back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

__all__ = ["FoldFacts", "InputFacts", "OutputFacts"]


class InputFacts(NamedTuple):
    """How the rows of one input are folded.

    form      "module:function" that makes `rows_form.RowsForm`; "": batches stay as they were logged
    details   the argument of that function: plain data
    sums      True if the rows up to an epoch become one change, or, without a form, are dropped; else each
              row keeps its epoch
    why       why they do not, for people, with the line of the query; "" if they do
    expires   True if rows may be dropped because all that reads them has let them go

    Without a form, `details` are those of `raw_rows.RawRows`.
    """

    name: str
    form: str = ""
    details: Sequence[object] = ()
    sums: bool = False
    why: str = ""
    expires: bool = False


class OutputFacts(NamedTuple):
    """The form of the rows of one output; see `InputFacts`."""

    name: str
    form: str = ""
    details: Sequence[object] = ()


class FoldFacts(NamedTuple):
    """How a dataflow is folded.

    lookback        answers at an epoch depend on how the inputs were up to so many epochs before it
    import_reason   why all epochs of its imports are needed, for people; "" if their present state will do
    """

    lookback: int = 0
    inputs: tuple[InputFacts, ...] = ()
    outputs: tuple[OutputFacts, ...] = ()
    import_reason: str = ""

    def plain(self) -> list[object]:
        """Return the facts as msgpack holds them."""
        return [
            self.lookback,
            [list(each) for each in self.inputs],
            [list(each) for each in self.outputs],
            self.import_reason,
        ]

    @classmethod
    def of(cls, plain: object) -> FoldFacts:
        """The inverse of `plain`."""
        lookback, inputs, outputs, import_reason = cast(
            "tuple[int, Iterable[Iterable[object]], Iterable[Iterable[object]], str]", plain
        )
        return cls(
            lookback,
            tuple(InputFacts._make(each) for each in inputs),
            tuple(OutputFacts._make(each) for each in outputs),
            import_reason,
        )

    def reasons(self) -> list[str]:
        """Return why something is not summed, a line for each reason."""
        lines = [f"input {each.name!r}: {each.why}" for each in self.inputs if each.why]
        return [*lines, f"what it imports: {self.import_reason}"] if self.import_reason else lines

    def input(self, name: str) -> InputFacts:
        """Return the facts of an input; one that nobody knows anything of is kept as it is."""
        return next((each for each in self.inputs if each.name == name), InputFacts(name))

    def output(self, name: str) -> OutputFacts:
        """Return the facts of an output."""
        return next((each for each in self.outputs if each.name == name), OutputFacts(name))
