"""Which error ends what: the form in which errors are told.

told_*    what clients and other workers are told of any exception
again_*   an error that is raised more than once
ended_*   what a worker remembers of dataflows that have ended
"""

from __future__ import annotations

import random
import signal

import pytest
from failing_flows import raises

import timely
from progress.errors import TimelyError
from timely import failure
from timely.errors import (
    ForgottenError,
    InternalError,
    MisuseError,
    PeerError,
    UninstalledError,
    VertexError,
    class_names,
)
from timely.failure import (
    EndedDataflows,
    add_note,
    as_refused,
    as_reported,
    bear_interrupts,
    fresh_copy,
    full_text_of,
    is_interrupt,
    is_raised_by_us,
)
from timely.wire.batch import decode


def raised(error: BaseException, note: str = "") -> BaseException:
    try:
        raise error
    except BaseException as caught:
        if note:
            caught.add_note(note)
        return caught


@pytest.mark.parametrize("is_own_first", [True, False])
def test_ended_of_several_reasons_the_same_one_is_kept_in_whatever_order_they_come(
    is_own_first: bool,
) -> None:
    """An own error before the end of a dataflow that it reads, then that of the first worker."""
    own = [(MisuseError("own 2"), 2, None), (MisuseError("own 1"), 1, None)]
    lost = [(MisuseError("lost 0"), 0, {7: "reads a"}), (MisuseError("lost 1"), 1, {7: "reads a"})]
    for listed in (own, own[::-1]):
        for others in (lost, lost[::-1]):
            ended = EndedDataflows()
            for error, origin, read in listed + others if is_own_first else others + listed:
                ended.add(3, error, origin, read)
            assert str(ended[3]) == "own 1" and ended.count == 1 and ended.readers(7) == []
    ended = EndedDataflows()
    assert ended.add(3, *lost[1]) and ended.add(3, *lost[0]) and not ended.add(3, *lost[0])
    assert str(ended[3]) == "lost 0" and ended.readers(7) == [(3, {7: "reads a"})] and ended.readers(8) == []


def test_ended_of_all_the_number_is_known_and_of_the_last_ones_the_reason(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(failure, "ENDED_COUNT_MAX", 5)
    numbers = list(range(60))
    random.Random(seed).shuffle(numbers)
    ended = EndedDataflows()
    for count, number in enumerate(numbers, 1):
        assert number not in ended and not ended.is_long_over(number)
        assert ended.add(number, MisuseError(str(number)), 1)
        assert not ended.add(number, MisuseError("later"), 1)
        assert ended.count == count and len(ended) == min(count, 5)
        assert all((each in ended) != ended.is_long_over(each) for each in numbers[:count])
        recent = numbers[max(0, count - 5) : count]
        assert [str(ended[each]) for each in recent] == [*map(str, recent)]
        assert [str(each) for each in ended.last(2)] == [*map(str, numbers[max(0, count - 2) : count])]
    assert ended.last(0) == [] and ended.add(numbers[-1], MisuseError("first"), 0)
    with pytest.raises(UninstalledError, match=f"dataflow {numbers[0]} has ended; why is not known any more"):
        raise ended[numbers[0]]
    assert not ended.add(numbers[0], MisuseError("too late"), 0)
    ended.remove(numbers[-1])
    assert numbers[-1] not in ended
    for number in range(60, 70):
        ended.add(number, MisuseError(str(number)), 0)
    others = sorted(set(range(60)) - {numbers[-1]} | set(range(60, 65)))
    assert sum(each - 1 not in others for each in others) == len(ended.compared()[0])  # type: ignore[index]


def test_told_an_exception_of_a_vertex_is_a_vertex_error_with_its_place_and_its_line() -> None:
    cause = raised(ValueError("cannot bear it"), "while 'count' (stage 2, worker 1 of 2) ran")
    told = as_reported(cause, "nowhere")
    assert isinstance(told, VertexError) and told.__cause__ is cause
    first, second, *lines = str(told).splitlines()
    assert first == "ValueError: cannot bear it"
    assert second == "  while 'count' (stage 2, worker 1 of 2) ran"
    assert __file__ in lines[0] and "raise error" in lines[-1]


def test_told_an_exception_without_a_vertex_is_a_bug_of_ours_with_its_place() -> None:
    told = as_reported(raised(KeyError("x")), "while worker 0 read a request")
    assert isinstance(told, InternalError)
    assert str(told).startswith("KeyError: 'x'\n  while worker 0 read a request\n")


def test_told_an_error_of_ours_keeps_its_class_its_text_and_its_notes() -> None:
    cause = raised(ForgottenError("too late"), "while 'join' ran")
    told = as_reported(cause, "nowhere")
    assert type(told) is ForgottenError and str(told) == "too late\nwhile 'join' ran"
    assert told is not cause and told.__cause__ is cause


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_told_what_ends_programs_is_told_like_any_other(error: BaseException) -> None:
    told = as_reported(raised(error, "while 'x' ran"), "")
    assert isinstance(told, VertexError) and str(told).startswith(f"{type(error).__name__}: ")


@pytest.mark.parametrize("why", [ZeroDivisionError, SystemExit], ids=lambda why: why.__name__)
def test_told_an_exception_that_cannot_even_say_its_text(why: type[BaseException]) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise why

    told = as_reported(raised(Mute(), "while 'x' ran"), "")
    assert f"Mute: (it has no text: __str__ raised {why.__name__})" in str(told)


def test_told_an_exception_that_lets_nothing_be_assigned() -> None:
    class Rigid(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    error = Rigid("stays as it is")
    add_note(error, "while 'x' ran")
    assert "Rigid: stays as it is" in str(as_reported(raised(error), "in dataflow 0"))


def test_told_a_text_that_is_too_long_or_no_utf_8_travels_all_the_same() -> None:
    error = raised(ValueError("\ud800" + "x" * 1_000_000), "while '\udfff' ran")
    told = str(as_reported(error, ""))
    assert told.encode().startswith(b"ValueError: \\ud800xx") and "while '\\udfff' ran" in told
    assert "(1,000,001 characters in all)" in told and len(told) < 30_000


def test_told_a_lost_peer_of_the_users_own_is_no_lost_worker() -> None:
    told = as_reported(raised(PeerError("another cluster is gone"), "while 'x' ran"), "")
    assert type(told) is VertexError and str(told).startswith("PeerError: another cluster is gone")


def test_told_an_error_that_a_user_derived_from_ours_as_ours() -> None:
    class Late(MisuseError):
        def __init__(self, hour: int, minute: int) -> None:
            super().__init__(f"{hour}:{minute}")

    told = as_reported(raised(Late(11, 55)), "")
    assert type(told) is MisuseError and str(told) == "11:55"


def test_told_an_exception_that_cannot_be_compared() -> None:
    class Unequal(Exception):
        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

        __hash__ = Exception.__hash__

    def chained() -> None:
        try:
            raise Unequal
        except Unequal as first:
            raise Unequal from first

    with pytest.raises(Unequal) as caught:
        chained()
    assert isinstance(as_reported(caught.value, "in a test"), InternalError)


def test_told_a_deep_recursion_shows_its_end_and_not_all_of_it() -> None:
    def deeper(depth: int) -> None:
        if depth == 0:
            raise ValueError("at the bottom")
        deeper(depth - 1)

    try:
        deeper(400)
    except ValueError as error:
        error.add_note("while 'x' ran")
        told = str(as_reported(error, ""))
    assert "at the bottom" in told and 3 < told.count("in deeper") < 20
    assert "in test_told_a_deep" not in told


def test_again_an_error_has_no_traceback_of_those_who_heard_it_before() -> None:
    first = ForgottenError("gone")
    first.__cause__ = ValueError("why")
    for _ in range(3):
        with pytest.raises(ForgottenError, match="^gone$") as caught:
            raise fresh_copy(first)
        assert caught.value is not first and caught.value.__cause__ is first.__cause__
    assert first.__traceback__ is None


def test_again_notes_become_text_once() -> None:
    error = MisuseError("bad")
    error.add_note("and more")
    assert full_text_of(fresh_copy(fresh_copy(error))) == "bad\nand more"


def test_again_a_class_that_is_not_known_here_is_the_nearest_that_is() -> None:
    class Special(VertexError):
        pass

    names = class_names(Special("x"))
    assert names == ["Special", "VertexError", "MisuseError", "TimelyError"]
    assert type(fresh_copy(VertexError("x"))) is VertexError and issubclass(VertexError, TimelyError)


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN, signal.SIG_DFL])
def test_an_interrupt_is_one_whatever_the_program_has_set_for_the_signal(handler: signal.Handlers) -> None:
    """A shell lets what it starts in the background ignore the signal: the same program does the same."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        assert is_interrupt(KeyboardInterrupt()) and not is_interrupt(SystemExit(3))
        with timely.connect(workers=1, embedded=True) as cluster:
            flow = cluster.install(raises)
            flow.input("records").insert(["interrupt"])
            flow.seal()
            with pytest.raises(KeyboardInterrupt):
                flow.wait()
            with pytest.raises(MisuseError, match="this cluster was interrupted by KeyboardInterrupt"):
                flow.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_worker_process_takes_it_for_an_error_of_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure._Process, "bears_interrupts", False)
    bear_interrupts()
    assert not is_interrupt(KeyboardInterrupt())


def test_refused_what_a_users_code_raises_is_told_with_what_failed_and_its_line() -> None:
    told = as_refused(raised(SystemExit(3)), "the dataflow 'm:f' could not be built")
    assert type(told) is VertexError and isinstance(told.__cause__, SystemExit)
    assert str(told).startswith("the dataflow 'm:f' could not be built: SystemExit: 3\n  File ")
    lost = as_refused(raised(PeerError("another cluster is gone")), "it failed")
    assert type(lost) is VertexError, "clients would take it for the loss of a worker"
    ours = MisuseError("said already")
    assert as_refused(ours, "it failed") is ours


def test_raised_by_us_is_what_a_line_of_ours_raised_last() -> None:
    assert not is_raised_by_us(raised(ValueError()))
    with pytest.raises(PeerError) as caught:
        decode(60_000, [], 1)
    assert is_raised_by_us(caught.value)
