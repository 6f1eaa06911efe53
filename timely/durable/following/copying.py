"""Copy a store while its cluster works: a backup from which a cluster can start.

Files that are copied one by one, as `cp` does, need not fit together. If the log of worker 1 is copied a
second before that of worker 0, the copy has decisions of worker 0 about rows that it has not, and nothing
tells that these are missing. So the log of worker 0 ends first here, and then those of the others: what
worker 0 calls durable is in the logs of all by then. What they have beyond that counts as after a kill:
nothing was decided.

Stored answers are chosen before the logs are read: then the logs have the epochs of these answers, and the
dataflows. An answer of a later epoch would be one that the cluster of the copy has never given.

A fold may remove a file that was just listed, and a log may go on in another file. Then the copy begins
anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ...errors import StoreError
from ..answers.manifest import Answer, answer_numbers, newest_answer
from ..answers.manifest import manifest_path as answer_path
from ..bases.manifest import manifest_path, read_base
from ..incarnations import Incarnation, begun, newest
from ..store import Store, begin_path, fence_path, hello_path, log_folder, store_errors

__all__ = ["copy_store"]

_ATTEMPTS_MAX: Final = 5
_CLUSTER: Final = "cluster.json"


def copy_store(store: Store, target: Store) -> Incarnation:
    """Copy what counts of a store, and its newest stored answers, into an empty one; return the incarnation
    at which the copy stands. Raise `StoreError` if there is nothing to copy, or if it cannot be read.
    """
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        put: list[str] = []
        try:
            answers = _answers(store)
            present = _present(store)
            for path, end in _files(store, present, answers):
                with store_errors(store):
                    data = store.read(path, end)
                if data is None:
                    raise StoreError(f"{store.name}/{path} is missing: verify the store")
                put.append(path)
                with store_errors(target):
                    target.put_new(path, bytes(data))
        except StoreError:
            if attempt == _ATTEMPTS_MAX:
                raise
        else:
            return present
        with store_errors(target):
            for path in put:
                target.remove(path)
    raise AssertionError("the last attempt returns or raises")


def _present(store: Store) -> Incarnation:
    """Return the newest incarnation with its logs. All segments that there are when the log of worker 0 is
    read are among them: a later one of another worker could have rows that worker 0 calls durable.
    """
    numbers = begun(store)
    if not numbers:
        raise StoreError(f"{store.name} is no store of a durable cluster, or its cluster has never begun")
    with store_errors(store):
        segments = store.list(log_folder(numbers[-1]))
        present = newest(store)
        if present is None or segments != store.list(log_folder(present.number)):
            raise StoreError(
                f"the logs in {store.name} went on in other files while they were read: try again"
            )
    return present


def _answers(store: Store) -> list[tuple[str, Answer]]:
    """Return the newest stored answer of each output, and its place, as far as manifests can be read."""
    with store_errors(store):
        newest_ones = [
            (place, newest_answer(store, place, each)) for place, each in answer_numbers(store).items()
        ]
    return [(place, answer) for place, answer in newest_ones if answer is not None]


def _files(
    store: Store, present: Incarnation, answers: Iterable[tuple[str, Answer]]
) -> Iterator[tuple[str, int | None]]:
    """Yield the paths of all files that count, and how many bytes of each; None: all."""
    if present.base:
        yield manifest_path(present.base), None
        for path in read_base(store, present.base).files():
            yield path, None
    for log in present.logs:
        for path, end in log.segments:
            yield path, end
    for place, answer in answers:
        yield answer_path(place, answer.number), None
        for file in answer.files:
            yield file.path, None
    if store.exists(hello_path(present.number)):
        yield hello_path(present.number), None
    for path in (fence_path(present.number), begin_path(present.number), _CLUSTER):
        yield path, None
