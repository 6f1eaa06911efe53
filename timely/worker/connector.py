"""A connector on one worker: transform, shift, route, deliver.

What a sender pays per batch and connector is in `send`, in this order: the fused linear operators
(`transform`), the path summary on times (`keep`, `add`), the route, and one count change per part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from progress.errors import MisuseError

from ..batch import Batch
from ..exchange import Route
from ..stream import Transform

if TYPE_CHECKING:
    from .host import Host
    from .instance import Instance


class Connector:
    """From one output of a stage to one input of another, seen from the sending worker."""

    __slots__ = (
        "_instance", "_is_identity", "add", "all_guards", "index", "keep", "location", "messages_sent",
        "port", "route", "rows_sent", "target", "transform",
    )  # fmt: skip

    def __init__(
        self,
        instance: Instance,
        index: int,
        location: int,
        target: Host,
        port: int,
        times: tuple[int, int, int, bool],
        transform: Transform | None,
        route: Route | None,
    ) -> None:
        self._instance = instance
        self.index = index
        self.location = location
        self.target = target
        self.port = port
        self.keep, self.add, self.all_guards, self._is_identity = times
        self.transform = transform
        self.route = route
        self.rows_sent = 0
        self.messages_sent = 0

    def send(self, batch: Batch, word: int) -> None:
        """Carry `batch`, sent at `word`, to where its rows belong."""
        if self.transform is not None:
            transformed = self.transform(batch)
            if transformed is None or transformed.rows == 0:
                return
            batch = transformed
        if not self._is_identity:
            word = (word & self.keep) + self.add
            if word & self.all_guards:
                raise MisuseError(
                    f"{self.target.title()}: a loop around it went past its limit of iterations (a counter "
                    "of its time is full). It does not converge, or it needs a higher limit: state "
                    "level_bits for the dataflow"
                )
            batch = batch.shifted(self.keep, self.add)
        self.rows_sent += batch.rows
        self.messages_sent += 1
        instance = self._instance
        if self.route is None or instance.workers == 1:
            instance.count(self.location, word, 1)
            instance.enqueue(self.target, self.port, self.location, word, batch)
            return
        for peer, part in enumerate(self.route.split(batch, instance.workers)):
            if part is None:
                continue
            instance.count(self.location, word, 1)
            if peer == instance.worker:
                instance.enqueue(self.target, self.port, self.location, word, part)
            else:
                instance.send_data(peer, self.index, word, part)
