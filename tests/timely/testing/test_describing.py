"""Actions in words."""

from __future__ import annotations

from wrong_vertices import SumVertex, summed

from timely import Dataflow
from timely.running.checking.actions import Activate
from timely.running.core import Worker
from timely.testing import send
from timely.testing.describing import action_in_words, error_in_words, lengths_of, sendings


def test_each_action_says_who_does_what() -> None:
    flow = Dataflow()
    summed(SumVertex)(flow)
    worker = Worker()
    instance = worker.install(flow.freeze())
    send([("a", 1)]).act(instance)
    instance.input("pairs").seal()
    told = []
    while actions := worker.enabled():
        text, before = action_in_words(worker, actions[0]), lengths_of(instance)
        worker.perform(actions[0])
        if isinstance(actions[0], Activate):
            text += sendings(instance, actions[0].stage, before, [])
        told.append(text)
    assert "'sum' gets [('a', 1)] at (0,)" in told
    assert "'sum' is notified of (0,) and sends [('a', 1)] at (0,) to 'output sums'" in told
    assert "tells the others what is over and what is new" in told
    assert "looks which notifications are due" in told


def test_errors_name_the_line_of_the_user() -> None:
    try:
        raise KeyError("a")
    except KeyError as error:
        text = error_in_words(error)
    assert text.startswith("KeyError: 'a'\n  at ") and "test_describing.py:" in text
