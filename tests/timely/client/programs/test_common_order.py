"""What programs say to each other: heard once, in one order; waits end when nothing can come any more."""

from __future__ import annotations

import threading

import pytest

from timely.client.programs.common_order import AT_BARRIER, FINISHED, SEQUENCED, CommonOrder
from timely.errors import MisuseError, UninstalledError, WaitTimeoutError


def began(workers: int) -> tuple[CommonOrder, list[int]]:
    """That of worker 0, and a list that grows each time it wakes its source."""
    order, woken = CommonOrder(), list[int]()
    order.begin(lambda: woken.append(1), 0, workers)
    return order, woken


def test_what_is_said_is_taken_once_with_numbers_that_go_on() -> None:
    order, woken = began(2)
    order.say(SEQUENCED, "a", 1)
    order.say(SEQUENCED, "b", (2, None))
    assert order.take() == [(0, 0, "value", "a", 1), (0, 1, "value", "b", (2, None))]
    assert order.take() == []
    order.say(FINISHED, "", "done")
    assert order.take() == [(0, 2, "finished", "", "done")] and len(woken) == 3


def test_values_come_by_sequencer_and_in_the_order_in_which_they_are_heard() -> None:
    order, _ = began(2)
    order.hear([(0, 0, SEQUENCED, "a", 1), (1, 0, SEQUENCED, "b", 2), (1, 1, SEQUENCED, "a", 3)])
    assert [order.next_value("a", 0.0), order.next_value("a", 0.0)] == [(0, 1), (1, 3)]
    assert order.next_value("b", 0.0) == (1, 2)
    with pytest.raises(WaitTimeoutError, match=r"worker 0 has waited 0.01 s for the next value of .*'b'"):
        order.next_value("b", 0.01)


def test_a_barrier_holds_until_the_last_one_comes() -> None:
    order, _ = began(2)
    passed = threading.Event()

    def program() -> None:
        order.meet(20.0)
        passed.set()

    thread = threading.Thread(target=program)
    thread.start()
    while not (words := order.take()):
        pass
    order.hear(words)
    assert not passed.wait(0.02)
    order.hear([(1, 0, AT_BARRIER, "", None)])
    assert passed.wait(20)
    thread.join()
    with pytest.raises(WaitTimeoutError, match="other workers at barrier number 2"):
        order.meet(0.01)


def test_a_barrier_that_a_program_will_never_reach_says_which() -> None:
    order, _ = began(3)
    order.hear([(2, 0, FINISHED, "", None)])
    with pytest.raises(MisuseError, match="barrier number 1, and the program on worker 2 has returned"):
        order.meet(None)


def test_a_value_that_nobody_can_push_any_more_is_not_waited_for() -> None:
    order, _ = began(2)
    order.say(SEQUENCED, "", 7)
    order.hear([(1, 0, FINISHED, "", None)])
    order.hear(order.take())
    assert order.next_value("", None) == (0, 7), "its own value came before"
    with pytest.raises(MisuseError, match="the programs on all other workers have returned"):
        order.next_value("", None)


def test_a_value_of_its_own_that_is_on_its_way_is_waited_for() -> None:
    order, _ = began(2)
    order.hear([(1, 0, FINISHED, "", None)])
    order.say(SEQUENCED, "", 7)
    with pytest.raises(WaitTimeoutError):
        order.next_value("", 0.01)
    words = order.take()
    with pytest.raises(WaitTimeoutError):
        order.next_value("", 0.01)
    order.hear(words)
    assert order.next_value("", None) == (0, 7)


def test_what_cannot_travel_is_refused_where_it_is_said() -> None:
    order, woken = began(2)
    with pytest.raises(MisuseError, match="worker 0: the value .1. cannot travel .* It may be None, bool"):
        order.say(SEQUENCED, "", {1})
    assert order.take() == [] and not woken


def test_after_the_end_nobody_waits_and_the_first_reason_stays() -> None:
    order, woken = began(2)
    order.end(UninstalledError("because"))
    order.end(UninstalledError("another"))
    with pytest.raises(UninstalledError, match="because"):
        order.meet(None)
    with pytest.raises(UninstalledError, match="because"):
        order.next_value("", None)
    with pytest.raises(UninstalledError, match="because"):
        order.say(FINISHED, "", 1)
    order.fail(ValueError("too late"))
    assert order.failure is None and not woken


def test_epochs_that_are_in_use_wake_the_source_once() -> None:
    order, woken = began(2)
    for epoch in (0, 0, 2, 1):
        order.use(epoch)
    assert order.used_before == 3 and len(woken) == 2
