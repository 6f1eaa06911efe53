"""Which insertions of a client were done, so that it may seal behind them before it has heard of that.

A client that posts rows and then seals does not wait in between: the seal names the requests before it.
It counts only if all of them were done, here, and seals the epochs that they have entered as well. What is
not remembered was not done, as far as this tells: then nothing is sealed, and the client asks once more when
it knows what has become of its rows.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from ...limits import CALLERS_MAX, POSTED_COUNT_MAX
from ...wire.requests import Insert, InsertRows, Reply, Request, Seal

__all__ = ["Posted"]


class Posted:
    """Remembers of each client its last insertions, of the clients that were heard of last."""

    def __init__(self) -> None:
        self._done: OrderedDict[bytes, deque[tuple[int, int, int]]] = OrderedDict()

    def note(self, client: bytes, number: int, request: Request, reply: Reply) -> bool:
        """A request of a client was done; whether it is one that may have been posted."""
        if not isinstance(request, InsertRows | Insert):
            return False
        done = self._done.get(client)
        if done is None:
            done = self._done[client] = deque(maxlen=POSTED_COUNT_MAX)
            if len(self._done) > CALLERS_MAX:
                self._done.popitem(last=False)
        else:
            self._done.move_to_end(client)
        done.append((number, request.dataflow, reply.integer("epoch")))
        return True

    def behind(self, client: bytes, request: Request) -> Request | None:
        """A request as it is to be done where all is done that it names: a seal of the epochs, too, that this
        has entered. None where that is not known.
        """
        if not isinstance(request, Seal) or not request.behind:
            return request
        done = {number: (dataflow, epoch) for number, dataflow, epoch in self._done.get(client, ())}
        epochs = [request.epoch]
        for number in request.behind:
            dataflow, epoch = done.get(number, (-1, -1)) if isinstance(number, int) else (-1, -1)
            if dataflow != request.dataflow:
                return None
            epochs.append(epoch)
        return Seal(request.dataflow, max(epochs))
