"""Who has a turn: topologically first stages first, everything that is ready at once, and nobody starves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from failing_flows import spins

from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.turns import PATIENCE_STEPS, Turns
from timely.wire.transport.memory import MemoryNetwork


class Passes(Vertex):
    """Passes on, and writes down who ran when with how much."""

    def __init__(self, log: list[tuple[str, int]]) -> None:
        self.log = log

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.log.append((self.name, len(message)))
        self.send_by(0, message, time)

    def on_resume(self) -> None:
        pass


def diamond(log: list[tuple[str, int]]) -> tuple[Worker, Instance]:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    first = numbers.stage("first", lambda: Passes(log))
    left, right = (first.stage(name, lambda: Passes(log)) for name in ("left", "right"))
    dataflow.stage("last", lambda: Passes(log), [left.feed(), right.feed(), numbers.feed()])
    worker = Worker()
    return worker, worker.install(dataflow.freeze())


def test_a_stage_runs_when_all_before_it_have() -> None:
    log: list[tuple[str, int]] = []
    worker, instance = diamond(log)
    instance.input("numbers").send(["x"])
    instance.input("numbers").seal()
    worker.run_until_idle()
    assert [name for name, _ in log] == ["first", "left", "right", "last", "last", "last"]
    assert [runner.activations for runner in instance.runners[1:]] == [1, 1, 1, 1], (
        "one activation takes all that waits"
    )


def test_is_empty_when_nothing_is_to_do() -> None:
    worker, instance = diamond([])
    worker.run_until_idle()
    assert not instance.has_work() and not worker.has_work() and not worker.step()


class PutsOffVertex(Vertex):
    """Has three idle moments' work to do after each activation."""

    def __init__(self) -> None:
        self.left = 0

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.left = 3

    def on_idle(self) -> bool:
        self.left = max(0, self.left - 1)
        return self.left > 0

    def on_rest(self) -> None:
        self.left += 2


def test_work_that_may_wait_is_done_in_idle_moments_until_there_is_no_more() -> None:
    dataflow = Dataflow()
    dataflow.output("nothing", dataflow.input("numbers").stage("puts off", PutsOffVertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    assert not worker.idle()
    instance.inputs["numbers"].send([1])
    instance.inputs["numbers"].seal()
    worker.run_until_idle()
    assert [worker.idle(), worker.idle(), worker.idle(), worker.idle()] == [True, True, False, False]
    worker.rest()
    assert [worker.idle(), worker.idle(), worker.idle()] == [True, False, False], (
        "what it begins then is done"
    )


class RestsVertex(Vertex):
    """Counts how often nothing has happened for a while."""

    rested = 0

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        pass

    def on_rest(self) -> None:
        self.rested += 1
        if self.rested > 1:
            raise SystemExit("tired")


def test_whoever_only_wants_to_know_of_rest_is_told_and_may_fail_as_anywhere() -> None:
    dataflow = Dataflow()
    dataflow.output("nothing", dataflow.input("numbers").stage("rests", RestsVertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    failed: list[int] = []
    worker.on_failure = lambda number, error: failed.append(number)
    worker.rest()
    assert not worker.idle() and not failed
    vertex = instance.runners[1].vertex
    assert isinstance(vertex, RestsVertex) and vertex.rested == 1
    worker.rest()
    assert failed == [0] and 0 in worker.ended


def test_outputs_of_a_loop_take_what_came_in_many_iterations_together() -> None:
    """They wait until nothing else is ready, and no longer than some steps."""
    worker = Worker()
    instance = worker.install(counts_down().freeze())
    output = next(runner for runner in instance.runners if runner.name == "output all")
    for epoch, number in enumerate((PATIENCE_STEPS // 2, 4 * PATIENCE_STEPS)):
        before = output.activations
        instance.input("numbers").send([number])
        instance.input("numbers").seal()
        worker.run_until_idle()
        assert instance.output("all").log.changes(epoch, epoch + 1).num_rows == number
        assert before < output.activations <= before + 2 + number // PATIENCE_STEPS + 2


def test_outputs_of_a_loop_on_several_workers_wait_for_nobody() -> None:
    """At the end of a step others are waited for, and told of whatever is left."""
    network = MemoryNetwork(2)
    workers = [Worker(index, 2, network.transport(index)) for index in range(2)]
    instances = [worker.install(counts_down().freeze()) for worker in workers]

    def step_all() -> bool:
        return sum(worker.step() for worker in workers) > 0

    while step_all():
        pass
    for instance in instances:
        instance.input("numbers").send([5])
        instance.input("numbers").seal()
    while step_all():
        assert not any(instance.runners[-1].inbox for instance in instances)
    assert instances[0].runners[-1].name == "output all"
    assert [instance.output("all").log.changes(0, 1).num_rows for instance in instances] == [5, 5]


def counts_down() -> Dataflow:
    """A loop out of which a row comes in each iteration."""
    dataflow = Dataflow("counts down")
    with dataflow.loop() as loop:
        back = loop.feedback()
        entered = loop.enter(dataflow.input("numbers"))
        (out,) = dataflow.stage("less", CountsDownVertex, [entered.feed(), back.stream.feed()])
        back.connect(out)
    dataflow.output("all", loop.leave(out))
    return dataflow


def test_outputs_that_are_behind_no_loop_take_what_comes_in_the_step_in_which_it_comes() -> None:
    """Waiting would make a second step of every change, and one more message to each other worker."""
    dataflow = Dataflow()
    dataflow.output("all", dataflow.input("numbers").stage("as they come", ForwardVertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    worker.run_until_idle()
    instance.inputs["numbers"].send([7])
    instance.inputs["numbers"].seal()
    worker.step()
    assert instance.runners[-1].name == "output all" and not instance.runners[-1].inbox
    worker.step()  # news of the frontier
    assert instance.output("all").log.changes(0, 1).num_rows == 1


class ForwardVertex(Vertex):
    """Hands on what it gets."""

    def on_recv(self, edge: int, message: object, time: tuple[int, ...]) -> None:
        self.send_by(0, message, time)


class CountsDownVertex(Vertex):
    """Sends each number less one, down to nought."""

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        less = [int(str(number)) - 1 for number in message if number]
        self.send_by(0, less, time)


def test_a_loop_that_never_waits_starves_neither_what_is_behind_it_nor_what_is_beside() -> None:
    worker = Worker()
    dataflow = Dataflow("spins")
    spins(dataflow)
    instance = worker.install(dataflow.freeze())
    instance.input("records").send(["round"])
    behind = next(runner for runner in instance.runners if runner.name == "keeps")
    for epoch in range(5):
        instance.input("others").send([epoch])
        for name in ("records", "others"):
            instance.input(name).seal()
        before = behind.activations
        # A turn for each stage and for each piece of news that follows, and outputs wait for others.
        complete = 0
        for _ in range(12 + 2 * PATIENCE_STEPS):
            worker.step()
            complete = instance.output("beside").complete_before  # as who waits for it looks
        assert complete == epoch + 1
        assert behind.activations > before
    assert instance.output("behind").complete_before == 0 and instance.has_work()
    # Nobody is listed more than twice: once in order, and once more for a turn out of order.
    assert len(instance.turns.ready) <= 2 * len(instance.runners)


def test_who_resumes_has_a_turn_in_the_next_run_and_another_only_when_asked_again() -> None:
    worker, instance = diamond([])
    worker.run_until_idle()
    turns, runner = instance.turns, instance.runners[1]
    runner.resume()
    runner.resume()
    assert turns.resumed == [runner] and not turns.ready
    before = runner.activations
    assert turns.run(9) == 1 and runner.activations == before + 1
    assert turns.run(9) == 0 and instance.is_at_rest()


def test_one_that_is_run_out_of_order_has_no_second_turn_for_it() -> None:
    log: list[tuple[str, int]] = []
    worker, instance = diamond(log)
    worker.run_until_idle()
    for runner in (instance.runners[2], instance.runners[1]):
        instance.wake(runner)
        instance.wake(runner)
    turns = instance.turns
    assert sorted(turns.ready) == [1, 2]
    turns.activate(2)
    assert turns.ready == [1] and turns.run(9) == 1 and not turns.ready


def test_an_activation_that_fails_is_remembered_for_nothing_is_calm_any_more() -> None:
    dataflow = Dataflow()
    dataflow.input("numbers").stage("fails", FailsVertex)
    instance = Worker().install(dataflow.freeze())
    instance.wake(instance.runners[1])
    with pytest.raises(LookupError) as caught:
        while instance.turns.run(9):
            pass
    assert instance.turns.has_failed and not instance.is_calm
    assert "while 'fails' (stage 1, worker 0 of 1) ran" in caught.value.__notes__[0]


class FailsVertex(Vertex):
    """Cannot even hear where it begins."""

    wants_frontier = True

    def on_frontier(self) -> None:
        raise LookupError("nowhere")


def test_when_all_is_dropped_nobody_is_kept() -> None:
    worker, instance = diamond([])
    worker.run_until_idle()
    turns = instance.turns
    instance.wake(instance.runners[1])
    instance.runners[2].resume()
    turns.drop()
    turns.alarms.set(1, None)
    turns.drop()
    left, nothing = vars(turns), vars(Turns(turns.gate, turns.timings))
    for name in ("ran_from", "ran_until"):
        left.pop(name), nothing.pop(name)
    assert left.pop("alarms").compared() == nothing.pop("alarms").compared()
    assert left == nothing


class Acts:
    """In the place of a vertex: writes down when it acts."""

    def __init__(self, stage: int, log: list[int], is_patient: bool = False) -> None:
        self.stage = stage
        self.is_patient = is_patient
        self.is_queued = self.may_resume = False
        self.inbox: list[object] = []
        self._log = log

    def activate(self) -> None:
        self._log.append(self.stage)


def turns_of(count: int, patient: int = -1) -> tuple[Turns, list[Acts], list[int]]:
    """Of so many, one of them patient; and who has acted."""
    log: list[int] = []
    actors = [Acts(stage, log, stage == patient) for stage in range(count)]
    turns = Turns()
    turns.add_actors(actors)  # type: ignore[arg-type]
    return turns, actors, log


def test_all_others_keep_their_order_when_one_is_run_out_of_it() -> None:
    turns, actors, log = turns_of(6)
    for stage in (0, 3, 1, 4, 5, 2):
        turns.wake(actors[stage])  # type: ignore[arg-type]
    turns.activate(0)
    assert turns.run(9) == 5
    assert log == [0, 1, 2, 3, 4, 5]


def test_who_was_left_waiting_comes_first_and_has_no_second_turn() -> None:
    turns, actors, log = turns_of(3)
    for actor in actors:
        turns.wake(actor)  # type: ignore[arg-type]
    assert turns.run(1) == 1
    turns.wake(actors[0])  # type: ignore[arg-type]
    assert turns.run(9) == 3 and log == [0, 1, 2, 0]
    assert turns.run(9) == 0 and len(log) == 4


def test_who_is_patient_waits_for_so_many_runs_each_time() -> None:
    turns, actors, log = turns_of(2, patient=1)
    for _ in range(2):
        turns.enqueue(actors[1], 0, 0, 0, None)  # type: ignore[arg-type]
        for waited in range(1, PATIENCE_STEPS + 1):
            assert log.count(1) == 0, waited
            turns.wake(actors[0])  # type: ignore[arg-type]
            turns.run(9)
        assert log.count(1) == 1
        log.clear()


def test_steps_go_on_at_once_unless_somebody_waits_for_what_comes_between() -> None:
    turns, actors, _ = turns_of(2)

    def goes_on() -> bool:
        """As a lone worker asks before each further run within its step."""
        return bool(turns.ready and not turns.resumed)

    assert not goes_on()
    turns.wake(actors[0])  # type: ignore[arg-type]
    assert goes_on()
    turns.resume_later(actors[1])  # type: ignore[arg-type]
    assert not goes_on()
    turns.run(1)
    assert goes_on(), "it had been let go on with the others, and waits for its turn"


def test_who_is_patient_waits_for_nobody_where_nobody_else_is_ready() -> None:
    turns, actors, log = turns_of(2, patient=1)
    turns.enqueue(actors[1], 0, 0, 0, None)  # type: ignore[arg-type]
    assert turns.run(9) == 1 and log == [1] and not turns.patient


def test_who_is_patient_may_be_run_out_of_order_too() -> None:
    turns, actors, log = turns_of(2, patient=1)
    turns.enqueue(actors[1], 0, 0, 0, None)  # type: ignore[arg-type]
    turns.wake(actors[0])  # type: ignore[arg-type]
    turns.activate(1)
    assert log == [1] and not turns.patient
    assert turns.run(9) == 1 and log == [1, 0]


def test_who_was_left_waiting_is_listed_once_however_often_others_come_first() -> None:
    turns, actors, log = turns_of(4)
    for _ in range(40):
        for actor in actors:
            turns.wake(actor)  # type: ignore[arg-type]
        assert turns.run(1) == 1
        assert len(turns._turns) <= len(actors) and len(turns.ready) <= 2 * len(actors)
    assert min(log.count(stage) for stage in range(4)) > 4, "nobody starves"


def test_idle_moments_begin_anew_when_one_is_run_out_of_order() -> None:
    turns, actors, _ = turns_of(2)
    turns.mergers.append(actors[1])  # type: ignore[arg-type]
    turns.wake(actors[0])  # type: ignore[arg-type]
    turns.activate(0)
    assert turns.idle_runners == turns.mergers


def test_a_failure_in_an_idle_moment_says_whose_it_was() -> None:
    def fails() -> bool:
        raise LookupError("nowhere")

    turns = Turns()
    runner = SimpleNamespace(vertex=SimpleNamespace(on_idle=fails), title=lambda: "'merges'", site="line 7")
    turns.idle_runners.append(runner)  # type: ignore[arg-type]
    with pytest.raises(LookupError) as caught:
        turns.idle()
    assert caught.value.__notes__ == ["while 'merges' was idle, built at line 7"]
