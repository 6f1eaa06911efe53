"""An offset of a stream: an epoch, and where the output began of which it is one.

    {"epoch": 7, "origin": "8d2f…/0"}     all epochs before 7 have been read

Spark keeps offsets in a checkpoint, and hands them to a query that is started again: by then there may be
another dataflow, for workers that are started anew begin with epoch 0. To go on there would leave out epochs,
or read some twice, without a word. So an offset is refused

    of another output    its origin says so: an output has another one each time its dataflow is installed
    that is ahead        an offset is given out when all before it is complete, and no output ever goes back

The second is for who says, by `restarted` = `allow`, that the other dataflow is fed the same epochs again: it
has to have come as far first. And for offsets without an origin, as they once were. Where the same output is
behind its offset, its stream was told to begin at an epoch that was still to come.

Spark keeps where a micro-batch ends. Where the first one begins it asks again, if its driver has ended before
it was committed, and by then `latest` is another epoch. So where that ends says where it began:

    {"epoch": 9, "origin": "8d2f…/0", "began": 7}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from timely.errors import MisuseError
from timely.spark.epochs import EPOCH

__all__ = ["Offset", "check_offset"]

_ORIGIN: Final = "origin"
_BEGAN: Final = "began"
_NEW_CHECKPOINT: Final = "give the query a new checkpoint (delete the folder of checkpointLocation)"


@dataclass(frozen=True)
class Offset:
    """Before which epoch a stream has read an output, and where that began; empty: not known.

    `began`: of where a stream begins by a word, and of the end of its first micro-batch, that epoch.
    """

    epoch: int
    origin: str = ""
    began: int | None = None

    @classmethod
    def of(cls, told: object) -> Offset:
        """What Spark hands back; `MisuseError` if it never came from here."""
        epoch = told.get(EPOCH) if isinstance(told, Mapping) else None
        origin = told.get(_ORIGIN, "") if isinstance(told, Mapping) else None
        began = told.get(_BEGAN) if isinstance(told, Mapping) else None
        if type(epoch) is not int or not isinstance(origin, str) or type(began) not in (int, type(None)):
            raise MisuseError(
                f"the checkpoint of this query says {told!r:.200}, which is no place in an output: it is "
                f"of a query with another source, so {_NEW_CHECKPOINT}"
            )
        return cls(epoch, origin, began)

    def told(self) -> dict[str, object]:
        """As Spark keeps it."""
        began: dict[str, object] = {} if self.began is None else {_BEGAN: self.began}
        return {EPOCH: self.epoch, _ORIGIN: self.origin, **began}

    def until(self, epoch: int, origin: str) -> Offset:
        """The end of a micro-batch that begins here."""
        return Offset(epoch, origin, self.began if self.began == self.epoch else None)

    def start_of(self, end: Offset) -> Offset:
        """Where the micro-batch begins that ends at `end`, if Spark says that it begins here."""
        return self if end.began is None else replace(self, epoch=end.began)


def check_offset(offset: Offset, there: Offset, where: str, *, may_be_another: bool, starting: int) -> None:
    """Raise `MisuseError` unless a stream can go on at `offset` in an output that is as far as `there`.

    Args:
        where: how a user calls the output.
        may_be_another: the user says that another one is fed the same epochs.
        starting: where the stream was told to begin; -1: nowhere to come.
    """
    if offset.origin == there.origin or offset.epoch <= 0:
        return  # it is the same, or nothing was read
    is_another = offset.origin != ""
    has_read = f"this query cannot go on: its checkpoint says that it has read {where} before epoch"
    if is_another and not may_be_another:
        raise MisuseError(
            f"{has_read} {offset.epoch} of a dataflow that is gone. The one that is there was installed "
            f"anew, and is complete before epoch {there.epoch}. To read that from its beginning, "
            f"{_NEW_CHECKPOINT}. If it is fed the same epochs again, feed it up to epoch {offset.epoch}, and "
            "let the query go on there by .option('restarted', 'allow')"
        )
    if offset.epoch > max(there.epoch, -1 if is_another else starting):
        raise MisuseError(
            f"{has_read} {offset.epoch}, and that is complete before epoch {there.epoch} only, so it was "
            f"installed anew. Feed it the same epochs again up to epoch {offset.epoch}, and start the query "
            f"then; or, to read what is there from its beginning, {_NEW_CHECKPOINT}"
        )
