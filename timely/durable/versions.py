"""New versions that have taken the place of dataflows, as logs and bases have them.

A new version begins as a dataflow of its own: worker 0 writes `version`, and each worker what the old version
feeds its inputs with, as rows of theirs. When all is decided, each worker writes what the new version takes
over besides: rows of open epochs and staged parts, again as those of its inputs; `taken`, the names of
deliveries; and `older`, what its outputs held. Once all of that is on the disk of all workers, worker 0
writes `switched`. From then on the new version has all it needs, and nothing of the old one counts.

Without `switched`, nothing of the new version counts, and the old one goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, cast

from ..errors import ReplacedError, TimelyError, class_names, revive
from ..wire.batch import Batch
from .bases.manifest import QueryBase
from .bases.names import TakenNames

__all__ = ["Appends", "PastOlder", "PastSwitch", "TakenFacts", "ToldFailure", "take_in"]

Appends: TypeAlias = list[tuple[str, int, list[int]]]
"""Writer, number and epochs of deliveries for epochs that their callers name."""


_FACTS_BEFORE_FORMS: Final = 7
"""Facts of a switch in logs of releases in which an input could not change its columns."""


class ToldFailure(NamedTuple):
    """What holds from `epoch` on: an error, its message and its classes, or, without classes, none. `kinds`:
    see `operators.failures.Without`.
    """

    epoch: int
    reason: str = ""
    classes: tuple[str, ...] = ()
    kinds: int = 0

    @classmethod
    def of(cls, plain: Sequence[object]) -> ToldFailure:
        """Return what msgpack gives for it."""
        epoch, reason, classes, kinds = cast("tuple[int, str, list[str], int]", tuple(plain))
        return cls(epoch, reason, tuple(classes), kinds)

    def error(self) -> TimelyError | None:
        """Return the error; None if there is an answer."""
        return revive(list(self.classes), self.reason) if self.classes else None


class PastSwitch(NamedTuple):
    """A new version that has taken the place of a dataflow.

    epoch     the one with which it goes on
    name      of both
    keys      the names under which clients install it, besides that of the first version
    outputs   that go on, each with the epochs from which on the old version had other failures, or none
    lost      outputs of the old version that do not go on, and why
    forms     the columns that clients of the old version send, as Arrow writes them, by input, where the new
              version has others. A log of an earlier release may lack them: columns could not change
    """

    old: int
    new: int
    epoch: int
    name: str
    keys: tuple[str, ...]
    outputs: dict[str, tuple[ToldFailure, ...]]
    lost: dict[str, str]
    forms: dict[str, bytes] = {}

    @property
    def end(self) -> tuple[str, tuple[str, ...]]:
        """What has ended the old version: the message and the classes of the error."""
        error = ReplacedError(f"dataflow {self.old} was replaced by dataflow {self.new}")
        return str(error), tuple(class_names(error))

    def plain(self) -> list[object]:
        """Return the facts as msgpack holds them."""
        outputs = [[name, [list(each) for each in failures]] for name, failures in self.outputs.items()]
        lost, forms = [*self.lost.items()], [*self.forms.items()]
        return [self.old, self.new, self.epoch, self.name, list(self.keys), outputs, lost, forms]

    @classmethod
    def of(cls, plain: Sequence[object]) -> PastSwitch:
        """The inverse of `plain`."""
        old, new, epoch, name, keys, outputs, lost, forms = cast(
            "tuple[int, int, int, str, list[str], list[tuple[str, list[list[object]]]], "
            "list[tuple[str, str]], list[tuple[str, bytes]]]",
            (*plain, []) if len(plain) == _FACTS_BEFORE_FORMS else tuple(plain),
        )
        failures = {each: tuple(map(ToldFailure.of, told)) for each, told in outputs}
        return cls(old, new, epoch, name, tuple(keys), failures, dict(lost), dict(forms))


class TakenFacts(NamedTuple):
    """What an input of a new version knows of deliveries on one worker: see `bases.manifest.InputBase`."""

    names: list[list[object]]
    appends: Appends
    queries: list[QueryBase]
    calls: int

    @classmethod
    def of(cls, plain: Sequence[object]) -> TakenFacts:
        """Return facts as msgpack gives them."""
        names, appends, queries, calls = cast(
            "tuple[list[list[object]], Appends, list[list[object]], int]", tuple(plain)
        )
        appends = [(writer, sequence, epochs) for writer, sequence, epochs in appends]
        return cls(names, appends, [QueryBase._make(each) for each in queries], calls)


def take_in(facts: TakenFacts, names: TakenNames, appends: Appends, queries: dict[str, QueryBase]) -> None:
    """Add the facts of one worker to those of others; each has its own rows of a batch. A query may be at
    a later batch already, which the new version has taken itself.
    """
    names.take_in(facts.names)
    appends += facts.appends
    for each in facts.queries:
        before = queries.get(each.query, each._replace(rows=0))
        if before.batch <= each.batch:
            stream = before.stream if each.stream is None else each.stream
            queries[each.query] = QueryBase(each.query, each.batch, before.rows + each.rows, stream)


@dataclass
class PastOlder:
    """What an output held in an older version of its dataflow, as `journal.older` writes it: the changes of
    this worker's share.
    """

    kept_from: int = 0
    changes: list[tuple[int, Batch]] = field(default_factory=list)
