"""What much work has left is given back to the system, and little work does not ask for it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from dataflows import word_count
from house import ROOT

import timely
from bench.memory import resident_mib
from timely import giving_back
from timely.client.embedded import pending_work
from timely.client.embedded.workers import EmbeddedWorkers
from timely.giving_back import GivingBack, give_back_read
from timely.limits import GIVE_BACK_AT_ONCE_ROWS_MIN, GIVE_BACK_ROWS_MIN
from timely.mapped import has_spare, mapped, release_spare

_HAS_TRIM = hasattr(ctypes.CDLL(None), "malloc_trim")


def test_it_gives_back_once_after_many_rows() -> None:
    giving = GivingBack()
    assert not giving.look()
    giving.add(GIVE_BACK_ROWS_MIN - 1)
    assert not giving.look()
    giving.add(1)
    assert giving.look()
    assert not giving.look()


def test_rows_that_come_at_once_are_many_sooner_where_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_back, "GIVE_BACK_AT_ONCE_ROWS_MIN", 100)
    giving = GivingBack()
    for rows, is_many in ((99, False), (1, False), (100, True), (99, False)):
        giving.add(rows)
        assert not giving.look()
        assert giving.look_behind() == is_many
    giving.add(60)
    giving.add(40)
    assert giving.look_behind(), "they have come in parts, and nobody had nothing to do meanwhile"
    assert not giving.look_behind()
    giving.add(GIVE_BACK_ROWS_MIN)
    assert giving.look() and not giving.look_behind()


def test_as_long_as_something_waits_it_keeps_what_it_has_until_it_rests() -> None:
    giving = GivingBack()
    giving.add(GIVE_BACK_AT_ONCE_ROWS_MIN)
    assert not giving.look_behind(lambda: True) and not giving.look_behind(lambda: True)
    assert giving.look_behind(lambda: False)
    giving.add(GIVE_BACK_AT_ONCE_ROWS_MIN)
    assert not giving.look_behind(lambda: True)
    release_spare()
    assert giving.rest() and not giving.rest()
    assert not giving.look_behind()


def test_at_rest_it_gives_back_whatever_is_kept() -> None:
    giving = GivingBack()
    giving.look()
    release_spare()
    assert not giving.rest()
    array = mapped(1 << 20, stays=False)
    assert not giving.rest()
    del array
    assert giving.rest() and not has_spare()
    assert not giving.rest()


@pytest.mark.skipif(not _HAS_TRIM, reason="a C library that cannot be asked")
def test_what_was_freed_in_the_middle_is_given_back() -> None:
    held = [np.ones(2**13, np.int64) for _ in range(2_000)]  # 64 KiB each: not memory of its own
    kept = held[-1]
    before = resident_mib()
    held.clear()
    giving = GivingBack()
    giving.add(GIVE_BACK_ROWS_MIN)
    assert giving.look()
    assert before - resident_mib() > 60
    assert kept[0] == 1


def test_what_arrow_keeps_of_what_was_freed_is_given_back() -> None:
    held = [pa.allocate_buffer(2**12) for _ in range(30_000)]
    for buffer in held:
        np.frombuffer(buffer, np.uint8)[:] = 1
    kept = held[::100]
    before = resident_mib()
    held.clear()
    del buffer
    giving = GivingBack()
    giving.add(GIVE_BACK_ROWS_MIN)
    assert giving.look()
    assert before - resident_mib() > 60
    assert all(buffer.to_pybytes()[7] == 1 for buffer in kept)


def test_a_large_answer_counts_as_rows_that_come_in_and_small_ones_never_add_up() -> None:
    giving = GivingBack()
    for _ in range(GIVE_BACK_ROWS_MIN // 1_000 + 1):
        giving.add_sent(1_000)
    assert not giving.look() and not giving.look_behind()
    giving.add_sent(GIVE_BACK_AT_ONCE_ROWS_MIN // 4)
    assert giving.look_behind()


def test_what_arrow_keeps_behind_an_answer_that_was_read_is_given_back_if_it_was_large() -> None:
    held = [pa.allocate_buffer(1 << 24) for _ in range(4)]
    for buffer in held:
        np.frombuffer(buffer, np.uint8)[:] = 1
    before = resident_mib()
    held.clear()
    del buffer
    give_back_read(GIVE_BACK_AT_ONCE_ROWS_MIN - 1)
    assert before - resident_mib() < 30
    give_back_read(GIVE_BACK_AT_ONCE_ROWS_MIN)
    assert before - resident_mib() > 60


def test_where_nobody_can_be_asked_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_back.ctypes, "CDLL", lambda name: object())
    giving = GivingBack()
    giving.add(GIVE_BACK_ROWS_MIN)
    assert giving.look()


_FREED = """
import numpy as np
from bench.memory import resident_mib
from timely.giving_back import GivingBack
from timely.limits import GIVE_BACK_ROWS_MIN
from timely.mapped import has_spare, mapped, release_spare
giving = GivingBack()
held = [np.ones(1 << 17, np.int64) for _ in range(40)]
before = resident_mib()
held.clear()
freed = resident_mib()
giving.add(GIVE_BACK_ROWS_MIN)
giving.look()
print(int(before - freed), int(before - resident_mib()))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="a C library that cannot be told")
@pytest.mark.parametrize(
    "setting", ["", "MALLOC_TRIM_THRESHOLD_=131072", "GLIBC_TUNABLES=glibc.malloc.perturb=0"]
)
def test_what_is_freed_is_kept_until_there_is_nothing_to_do_unless_the_process_has_settings(
    setting: str,
) -> None:
    names = dict([setting.split("=", 1)]) if setting else {}
    run = subprocess.run(
        [sys.executable, "-c", _FREED],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | names,
    )
    freed, given_back = map(int, run.stdout.split())
    assert (freed < 10) == (not setting)
    assert given_back > 30


@pytest.mark.parametrize("threads", [False, True])
def test_an_embedded_cluster_gives_back_after_much_work(
    threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(giving_back, "GIVE_BACK_ROWS_MIN", 100)
    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        workers = cluster._workers
        assert isinstance(workers, EmbeddedWorkers)
        looks: list[bool] = []
        look = workers._giving_back.look
        monkeypatch.setattr(workers._giving_back, "look", lambda rows=0: looks.append(look(rows)))
        flow = cluster.install(word_count)
        looks.clear()
        for count in (99, 1, 99):
            flow.input("lines").insert(["a"] * count)
            flow.wait(flow.seal())
        assert looks.count(True) == 1
        assert [count for _, (_, count) in flow.output("counts").changes()] == [99, 100, 199]


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("owed_max", [1, 1_000], ids=["done when it is sealed", "done when it is waited for"])
def test_an_embedded_cluster_gives_back_behind_a_load_when_something_else_is_asked(
    threads: bool, owed_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(giving_back, "GIVE_BACK_AT_ONCE_ROWS_MIN", 100)
    monkeypatch.setattr(pending_work, "PENDING_ROWS_MAX", owed_max)
    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        workers = cluster._workers
        assert isinstance(workers, EmbeddedWorkers)
        given_back: list[bool] = []
        monkeypatch.setattr(workers._giving_back, "_give_back", lambda: given_back.append(True))
        flow = cluster.install(word_count)
        flow.input("lines").insert(["a"] * 100)
        flow.wait(flow.seal())
        assert not given_back, "its caller has not waited for that"
        assert [count for _, (_, count) in flow.output("counts").changes()] == [100]
        assert given_back


_ARENAS = """
import ctypes, sys, threading
import pyarrow as pa
from bench.memory import resident_mib
from timely.giving_back import give_back_freed, limit_arenas
if sys.argv[1] == "limited":
    limit_arenas()
before, held, freed = resident_mib(), [], []
go_on = [threading.Event() for _ in range(8)]
def fill(number):
    pieces = [bytearray(2_000) for _ in range(2_500)]
    held.append(pieces[-1])  # the last one keeps the arena from shrinking
    freed.append(number)
    del pieces
    go_on[number].wait()
threads = [threading.Thread(target=fill, args=(number,)) for number in range(8)]
for number, thread in enumerate(threads):
    thread.start()
    while len(freed) <= number:
        pass
for number, thread in enumerate(threads):
    go_on[number].set()
    thread.join()
kept = resident_mib() - before
give_back_freed()
print(int(kept), int(resident_mib() - before), pa.default_memory_pool().backend_name)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="a C library that cannot be told")
def test_many_threads_that_do_little_each_share_few_arenas_and_what_they_free_is_given_back() -> None:
    def run(how: str) -> tuple[int, int, str]:
        environment = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
        environment.pop("ARROW_DEFAULT_MEMORY_POOL", None)
        run = subprocess.run(
            [sys.executable, "-c", _ARENAS, how],
            cwd=ROOT, env=environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
        kept, left, pool = run.stdout.split()
        return int(kept), int(left), pool

    kept, left, pool = run("limited")
    assert kept < 20 and left < 5 and pool == "system"
    more_kept, left, _ = run("as it is")
    assert more_kept > kept + 10 and left < 5
