"""One dataflow on one worker: runners of vertices, connectors, tracker, and the run queue.

The run queue holds runners with work, in topological order. An activation lets a vertex consume everything
that is ready. Count changes pile up in `_changes`, where a message that is sent and consumed within a step
cancels out and never reaches the tracker; `take_changes` hands them over once per step.

Words count from an anchor (`progress/times/anchor.py`), which each worker moves up by itself when something
waits for that: rows of an input, a right at a far epoch, a message of a worker whose anchor is ahead. It may
go up to one epoch before the first that is outstanding in this worker's view; that one epoch is what
operators ask about that look one step back. What comes from other workers later is no earlier than that, for
a view is never ahead of the truth; and who waits for a message of one that is ahead will hear all that had
let it go there.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from progress.errors import InternalError, MisuseError
from progress.times.anchor import Anchor, Rebase
from progress.tracking.count_changes import Change, CountChanges
from progress.tracking.far import FarPointstamps
from progress.tracking.tracker import Tracker

from ..building.freeze import FrozenDataflow
from ..dictionaries import Mark
from ..failure import add_note
from ..operators.capture import FOREVER, CaptureVertex
from ..operators.constant import ConstantHandle
from ..operators.imported import Exported, ImportCodec, ImportHandle
from ..operators.inputs.handle import InputHandle
from ..operators.probe import ProbeVertex
from ..operators.vertex import Feeder
from ..wire.batch import Batch
from ..wire.routing import Routing
from .actions import Activate, Idle, Notify, Publish, Resume
from .arrivals import Arrivals
from .owner import Owner
from .stages.connector import Target
from .stages.joint_regions import JointRegionRunner
from .stages.region_making import make_regions
from .stages.regions import RegionRunner
from .stages.upstream import connected, feeders, follow_inputs
from .stages.vertex_runner import Checker, VertexRunner

PATIENCE_STEPS: Final = 16
"""Steps in which patient vertices wait for others: an output of a loop then has a turn in 16 iterations."""


class Instance:
    """A frozen dataflow, instantiated on worker `worker` of `workers`."""

    def __init__(
        self, owner: Owner, index: int, frozen: FrozenDataflow, feeds: Mapping[str, Exported] | None = None
    ) -> None:
        """`feeds`: by name, what inputs are fed with until `let_go_of_feeds`."""
        self._owner = self.lender = owner
        self.checker: Checker | None = None
        self.index = index
        self.worker = owner.index
        self.workers = owner.workers
        self.routing = Routing.default(owner.workers)
        self.frozen = frozen
        self.anchor = Anchor()
        self.far = FarPointstamps(frozen.layout)
        self._awaiting: set[int] = set()  # stages with rows of epochs that are not let in yet
        self._changes = CountChanges()
        self.count = self._changes.add  # (location, word, delta): callbacks reach progress tracking by this
        self._ready: list[int] = []
        self._turns: deque[int] = deque()  # stages that were left waiting
        self._resumed: list[VertexRunner | RegionRunner] = []
        self._patient: list[int] = []  # stages that wait until nothing is ready, and for how many steps
        self._postponed = 0
        self._has_failed = False
        self._idle_runners: list[VertexRunner] = []
        self.recheck: set[int] = set()
        codes = [code.anchored(self.anchor) for code in frozen.codes]
        self.runners = [
            VertexRunner(self, stage, declaration.name, declaration.site, code, declaration.outputs)
            for stage, (declaration, code) in enumerate(zip(frozen.stages, codes, strict=True))
        ]
        self.regions: list[RegionRunner] = []
        self._actors: list[VertexRunner | RegionRunner] = list(self.runners)
        """Who has the turns of each stage, and then the regions: these have theirs last."""
        self.connectors = connected(self, frozen, self.runners)
        self.arrivals = Arrivals(self.worker, frozen.layout, self.anchor, self.connectors, self.enqueue)
        self._port_owner: list[int] = []
        self.tracker = Tracker(frozen.graph, self._make_vertices(), anchor=self.anchor)
        self.inputs = {
            name: InputHandle(name, self.runners[frozen.stage_of[declared.stage]], declared.codec)
            for name, declared in frozen.inputs.items()
        }
        for name, handle in self.inputs.items():
            self.runners[frozen.stage_of[frozen.inputs[name].stage]].source = handle
        self.constants: list[ConstantHandle] = []
        for constant in frozen.constants:
            runner = self.runners[frozen.stage_of[constant.stage]]
            self.constants.append(ConstantHandle(constant.codec, runner, self.worker))
            runner.source = self.constants[-1]
        self.first_epoch = 0
        self.is_standby = False
        if not frozen.imports and not feeds:
            self._open_inputs(0)
        for runner in self.runners:
            if runner.vertex is not None:
                runner.vertex.bind(runner)
        if owner.makes_regions:
            self._take_together()
        if self.workers == 1:
            follow_inputs(frozen, self.runners)
        if not frozen.imports and not feeds:
            self._begin_regions(0)
        self._mergers = [runner for runner in self.runners if runner.wants_idle()]
        self.imports: list[ImportHandle] = []
        self.feeds: dict[str, ImportHandle] = {}
        self._take_hold(feeds or {})

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

        One without imports has begun when it was made, at epoch 0.
        """
        if self.imports or self.feeds:
            self.first_epoch = epoch
            # Nothing has a time yet, so the anchor goes anywhere.
            self.anchor.epoch = epoch - 1 if epoch >= self.frozen.layout.window else 0
            for handle in self.inputs.values():
                handle.begin(epoch)
            for imported in (*self.imports, *self.feeds.values()):
                imported.begin(epoch)
            self._open_inputs(epoch)
            self._begin_regions(epoch)

    def let_go_of_feeds(self, epoch: int) -> bool:
        """Let inputs that were fed up to `epoch` go on by themselves; returns whether any does since."""
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
        """The capturing vertex of a named output."""
        declared = self.frozen.outputs.get(name)
        if declared is None:
            raise MisuseError(f"no output {name!r}: there are {sorted(self.frozen.outputs) or 'none'}")
        vertex = self.runners[self.frozen.stage_of[declared.stage]].vertex
        assert isinstance(vertex, CaptureVertex)
        return vertex

    def probe(self, name: str) -> ProbeVertex:
        """The vertex that watches what `Dataflow.probe` named."""
        stage = self.frozen.probes.get(name)
        if stage is None:
            raise MisuseError(f"no probe {name!r}: there are {sorted(self.frozen.probes) or 'none'}")
        vertex = self.runners[self.frozen.stage_of[stage]].vertex
        assert isinstance(vertex, ProbeVertex)
        return vertex

    def input(self, name: str) -> InputHandle:
        """The handle of a named input."""
        handle = self.inputs.get(name)
        if handle is None:
            raise MisuseError(f"no input {name!r}: there are {sorted(self.inputs) or 'none'}")
        return handle

    def feeding(self, stage: int, port: int) -> list[Feeder]:
        """Who sends to input `port` of a stage on this worker."""
        return feeders(self.frozen, self.runners, self.connectors, stage, port)

    def take_changes(self) -> list[Change]:
        """The changes of counts since the last call, consolidated, increments first."""
        return self._changes.take()

    def untold(self) -> list[Change]:
        """What `take_changes` would hand over; to look at."""
        return self._changes.consolidated()

    def enqueue(self, target: Target, port: int, location: int, word: int, batch: Batch) -> None:
        """A message waits for `target`."""
        target.inbox.append((port, location, word, batch))
        if not target.is_queued:
            target.is_queued = True
            if target.is_patient:
                self._patient.append(target.stage)
            else:
                heapq.heappush(self._ready, target.stage)

    def receive(self, connector: int, word: int, batch: Batch, anchor: int = 0) -> None:
        """A message came in from another worker; its words count from `anchor`."""
        shift = self.frozen.layout.shifts[0]
        if self.checker is not None:
            self.checker.on_data(connector, word + (anchor << shift))
        self.arrivals.receive(connector, word, batch, anchor)

    def send_data(self, peer: int, connector: int, word: int, batch: Batch) -> None:
        """A message leaves for another worker."""
        if self.checker is not None:
            self.checker.on_sent(connector, word + (self.anchor.epoch << self.frozen.layout.shifts[0]))
        self._owner.send_data(peer, self.index, connector, word, batch)

    def has_work(self) -> bool:
        """Whether some vertex is ready to run."""
        return bool(self._ready or self._resumed or self._patient or self.can_follow())

    def goes_on(self) -> bool:
        """Whether some vertex is ready, and none waits for what comes between steps."""
        return bool(self._ready) and not self._resumed

    @property
    def is_calm(self) -> bool:
        """See `Runner`."""
        return not (self._ready or self._changes or self.recheck or self._has_failed)

    def is_at_rest(self) -> bool:
        """Whether a step would do nothing here: nobody is ready, nothing untold, no notification due."""
        is_ready = self._ready or self._resumed or self._patient or self.recheck
        return not (is_ready or self._changes or self.can_follow())

    def resume_later(self, runner: VertexRunner | RegionRunner) -> None:
        """`runner` has more to do, in the next `run`: others come first, and so do sockets and progress."""
        self._resumed.append(runner)

    def run(self, activations: int) -> int:
        """Activate up to `activations` vertices, topologically first ones first; returns how many ran.

        Who was left waiting by the last call has one turn before: what lies behind a loop that never rests is
        not starved by it.
        """
        if self._resumed:
            for runner in self._resumed.copy():
                self.let_resume(runner)
        ready, turns, runners = self._ready, self._turns, self._actors
        if self._patient:
            self._postponed += 1
            if not ready or self._postponed >= PATIENCE_STEPS:
                self._let_patient()
        ran = 0
        while ready and ran < activations:
            runner = runners[turns.popleft() if turns else heapq.heappop(ready)]
            # One that has had its turn out of order is still listed: in that case it is not queued any more.
            if runner.is_queued:
                self._activate(runner)
                ran += 1
        if ready and not turns:
            # Once each: who had a turn out of order and waits again is listed twice by now, and would be once
            # more for each turn behind a loop that never rests.
            ready[:] = sorted({stage for stage in ready if runners[stage].is_queued})
            turns.extend(ready)
        if ran:
            self._idle_runners = self._mergers.copy()
        return ran

    def enabled(self) -> list[Resume | Activate | Publish | Notify | Idle]:
        """Which actions there are to perform now, in the order in which steps come to them."""
        found: list[Resume | Activate | Publish | Notify | Idle] = []
        found += [Activate(self.index, actor.stage) for actor in self._different() if actor.is_queued]
        if self._changes or self.can_follow():
            found.append(Publish(self.index))
        if self.recheck:
            found.append(Notify(self.index))
        found += [Resume(self.index, stage) for stage in sorted(runner.stage for runner in self._resumed)]
        if self._idle_runners and not found:
            found.append(Idle(self.index))
        return found

    def _let_patient(self) -> None:
        """Vertices that can wait have waited long enough."""
        for stage in self._patient:
            heapq.heappush(self._ready, stage)
        self._patient.clear()
        self._postponed = 0

    def let_resume(self, runner: VertexRunner | RegionRunner) -> None:
        """Let a stage that asked for another turn have it."""
        self._resumed.remove(runner)
        runner.may_resume = True
        self.wake(runner)

    def resume(self, stage: int) -> None:
        """The same for a stage, or region, by its number."""
        self.let_resume(self._actors[stage])

    def activate(self, stage: int) -> None:
        """Run one queued stage, whichever others would come before it."""
        if stage in self._patient:
            self._patient.remove(stage)
        else:
            self._ready.remove(stage)
            heapq.heapify(self._ready)
        self._activate(self._actors[stage])
        self._idle_runners = self._mergers.copy()

    def _activate(self, runner: VertexRunner | RegionRunner) -> None:
        runner.is_queued = False
        try:
            runner.activate()
        except BaseException as error:
            self._has_failed = True
            add_note(error, f"while {runner.title()} ran, built at {runner.site}")
            raise

    def idle(self) -> bool:
        """One idle moment for the next vertex that wants it; returns whether any vertex wants another."""
        waiting = self._idle_runners
        while waiting:
            runner = waiting[-1]
            try:
                if runner.vertex is not None and runner.vertex.on_idle():
                    return True
            except BaseException as error:
                add_note(error, f"while {runner.title()} was idle, built at {runner.site}")
                raise
            waiting.pop()
        return False

    def rest(self) -> None:
        """Nothing has happened for a while: idle moments may begin what does not pay earlier."""
        for runner in self._mergers:
            if runner.vertex is not None:
                runner.vertex.on_rest()
        self._idle_runners = self._mergers.copy()

    def apply(self, changes: list[Change]) -> None:
        """Let the tracker know of changes (own ones or another worker's) and wake whom it concerns."""
        if self.far.is_wide(changes):
            changes = self.far.sift(changes)
            # From something far to something further no frontier moves, and a region may finish more epochs.
            for region in self.regions:
                self.wake(region)
        self._tell_tracker(changes)

    def _tell_tracker(self, changes: list[Change]) -> None:
        for port in self.tracker.apply(changes):
            stage = self._port_owner[port]
            runner = self._actors[stage]
            if runner.requested:
                self.recheck.add(stage)
            if runner.is_ahead:
                continue
            runner.has_frontier_news = True
            if runner.wants_frontier or (runner.wants_end and not len(self.tracker.frontier(port))):
                self.wake(runner)

    def check_notifications(self) -> None:
        """Find requested notifications that have become due; call after own changes were applied."""
        if not self.recheck:
            return
        for stage in sorted(self.recheck) if len(self.recheck) > 1 else self.recheck:
            runner = self.runners[stage]
            if runner.find_due():
                self.wake(runner)
        self.recheck.clear()

    def epochs_done(self) -> int:
        """The first epoch of which something is outstanding anywhere, in this worker's view; `FOREVER` if
        nothing is.
        """
        ahead = self.far.first_epoch(self.tracker.least_word())
        return FOREVER if ahead is None else self.anchor.epoch + ahead

    def await_epoch(self, stage: int) -> None:
        """`stage` has rows of an epoch that are not let in yet; it has a turn when the anchor has moved."""
        self._awaiting.add(stage)

    def can_follow(self) -> bool:
        """Whether the anchor should move, and may. Cost: nothing as long as nothing waits for that."""
        waits = self._awaiting or self.arrivals.late or self.far.pointstamps
        return bool(waits) and self._room_ahead() > 0

    def follow(self) -> None:
        """Move the anchor, if it should and may. To be called between activations."""
        if self.can_follow():
            self._rebase(Rebase(self._room_ahead(), self.frozen.layout.shifts[0]))

    def _room_ahead(self) -> int:
        """By how many epochs the anchor is to move; 0 if that does not pay, for it costs a look at all that
        is kept: less than half of what rows may be ahead, and less than a message needs.
        """
        first, base = self.epochs_done(), self.anchor.epoch + 1
        enough = min(
            (self.frozen.layout.window // 2, *(needed - base + 1 for needed in self.arrivals.needed()))
        )
        if first == FOREVER or first - base < enough:
            return 0  # as in most steps, and nobody has to be asked
        asked = [runner.vertex.first_asked() for runner in self.runners if runner.vertex is not None]
        epochs = min([first, *(epoch for epoch in asked if epoch is not None)]) - base
        return epochs if epochs >= enough else 0

    def _rebase(self, by: Rebase) -> None:
        for runner in self.runners:
            runner.catch_up()
        counts = self.tracker.counts()
        self.anchor.epoch += by.epochs
        self._changes.rebase(by)
        for runner in self.runners:
            try:
                runner.rebase(by)
            except BaseException as error:
                add_note(error, f"while times of {runner.title()} were to count from a later epoch")
                raise
        for region in self.regions:
            region.rebase(by)
        # At once, so that no frontier is seen to come and go.
        self._tell_tracker(self.far.rebase(counts, by))
        awaiting, self._awaiting = sorted(self._awaiting), set()
        for stage in awaiting:
            self.wake(self.runners[stage])
        self.arrivals.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all that is here: in inboxes, vertices, inputs, imports."""
        for handle in self.inputs.values():
            handle.symbols(mark)
        for imported in (*self.imports, *self.feeds.values()):
            imported.symbols(mark)
        for runner in self.runners:
            runner.symbols(mark)
        for region in self.regions:
            region.symbols(mark)
        self.arrivals.symbols(mark)

    def compared(self) -> object:
        """All that decides what it will do; frontiers and precursors follow from counts."""
        return (
            self.index,
            (bool(self._changes), sorted(self.untold())),
            [(location, word, count) for location, word, count, _ in self.tracker.active()],
            (sorted(self._ready), self._turns, sorted(self.recheck)),
            (sorted(self._patient), self._postponed, self._has_failed),
            [sorted(runner.stage for runner in listed) for listed in (self._resumed, self._idle_runners)],
            (self.runners, self.regions),
            self.inputs,
            (self.first_epoch, self.is_standby, self.imports, self.feeds, self.constants),
            (self.anchor.epoch, self.far.counts(), sorted(self._awaiting), self.arrivals),
        )

    def shared(self) -> Iterator[object]:
        """What copies of it have in common, since it never changes: the dataflow as built, and batches."""
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
        for actor in self._different():
            yield from (batch for _, _, _, batch in actor.inbox)
        yield from self.arrivals.batches()

    def drop(self) -> None:
        """Give back the memory of a dataflow that has ended, though somebody may hold on to this object:
        frames of the error that ended it do.
        """
        for handle in (*self.imports, *self.feeds.values()):
            handle.close()
        self.imports.clear()
        self.feeds.clear()
        self._idle_runners.clear()
        self._mergers.clear()
        self.runners.clear()
        self.regions.clear()
        self._actors.clear()
        self.connectors.clear()
        self.inputs.clear()
        self.constants.clear()
        self._ready.clear()
        self._turns.clear()
        self._patient.clear()
        self._changes = CountChanges()
        self.arrivals.drop()

    def pointstamps(self) -> list[tuple[int, int, int]]:
        """What is outstanding in this worker's view, as (location, word, count); words count from epoch 0."""
        base = self.anchor.epoch << self.frozen.layout.shifts[0]
        counts = *self.far.without_stand_ins(self.tracker.counts()), *self.far.counts()
        return [(location, word + base, count) for location, word, count in counts]

    def late_words(self) -> list[tuple[int, int]]:
        """The messages that wait for the anchor, as (location, word), words as in `pointstamps`."""
        base = self.anchor.epoch << self.frozen.layout.shifts[0]
        return [(location, word + base) for location, word in self.arrivals.late_words()]

    def is_complete(self) -> bool:
        """Whether nothing is outstanding anywhere, in this worker's view."""
        return not self.has_work() and not self._changes and self.tracker.is_idle()

    def wake(self, runner: VertexRunner | RegionRunner) -> None:
        """Let a stage have its turn."""
        if not runner.is_queued:
            runner.is_queued = True
            heapq.heappush(self._ready, runner.stage)

    def _different(self) -> list[VertexRunner | RegionRunner]:
        """All runners: of stages, and of regions."""
        return [*self.runners, *self.regions]

    def _take_together(self) -> None:
        """Let loops be regions, as far as they can. Called once all vertices have started."""
        self.regions = make_regions(self, self.frozen, self.runners, self.connectors)
        self._actors += self.regions
        for region in self.regions:
            for stage in region.stages:
                self._actors[stage] = region
                self.runners[stage].is_queued = False
            region.has_frontier_news = True
            self.wake(region)
            if isinstance(region, JointRegionRunner):
                region.way = len(self.arrivals.ways)
                self.arrivals.ways.append(region)

    def _begin_regions(self, epoch: int) -> None:
        """Those that go in step with other workers' hold from the beginning on, in everybody's view."""
        for region in self.regions:
            if isinstance(region, JointRegionRunner):
                self.apply(region.begin(epoch))

    def _make_vertices(self) -> list[list[int]]:
        """Instantiate all vertices; returns the watched ports, each as the connectors that feed it."""
        watched: list[list[int]] = []
        stages = len(self.runners)
        in_pieces = self.frozen.behind_loops
        for stage, declaration in enumerate(self.frozen.stages):
            if declaration.vertex is None:
                continue
            runner = self.runners[stage]
            runner.vertex = declaration.vertex()
            runner.wants_frontier = runner.vertex.wants_frontier
            runner.wants_end = runner.vertex.wants_end
            # Elsewhere all has come by the end of a step. And with other workers a step is at an end
            # whenever it has to wait for them: who stays behind only tells them twice, of rows that are there
            # and of rows that are gone.
            runner.is_patient = runner.vertex.is_patient and self.workers == 1 and stage in in_pieces
            runner.notifies = not runner.vertex.word_times
            for port in range(declaration.inputs):
                feeding = [
                    stages + c.index for c in self.frozen.connectors if c.target == stage and c.port == port
                ]
                runner.ports.append(len(watched))
                watched.append(feeding)
                self._port_owner.append(stage)
        return watched

    def _take_hold(self, feeds: Mapping[str, Exported]) -> None:
        """Begin to hold what is imported, or fed; of all of it or of nothing."""
        try:
            for imported in self.frozen.imports:
                exported = self._owner.exported(imported.owner, imported.export)
                self.imports.append(self._opened(imported.codec, exported, imported.stage))
            for name, exported in feeds.items():
                declared = self.frozen.inputs[name]
                self.feeds[name] = self._opened(declared.codec.as_import(), exported, declared.stage)
        except BaseException:
            for handle in (*self.imports, *self.feeds.values()):
                handle.close()
            raise

    def _opened(self, codec: ImportCodec, exported: Exported, stage: int) -> ImportHandle:
        runner = self.runners[self.frozen.stage_of[stage]]
        source = codec.open(exported, f"dataflow {self.index} ({self.frozen.name})")
        handle = ImportHandle(exported, source, runner)
        runner.source = handle
        return handle

    def _open_inputs(self, epoch: int) -> None:
        opening: list[Change] = []
        for stage in self.frozen.open_stages:
            word = self.runners[stage].opened = self.runners[stage].code.pack((epoch,))
            opening.append((stage, word, self.workers))
        for constant in self.constants:
            constant.begin(epoch)
        if not opening:
            raise InternalError(f"the dataflow {self.frozen.name!r} has no input")
        self.apply(opening)
        # What no input reaches will never hear that its frontier has changed: it is empty from now on.
        for port, stage in enumerate(self._port_owner):
            runner = self._actors[stage]
            if not len(self.tracker.frontier(port)) and (runner.wants_frontier or runner.wants_end):
                runner.has_frontier_news = True
                self.wake(runner)
