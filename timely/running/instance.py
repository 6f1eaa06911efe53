"""One dataflow on one worker: runners of vertices, connectors, tracker, and the run queue (`turns.py`).

An activation lets a vertex consume everything that is ready. Count changes pile up in `changes`, where a
message that is sent and consumed within a step cancels out and never reaches the tracker; `changes.take`
hands them over once per step.

Words count from an anchor (`progress/times/anchor.py`), which each worker moves up by itself when something
waits for that: rows of an input, a right at a far epoch, a message of a worker whose anchor is ahead. The
anchor may go up to one epoch before the first that is outstanding in this worker's view; operators that
look one step back ask about that one epoch. Messages that come from other workers later are no earlier than
that, for a view is never ahead of the truth. A worker that keeps a message of one whose anchor is ahead
will hear all news that let the other move its anchor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from progress.errors import InternalError, MisuseError
from progress.times.anchor import Anchor, Rebase
from progress.tracking.count_changes import Change, CountChanges
from progress.tracking.far import FarPointstamps
from progress.tracking.tracker import Tracker

from ..building.freeze import FrozenDataflow
from ..dictionaries import Mark
from ..errors import TimelyError
from ..failure import add_note
from ..operators.capture import FOREVER, CaptureVertex
from ..operators.imported import Exported
from ..operators.inputs.handle import InputHandle
from ..operators.probe import ProbeVertex
from ..operators.vertex import Feeder
from ..wire.batch import Batch
from ..wire.routing import Routing
from ..wire.transport import Lent
from .arrivals import Arrivals
from .checking.actions import Activate, Idle, Inside, Notify, Publish, Resume, Ring
from .owner import Owner
from .stages.compiled_loop import CompiledLoopRunner
from .stages.ends import as_reason, end_vertices
from .stages.loop_making import compile_loops
from .stages.making import make_constants, make_inputs, make_runners, make_vertices, take_hold
from .stages.source_runner import SourceRunner
from .stages.surroundings import Checker
from .stages.upstream import connected, feeders, follow_inputs
from .stages.vertex_runner import VertexRunner
from .turns import Turns


class Instance:
    """A frozen dataflow, instantiated on worker `worker` of `workers`."""

    def __init__(
        self, owner: Owner, index: int, frozen: FrozenDataflow, feeds: Mapping[str, Exported] | None = None
    ) -> None:
        """`feeds`: the exports that feed inputs until `let_go_of_feeds`, by name; not None, even if there are
        none: it begins at an epoch that `begin` says.
        """
        self._owner = owner
        self.checker: Checker | None = None
        self.index = index
        self.worker = owner.index
        self.workers = owner.workers
        self.routing = Routing.default(owner.workers)
        self.frozen = frozen
        self.anchor = Anchor()
        self.far = FarPointstamps(frozen.layout)
        self._awaiting: set[int] = set()  # stages with rows of epochs that cannot enter yet
        self.changes = CountChanges()
        self.count = self.changes.add  # (location, word, delta): callbacks reach progress tracking by this
        self.turns = Turns(owner.acting.gate, owner.acting.timings)
        # Bound here: connectors and runners ask for turns, and one call more would be one per message.
        self.enqueue, self.wake = self.turns.enqueue, self.turns.wake
        self.resume_later, self.alarms = self.turns.resume_later, self.turns.alarms
        self.recheck: set[int] = set()
        codes = [code.anchored(self.anchor) for code in frozen.codes]
        self.runners = make_runners(self, frozen, codes, owner.acting)
        self.sources = [runner for runner in self.runners if isinstance(runner, SourceRunner)]
        self.loops: list[CompiledLoopRunner] = []
        self.turns.add_actors(self.runners)
        self.connectors = connected(self, frozen, self.runners)
        self.arrivals = Arrivals(self.worker, frozen.layout, self.anchor, self.connectors, self.enqueue)
        watched, self._port_owner = make_vertices(frozen, self.runners)
        self.tracker = Tracker(frozen.graph, watched, anchor=self.anchor)
        self.inputs = make_inputs(frozen, self.runners)
        self.constants = make_constants(frozen, self.runners)
        self.captures = [self.output(name) for name in frozen.outputs]
        self.first_epoch = 0
        self._begins_later = bool(frozen.imports) or feeds is not None
        self.is_standby = False
        self.is_taking_over = False
        """True if this is a new version whose outputs do not go on with those of the old one yet: they hold
        other rows than clients are shown.
        """
        self.messages_sent = 0
        self.messages_recv = 0
        self.rows_sent: defaultdict[int, int] = defaultdict(int)
        """By worker, to it, but for what compiled loops exchange; then those from it."""
        self.rows_recv: defaultdict[int, int] = defaultdict(int)
        started: list[VertexRunner] = []
        try:
            self._start_vertices(started)
            self.imports, self.feeds = take_hold(owner, frozen, self.runners, feeds or {}, index)
        except BaseException as error:
            end_vertices(started, as_reason(error))
            raise

    def _start_vertices(self, started: list[VertexRunner]) -> None:
        """Start all vertices, and add each to `started` once it has."""
        if not self._begins_later:
            self._open_inputs(0)
        for runner in self.runners:
            runner.bind()
            started.append(runner)
        if self._owner.compiles_loops:
            self._compile_loops()
        if self.workers == 1:
            follow_inputs(self.frozen, self.runners)
        if not self._begins_later:
            self._begin_loops(0)
        self.turns.mergers += [runner for runner in self.runners if runner.wants_idle()]

    @property
    def since(self) -> int:
        """The first epoch at which it can begin; 0 unless it imports."""
        return max((handle.since for handle in (*self.imports, *self.feeds.values())), default=0)

    @property
    def reads(self) -> set[int]:
        """The numbers of the dataflows that it imports from, or is fed by."""
        return {handle.exported.dataflow for handle in (*self.imports, *self.feeds.values())}

    def begin(self, epoch: int) -> None:
        """Open all inputs and imports at `epoch`, which is the same on all workers and ≥ `since` on each.

        A dataflow without imports and feeds has begun when it was made, at epoch 0.
        """
        if self._begins_later:
            self.first_epoch = epoch
            # Nothing has a time yet, so the anchor may go anywhere.
            self.anchor.epoch = epoch - 1 if epoch >= self.frozen.layout.window else 0
            for runner in self.runners:
                runner.begin()
            for handle in self.inputs.values():
                handle.begin(epoch)
            for imported in (*self.imports, *self.feeds.values()):
                try:
                    imported.begin(epoch)
                except BaseException as error:
                    add_note(error, f"while the import of {imported.exported.title()} was begun")
                    raise
            self._open_inputs(epoch)
            self._begin_loops(epoch)

    def let_go_of_feeds(self, epoch: int) -> bool:
        """Let inputs that were fed up to `epoch` go on by themselves; return True if any begins to."""
        through = [name for name, feed in self.feeds.items() if feed.is_through(epoch)]
        for name in through:
            feed = self.feeds.pop(name)
            assert feed.held_epoch == epoch, "it was open there, and at no later epoch"
            feed.close()
            runner = self.runners[self.frozen.stage_of[self.frozen.inputs[name].stage]]
            runner.source = self.inputs[name]
            runner.wake()
        return bool(through)

    def output(self, name: str) -> CaptureVertex:
        """Return the capturing vertex of a named output."""
        declared = self.frozen.outputs.get(name)
        if declared is None:
            raise MisuseError(f"no output {name!r}: there are {sorted(self.frozen.outputs) or 'none'}")
        vertex = self.runners[self.frozen.stage_of[declared.stage]].vertex
        assert isinstance(vertex, CaptureVertex)
        return vertex

    def probe(self, name: str) -> ProbeVertex:
        """Return the vertex that watches the stream that `Dataflow.probe` named."""
        stage = self.frozen.probes.get(name)
        if stage is None:
            raise MisuseError(f"no probe {name!r}: there are {sorted(self.frozen.probes) or 'none'}")
        vertex = self.runners[self.frozen.stage_of[stage]].vertex
        assert isinstance(vertex, ProbeVertex)
        return vertex

    def input(self, name: str) -> InputHandle:
        """Return the handle of a named input."""
        handle = self.inputs.get(name)
        if handle is None:
            raise MisuseError(f"no input {name!r}: there are {sorted(self.inputs) or 'none'}")
        return handle

    def feeding(self, stage: int, port: int) -> list[Feeder]:
        """Return the vertices that send to input `port` of a stage on this worker."""
        return feeders(self.frozen, self.runners, self.connectors, stage, port)

    def untold(self) -> list[Change]:
        """Return the changes that `changes.take` would hand over, without taking them."""
        return self.changes.consolidated()

    def receive(self, connector: int, word: int, batch: Batch, anchor: int = 0) -> None:
        """Take a message that came in from another worker; its words count from `anchor`."""
        shift = self.frozen.layout.shifts[0]
        if self.checker is not None:
            self.checker.on_data(connector, word + (anchor << shift))
        self.arrivals.receive(connector, word, batch, anchor)

    def send_data(self, peer: int, connector: int, word: int, batch: Batch) -> None:
        """Send a message to another worker."""
        if self.checker is not None:
            self.checker.on_sent(connector, word + (self.anchor.epoch << self.frozen.layout.shifts[0]))
        self._owner.send_data(peer, self.index, connector, word, batch)

    @property
    def far_word(self) -> int:
        """See `Carrier`."""
        layout = self.frozen.layout
        return layout.window << layout.shifts[0]

    def put_off(self, connector: int, word: int, batch: Batch) -> None:
        """See `Carrier`."""
        self.arrivals.put_off(connector, word, batch)

    @property
    def lender(self) -> Instance:
        """The instance itself: it lends the worker's memory to compiled loops, and counts their messages."""
        return self

    def lend(self, actor: int) -> Lent | None:
        """See `Lender`."""
        return self._owner.lend(self.index, actor)

    def take_back(self) -> None:
        """See `Transport`."""
        sent, received = self._owner.take_back()
        self.messages_sent += sent
        self.messages_recv += received

    def has_work(self) -> bool:
        """Return True if some vertex is ready to run, or the anchor can move."""
        turns = self.turns
        return bool(turns.ready or turns.resumed or turns.patient or self.can_move_anchor())

    @property
    def is_calm(self) -> bool:
        """See `Runner`."""
        return not (self.turns.ready or self.changes.deltas or self.recheck or self.turns.has_failed)

    def is_at_rest(self) -> bool:
        """Return True if a step would do nothing here: no vertex is ready, no change untold, no
        notification due.
        """
        turns = self.turns
        if turns.ready or turns.resumed or turns.patient or self.recheck or self.changes.deltas:
            return False
        if self.alarms.rung or (self.alarms.moments and self.alarms.are_due):
            return False
        if turns.gate.waiting:
            return False  # rows will enter, in this dataflow or another one of the worker
        # Fast path, since this is called several times for each change: mostly nothing waits for the anchor.
        return not ((self._awaiting or self.arrivals.late or self.far.pointstamps) and self.can_move_anchor())

    def enabled(self) -> list[Inside]:
        """Return the actions that are possible now, in the order of a step."""
        actions: list[Inside] = []
        may_run = self.turns.gate.has_credit
        if may_run:
            queued = [actor.stage for actor in self._all_runners() if actor.is_queued]
            actions += [Activate(self.index, stage) for stage in queued]
        if self.changes.deltas or self.can_move_anchor():
            actions.append(Publish(self.index))
        if self.recheck:
            actions.append(Notify(self.index))
        resumed = sorted(runner.stage for runner in self.turns.resumed)
        actions += [Resume(self.index, stage) for stage in resumed if may_run]
        actions += [Ring(self.index, stage) for stage in self.alarms.stages()]
        if self.turns.idle_runners and not actions:
            actions.append(Idle(self.index))
        return actions

    def take_changes(self) -> list[Change]:
        """Return the own changes of counts since the last call, after this worker's tracker has them."""
        changes = self.changes.take()
        if changes:
            self.apply(changes)
            if self.checker is not None:
                self.checker.on_step_done(changes)
        return changes

    def apply(self, changes: list[Change]) -> None:
        """Apply changes (own ones or another worker's) to the tracker, and wake the vertices that they
        concern.
        """
        limit = self.far.stand_in
        for change in changes:
            if change[1] >= limit:
                changes = self._sifted(changes)
                break
        self._tell_tracker(changes)

    def _sifted(self, changes: list[Change]) -> list[Change]:
        """Take in the changes of far pointstamps; return those for the tracker."""
        # If something far goes on to a later epoch no frontier moves, but a loop may finish more epochs.
        for loop in self.loops:
            loop.has_frontier_news = True
            self.wake(loop)
        return self.far.sift(changes)

    def _tell_tracker(self, changes: list[Change]) -> None:
        actors = self.turns.actors
        for port in self.tracker.apply(changes):
            stage = self._port_owner[port]
            runner = actors[stage]
            if runner.requested:
                self.recheck.add(stage)
            if runner.is_ahead:
                continue
            runner.has_frontier_news = True
            if runner.wants_frontier or (runner.wants_end and not len(self.tracker.frontier(port))):
                self.wake(runner)

    def are_led_to(self, points: list[tuple[int, int]], weakly: bool = False) -> bool:
        """Return True if something outstanding in this worker's view leads to each of some points, (location,
        word), whose words count from epoch 0; with `weakly` what is outstanding at a point leads to it, too.

        The answer may be False where it is not known: for points that have no word here.
        """
        base, limit = self.anchor.epoch << self.frozen.layout.shifts[0], self.frozen.layout.limit
        near = [(location, word - base) for location, word in points]
        if any(not 0 <= word < limit for _, word in near):
            return False
        return self.tracker.are_led_to(near, weakly)

    def check_notifications(self) -> None:
        """Find requested notifications that have become due. Call it after own changes were applied."""
        if not self.recheck:
            return
        for stage in sorted(self.recheck) if len(self.recheck) > 1 else self.recheck:
            runner = self.runners[stage]
            if runner.find_due():
                self.wake(runner)
        self.recheck.clear()

    def epochs_done(self) -> int:
        """Return the first epoch in which anything is outstanding anywhere, in this worker's view;
        `FOREVER` if nothing is.
        """
        least = self.tracker.least_word()
        if least is None:
            return FOREVER
        if least >= self.far.stand_in:
            least = self.far.least_word()
        return self.anchor.epoch + (least >> self.frozen.layout.shifts[0])

    def open_at_sources(self) -> list[int]:
        """Return the epochs at which something is outstanding at a source, on any worker, in this worker's
        view.
        """
        shift, sources = self.frozen.layout.shifts[0], self.frozen.sources
        return [word >> shift for location, word, _ in self.pointstamps() if location in sources]

    def first_at_source(self, name: str) -> int:
        """Return the first epoch at which something is outstanding at a source, on any worker, in this
        worker's view; `FOREVER` if nothing is.
        """
        shift, stages = (
            self.frozen.layout.shifts[0],
            [each.stage for each in self.sources if each.name == name],
        )
        return min(
            (word >> shift for location, word, _ in self.pointstamps() if location in stages), default=FOREVER
        )

    def await_epoch(self, stage: int) -> None:
        """Give `stage` a turn when the anchor has moved: it has rows of an epoch that cannot enter yet."""
        self._awaiting.add(stage)

    def can_move_anchor(self) -> bool:
        """Return True if the anchor should move, and may. Cost: nothing as long as nothing waits for that."""
        waits = self._awaiting or self.arrivals.late or self.far.pointstamps
        return bool(waits) and self._room_ahead() > 0

    def move_anchor(self) -> None:
        """Move the anchor, if it should and may. Call it between activations."""
        if not (self._awaiting or self.arrivals.late or self.far.pointstamps):
            return  # Fast path.
        epochs = self._room_ahead()
        if epochs > 0:
            self._rebase(Rebase(epochs, self.frozen.layout.shifts[0]))

    def _room_ahead(self) -> int:
        """Return the number of epochs by which the anchor is to move. It is 0 if a move, which costs a pass
        over all that is kept, does not pay: less than half of the window, and less than any waiting message
        needs.
        """
        first, base = self.epochs_done(), self.anchor.epoch + 1
        enough = min(
            (self.frozen.layout.window // 2, *(needed - base + 1 for needed in self.arrivals.needed()))
        )
        if first == FOREVER or first - base < enough:
            return 0  # Fast path: no vertex has to be asked.
        for runner in self.runners:
            try:
                needed_epoch = runner.first_asked()
                first = first if needed_epoch is None or first <= needed_epoch else needed_epoch
            except BaseException as error:
                add_note(error, f"while {runner.title()} was asked for an epoch, built at {runner.site}")
                raise
        epochs = first - base
        return epochs if epochs >= enough else 0

    def _rebase(self, by: Rebase) -> None:
        for runner in self.runners:
            try:
                runner.catch_up()
            except BaseException as error:
                add_note(error, f"before times of {runner.title()} were to count from a later epoch")
                raise
        counts = self.tracker.counts()
        self.anchor.epoch += by.epochs
        self.changes.rebase(by)
        for runner in self.runners:
            try:
                runner.rebase(by)
            except BaseException as error:
                add_note(error, f"while times of {runner.title()} were to count from a later epoch")
                raise
        for loop in self.loops:
            loop.rebase(by)
        # Tell the tracker before anything else looks, so that no frontier seems to come and go.
        self._tell_tracker(self.far.rebase(counts, by))
        awaiting, self._awaiting = sorted(self._awaiting), set()
        for stage in awaiting:
            self.wake(self.runners[stage])
        self.arrivals.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all words that may be symbols: in inboxes, vertices, inputs, imports."""
        for handle in self.inputs.values():
            handle.symbols(mark)
        for imported in (*self.imports, *self.feeds.values()):
            imported.symbols(mark)
        for runner in self.runners:
            runner.symbols(mark)
        for loop in self.loops:
            loop.symbols(mark)
        self.arrivals.symbols(mark)

    def compared(self) -> object:
        """Return all that decides what it will do; frontiers and precursors follow from counts."""
        return (
            self.index,
            (bool(self.changes), sorted(self.untold())),
            [(location, word, count) for location, word, count, _ in self.tracker.active()],
            (self.turns, sorted(self.recheck)),
            (self.runners, self.loops),
            self.inputs,
            (self.first_epoch, self._begins_later, self.is_standby, self.is_taking_over),
            (self.imports, self.feeds, self.constants),
            (self.anchor.epoch, self.far.counts(), sorted(self._awaiting), self.arrivals),
        )

    def shared(self) -> Iterator[object]:
        """Yield what copies of it share, since it never changes: the dataflow as built, and batches."""
        yield self.frozen
        yield from self.frozen.codes
        for spec in self.frozen.connectors:
            yield from (spec.transform, spec.route, spec.limits)
        for connector in self.connectors:
            yield from (connector.transform, connector.routing)
        for handle in self.inputs.values():
            yield handle.codec
        for constant in self.constants:
            yield constant.codec
        for actor in self._all_runners():
            yield from (batch for _, _, _, batch in actor.inbox)
        yield from self.arrivals.batches()

    def drop(self, reason: TimelyError | None) -> None:
        """Tell the vertices why the dataflow has ended (`ends.py`), and free its memory, even if something
        still refers to this object: frames of the error that ended it do.
        """
        try:
            end_vertices(self.runners, reason)
        finally:
            self._free()

    def _free(self) -> None:
        for handle in (*self.imports, *self.feeds.values()):
            handle.close()
        self.imports.clear()
        self.feeds.clear()
        self.turns.drop()
        self.runners.clear()
        self.sources.clear()
        self.loops.clear()
        self.connectors.clear()
        self.inputs.clear()
        self.captures.clear()
        self.constants.clear()
        self.changes = CountChanges()
        self.arrivals.drop()

    def pointstamps(self) -> list[tuple[int, int, int]]:
        """Return what is outstanding in this worker's view, as (location, word, count); words count from
        epoch 0.
        """
        base = self.anchor.epoch << self.frozen.layout.shifts[0]
        counts = *self.far.without_stand_ins(self.tracker.counts()), *self.far.counts()
        return [(location, word + base, count) for location, word, count in counts]

    def late_words(self) -> list[tuple[int, int]]:
        """Return the messages that wait for the anchor, as (location, word), words as in `pointstamps`."""
        base = self.anchor.epoch << self.frozen.layout.shifts[0]
        return [(location, word + base) for location, word in self.arrivals.late_words()]

    def is_complete(self) -> bool:
        """Return True if nothing is outstanding anywhere, in this worker's view."""
        return not self.has_work() and not self.changes and self.tracker.is_idle()

    def _all_runners(self) -> list[VertexRunner | CompiledLoopRunner]:
        """Return the runners of stages and of compiled loops."""
        return [*self.runners, *self.loops]

    def _compile_loops(self) -> None:
        """Compile loops, as far as they can be compiled. Called once all vertices have started."""
        self.loops = compile_loops(self, self.frozen, self.runners, self.connectors)
        self.turns.add_actors(self.loops)
        for loop in self.loops:
            for stage in loop.stages:
                self.turns.actors[stage] = loop
                self.turns.take_out(self.runners[stage])
            loop.has_frontier_news = True
            self.wake(loop)
            if self.workers > 1:
                loop.way = len(self.arrivals.ways)
                self.arrivals.ways.append(loop)

    def _begin_loops(self, epoch: int) -> None:
        """Let loops begin. If there are several workers, each loop holds its first epoch from the beginning
        on, in the view of every worker.
        """
        for loop in self.loops:
            changes = loop.begin(epoch)
            if changes:
                self.apply(changes)

    def _open_inputs(self, epoch: int) -> None:
        opening: list[Change] = []
        for stage in self.frozen.open_stages:
            opening.append((stage, self.runners[stage].open_input(epoch), self.workers))
        opening += [source.open(epoch, self._owner.logs_sources) for source in self.sources]
        for constant in self.constants:
            constant.begin(epoch)
        if not opening:
            raise InternalError(f"the dataflow {self.frozen.name!r} has no input and no source")
        self.apply(opening)
        # A port that no input reaches has an empty frontier from now on, and would never hear of a change.
        for port, stage in enumerate(self._port_owner):
            runner = self.turns.actors[stage]
            if not len(self.tracker.frontier(port)) and (runner.wants_frontier or runner.wants_end):
                runner.has_frontier_news = True
                self.wake(runner)
