"""Dataflows that a test has built for one example and installs again for the next one.

To build and freeze a dataflow takes half the time of an example, and most tests try one query with many rows.
Each installation makes vertices of its own, so that examples share nothing but the description.
"""

from __future__ import annotations

import os

from timely.building.freeze import FrozenDataflow

__all__ = ["built_before"]

_QUERIES_MAX = 4
_built: dict[tuple[object, ...], list[FrozenDataflow]] = {}


def built_before(*query: object) -> list[FrozenDataflow]:
    """Return what the running test has built of this query so far, one for each worker.

    The caller adds what is missing. `query` is all that the dataflow depends on. The last few queries of a
    test are kept, and those of other tests are not: these may have changed limits or forgotten symbols.
    """
    test = os.environ.get("PYTEST_CURRENT_TEST")
    key = (test, *query)
    if key not in _built:
        for other in [other for other in _built if other[0] != test]:
            del _built[other]
        if len(_built) == _QUERIES_MAX:
            del _built[next(iter(_built))]
        _built[key] = []
    return _built[key]
