"""Streams: handles of outputs of stages while a dataflow is built.

Nothing flows while a dataflow is built. A `Stream` names its source; operators take it and return new
streams. Its operators have the names of timely dataflow, and take functions of Python records; their vertices
are in `operators/records/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from os import PathLike
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

from progress.errors import MisuseError
from progress.times.path_summary import PathSummary
from progress.times.timestamp import Timestamp

from ..operators.captured.capture_folder import folder_name
from ..operators.captured.capturing import CapturesInto
from ..operators.outputs.exported_streams import ExportsRecords
from ..operators.records.by_function import FunctionVertex
from ..operators.records.by_time import (
    AggregateVertex,
    CountVertex,
    Emit,
    Fold,
    StateMachineVertex,
    Step,
)
from ..operators.records.one_by_one import (
    BranchVertex,
    Delays,
    FilterVertex,
    FlatMapVertex,
    Function,
    MapVertex,
    OkErrVertex,
    PartitionVertex,
    PassVertex,
    PutOffVertex,
    ShowVertex,
)
from ..operators.vertex import Vertex
from ..user_code.call_site import call_site
from ..user_code.code_digest import digest_of
from ..user_code.offered import Offered
from ..wire.batch import Transform
from ..wire.claims import shown
from .exchange import Broadcast, RecordRoute, Route, is_route
from .other_spellings import OF_STREAMS
from .record_hash import by
from .scope import DescribeIterations, Scope

_Record = TypeVar("_Record")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_State = TypeVar("_State")

TimeStageKind = Literal["ingress", "egress", "feedback"]
"""Stages that change times and nothing else."""


class Draft(Protocol):
    """The dataflow under construction, as far as its streams and loops need it: see `dataflow.py`."""

    def stage(
        self,
        name: str,
        vertex: Callable[[], Vertex],
        feeds: Sequence[Feed],
        *,
        outputs: int = 1,
        detail: str = "",
        workers: Sequence[int] | int | None = None,
        paths: Mapping[tuple[int, int], int | None] | None = None,
    ) -> list[Stream]:
        """Add a stage with any number of inputs and outputs; return its outputs."""
        ...

    def declare_time_stage(
        self, name: str, kind: TimeStageKind, scope: Scope, summary: PathSummary, at: int | None = None
    ) -> Stream:
        """Add an ingress, egress or feedback stage; return its output, in `scope`. By an egress with `at`
        only records leave that are at this counter.
        """
        ...

    def export(self, name: str, stream: Stream, of_input: str = "") -> None:
        """Let other dataflows read what the vertex of a stage keeps; see `Dataflow`."""
        ...

    def add_feed(self, stage_index: int, feed: Feed) -> None:
        """Add a source to an input of a stage that exists already."""
        ...

    def replay_times(self, folder: str | PathLike[str], coordinates: int) -> Stream:
        """Add a source that replays a stream whose times have so many numbers; see `Dataflow`."""
        ...


@dataclass(frozen=True, eq=False)
class Stream(Offered):
    """Output `output` of stage `stage`, in `scope`."""

    _internal = frozenset(
        {
            "dataflow",
            "output",
            "scope",
            "stage_index",
        }
    )

    dataflow: Draft
    stage_index: int
    output: int
    scope: Scope

    def __repr__(self) -> str:
        return f"{type(self).__name__}(output {self.output} of stage {self.stage_index})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            same = OF_STREAMS.same(self, name)
            if same is None:
                missing = f"a stream has no {name!r}"
                raise AttributeError(OF_STREAMS.message(missing, name, dir(Stream)))
            return same

    def feed(
        self,
        port: int = 0,
        *,
        exchange: Callable[[object], int] | Route | None = None,
        route: Route | None = None,
        transform: Transform | None = None,
        detail: str = "",
    ) -> Feed:
        """Return this stream as one source of input `port` of a stage that is being built.

        `exchange` decides which worker each record goes to, as in `stage`. Feeds of the same port are merged:
        the vertex gets their records at one `edge`. `route` is an exchange that is a `Route`.
        """
        if exchange is not None:
            route = _route_of(f"feed({port!r:.80})", exchange)
        elif route is not None and not is_route(route) and callable(route):
            raise MisuseError(
                f"feed({port!r:.80}): `route` is a timely.Route, not a function of a record. Write "
                f"exchange=timely.by(…), as in stream.feed({port!r:.80}, exchange=timely.by(0))"
            )
        return Feed(self, port, route, transform, detail)

    def stage(
        self,
        name: str,
        vertex: Callable[[], Vertex],
        *,
        exchange: Callable[[object], int] | Route | None = None,
        workers: Sequence[int] | int | None = None,
    ) -> Stream:
        """Add a stage with this stream as its only input; return its only output.

        `vertex` makes one vertex per worker (usually the class itself). `exchange` decides which worker each
        record goes to: `timely.by(…)`, by which equal keys meet; a function of the record that returns an
        integer, the same in every process (equal ones modulo `BUCKETS` meet); a `Route`; or `None`: each
        record stays on its worker. `hash` means `timely.by()`, the whole record as its key. `workers`: see
        `Dataflow.stage`.
        """
        route = None if exchange is None else _route_of(f"stage {name!r:.80}", exchange)
        (output,) = self.dataflow.stage(name, vertex, [self.feed(route=route)], workers=workers)
        return output

    # Operators on records, one by one.

    def map(self, function: Callable[[_Record], object]) -> Stream:
        """Return the result of `function` for each record."""
        return self._of_function("map", function, MapVertex)[0]

    def flat_map(self, function: Callable[[_Record], Iterable[object]]) -> Stream:
        """Return all records of the lists that `function` returns, one list for each record."""
        return self._of_function("flat_map", function, FlatMapVertex)[0]

    def filter(self, condition: Callable[[_Record], object]) -> Stream:
        """Return the records for which `condition` is true."""
        return self._of_function("filter", condition, FilterVertex)[0]

    def inspect(self, function: Callable[[_Record], object]) -> Stream:
        """Call `function` with each record, on the worker that has it, and return the same records."""
        return self._of_function("inspect", function, lambda f: ShowVertex(f, is_of_batches=False))[0]

    def inspect_batch(self, function: Callable[[Timestamp, list[_Record]], object]) -> Stream:
        """Call `function` with the time and the list of records of each message, and return the same
        records.
        """
        return self._of_function("inspect_batch", function, lambda f: ShowVertex(f, is_of_batches=True))[0]

    def branch(self, condition: Callable[[_Record], object]) -> tuple[Stream, Stream]:
        """Return the records for which `condition` is true, and those for which it is not."""
        yes, no = self._of_function("branch", condition, BranchVertex, outputs=2)
        return yes, no

    def ok_err(self, function: Callable[[_Record], object]) -> tuple[Stream, Stream]:
        """Return the results of `function`, and, for each record for which it raised an `Exception`, the pair
        (record, "class: text of the error").
        """
        good, bad = self._of_function("ok_err", function, OkErrVertex, outputs=2)
        return good, bad

    def partition(self, parts: int, function: Callable[[_Record], int]) -> list[Stream]:
        """Return `parts` streams: each record is in the one whose number, from 0, `function` returns."""
        if type(parts) is not int or parts < 1:
            raise MisuseError(
                f"partition(parts, function): `parts` is a number from 1 on, not {shown(parts)}"
            )
        return self._of_function(
            "partition", function, partial(PartitionVertex, parts), outputs=parts, detail=f"{parts} parts"
        )

    def delay(self, function: Callable[[_Record, Timestamp], Timestamp]) -> Stream:
        """Return each record at the time that `function(record, time)` returns, which is `time` or later."""
        return self._of_function("delay", function, lambda f: PutOffVertex(cast(Delays, f)))[0]

    def capture(self, folder: str | PathLike[str]) -> None:
        """Write the records with their times, and which times are over, into a new folder: one file for each
        worker. `dataflow.replay(folder)` gives the stream again, on any number of workers.

        The folder does not exist, or is empty; workers of several hosts write the files of each host there.
        """
        name, site = folder_name("capture", folder), call_site()
        vertices = CapturesInto(name, site)
        self.dataflow.stage("capture", vertices, [self.feed()], outputs=0, detail=f"capture into {name}")

    def export(self, name: str, *, keep: int | None = 0) -> None:
        """Let other dataflows of the cluster read the records under a name: `dataflow.imported(owner, name)`.

        They read from the first epoch on that is not complete when they begin, or from `keep` epochs before
        that, if there are so many; None: from the beginning, which keeps all records for ever.
        """
        if keep is not None and (type(keep) is not int or keep < 0):
            raise MisuseError(
                f"export({name!r:.80}, keep={shown(keep)}): `keep` is a number of complete epochs, from 0 "
                "on, or None for all"
            )
        (exporting,) = self.dataflow.stage(
            f"export {name}", ExportsRecords(keep), [self.feed()], detail=f"export, keeps {keep}"
        )
        self.dataflow.export(name, exporting)

    # Where records go.

    def exchange(self, key: Callable[[object], int] | Route) -> Stream:
        """Return the same records, each on the worker that `key` says: `timely.by(…)`, as of `stage`."""
        return self.stage("exchange", PassVertex, exchange=key)

    def broadcast(self) -> Stream:
        """Return all records on each worker: as many times as there are workers."""
        return self.stage("broadcast", PassVertex, exchange=Broadcast())

    def concat(self, *others: Stream) -> Stream:
        """Return the records of this stream and of all others, which are of the same loop."""
        for other in others:
            if not isinstance(other, Stream):
                raise MisuseError(f"concat(*streams) takes streams one by one, not {shown(other)}")
        (output,) = self.dataflow.stage("concat", PassVertex, [one.feed() for one in (self, *others)])
        return output

    # Operators that wait until a time is complete.

    def count(self) -> Stream:
        """Return the number of records of each time that has any, on all workers together."""
        return self.stage("count", CountVertex).aggregate(add, 0, _second)

    def aggregate(
        self,
        fold: Callable[[_State, _Value], object],
        start: object,
        emit: Callable[[_Key, _State], object] | None = None,
    ) -> Stream:
        """Fold the values of each key and time, where a record is (key, value): with `fold(state, value)`,
        which returns the next state, from `start` on. Return (key, last state), or `emit(key, last state)`.

        `start` is a value, which is copied for each key, or a function without parameters that returns one:
        0, `list`. Values come in any order.
        """
        _check_function("aggregate(fold, start)", "fold", fold)
        if emit is not None:
            _check_function("aggregate(fold, start, emit)", "emit", emit)
        detail = f"aggregate {digest_of(fold)} {digest_of(emit)} from {digest_of(start)}"
        (output,) = self.dataflow.stage(
            "aggregate",
            lambda: AggregateVertex(cast(Fold, fold), start, cast("Emit | None", emit)),
            [self.feed(exchange=by(0))],
            detail=detail,
        )
        return output

    def state_machine(self, step: Callable[[_Key, _Value, _State], object], start: object = None) -> Stream:
        """Keep a state for each key, over all times, where a record is (key, value). `step(key, value,
        state)` returns the new state and a list of records to send. The state None forgets the key.

        `start` is the state of a key that has none: a value, which is copied, or a function without
        parameters that returns one. A state that was sent must not change any more. Values of a key come in
        the order of their times, and each time when it is complete.
        """
        _check_function("state_machine(step)", "step", step)
        detail = f"state_machine {digest_of(step)} from {digest_of(start)}"
        (output,) = self.dataflow.stage(
            "state_machine",
            lambda: StateMachineVertex(cast(Step, step), start),
            [self.feed(exchange=by(0))],
            detail=detail,
        )
        return output

    # Stages that are too small for a class.

    def unary(
        self,
        name: str,
        make: Callable[[Vertex], object],
        *,
        exchange: Callable[[object], int] | Route | None = None,
        workers: Sequence[int] | int | None = None,
    ) -> Stream:
        """Add a stage whose callbacks are functions. `make(vertex)` is called on each worker, and returns
        `on_recv(records, time)`, or (`on_recv`, `on_notify(time)`); these send by `vertex.send_by(0, …)`.
        `workers`: see `Dataflow.stage`.
        """
        _check_function(f"unary({name!r:.80}, make)", "make", make)
        (output,) = self.dataflow.stage(
            name,
            lambda: FunctionVertex(make, has_edge=False),
            [self.feed(exchange=exchange)],
            detail=f"unary {digest_of(make)}",
            workers=workers,
        )
        return output

    def binary(
        self,
        other: Stream,
        name: str,
        make: Callable[[Vertex], object],
        *,
        exchange: Callable[[object], int] | Route | None = None,
        other_exchange: Callable[[object], int] | Route | None = None,
        workers: Sequence[int] | int | None = None,
    ) -> Stream:
        """Add a stage with two inputs whose callbacks are functions, as `unary` does: `on_recv(edge, records,
        time)` gets 0 for the records of this stream, and 1 for those of `other`.
        """
        _check_function(f"binary(other, {name!r:.80}, make)", "make", make)
        if not isinstance(other, Stream):
            raise MisuseError(f"binary(other, name, make): `other` is a stream, not {shown(other)}")
        (output,) = self.dataflow.stage(
            name,
            lambda: FunctionVertex(make, has_edge=True),
            [self.feed(0, exchange=exchange), other.feed(1, exchange=other_exchange)],
            detail=f"binary {digest_of(make)}",
            workers=workers,
        )
        return output

    def _of_function(
        self,
        operator: str,
        function: object,
        vertex: Callable[[Function], Vertex],
        *,
        outputs: int = 1,
        detail: str = "",
    ) -> list[Stream]:
        """Add the stage of an operator that calls a function."""
        _check_function(f"{operator}(function)", "function", function)
        detail = f"{operator} {detail} {digest_of(function)}"
        called = cast(Function, function)
        return self.dataflow.stage(
            operator, lambda: vertex(called), [self.feed()], outputs=outputs, detail=detail
        )


def _second(first: object, second: object) -> object:
    return second


def _check_function(call: str, name: str, function: object) -> None:
    if not callable(function):
        raise MisuseError(f"{call}: `{name}` is a function, not {shown(function)}")


def _route_of(where: str, exchange: object) -> Route:
    """Return the route that `exchange` stands for; raise MisuseError, which begins with `where`, if none."""
    if callable(exchange):
        return RecordRoute(exchange)
    if is_route(exchange):
        return cast("Route", exchange)
    raise MisuseError(
        f"{where}: `exchange` is timely.by(…), a function from a record to a whole number, or a "
        f"timely.Route, not a {type(exchange).__name__}.\n"
        "  Records with equal entries meet by exchange=timely.by('word'), or timely.by(0) of tuples."
    )


@dataclass(frozen=True, eq=False)
class Feed(Offered):
    """One source of one input port: several feeds of the same port are merged at no cost.

    `describe` is for feeds that go round a loop: it makes the text of an error about the last iterations.
    """

    _internal = frozenset(
        {
            "describe",
            "detail",
            "port",
            "route",
            "stream",
            "transform",
        }
    )

    stream: Stream
    port: int
    route: Route | None = None
    transform: Transform | None = None
    detail: str = ""
    describe: DescribeIterations | None = None
