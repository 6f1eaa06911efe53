"""A kernel that looks at a word of memory sees what another thread writes there, and ends if nobody does."""

from __future__ import annotations

import threading
import time

from timely.client.embedded.threads.looking_out import CALLS, looks_within, new_words, sees_another


def test_it_sees_what_was_written_before_and_nothing_else() -> None:
    words = new_words()
    assert not sees_another(words, 0, 100)
    words[CALLS] += 1
    assert sees_another(words, 0, 100)
    assert sees_another(words, 0, 0)
    assert not sees_another(words, 1, 100)


def test_it_sees_what_another_thread_writes_and_lets_it_write() -> None:
    words = new_words()

    def write() -> None:
        time.sleep(0.05)
        words[CALLS] += 1

    looks = looks_within(60.0)
    thread = threading.Thread(target=write)
    thread.start()
    began = time.monotonic()
    assert sees_another(words, 0, looks)
    assert time.monotonic() - began < 30.0
    thread.join()


def test_the_number_of_looks_follows_the_time() -> None:
    assert 1 <= looks_within(1e-9) <= looks_within(1e-4) < looks_within(1e-2)
