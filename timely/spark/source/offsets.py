"""The offset of a stream: an epoch, and the origin of the output that it belongs to.

    {"epoch": 7, "origin": "8d2f…/0"}     all epochs before 7 have been read

Spark stores offsets in a checkpoint, and passes them to a query that is started again. By then there may be
another dataflow, since workers that are started anew begin with epoch 0. Going on there would silently skip
epochs, or read some twice. So `check_offset` refuses an offset

    of another output    its origin shows that: an output has another one each time its dataflow is installed
    that is ahead        an offset is issued once all epochs before it are complete; no output ever goes back

The second rule applies if the user has set `restarted` to `allow`, since the other dataflow is fed the same
epochs again: then that has to reach the offset first. It also applies to offsets without an origin, of
earlier releases. If the same output is behind its offset, the user has let the stream begin at an epoch that
was still to come.

Spark stores the end of each micro-batch. For the beginning of the first one it asks again if its driver has
ended before the commit, and by then `latest` is another epoch. So the end of the first micro-batch also has
its beginning:

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
    """A stream has read all epochs of an output before `epoch`; `origin` identifies the output ("": unknown).

    `began`: for the beginning of a stream that begins at `latest` or `earliest`, and for the end of its first
    micro-batch, the epoch at which it began.
    """

    epoch: int
    origin: str = ""
    began: int | None = None

    @classmethod
    def of(cls, value: object) -> Offset:
        """Return the offset in a value of Spark's checkpoint; raises `MisuseError` for a value that `as_dict`
        never returns.
        """
        epoch = value.get(EPOCH) if isinstance(value, Mapping) else None
        origin = value.get(_ORIGIN, "") if isinstance(value, Mapping) else None
        began = value.get(_BEGAN) if isinstance(value, Mapping) else None
        if type(epoch) is not int or not isinstance(origin, str) or type(began) not in (int, type(None)):
            raise MisuseError(
                f"the checkpoint of this query says {value!r:.200}, which is no place in an output: it is "
                f"of a query with another source, so {_NEW_CHECKPOINT}"
            )
        return cls(epoch, origin, began)

    def as_dict(self) -> dict[str, object]:
        """Return the offset as Spark stores it."""
        began: dict[str, object] = {} if self.began is None else {_BEGAN: self.began}
        return {EPOCH: self.epoch, _ORIGIN: self.origin, **began}

    def until(self, epoch: int, origin: str) -> Offset:
        """Return the offset `epoch` of `origin` as the end of a micro-batch that begins at this offset."""
        return Offset(epoch, origin, self.began if self.began == self.epoch else None)

    def start_of(self, end: Offset) -> Offset:
        """Return the beginning of the micro-batch that ends at `end` and, as Spark has it, begins here."""
        return self if end.began is None else replace(self, epoch=end.began)


def check_offset(offset: Offset, there: Offset, where: str, *, may_be_another: bool, starting: int) -> None:
    """Raise `MisuseError` unless a stream can go on at `offset` in an output that has reached `there`.

    Args:
        where: the name of the output, for messages.
        may_be_another: True if the user declares that another output is fed the same epochs.
        starting: the epoch at which the user lets the stream begin; -1: no number.
    """
    if offset.origin == there.origin or offset.epoch <= 0:
        return  # it is the same output, or no epoch was read
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
