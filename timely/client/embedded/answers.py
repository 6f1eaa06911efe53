"""The answers to a call of embedded workers; some may not be known yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...errors import MisuseError, TimelyError, VertexError
from ...failure import as_refused, fresh_copy, full_text_of, is_interrupt
from ...running.core import Worker
from ...wire.requests import Reply
from ...worker.answers.later import Later

__all__ = ["CLOSED", "Answers", "Untold", "interrupted", "reason_of_end", "what_ended", "why_broken"]

CLOSED: Final = "this cluster is closed: connect again"


class Answers:
    """The answers to a call, in the order of its requests; `waiting` are those that are not known yet."""

    def __init__(self, answers: Sequence[Reply | Later]) -> None:
        self.replies: list[Reply] = []
        self.waiting: dict[int, Later] = {}
        self.failure: TimelyError | None = None
        for position, answer in enumerate(answers):
            if isinstance(answer, Later):
                self.waiting[position] = answer
                self.replies.append(Reply())
            else:
                self.replies.append(answer)

    def take(self) -> None:
        """Take the answers that are ready by now."""
        for position, later in list(self.waiting.items()):
            try:
                reply = later.ready()
            except BaseException as error:
                if is_interrupt(error):
                    raise
                # Go on with the other answers; the first error is the cause.
                refusal = as_refused(error, "nothing was answered, since a codec or a log failed")
                self.failure = self.failure if isinstance(self.failure, VertexError) else refusal
                del self.waiting[position]
                continue
            if reply is not None:
                self.replies[position] = reply
                del self.waiting[position]

    def late(self) -> TimelyError:
        """Return the error to raise if the call waits no longer."""
        return next(iter(self.waiting.values())).late()


class Untold:
    """The errors that have ended dataflows, and that no call has raised."""

    def __init__(self, what_ended: Callable[[int], TimelyError | None]) -> None:
        self._what_ended = what_ended
        self._errors: dict[int, TimelyError] = {}
        self._of_callers: set[int] = set()

    def note(
        self, tell: Callable[[int, TimelyError], None] | None, dataflow: int, error: TimelyError
    ) -> None:
        """Note what has ended a dataflow, unless whoever installs it gets the error; tell other workers."""
        if dataflow not in self._of_callers:
            self._errors.setdefault(dataflow, error)
        assert tell is not None, "the server of this worker has set it"
        tell(dataflow, error)

    def leave_to_caller(self, dataflow: int) -> None:
        """Note that a call raises whatever ends this dataflow now or later."""
        self._of_callers.add(dataflow)
        self._errors.pop(dataflow, None)

    def note_raised(self, error: BaseException) -> None:
        """Note that a call raises an error: one that has ended a dataflow, and those that read it, need not
        be raised once more.
        """
        if self._errors and isinstance(error, TimelyError) and error.ends_dataflow:
            text = full_text_of(error)
            self._errors = {one: each for one, each in self._errors.items() if not self._is_in(text, one)}

    def _is_in(self, text: str, dataflow: int) -> bool:
        """Return True if the full text of an error has the error that has ended a dataflow. That may have
        arisen on several workers at once: then the text has that of one of them.
        """
        errors = (self._errors[dataflow], self._what_ended(dataflow))
        return any(each is not None and full_text_of(each) in text for each in errors)

    def raise_first(self) -> None:
        """Raise the first of them, if there is any."""
        for error in self._errors.values():
            raise fresh_copy(error)


def what_ended(workers: Sequence[Worker], dataflow: int) -> TimelyError | None:
    """Return the error that has ended a dataflow, from the worker on which it arose, or None."""
    ended = [worker.ended[dataflow] for worker in workers if dataflow in worker.ended]
    if not ended:
        return None
    return fresh_copy(next((error for error in ended if error.__cause__ is not None), ended[0]))


def why_broken(broken: BaseException, is_durable: bool) -> TimelyError:
    """Return the error for calls of a cluster that is closed, or was interrupted. It is a fresh one: each
    thread has a traceback of its own.
    """
    if isinstance(broken, TimelyError):
        return fresh_copy(broken)
    error = interrupted(broken, is_durable)
    error.__cause__ = broken
    return error


def reason_of_end(broken: BaseException | None, is_durable: bool) -> TimelyError | None:
    """Return why a cluster is closed, as its vertices hear it: None if that is in good order."""
    if broken is None or (isinstance(broken, MisuseError) and str(broken) == CLOSED):
        return None
    return why_broken(broken, is_durable)


def interrupted(by: BaseException, is_durable: bool) -> MisuseError:
    """Return the error for calls after an interrupt."""
    lost = "what it held is lost: connect again, and feed it anew"
    return MisuseError(
        f"this cluster was interrupted by {by!r} as it worked, and "
        f"{'what it has taken is in its store: close it, and connect again' if is_durable else lost}. "
        "Workers in processes, connect(workers=…), bear an interrupt"
    )
