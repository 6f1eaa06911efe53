"""How do all workers come to run the same dataflow?

    1. worker 0 gives it an index and tells the others to build it (`Build`), or each begins by itself
       (--install)
    2. each builds and instantiates it, apart from everything that runs, and offers worker 0 what it has
       built, or why it could not (`Offer`)
    3. worker 0 judges: once all have offered the same, it starts the dataflow; at the first that failed or
       differs, or when one has taken too long, it refuses it. All follow its verdict (`Verdict`), whatever
       they have built by then

So a dataflow runs on all workers or on none, and a builder that ends after the verdict changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgpack

from ..building.builders import Builder, build_dataflow, load_builder
from ..building.freeze import FrozenDataflow
from ..errors import InternalError, MisuseError, TimelyError, WaitTimeoutError, class_names
from ..failure import as_refused, fresh_copy, full_text_of, is_interrupt
from ..limits import INSTALL_SECONDS_MAX
from ..operators.failures import EXPORTED_BESIDE
from ..operators.imported import Exported
from ..operators.inputs.codecs import PlainCodec
from ..running.core import Worker
from ..running.importing import importers_of
from ..running.instance import Instance
from ..wire.frames.tables import schema_to_bytes
from ..wire.handshake import Build, Offer, Verdict, encode_control, first_difference
from ..wire.requests import Reply, Value
from .orders import open_epoch
from .replacing import Replacements, feeds_of

__all__ = ["Installations", "describe"]


class Installations:
    """All dataflows that one worker builds, or has built, by index."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._offers: dict[int, dict[int, Offer]] = {}  # on worker 0, by dataflow without a verdict
        self.prepared: dict[int, Instance] = {}
        """The dataflows that are built here, and have no verdict yet."""
        self._replaces: dict[int, int] = {}  # number of the new version → number of the old one
        self.replacements = Replacements(worker)
        self.specs: dict[int, str] = {}
        self._reserved = 0

    # On worker 0.

    def order(self, spec: str, arguments: dict[str, Value], replaces: int = -1) -> int:
        """Let all workers build `spec`, perhaps as a new version of a dataflow; return the index of the new
        dataflow. `outcome` says what has become of it.
        """
        packed: bytes = msgpack.packb(arguments)
        dataflow = self.reserve()
        self._worker.send_control(encode_control(Build(dataflow, spec, packed, replaces)))
        self.build(dataflow, spec, arguments, replaces)
        return dataflow

    def reserve(self) -> int:
        """Return an index that no dataflow has had."""
        index = self._reserved
        self._reserved += 1
        return index

    def receive(self, worker: int, offer: Offer) -> None:
        """Take the offer of a worker, perhaps this one; give a verdict if that decides it."""
        if offer.dataflow in self._worker.ended or offer.dataflow in self._worker.instances:
            return  # too late: there is a verdict
        offers = self._offers.setdefault(offer.dataflow, {})
        offers[worker] = offer
        if offer.failure:
            where = f"worker {worker} could not build it: " if worker else ""
            self._decide(Verdict(offer.dataflow, where + offer.failure, offer.classes))
        elif len(offers) == self._worker.workers:
            difference = first_difference(offers)
            as_of = max(offered.since for offered in offers.values())
            self._decide(
                Verdict(
                    offer.dataflow, difference or "", () if difference is None else ("GraphError",), as_of
                )
            )

    def give_up(self, dataflow: int) -> None:
        """Refuse a dataflow that some workers have not built in time."""
        missing = ", ".join(map(str, self.missing(dataflow)))
        late = WaitTimeoutError(
            f"dataflow {dataflow} ({self.specs.get(dataflow, '')}) was not built within "
            f"{INSTALL_SECONDS_MAX:.0f} s by "
            f"worker {missing}: all workers have given it up"
        )
        self._decide(Verdict(dataflow, str(late), tuple(class_names(late))))

    def missing(self, dataflow: int) -> list[int]:
        """Return the workers whose offer has not come in."""
        return [
            worker for worker in range(self._worker.workers) if worker not in self._offers.get(dataflow, {})
        ]

    # On every worker.

    def on_build(self, build: Build) -> None:
        """Build a dataflow as worker 0 orders."""
        try:
            arguments = msgpack.unpackb(build.arguments, strict_map_key=False)
        except Exception as error:
            raise InternalError(
                f"worker 0 sent arguments for {build.spec!r} that cannot be read: {error}"
            ) from error
        self.build(build.dataflow, build.spec, arguments, build.replaces)

    def build(self, dataflow: int, spec: str, arguments: Mapping[str, object], replaces: int = -1) -> None:
        """Load the builder that `spec` names, build the dataflow, and offer it to worker 0."""
        try:
            builder = load_builder(spec)
        except BaseException as error:
            if is_interrupt(error):
                raise
            self._begin(dataflow, spec)
            self._offer_failure(dataflow, as_refused(error, f"the builder {spec!r} could not be found"))
            return
        self.begin(dataflow, spec, builder, arguments, replaces)

    def begin(
        self,
        dataflow: int,
        spec: str,
        builder: Builder,
        arguments: Mapping[str, object],
        replaces: int = -1,
    ) -> None:
        """Build and instantiate a dataflow, and offer it to worker 0; if that fails, offer the failure."""
        self._begin(dataflow, spec)
        if dataflow in self._worker.ended:
            return  # refused already, because another worker could not build it
        try:
            offer = self._prepare(dataflow, spec, builder, arguments, replaces)
        except BaseException as error:  # the builder may call, and hand in, anything
            if is_interrupt(error):
                raise
            self._replaces.pop(dataflow, None)
            prepared = self.prepared.pop(dataflow, None)
            if prepared is not None:
                prepared.drop()  # it releases what it holds of other dataflows
            self._offer_failure(dataflow, as_refused(error, _unbuilt(spec)))
            return
        self._offer(offer)

    def _prepare(
        self,
        dataflow: int,
        spec: str,
        builder: Builder,
        arguments: Mapping[str, object],
        replaces: int,
    ) -> Offer:
        """Build and instantiate a dataflow; return the offer to worker 0."""
        built = build_dataflow(builder, spec, arguments)
        old = self._worker.instance(replaces) if replaces >= 0 else None
        if old is not None:
            built.name = old.frozen.name
        frozen = built.freeze()
        self.specs[dataflow] = frozen.name  # a query that was sent here brings its own name
        feeds = None if old is None else feeds_of(self._worker, old, frozen)
        prepared = self.prepared[dataflow] = self._instantiate(dataflow, frozen, feeds)
        if old is not None:
            self._replaces[dataflow] = replaces
        else:
            self._check_not_replaced(prepared)
        read = (*prepared.imports, *prepared.feeds.values())
        imports = tuple(f"{one.exported.dataflow} {one.exported.name}" for one in read)
        described = tuple(frozen.graph.describe())
        fingerprint = f"{frozen.fingerprint}, {len(prepared.loops)} loops compiled"
        msgpack.packb(_codecs_of(frozen))  # fail now, and not for each client that asks for a description
        return Offer(dataflow, fingerprint, described, "", imports=imports, since=prepared.since)

    def follow(self, verdict: Verdict) -> None:
        """Start a dataflow, or forget it, as a verdict says."""
        prepared = self.prepared.pop(verdict.dataflow, None)
        replaces = self._replaces.pop(verdict.dataflow, -1)
        self._offers.pop(verdict.dataflow, None)
        # It may have started and failed on another worker already, and that news may have come first.
        if verdict.reason or verdict.dataflow in self._worker.ended:
            if prepared is not None:
                prepared.drop()  # it releases what it holds of other dataflows
            if verdict.reason:
                self._worker.end(verdict.dataflow, verdict.error())
            return
        if prepared is None:
            raise InternalError(
                f"dataflow {verdict.dataflow} is to be started, but worker {self._worker.index} has none"
            )
        if replaces >= 0:
            self.replacements.begin(replaces, prepared)
        try:
            self._worker.start(prepared, verdict.as_of)
        except BaseException as error:  # a dataflow that it reads has ended, or an import fails to begin
            self._worker.fail(verdict.dataflow, error)

    def _check_not_replaced(self, prepared: Instance) -> None:
        """Refuse a dataflow that reads one which is about to be replaced: it would end with that one."""
        for owner in prepared.reads:
            if self.is_replaced(owner):
                name = self._worker.instance(owner).frozen.name
                raise MisuseError(f"dataflow {owner} ({name}) is being replaced: wait for that")

    def importers(self, owner: int) -> list[Instance]:
        """Return the dataflows that read something of `owner`, including those that have no verdict yet."""
        return importers_of({**self._worker.instances, **self.prepared}, owner)

    def is_awaited(self, dataflow: object) -> bool:
        """Return True if a dataflow is built here and has no verdict yet, though worker 0 may have given it
        already; or if it is about to take the place of another.
        """
        return dataflow in self.prepared or self.replacements.is_standby(dataflow)

    def is_replaced(self, dataflow: int) -> bool:
        """Return True if a new version of a dataflow is built or catches up, or if it is one itself."""
        return dataflow in self._replaces.values() or self.replacements.is_under_way(dataflow)

    def outcome(self, dataflow: int) -> Instance | None:
        """Return the running dataflow, or None while it has no verdict; raise the error if it was refused."""
        if dataflow in self._worker.ended:
            raise fresh_copy(self._worker.ended[dataflow])
        return self._worker.instances.get(dataflow)

    def _begin(self, dataflow: int, spec: str) -> None:
        if dataflow in self.specs:
            raise MisuseError(f"dataflow {dataflow} exists already: it is {self.specs[dataflow]!r}")
        self.specs[dataflow] = spec
        self._reserved = max(self._reserved, dataflow + 1)

    def _offer_failure(self, dataflow: int, error: TimelyError) -> None:
        self._offer(Offer(dataflow, "", (), full_text_of(error), tuple(class_names(error))))

    def _offer(self, offer: Offer) -> None:
        if self._worker.index == 0:
            self.receive(0, offer)
        else:
            self._worker.send_control(encode_control(offer), to=0)

    def _decide(self, verdict: Verdict) -> None:
        assert self._worker.index == 0, "one worker judges"
        self._worker.send_control(encode_control(verdict))
        self.follow(verdict)

    def _instantiate(
        self, dataflow: int, frozen: FrozenDataflow, feeds: Mapping[str, Exported] | None
    ) -> Instance:
        try:
            return self._worker.prepare(frozen, dataflow, feeds)
        except BaseException as error:
            if is_interrupt(error):
                raise
            refusal = as_refused(error, f"a vertex of {frozen.name!r} could not be made")
            raise refusal from refusal.__cause__


def _unbuilt(spec: str) -> str:
    return (
        f"the dataflow {spec!r} could not be built: what the builder hands in (a vertex, a route, a codec, a "
        "name) fails, or is not what it should be"
    )


def describe(instance: Instance, spec: str) -> Reply:
    """Return the answer to `requests.Describe`."""
    frozen = instance.frozen
    inputs, outputs = _codecs_of(frozen)
    return Reply(
        {
            "dataflow": instance.index,
            "name": frozen.name,
            "spec": spec,
            "epoch": open_epoch(instance),
            "fingerprint": frozen.fingerprint,
            "inputs": inputs,
            "outputs": outputs,
            "exports": sorted(name for name in frozen.exports if not name.endswith(EXPORTED_BESIDE)),
            "stages": list(frozen.graph.describe()),
        }
    )


def _codecs_of(frozen: FrozenDataflow) -> tuple[list[Value], list[Value]]:
    """Return the descriptions of inputs and of outputs for `describe`."""
    inputs: list[Value] = []
    for name, declared in frozen.inputs.items():
        converter = getattr(declared.codec, "converter", None)
        is_plain = isinstance(declared.codec, PlainCodec)
        inputs.append([name, declared.codec.describe(), _packed_schema(declared.codec), converter, is_plain])
    outputs: list[Value] = [
        [name, declared.codec.describe(), _packed_schema(declared.codec)]
        for name, declared in frozen.outputs.items()
    ]
    return inputs, outputs


def _packed_schema(codec: object) -> bytes | None:
    """Return the Arrow schema of a codec as bytes; None if it has no columns."""
    arrow_schema = getattr(codec, "arrow_schema", None)
    return None if arrow_schema is None else schema_to_bytes(arrow_schema())
