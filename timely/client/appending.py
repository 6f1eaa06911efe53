"""An append to the epochs that its caller names, as a request: of `FlowInput`, or of an `AppendClient`."""

from __future__ import annotations

from ..wire.requests import BY_COLUMN, IN_EPOCH, Deliver
from .reading import epoch_of

__all__ = ["append_request"]

_TAKES = "the number of an epoch, or the name of a column that says the epoch of each row"


def append_request(dataflow: int, input: str, epoch: object, writer: str, sequence: int) -> Deliver:
    """To `epoch`, or, if that names a column of the table, to the epoch that it says of each row; how often a
    row is added its column `diff` says. Raises `MisuseError` if `epoch` is neither.
    """
    if isinstance(epoch, str):
        return Deliver(dataflow, input, writer, sequence, BY_COLUMN, 0, 0, column=epoch)
    number = epoch_of(epoch, "append(epoch=…)", _TAKES)
    return Deliver(dataflow, input, writer, sequence, IN_EPOCH, number, 0)
