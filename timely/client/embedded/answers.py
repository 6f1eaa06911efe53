"""The answers to a call of embedded workers; some may not be known yet."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import TimelyError, VertexError
from ...failure import as_refused, fresh_copy, is_interrupt
from ...running.core import Worker
from ...wire.requests import Reply
from ...worker.answers.later import Later

__all__ = ["Answers", "what_ended"]


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


def what_ended(workers: Sequence[Worker], dataflow: int) -> TimelyError | None:
    """Return the error that has ended a dataflow, from the worker on which it arose, or None."""
    ended = [worker.ended[dataflow] for worker in workers if dataflow in worker.ended]
    if not ended:
        return None
    return fresh_copy(next((error for error in ended if error.__cause__ is not None), ended[0]))
