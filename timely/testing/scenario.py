"""Scenarios: a dataflow, what is done to it, and what must come of it.

scenario = Scenario(build, [send([1]), seal()], workers=2, expected={"out": [(0, 1)]})
scenario.explore()            all orders in which it can happen
scenario.simulate(seed=17)    one of them, which the seed decides
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from progress.errors import MisuseError

from ..building.dataflow import Dataflow
from ..running.checking.reached import Explored
from .acts import UserAct
from .exploring import Invariant, VertexExplorer
from .moment import Outputs, outputs_as_written
from .simulation import SimulatedRun, SimulationPlan, simulated

__all__ = ["Scenario", "explore", "simulate"]

_STATES_MAX = 200_000


@dataclass(frozen=True)
class Scenario:
    """What `explore` and `simulate` run, and `python -m progress.check FILE:NAME` by its name.

    Args:
        build: builds the dataflow, as for `cluster.install`.
        acts: what is done to it, in order: `send(…)`, `seal(…)`, `close(…)`, `call(…)`. Behind the last one
            all inputs close.
        workers: the number of workers.
        expected: by output, the (epoch, record) that must be there at the end, in any order; for an output
            of a collection (epoch, row, diff). Without it, all orders must end alike.
        invariant: a function of a `Moment` that must hold at each one: it returns False or raises
            `AssertionError` if it does not.
        forgets: stages whose vertices must be as at first once all is complete.
        orders: "steps": all orders that workers can show, each of which does its own work in the order of its
            steps; or "all": also those in which a worker does its own work in any order: there
            are many more.
        states_max: the number of states that `explore` visits at most.
        crash: let workers crash in `simulate`, at a moment that the seed decides.
    """

    build: Callable[[Dataflow], object]
    acts: Sequence[UserAct] = ()
    workers: int = 2
    expected: Mapping[str, Iterable[object]] | None = None
    invariant: Invariant | None = None
    forgets: Sequence[str] = ()
    orders: str = "steps"
    states_max: int = _STATES_MAX
    crash: bool = False
    _without_delays: dict[int, Outputs] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What a run without delays puts out, by the number of workers, once it is known."""

    def __post_init__(self) -> None:
        if type(self.workers) is not int or self.workers < 1:
            raise MisuseError(f"workers={self.workers!r}: write how many there are, 1 or more")
        if self.orders not in ("all", "steps"):
            raise MisuseError(f"orders={self.orders!r}: write 'all' or 'steps'")
        if not callable(self.build):
            raise MisuseError(
                f"build={self.build!r:.80} cannot be called: write the function that builds the dataflow"
            )

    def explore(
        self, *, workers: int | None = None, orders: str | None = None, states_max: int | None = None
    ) -> Explored:
        """Go through all orders, and return how much there was; raise `Counterexample` with as few steps as
        possible if something is not as it must be.
        """
        return VertexExplorer(
            self.build,
            self.acts,
            self.workers if workers is None else workers,
            expected=self._expected(),
            invariant=self.invariant,
            forgets=self.forgets,
            orderly=(orders or self.orders) == "steps",
            states_max=self.states_max if states_max is None else states_max,
        ).run()

    def simulate(self, seed: int, *, workers: int | None = None, crash: bool | None = None) -> SimulatedRun:
        """Run it once, as the seed decides; the same seed gives the same run. Raise `Counterexample` if
        something is not as it must be. Without `expected`, it must end as a run without delays.
        """
        expected = self._expected()
        count = self.workers if workers is None else workers
        plan = SimulationPlan(self.build, self.acts, count, expected, self.invariant, self.forgets)
        if expected is None:
            if count not in self._without_delays:
                self._without_delays[count] = simulated(plan, None).outputs
            expected = self._without_delays[count]
        wants_crash = self.crash if crash is None else crash
        plan = SimulationPlan(
            self.build, self.acts, count, expected, self.invariant, self.forgets, wants_crash
        )
        return simulated(plan, seed)

    def _expected(self) -> Outputs | None:
        return None if self.expected is None else outputs_as_written(self.expected)


def explore(
    build: Callable[[Dataflow], object],
    acts: Sequence[UserAct] = (),
    *,
    workers: int = 2,
    expected: Mapping[str, Iterable[object]] | None = None,
    invariant: Invariant | None = None,
    forgets: Sequence[str] = (),
    orders: str = "steps",
    states_max: int = _STATES_MAX,
) -> Explored:
    """Go through all orders in which a dataflow can happen: see `Scenario`."""
    return Scenario(build, acts, workers, expected, invariant, forgets, orders, states_max).explore()


def simulate(
    build: Callable[[Dataflow], object],
    acts: Sequence[UserAct] = (),
    seed: int = 0,
    *,
    workers: int = 2,
    expected: Mapping[str, Iterable[object]] | None = None,
    invariant: Invariant | None = None,
    forgets: Sequence[str] = (),
    crash: bool = False,
) -> SimulatedRun:
    """Run a dataflow once in an order that the seed decides: see `Scenario`."""
    return Scenario(build, acts, workers, expected, invariant, forgets, crash=crash).simulate(seed)
