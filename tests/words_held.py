"""Which words does a worker hold? Found by walking through everything that it refers to: the slow twin of
`Worker.symbols`.

Every array of 64-bit integers and every integer that is met counts, in attributes, lists, closures. What it
cannot know is what memory is for: of traces, runs and slots it takes the rows that they say they have, since
their memory has rows of before in it, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import numpy as np

from differential.columns.symbols.table import SymbolTable
from differential.compiled_loops.slots import Slots
from differential.compiled_loops.traces import Traces
from differential.operators.ordered.places import Places
from differential.trace.merging import Merging
from differential.trace.run import Run
from differential.trace.trace import Trace
from differential.trace.view import View
from timely.dictionaries import Mark, dictionaries
from timely.running.core import Worker
from timely.running.forgetting import Forgetting
from timely.wire.transport.memory import MemoryNetwork, MemoryTransport

__all__ = ["Note", "held", "shown"]

_NOT_HELD = (SymbolTable, Places, MemoryNetwork, MemoryTransport, Merging, Forgetting, ModuleType, type)
_NOT_HELD_EITHER = (BuiltinFunctionType, BaseException, str, bytes, float, type(None))


def held(worker: Worker) -> set[int]:
    """All integers, those of messages that came early apart."""
    found: set[int] = set()
    seen: dict[int, object] = {}
    waiting: list[object] = [worker.instances]
    while waiting:
        part = waiting.pop()
        if isinstance(part, int | np.integer):
            found.add(int(part))
        elif isinstance(part, np.ndarray):
            if part.dtype == np.int64:
                found.update(part.reshape(-1).tolist())
        elif id(part) not in seen and not isinstance(part, (*_NOT_HELD, *_NOT_HELD_EITHER)):
            seen[id(part)] = part
            waiting += _parts(part)
    return found


def _parts(part: object) -> Iterator[object]:
    if isinstance(part, Slots):
        for slot in range(len(part)):
            yield from part.looks(slot)
    elif isinstance(part, Traces):
        yield part._read
    elif isinstance(part, dict):
        yield from part
        yield from part.values()
    elif isinstance(part, list | tuple | set | frozenset | deque):
        yield from part
    elif isinstance(part, MethodType):
        yield part.__func__
        yield part.__self__
    elif isinstance(part, FunctionType):
        for cell in part.__closure__ or ():
            yield cell.cell_contents
        yield part.__defaults__
    elif isinstance(part, Trace):
        yield part.words()
        yield {name: other for name, other in vars(part).items() if name not in ("_head", "table", "_runs")}
    elif isinstance(part, Run):
        yield part.words()
    elif isinstance(part, View):
        yield from (part._runs, part._head, part._pieces)
    else:
        yield from vars(part).values() if hasattr(part, "__dict__") else ()
        for kind in type(part).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in [slots] if isinstance(slots, str) else slots:
                yield getattr(part, name, None)


class Note:
    """Which words were shown."""

    def __init__(self) -> None:
        self.words: set[int] = set()

    def add(self, words: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
        self.words.update(words.reshape(-1).tolist())

    def has_between(self, low: int, high: int) -> bool:
        (table,) = dictionaries()
        assert isinstance(table, SymbolTable)
        return any(low <= word <= high for word in table._values)


def shown(worker: Worker) -> set[int]:
    """What the worker shows, and what never goes."""
    (table,) = dictionaries()
    assert isinstance(table, SymbolTable)
    note = Note()
    mark = Mark([note])
    worker.symbols(mark)
    assert not mark.not_known, mark.not_known
    return note.words | table._pinned
