"""A worker of its own process forgets words once its peers have withdrawn, and the caller allows it."""

from __future__ import annotations

import pytest

from timely.dictionaries import Mark
from timely.running.core import Worker
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.tasks import unused_words as unused_words_module
from timely.worker.tasks.unused_words import UnusedWords


class Holder:
    """Holds words beside the worker."""

    def __init__(self) -> None:
        self.asked = 0

    def symbols(self, mark: Mark) -> None:
        self.asked += 1

    def silent(self) -> list[str]:
        return []


class Group:
    """A process."""

    def at_rest(self) -> None:
        """See `together.Group`."""


pytestmark = pytest.mark.usefixtures("alone_in_process")


def test_forgets_once_the_peers_have_answered_and_it_may() -> None:
    network = MemoryNetwork(2)
    workers = [Worker(index, 2, network.transport(index)) for index in range(2)]
    other = Holder()
    words = UnusedWords(Group(), workers[0])
    words.go_on()
    words.go_on(others=[other])
    assert words.is_under_way and not other.asked, "a peer may still believe that this worker has all words"
    while network.in_flight() or not workers[0].forgetting.is_ready:
        for worker in workers:
            worker.step()
    words.go_on(may_forget=False, others=[other])
    assert words.is_under_way and not other.asked
    words.go_on(others=[other])
    assert not words.is_under_way and other.asked
    words.go_on()
    assert words.is_under_way, "it begins anew"


def test_waits_while_a_vertex_hides_words(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, other = Worker(), Holder()
    words = UnusedWords(Group(), worker)
    words.go_on()
    with monkeypatch.context() as patch:
        patch.setattr(unused_words_module, "hides_words", lambda asked: asked is worker)
        words.go_on(others=[other])
        assert words.is_under_way and not other.asked
    words.go_on(others=[other])
    assert not words.is_under_way and other.asked


def test_tries_again_while_others_in_the_process_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    other, words = Holder(), UnusedWords(Group(), Worker())
    words.go_on()
    with monkeypatch.context() as patch:
        patch.setattr(unused_words_module, "forget_alone", lambda group, forget: False)
        words.go_on(others=[other])
    assert words.is_under_way and not other.asked
    words.go_on(others=[other])
    assert not words.is_under_way and other.asked
