"""The request of an append to epochs that the caller names, for `FlowInput` and `AppendClient`."""

from __future__ import annotations

from ..wire.requests import BY_COLUMN, IN_EPOCH, Deliver
from .reading import epoch_of

__all__ = ["append_request"]

_TAKES = "the number of an epoch, or the name of a column that says the epoch of each row"


def append_request(dataflow: int, input: str, epoch: object, writer: str, sequence: int) -> Deliver:
    """Return the request to add rows to `epoch`; or, if that names a column of the table, each row to the
    epoch in that column. The column `diff` says how often each row is added. Raise `MisuseError` if `epoch`
    is neither a number nor a text.
    """
    if isinstance(epoch, str):
        return Deliver(dataflow, input, writer, sequence, BY_COLUMN, 0, 0, column=epoch)
    number = epoch_of(epoch, "append(epoch=…)", _TAKES)
    return Deliver(dataflow, input, writer, sequence, IN_EPOCH, number, 0)
