"""How long ago epochs were sealed, and were complete: what workers send as bytes, as lists for users."""

from __future__ import annotations

from typing import cast

import numpy as np

from ...errors import PeerError
from ...wire.requests import Value

__all__ = ["with_epoch_lists"]


def with_epoch_lists(stats: dict[str, Value]) -> dict[str, Value]:
    """Return the counters of a worker, with `dataflows.epochs` as triples: (epoch, seconds, seconds or
    None).
    """
    match stats.get("dataflows"):
        case {**dataflows}:
            for flow in dataflows.values():
                match flow:
                    case {"epochs": [bytes(epochs), bytes(sealed), bytes(complete)]}:
                        cast("dict[str, Value]", flow)["epochs"] = _triples(epochs, sealed, complete)
    return stats


def _triples(epochs: bytes, sealed: bytes, complete: bytes) -> list[Value]:
    if not len(epochs) == len(sealed) == len(complete) or len(epochs) % 8:
        raise PeerError(f"a worker sent {len(epochs)}, {len(sealed)} and {len(complete)} bytes for epochs")
    done: list[Value] = np.frombuffer(complete, np.float64).tolist()
    for place in np.flatnonzero(np.isnan(np.frombuffer(complete, np.float64))).tolist():
        done[place] = None
    columns = np.frombuffer(epochs, np.int64).tolist(), np.frombuffer(sealed, np.float64).tolist(), done
    return [list(each) for each in zip(*columns, strict=True)]
