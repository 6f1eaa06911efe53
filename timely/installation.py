"""How do all workers come to run the same dataflow?

    1. each worker builds and instantiates it, apart from everything that runs
    2. each sends its `Offer` (fingerprint and description, or why it failed) to all others
    3. with all offers at hand each judges them by the same rule: either all start it, or all refuse it

An `Installation` is one such attempt on one worker. Offers of faster workers may come before the own attempt
begins.
"""

from __future__ import annotations

from collections.abc import Mapping

from .batch import Batch
from .builders import Builder, build_dataflow
from .errors import GraphError, MisuseError, TimelyError, VertexError
from .freeze import FrozenDataflow
from .handshake import Offer, encode_control, first_difference
from .requests import Reply, Value, schema_to_bytes
from .worker.core import Worker
from .worker.instance import Instance

__all__ = ["Batch", "Installations", "describe"]


class Installations:
    """All attempts on one worker, by the index of the dataflow."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._offers: dict[int, dict[int, Offer]] = {}
        self._prepared: dict[int, Instance] = {}
        self._failed: dict[int, TimelyError] = {}
        self.specs: dict[int, str] = {}
        self._reserved = 0

    def reserve(self) -> int:
        """An index that no dataflow has had. Only worker 0 is asked, so that clients never take the same."""
        index = self._reserved
        self._reserved += 1
        return index

    def begin(self, dataflow: int, spec: str, builder: Builder, arguments: Mapping[str, object]) -> None:
        """Build, instantiate, and tell the others. What fails is kept for `finish`: the others have to hear
        of it first.
        """
        if dataflow in self.specs:
            raise MisuseError(f"dataflow {dataflow} exists already: it is {self.specs[dataflow]!r}")
        self.specs[dataflow] = spec
        self._reserved = max(self._reserved, dataflow + 1)
        try:
            frozen = build_dataflow(builder, spec, arguments).freeze()
            self._prepared[dataflow] = self._instantiate(dataflow, frozen)
            offer = Offer(dataflow, frozen.fingerprint, tuple(frozen.graph.describe()), "")
        except TimelyError as error:
            self._failed[dataflow] = error
            offer = Offer(dataflow, "", (), f"{type(error).__name__}: {error}")
        self.receive(self._worker.index, offer)
        self._worker.send_control(encode_control(offer))

    def fail(self, dataflow: int, spec: str, error: TimelyError) -> None:
        """The builder could not even be found: the others must hear that, too."""
        if dataflow in self.specs:
            raise MisuseError(f"dataflow {dataflow} exists already: it is {self.specs[dataflow]!r}")
        self.specs[dataflow] = spec
        self._failed[dataflow] = error
        offer = Offer(dataflow, "", (), f"{type(error).__name__}: {error}")
        self.receive(self._worker.index, offer)
        self._worker.send_control(encode_control(offer))

    def receive(self, worker: int, offer: Offer) -> None:
        """A worker, perhaps this one, has built its part."""
        self._offers.setdefault(offer.dataflow, {})[worker] = offer

    def finish(self, dataflow: int) -> Instance | None:
        """The running dataflow once all offers are in (`None` until then); raises why it was refused."""
        offers = self._offers.get(dataflow, {})
        if len(offers) < self._worker.workers:
            return None
        del self._offers[dataflow]
        prepared = self._prepared.pop(dataflow, None)
        failure = self._failed.pop(dataflow, None)
        difference = first_difference(offers)
        if difference is None:
            assert prepared is not None
            self._worker.start(prepared)
            return prepared
        del self.specs[dataflow]
        raise failure if failure is not None else GraphError(difference)

    def missing(self, dataflow: int) -> list[int]:
        """Workers whose offer has not come in."""
        return [
            worker for worker in range(self._worker.workers) if worker not in self._offers.get(dataflow, {})
        ]

    def _instantiate(self, dataflow: int, frozen: FrozenDataflow) -> Instance:
        try:
            return self._worker.prepare(frozen, dataflow)
        except TimelyError:
            raise
        except Exception as error:
            raise VertexError(
                f"a vertex of {frozen.name!r} could not be made: {type(error).__name__}: {error}"
            ) from error


def describe(instance: Instance, spec: str) -> Reply:
    """What a client has to know of an installed dataflow; see `requests.Describe`."""
    dataflow = instance.frozen.dataflow
    inputs: list[Value] = []
    for name, declared in dataflow.inputs.items():
        arrow_schema = getattr(declared.codec, "arrow_schema", None)
        packed = None if arrow_schema is None else schema_to_bytes(arrow_schema())
        inputs.append([name, declared.codec.describe(), packed, getattr(declared.codec, "converter", None)])
    return Reply(
        {
            "name": instance.frozen.name,
            "spec": spec,
            "epoch": min((handle.epoch for handle in instance.inputs.values()), default=0),
            "fingerprint": instance.frozen.fingerprint,
            "inputs": inputs,
            "outputs": [[name, declared.codec.describe()] for name, declared in dataflow.outputs.items()],
            "stages": list(instance.frozen.graph.describe()),
        }
    )
