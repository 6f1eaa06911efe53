"""Large memory is used again by who asks for as much, never by two at once, and no more is kept than there
may be.
"""

from __future__ import annotations

import gc
import mmap
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from house import ROOT
from hypothesis import given

from bench.memory import resident_mib
from progress.compiled.arrays import Int64s
from timely import mapped as module
from timely.limits import KEPT_MEMORY_BYTES_MAX, KEPT_MEMORY_BYTES_MIN, KEPT_MEMORY_COUNT_MAX
from timely.mapped import HUGE_PAGE_BYTES, give_back_pages, mapped, mapping_of, release_spare

MIB = 1 << 20
PART = KEPT_MEMORY_BYTES_MAX // 64
"""Of 16 of them at the most one piece of memory is kept."""


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    gc.collect()
    release_spare()
    yield
    release_spare()


def _kept() -> list[int]:
    return [len(memory) for memory in module._MEMORY._spare]


def _where(array: Int64s) -> int:
    return int(array.ctypes.data)


def test_what_was_dropped_is_used_again() -> None:
    array = mapped(MIB, stays=False)
    where = _where(array)
    array[:] = 1
    del array
    assert _kept() == [MIB]
    assert _where(mapped(MIB, stays=False)) == where


def test_it_is_not_while_a_view_of_it_is_there() -> None:
    array = mapped(MIB, stays=False)
    array[:] = 7
    view = memoryview(array[5:10].reshape(5, 1))
    del array
    other = mapped(MIB, stays=False)
    other[:] = 8
    assert np.asarray(view).tolist() == [[7]] * 5
    assert not _kept()
    del view
    assert _kept() == [MIB]


def test_it_has_as_many_words_as_were_asked_for() -> None:
    larger = mapped(2 * MIB, stays=False)
    del larger
    for size in (MIB, MIB + 1, MIB + 4096, 2 * MIB - 8):
        array = mapped(size, stays=False)
        memory = mapping_of(array[3:])
        assert array.shape == (-(-size // 8),) and array.dtype == np.int64
        assert memory is not None and len(memory) == 2 * MIB
        array[:] = -1
        del array, memory


def test_the_least_that_is_enough_is_taken_and_nothing_of_more_than_twice_the_size() -> None:
    arrays = [mapped(size * MIB, stays=False) for size in (8, 3, 5, 4)]
    wanted = _where(arrays[3])
    arrays.clear()
    found = mapped(4 * MIB, stays=False)
    assert _where(found) == wanted
    memory = mapping_of(mapped(MIB, stays=False))
    assert memory is not None and len(memory) == MIB


@pytest.mark.parametrize("stays", [False, True])
def test_what_stays_holds_no_more_than_it_needs(stays: bool) -> None:
    larger = mapped(8 * MIB, stays=False)
    larger[:] = 1
    del larger
    before = resident_mib()
    array = mapped(4 * MIB, stays=stays)
    assert array.shape == (MIB // 2,)
    assert (before - resident_mib() > 3) == stays


def test_what_is_kept_has_bounds() -> None:
    for size, count in ((8 * MIB, 40), (1 << 18, 200)):
        arrays = [mapped(size, stays=False) for _ in range(count)]
        arrays.clear()
        assert sum(_kept()) <= KEPT_MEMORY_BYTES_MAX and len(_kept()) <= KEPT_MEMORY_COUNT_MAX
    release_spare()
    assert not _kept()
    del arrays
    array = mapped(KEPT_MEMORY_BYTES_MAX, stays=False)
    del array
    assert not _kept(), "nothing would have room beside it"


def test_no_more_is_held_than_was_in_use_at_once_but_for_little() -> None:
    """In use: 32 MiB, then 16; kept 16, none of which fits. For 20 that are asked for they have to go."""
    arrays = [mapped(8 * MIB, stays=False) for _ in range(4)]
    del arrays[2:]
    assert sum(_kept()) == 16 * MIB
    more = [mapped(20 * MIB, stays=False)]
    assert sum(_kept()) <= 4 * MIB
    del more


def test_as_long_as_less_is_in_use_than_was_what_does_not_fit_stays() -> None:
    """In use: 30 MiB, then 15; kept 15, none of which fits. For 1.5 that are asked for 5 have to go."""
    arrays = [mapped(5 * MIB, stays=False) for _ in range(6)]
    del arrays[3:]
    assert sum(_kept()) == 15 * MIB
    more = mapped(3 * MIB // 2, stays=False)
    assert sum(_kept()) == 10 * MIB
    del more


def test_what_fits_beside_all_that_is_held_takes_nothing_from_what_is_kept() -> None:
    arrays = [mapped(size * PART, stays=False) for size in (11, 9, 10, 10, 17)]
    del arrays[4], arrays[0], arrays[0]
    assert _kept() == [11 * PART, 9 * PART], "20 are in use, of 57 that were there at once; 17 are not kept"
    more = [mapped(17 * PART, stays=False)]
    assert _kept() == [11 * PART, 9 * PART]
    more.append(mapped(21 * PART, stays=False))
    assert _kept() == [9 * PART], "the oldest goes, until it is a quarter of the 37 that were in use"


def test_what_was_kept_is_counted_among_what_was_held_at_once() -> None:
    arrays = [mapped(8 * PART, stays=False) for _ in range(5)]
    del arrays[0]
    more = mapped(20 * PART, stays=False)
    assert _kept() == [8 * PART], "a quarter of 32 that were in use"
    del more, arrays[0]
    more = mapped(20 * PART, stays=False)
    assert _kept() == [8 * PART] * 2, "60 were held before, and are now"
    del more


def test_however_much_is_in_use_no_more_than_some_is_kept_beside_it() -> None:
    arrays = [mapped(size, stays=False) for size in [*[KEPT_MEMORY_BYTES_MIN // 3] * 5, 256 * MIB]]
    size = len(mapping_of(arrays[0]) or b"")
    del arrays[:5]
    more = mapped(512 * MIB, stays=False)
    assert sum(_kept()) <= KEPT_MEMORY_BYTES_MIN < sum(_kept()) + size
    del more


def test_what_is_held_exceeds_what_was_in_use_at_once_by_a_quarter_at_the_most() -> None:
    @given(st.lists(st.tuples(st.integers(1, 80), st.booleans(), st.integers(0, 9)), max_size=60))
    def holds(steps: list[tuple[int, bool, int]]) -> None:
        gc.collect()
        release_spare()
        before, held, most = module._MEMORY._bytes_in_use, list[Int64s](), 0
        for size, stays, drop in steps:
            held.append(mapped(size << 18, stays=stays))
            in_use = before + sum(len(memory) for memory in map(mapping_of, held) if memory is not None)
            assert module._MEMORY._bytes_in_use == in_use
            most = max(most, in_use)
            assert in_use + sum(_kept()) <= most + min(most // 4, KEPT_MEMORY_BYTES_MIN)
            del held[drop : drop + 2]
        del held
        gc.collect()

    gc.collect()
    gc.freeze()  # what other tests have left is not looked through for each example, nor in those behind
    holds()


def test_what_was_dropped_last_is_used_first() -> None:
    """It is in the processor's caches, if anything of it is."""
    arrays = [mapped(MIB, stays=False) for _ in range(3)]
    last = _where(arrays[1])
    del arrays[2], arrays[0], arrays[0]
    assert _where(mapped(MIB, stays=False)) == last


def test_what_another_thread_has_taken_in_between_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Raced(list[mmap.mmap]):
        def remove(self, value: mmap.mmap, /) -> None:
            """Another one was quicker."""
            super().remove(value)
            taken.append(value)
            super().remove(value)

    taken: list[mmap.mmap] = []
    array = mapped(MIB, stays=False)
    del array
    monkeypatch.setattr(module._MEMORY, "_spare", Raced(module._MEMORY._spare))
    memory = mapping_of(mapped(MIB, stays=False))
    assert len(taken) == 1 and memory is not None and memory is not taken[0]


def test_a_count_that_was_lost_between_threads_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def drops(kept: module._SpareMemory) -> None:
        assert kept._spare, "for ever"
        del kept._spare[:1]

    array = mapped(MIB, stays=False)
    before = module._MEMORY._bytes_in_use
    monkeypatch.setattr(module._SpareMemory, "_drop_oldest", drops)
    monkeypatch.setattr(module._MEMORY, "_bytes_in_use", -64 * MIB)
    more = mapped(128 * MIB, stays=False)
    del more
    release_spare()
    assert module._MEMORY._bytes_in_use == before == module._MEMORY._bytes_most, "it is counted anew"
    del array


def test_what_is_dropped_as_the_process_ends_is_not_kept() -> None:
    """Then there may be nothing any more of what keeping needs."""
    code = (
        "import atexit; from timely import mapped as m; array = m.mapped(1 << 20, False); "
        "atexit._run_exitfuncs(); del array; print(len(m._MEMORY._spare))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert (run.stdout, run.stderr) == ("0\n", "")


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux shows it")
def test_large_memory_asks_for_huge_pages() -> None:
    few, many = mapped(MIB, stays=False), mapped(2 * HUGE_PAGE_BYTES, stays=False)
    flags: dict[int, bool] = {}
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if match := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            start, stop = (int(each, 16) for each in match.groups())
        elif line.startswith("VmFlags:"):
            for array in (few, many):
                if start <= _where(array) < stop:
                    flags[len(array)] = "hg" in line.split()
    assert flags == {len(few): False, len(many): True}


def test_given_back_pages_are_gone_and_the_others_are_there() -> None:
    array = mapped(MIB, stays=False)
    array[:] = 3
    memory = mapping_of(array)
    assert memory is not None
    give_back_pages(memory, 1, 3 * 4096 + 5)
    assert array[:512].tolist() == [3] * 512
    assert not array[512 : 3 * 512].any()
    assert (array[3 * 512 :] == 3).all()
    give_back_pages(memory, 4096, 4096)
    give_back_pages(memory, MIB - 4096, 2 * MIB)
    assert (array[3 * 512 : -512] == 3).all() and not array[-512:].any(), "there is nothing behind its end"
    assert mapping_of(np.zeros(4, np.int64)) is None


@given(st.lists(st.tuples(st.integers(1, 6), st.booleans(), st.integers(0, 5)), max_size=40))
def test_no_two_lie_in_the_same_memory(steps: list[tuple[int, bool, int]]) -> None:
    """Each has its own number in all its words, whatever was dropped in between."""
    held: list[tuple[int, Int64s]] = []
    for number, (size, stays, drop) in enumerate(steps):
        array = mapped(size << 18, stays=stays)
        array[:: 512 if size > 2 else 1] = number
        held.append((number, array))
        if drop < len(held):
            del held[drop]
        assert all((array[:: 512 if len(array) > 1 << 16 else 1] == number).all() for number, array in held)


def test_threads_that_take_and_drop_at_once_never_have_the_same() -> None:
    wrong: list[int] = []

    def take_and_drop(number: int) -> None:
        for turn in range(400):
            arrays = [mapped(((turn + k) % 3 + 1) << 18, stays=bool(k)) for k in range(3)]
            for array in arrays:
                array[::512] = number
            if any((array[::512] != number).any() for array in arrays):
                wrong.append(number)

    threads = [threading.Thread(target=take_and_drop, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_interrupt_that_comes_as_an_array_ends_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    array = mapped(MIB, stays=False)
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        monkeypatch.setattr(module._SpareMemory, "_bytes", interrupted)
        del array
        monkeypatch.undo()
        assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
