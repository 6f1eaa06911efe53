"""An input with epochs of its own.

A client remembers the open epoch of a dataflow, so that rows that it inserts after a seal enter a later epoch
on every worker. One number is enough while all inputs are sealed together. An input that is sealed by itself
may be ahead of the others or behind them: its rows need a number of their own. Otherwise rows of one input
would enter epochs that only another one has reached.
"""

from __future__ import annotations

from ...wire.requests import Decide, Reply
from ..installed import Installed

__all__ = ["OwnEpochs", "heeding"]


class OwnEpochs(Installed):
    """A dataflow as one of its inputs sees it: `epoch` is the one that is open at this input, as far as this
    client knows.
    """

    def __init__(self, flow: Installed, input: str) -> None:
        flow.settle(seals=True)
        super().__init__(flow._workers, flow.index, flow.name, flow.epoch)
        self._input = input
        flow.own_epochs.append(self)

    def on_answer(self, reply: Reply) -> None:
        """Note that rows have entered an epoch of this input."""
        self.note_epoch(reply.integer("epoch"))

    def seal(self) -> int:
        """See `FlowInput.seal`."""
        self.settle(seals=True)
        self.note_epoch(self._decide(-1, False))  # other clients may have sealed it further
        sealed = self.epoch
        self.note_epoch(self._decide(sealed, True))
        return sealed

    def advance_to(self, epoch: int) -> int:
        """See `FlowInput.advance_to`."""
        self.settle(seals=True)
        self.note_epoch(self._decide(epoch - 1, epoch > 0))
        return self.epoch

    def _decide(self, epoch: int, seals: bool) -> int:
        """Seal epochs up to this one, or none; return the epoch that is open then."""
        return self.ask_first(Decide(self.index, epoch, seals, only=self._input)).integer("open")


def heeding(flow: Installed, input: str) -> Installed:
    """Return a dataflow as one of its inputs sees it, once another client has sealed that by itself."""
    if input not in flow.ahead:
        return flow
    epoch, own = flow.ahead.pop(input), OwnEpochs(flow, input)
    own.note_epoch(epoch)
    return own
