"""All orders in which a user's dataflow can happen, with checks of the user and of what a vertex must not do.

The explorer itself is `timely/running/checking/explorer.py`; here it gets

    invariant   a function of the user that is true at every state
    forgets     stages whose vertices keep nothing once all is complete
    repeated    every turn of a vertex is done twice, and must do the same both times: what it does may depend
                on nothing but its attributes and what it gets
    guarded     see `guards.py`
    ends        all ends are as expected, or, if nothing is expected, as the first one
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MethodType

from progress.checking.counterexample import Counterexample
from progress.errors import MisuseError

from ..building.dataflow import Dataflow
from ..running.checking.actions import Action, Activate, Receive
from ..running.checking.explorer import Explorer
from ..running.checking.reached import Doing, Door, Explorable, Local, Message, Move, Reached
from ..running.core import Worker
from ..running.instance import Instance
from ..running.reasons.holders import capability_sites
from .acts import UserAct, distributions, vertex_of
from .describing import action_in_words, error_in_words, lengths_of, sendings
from .guards import guarded, state_of
from .moment import Moment, Outputs, difference

__all__ = ["Invariant", "VertexExplorer", "broken_by", "check_forgotten", "held_for_ever"]

Invariant = Callable[[Moment], object]
"""Returns False, or raises `AssertionError`, if something is not as it must be."""


class VertexExplorer(Explorer):
    """Explores a dataflow with acts of users. See `Scenario` for the arguments."""

    def __init__(
        self,
        build: Callable[[Dataflow], object],
        acts: Sequence[UserAct],
        workers: int,
        *,
        expected: Outputs | None,
        invariant: Invariant | None,
        forgets: Sequence[str],
        orderly: bool,
        states_max: int,
    ) -> None:
        self._refusal: MisuseError | None = None
        """Why this dataflow cannot be explored."""
        ways = distributions(acts, workers)
        super().__init__(
            Explorable(build, ways[0], lambda instances: None, None, or_clients=ways[1:]), orderly, states_max
        )
        self._expected = expected
        self._first_end: Reached | None = None
        self._invariant = invariant
        self._forgets = {name: self._state_at_first(name) for name in forgets}
        self._looked_at: set[Hashable] = set()
        for local in self._starts[0].workers:
            self._fork(local, Door({}))

    def _state_at_first(self, stage: str) -> list[Hashable]:
        return [state_of(vertex_of(local.instance, stage)) for local in self._starts[0].workers]

    # -- acting --

    def _fork(self, local: Local, door: Door) -> Worker:
        try:
            return super()._fork(local, door)
        except Exception as error:  # whatever the vertex keeps
            self._refusal = MisuseError(
                f"{_uncopied(local.instance)} on worker {local.worker.index} cannot be copied: {error}. To "
                "explore, let vertices keep plain values and have plain functions as callbacks; simulate(…) "
                "copies nothing"
            )
            raise self._refusal from error

    def _local(self, worker: Worker) -> Local:
        try:
            for runner in worker.instance().runners:
                if runner.calls is not None:
                    raise MisuseError(
                        f"{runner.title()} has coroutines as callbacks, and a coroutine cannot be copied. To "
                        "explore, write plain functions; simulate(…) takes coroutines as well"
                    )
            return super()._local(worker)
        except MisuseError as error:  # something cannot be compared
            self._refusal = error
            raise

    def _act(
        self, local: Local, doing: Doing, message: Message | None
    ) -> tuple[Local, tuple[tuple[int, Message], ...]]:
        is_known = (local, doing, message) in self._after
        acted, sent = super()._act(local, doing, message)
        if isinstance(doing, Activate) and not is_known:
            key = local, doing, message
            first = self._after.pop(key)
            again = super()._act(local, doing, message)
            self._after[key] = first
            if again != first:
                raise Counterexample(
                    f"{local.instance.runners[doing.stage].title()} does not do the same again in the same "
                    f"state: {_differs(first, again)}. What it does may depend on its attributes and on what "
                    "it gets, not on chance, the clock, ids, or variables outside",
                    [],
                )
        return acted, sent

    def _do(self, worker: Worker, doing: Doing) -> None:
        if isinstance(doing, Activate):
            with guarded(worker.instance(), doing.stage):
                super()._do(worker, doing)
            return
        super()._do(worker, doing)

    def _as_counterexample(self, error: Exception, state: Reached, move: Move) -> Exception:
        if error is self._refusal:
            return error
        what = error.what if isinstance(error, Counterexample) else error_in_words(error)
        return Counterexample(what, self._path(state, move))

    # -- judging --

    def _judge(self, state: Reached) -> None:
        super()._judge(state)
        if self._invariant is not None and state.workers not in self._looked_at:
            self._looked_at.add(state.workers)
            wrong = broken_by(self._invariant, Moment([local.instance for local in state.workers]))
            if wrong:
                self._fail(state, wrong, [])

    def _judge_end(self, state: Reached) -> None:
        instances = [local.instance for local in state.workers]
        wrong = held_for_ever(instances)
        if wrong:
            self._fail(state, wrong, [])
        super()._judge_end(state)
        outputs = Moment(instances).outputs()
        wrong = check_forgotten(instances, self._forgets)
        if wrong:
            self._fail(state, wrong, [])
        if self._expected is None:
            self._expected, self._first_end = outputs, state
            return
        wrong = difference(outputs, self._expected)
        if not wrong:
            return
        if self._first_end is None:
            self._fail(state, wrong, [])
            return
        others = "\n    ".join(self._path(self._first_end, None))
        raise Counterexample(
            f"two orders end differently: compared with another order, {wrong}",
            self._path(state, None),
            f"the other order:\n    {others}",
        )

    # -- telling --

    def _path(self, state: Reached, move: Move | None) -> list[str]:
        moves: list[tuple[Reached, Move]] = [] if move is None else [(state, move)]
        while (step := self._came_from[state]) is not None:
            state = step[0]
            moves.append(step)
        return [self._in_words(before, done) for before, done in reversed(moves)]

    def _in_words(self, state: Reached, move: Move) -> str:
        who, doing = move
        if not isinstance(doing, Action):
            return f"worker {who}: {doing}"
        local = state.workers[who]
        message: Message | None = None
        if isinstance(doing, Receive):
            message = state.wires[doing.peer * self._size + who][0]
        text = action_in_words(local.worker, doing, [] if message is None else message.frames)
        acted = self._after.get((local, doing, message))
        if isinstance(doing, Activate) and acted is not None:
            sent = [(peer, one.frames) for peer, one in acted[1]]
            text += sendings(acted[0].instance, doing.stage, lengths_of(local.instance), sent)
        return f"worker {who}: {text}"


def broken_by(invariant: Invariant, moment: Moment) -> str:
    """Return what an invariant finds at a moment; an empty text if it holds."""
    name = getattr(invariant, "__name__", "the invariant")
    try:
        holds = invariant(moment)
    except AssertionError as error:
        return f"{name} does not hold: {error}" if str(error) else f"{name} does not hold"
    return f"{name} does not hold" if holds is False else ""


def held_for_ever(instances: Sequence[Instance]) -> str:
    """Return which vertex holds a time although nothing can happen any more; an empty text if none does."""
    for instance in instances:
        for runner in instance.runners:
            if not runner.held_words() or runner.vertex is None:
                continue
            sites = capability_sites([runner.vertex])
            times = sorted(map(runner.code.unpack_wide, runner.held_words()))
            named = [
                f"{time} (held at {sites.get((id(runner.vertex), time), 'an unknown line')})"
                for time in times
            ]
            return (
                f"nothing can happen any more, and {runner.title()} still holds {', '.join(named[:3])}: "
                "drop() what it holds once it needs it no more"
            )
    return ""


def check_forgotten(instances: Sequence[Instance], forgets: Mapping[str, Sequence[Hashable]]) -> str:
    """Return which vertex keeps something although all is complete; `forgets` has the states that vertices
    had at first, by stage. Return an empty text if there is none.
    """
    for stage, states in forgets.items():
        for instance, state in zip(instances, states, strict=True):
            vertex = vertex_of(instance, stage)
            if state_of(vertex) != state:
                attributes = {name: part for name, part in vars(vertex).items() if not name.startswith("_")}
                return (
                    f"{vertex!r} keeps something for ever: all is complete, and it is not as it was before "
                    f"anything came: {attributes!r:.300}"
                )
    return ""


def _uncopied(instance: Instance) -> str:
    """Return which attribute of a vertex cannot be copied, in words."""
    for runner in instance.runners:
        for name, value in vars(runner.vertex).items() if runner.vertex is not None else ():
            if name not in ("_bound", "_runner") and not isinstance(value, MethodType):
                try:
                    copy.deepcopy(value, {id(runner.vertex): runner.vertex})
                except Exception:  # whatever the value raises
                    return f"{name!r} of the vertex of {runner.name!r}"
    return "a vertex"


def _differs(
    first: tuple[Local, tuple[tuple[int, Message], ...]], again: tuple[Local, tuple[tuple[int, Message], ...]]
) -> str:
    return (
        "it sends something else"
        if first[1] != again[1]
        else "it keeps, or sends on its worker, something else"
    )
