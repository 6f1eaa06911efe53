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

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol

import msgpack

from ..building.builders import Builder, build_dataflow, load_builder
from ..building.freeze import FrozenDataflow
from ..durable.bases.positions import source_key
from ..durable.past import Past, PastFlow
from ..errors import InternalError, MisuseError, TimelyError, WaitTimeoutError, class_names, revive
from ..failure import as_refused, fresh_copy, full_text_of, is_interrupt
from ..limits import INSTALL_SECONDS_MAX
from ..operators.captured.capturing import CapturesInto
from ..operators.failures import EXPORTED_BESIDE
from ..operators.imported import Exported
from ..operators.inputs.codecs import PlainCodec
from ..operators.outputs.exported_streams import RecordsImport
from ..running.core import Worker
from ..running.importing import importers_of
from ..running.instance import Instance
from ..user_code.trust import own_token
from ..wire.frames.tables import schema_from_bytes, schema_to_bytes
from ..wire.handshake import Build, Offer, Verdict, encode_control, first_difference
from ..wire.requests import Reply, Value
from .orders import open_epoch
from .replacing import Replacements, SwitchLog, feeds_of

__all__ = ["Installations", "KnownDataflows", "describe", "key_of"]


class KnownDataflows(Protocol):
    """What a worker knows of dataflows from the logs of a store: see `Durability` and `Following`."""

    @property
    def past(self) -> Past:
        """What the logs hold."""
        ...

    @property
    def waits(self) -> bool:
        """True if some dataflow has begun, and has not got its rows because others have not begun."""
        ...

    def note_number(self, key: str, number: int) -> None:
        """Remember under which key a dataflow is installed."""
        ...

    def note_refused(self, number: int) -> None:
        """Note that a dataflow could not be built."""
        ...

    def check_same(self, number: int, frozen: FrozenDataflow) -> None:
        """Raise `MisuseError` if `frozen` is not what the logs have under this number."""
        ...

    def checked_epoch(self, number: int, epoch: int, reads: Collection[int]) -> int:
        """Return the epoch with which a dataflow begins that can begin with `epoch`, or a later one. `reads`:
        the dataflows that it imports from, or takes rows of.
        """
        ...

    def write_flow(self, instance: Instance, key: str, spec: str, arguments: bytes, as_of: int) -> None:
        """Write that a new dataflow is about to begin."""
        ...

    def write_version(
        self, instance: Instance, replaces: int, key: str, spec: str, arguments: bytes, as_of: int
    ) -> None:
        """Write that a new version of a dataflow is about to begin."""
        ...

    @property
    def versions(self) -> SwitchLog | None:
        """What writes about new versions; None: nothing does."""
        ...

    def on_begun(self, instance: Instance) -> None:
        """Note that a dataflow has begun."""
        ...


class Installations:
    """All dataflows that one worker builds, or has built, by index."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._durability: KnownDataflows | None = None
        self._offers: dict[int, dict[int, Offer]] = {}  # on worker 0, by dataflow without a verdict
        self.prepared: dict[int, Instance] = {}
        """The dataflows that are built here, and have no verdict yet."""
        self._replaces: dict[int, int] = {}  # number of the new version → number of the old one
        self.replacements = Replacements(worker)
        self.specs: dict[int, str] = {}
        self._reserved = 0
        self._built_by: dict[int, tuple[str, str, bytes]] = {}
        """For dataflows without a verdict, where workers are durable: key, spec and arguments."""
        self._asked_for: dict[int, tuple[int, str, bytes]] = {}
        """For new versions on worker 0: the number of the old one, spec and arguments."""

    def make_durable(self, durability: KnownDataflows) -> None:
        """Number dataflows behind those of the logs; those that clients have ended there have ended here."""
        self._durability = durability
        self._worker.logs_sources = True
        self._reserved = durability.past.next_number
        for number, (reason, classes) in durability.past.gone.items():
            self.specs[number] = ""
            self._worker.end(number, revive(list(classes), reason))
        for switch in durability.past.switches.values():
            forms = {name: schema_from_bytes(packed) for name, packed in switch.forms.items()}
            self.replacements.restore(switch.old, switch.new, switch.lost, forms)
        self.replacements.log = durability.versions

    # On worker 0.

    def order(self, spec: str, arguments: dict[str, Value], replaces: int = -1) -> int:
        """Let all workers build `spec`, perhaps as a new version of a dataflow; return the index of the new
        dataflow. `outcome` says what has become of it.
        """
        packed: bytes = msgpack.packb(arguments)
        dataflow = self.reserve()
        self.note_key(dataflow, key_of(spec, arguments), spec, packed, replaces)
        self._worker.send_control(encode_control(Build(dataflow, spec, packed, replaces)))
        self.build(dataflow, spec, arguments, replaces)
        return dataflow

    def note_key(
        self, dataflow: int, key: str, spec: str = "", packed: bytes = b"", replaces: int = -1
    ) -> None:
        """Remember for the log under which key a dataflow is installed, and by which builder any worker can
        build it again; without one, only the program that installs it can. A new version gets its names once
        it has taken the place of the old one.
        """
        if self._durability is not None:
            if replaces < 0:
                self._durability.note_number(key, dataflow)
            self._asked_for[dataflow] = replaces, spec, packed
            self._built_by[dataflow] = key, spec, packed

    def version_asked_for(self, old: int, spec: str, arguments: Mapping[str, object]) -> int | None:
        """Return the number of the new version of a dataflow that is about to take its place, if it was asked
        for by this builder and these arguments; else None.
        """
        asked: tuple[int, str, bytes] = old, spec, msgpack.packb(arguments)
        for number in [*self.prepared, *self.replacements.beside(old)]:
            if self._asked_for.get(number) == asked:
                return number
        return None

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
            verdict = Verdict(
                offer.dataflow, difference or "", () if difference is None else ("GraphError",), as_of
            )
            if self._durability is not None and difference is None:
                verdict = self._written(self._durability, verdict)
            self._decide(verdict)

    def _written(self, durability: KnownDataflows, verdict: Verdict) -> Verdict:
        """Write that a dataflow begins, and return the verdict that says so; a refusal if that fails, or if a
        dataflow of the logs cannot begin as it began.
        """
        number = verdict.dataflow
        try:
            as_of = durability.checked_epoch(number, verdict.as_of, self.prepared[number].reads)
            verdict = replace(verdict, as_of=as_of)
            if number in self._built_by and number in self._replaces:
                durability.write_version(
                    self.prepared[number], self._replaces[number], *self._built_by[number], verdict.as_of
                )
            elif number in self._built_by:
                durability.write_flow(self.prepared[number], *self._built_by[number], verdict.as_of)
        except TimelyError as error:
            return Verdict(number, full_text_of(error), tuple(class_names(error)))
        return verdict

    def forget_refusal(self, dataflow: int) -> None:
        """Let a dataflow that could not be built be built again."""
        self.specs.pop(dataflow, None)
        self._worker.forget_end(dataflow)

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

    def build_again(self, flow: PastFlow) -> None:
        """Build a dataflow of the logs, and offer it to worker 0."""
        arguments = msgpack.unpackb(flow.arguments, strict_map_key=False) if flow.arguments else {}
        if "token" in arguments:
            arguments["token"] = own_token()
        self.build(flow.number, flow.spec, arguments)

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
            refusal = as_refused(error, _unbuilt(spec))
            prepared = self.prepared.pop(dataflow, None)
            if prepared is not None:
                prepared.drop(refusal)  # it releases what it holds of other dataflows
            self._offer_failure(dataflow, refusal)
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
        past = None if self._durability is None else self._durability.past.flows.get(dataflow)
        switch = None if past is None else past.switch
        if old is not None:
            built.name = old.frozen.name
        elif switch is not None:
            built.name = switch.name
        frozen = built.freeze()
        if self._durability is not None:
            _check_comes_once(frozen)
            self._durability.check_same(dataflow, frozen)
        else:
            _check_not_stored(frozen)
        self.specs[dataflow] = frozen.name  # a query that was sent here brings its own name
        feeds: dict[str, Exported] | None = None if switch is None else {}  # it begins as late as before
        if old is not None:
            feeds = feeds_of(self._worker, old, frozen)
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
        self._built_by.pop(verdict.dataflow, None)
        # It may have started and failed on another worker already, and that news may have come first.
        if verdict.reason or verdict.dataflow in self._worker.ended:
            if prepared is not None:
                reason = verdict.error() if verdict.reason else self._worker.ended[verdict.dataflow]
                prepared.drop(reason)  # it releases what it holds of other dataflows
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
            return
        if self._durability is not None:
            self._durability.on_begun(prepared)
            self.replacements.were_any = self.replacements.were_any or self._durability.waits

    def _check_not_replaced(self, prepared: Instance) -> None:
        """Refuse a dataflow that reads one which is about to be replaced: it would end with that one."""
        for owner in prepared.reads:
            if self.is_replaced(owner):
                name = self._worker.instance(owner).frozen.name
                raise MisuseError(f"dataflow {owner} ({name}) is being replaced: wait for that")

    def has_source(self, dataflow: int) -> bool:
        """Return True if a dataflow that is built here has a source, or a way back of the root: it may always
        have something left to do.
        """
        built = self.prepared.get(dataflow) or self._worker.instances.get(dataflow)
        return built is not None and (bool(built.sources) or built.frozen.goes_on)

    def importers(self, owner: int) -> list[Instance]:
        """Return the dataflows that read something of `owner`, including those that have no verdict yet."""
        return importers_of({**self._worker.instances, **self.prepared}, owner)

    def with_importers(self, owner: int) -> set[int]:
        """Return a dataflow and all that end with it."""
        together = {owner}
        for importer in self.importers(owner):
            together |= self.with_importers(importer.index)
        return together

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
        if verdict.reason and self._durability is not None:
            self._durability.note_refused(verdict.dataflow)
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


def key_of(spec: str, arguments: Mapping[str, object]) -> str:
    """Return the key under which a durable cluster has a dataflow: the name of a query that has travelled
    here, or that of the builder.
    """
    name = arguments.get("name")
    return name if isinstance(name, str) and "token" in arguments else spec


def _check_comes_once(frozen: FrozenDataflow) -> None:
    """Raise `MisuseError` if a dataflow has a source that could not go on after a restart, or captures a
    stream, whose records would come again then; or if logs could not tell two of its sources apart.
    """
    names = {*frozen.inputs}
    for stage in frozen.sources:
        declared = frozen.stages[stage]
        where = f"dataflow {frozen.name!r} has the source {declared.name!r} ({declared.site})"
        if declared.begins_anew:
            raise MisuseError(
                f"{where}, and this cluster is durable: after a restart, {declared.begins_anew}, and all "
                "records would come twice. Let a client insert them into an input, or install the dataflow "
                "in a cluster without durable="
            )
        if (key := source_key(declared.name)) in names:
            raise MisuseError(
                f"{where}, and another source has that name, or an input is called {key!r}. A durable "
                "cluster keeps the records of each under its name: write another one"
            )
        names.add(key)
    for imported in frozen.imports:
        if isinstance(imported.codec, RecordsImport):
            raise MisuseError(
                f"dataflow {frozen.name!r} imports the stream {imported.export!r}, and this cluster is "
                "durable: after a restart the records would not come again. Export a collection of it, which "
                "a durable cluster keeps, or install both dataflows in a cluster without durable="
            )
    for declared in frozen.stages:
        if isinstance(declared.vertex, CapturesInto):
            raise MisuseError(
                f"dataflow {frozen.name!r} captures a stream into {declared.vertex.folder!r} "
                f"({declared.site}), and this cluster is durable: after a restart the records would come a "
                "second time. Read them by an output, which a durable cluster keeps, or install the dataflow "
                "in a cluster without durable="
            )


def _check_not_stored(frozen: FrozenDataflow) -> None:
    """Raise `MisuseError` if a dataflow wants its outputs stored."""
    for name, declared in frozen.outputs.items():
        if declared.is_stored:
            raise MisuseError(
                f"output {name!r} of {frozen.name!r} is to be stored, and this cluster has no folder for it: "
                "connect with durable=FOLDER (workers that run already: python -m timely.worker --durable "
                "FOLDER), or write output(…) without stored=True"
            )


def _unbuilt(spec: str) -> str:
    return (
        f"the dataflow {spec!r} could not be built: what the builder hands in (a vertex, a route, a codec, a "
        "name) fails, or is not what it should be"
    )


def describe(instance: Instance, spec: str) -> Reply:
    """Return the answer to `requests.Describe`."""
    frozen = instance.frozen
    inputs, outputs = _codecs_of(frozen)
    opened = open_epoch(instance)
    ahead: list[Value] = [
        [name, handle.epoch]
        for name, handle in instance.inputs.items()
        if handle.epoch > opened and not handle.is_closed
    ]
    return Reply(
        {
            "dataflow": instance.index,
            "name": frozen.name,
            "spec": spec,
            "epoch": opened,
            "ahead": ahead,
            "fingerprint": frozen.fingerprint,
            "inputs": inputs,
            "outputs": outputs,
            "exports": _exported(frozen),
            "imports": _imported(instance),
            "first": instance.first_epoch,
            "note": frozen.note,
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


def _exported(frozen: FrozenDataflow) -> list[Value]:
    """Return name, columns and input of each export, by name."""
    return [
        [name, None if each.columns is None else schema_to_bytes(each.columns), each.of_input]
        for name, each in sorted(frozen.exports.items())
        if not name.endswith(EXPORTED_BESIDE)
    ]


def _imported(instance: Instance) -> list[Value]:
    """Return owner and name of each import."""
    read = {(one.exported.dataflow, one.exported.name) for one in instance.imports}
    return [[owner, name] for owner, name in sorted(read) if not name.endswith(EXPORTED_BESIDE)]


def _packed_schema(codec: object) -> bytes | None:
    """Return the Arrow schema of a codec as bytes; None if it has no columns."""
    arrow_schema = getattr(codec, "arrow_schema", None)
    return None if arrow_schema is None else schema_to_bytes(arrow_schema())
