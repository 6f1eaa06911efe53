"""The tables and views of a cluster, derived from the dataflows that run there.

A table or view is a dataflow of its name, which exports its rows under that name; its note has the statement
that made it. So each client sees the same, a cluster that starts again too, and programs in Python feed and
read them like any other dataflow. What other dataflows export can be read as well.
"""

from __future__ import annotations

import re
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Literal, TypeAlias

from timely.client.cluster import Cluster
from timely.client.session import Flow
from timely.errors import TimelyError

from ...columns.client_tables import declared_schema
from ...columns.schema import Schema
from ...errors import SqlError

__all__ = [
    "ANSWER_NAME",
    "Catalogue",
    "CatalogueEntry",
    "EntryKind",
    "Others",
    "RunningDataflows",
    "note_of",
    "statement_of",
]

EntryKind: TypeAlias = Literal["table", "view", "export"]

ANSWER_NAME: Final = "(select)"
"""Begins the names of dataflows that run for one answer. They hinder nobody: if a view is replaced, those
that read it end, and their clients ask the new one.
"""

_NOTE: Final = re.compile(r"-- SQL (table|view), dialect (\w+)\n")


def note_of(kind: EntryKind, dialect: str, statement: str) -> str:
    """Return the note of a table or view: what it is, in which dialect, and the statement."""
    return f"-- SQL {kind}, dialect {dialect}\n{statement}"


def statement_of(note: str) -> tuple[str, str]:
    """Return the statement that made a table or view, from its note, and the dialect; "" for exports."""
    match = _NOTE.match(note)
    return ("", "") if match is None else (note[match.end() :], match.group(2))


@dataclass(frozen=True)
class CatalogueEntry:
    """What can be read: a table, a view, or the export of a dataflow.

    `flow` is the number of its dataflow; -1: a statement before this one will make it. `reads` are the keys
    of the entries that it reads.
    """

    key: str
    name: str
    kind: EntryKind
    schema: Schema
    flow: int = -1
    owner: str = ""
    keys: tuple[str, ...] = ()
    note: str = ""
    reads: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        """Return what it is, as errors say it."""
        return (
            f"{self.owner}.{self.name}, an export"
            if self.kind == "export"
            else f"the {self.kind} {self.name}"
        )

    @property
    def dialect(self) -> str:
        """Return the dialect of the statement that made it; "" for exports."""
        return statement_of(self.note)[1]

    @property
    def statement(self) -> str:
        """Return the statement that made it; "" for exports."""
        return statement_of(self.note)[0]


@dataclass(frozen=True)
class Others:
    """A running dataflow that is no table, no view, and not there for one answer; the keys of what it
    reads.
    """

    title: str
    reads: frozenset[str]


@dataclass
class Catalogue:
    """What can be read, by key: the name in small letters, or "dataflow.name" of an export."""

    entries: dict[str, CatalogueEntry] = field(default_factory=dict)
    others: list[Others] = field(default_factory=list)

    def named(self, name: str) -> list[CatalogueEntry]:
        """Return what has a name, whatever the case of its letters: tables and views, else exports."""
        own = self.entries.get(name.lower())
        if own is not None:
            return [own]
        return [
            each
            for each in self.entries.values()
            if each.key == name.lower() or each.name.lower() == name.lower()
        ]

    def readers(self, key: str) -> list[str]:
        """Return what reads an entry: names of views, and titles of other dataflows."""
        views = [each.name for each in self.entries.values() if key in each.reads and each.kind != "export"]
        return sorted(views) + sorted(each.title for each in self.others if key in each.reads)

    def views_over(self, key: str) -> list[CatalogueEntry]:
        """Return the entries that read an entry, directly or not, each once."""
        over: dict[str, CatalogueEntry] = {}
        keys = [key]
        while keys:
            read = keys.pop()
            direct = [each for each in self.entries.values() if read in each.reads and each.key not in over]
            over |= {each.key: each for each in direct}
            keys += [each.key for each in direct]
        return list(over.values())

    def tables(self) -> dict[str, Schema]:
        """Return the columns of all that can be read, by the names under which queries find them."""
        counts: dict[str, int] = {}
        for each in self.entries.values():
            counts[each.name.lower()] = counts.get(each.name.lower(), 0) + 1
        matches: dict[str, Schema] = {}
        for each in self.entries.values():
            if each.kind != "export" or counts[each.name.lower()] == 1:
                matches[each.name] = each.schema
            if each.kind == "export":
                matches[each.key] = each.schema
        return matches


class RunningDataflows:
    """The dataflows of a cluster as a client knows them. Descriptions never change: one request for each."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._flows: dict[int, Flow] = {}
        self._left: list[Callable[[], None]] = []
        self._ending = Lock()

    def leave(self, end: Callable[[], None]) -> None:
        """Let another thread call `end`, which ends a query of SUBSCRIBE that the program has dropped. This
        takes no lock, and asks no worker for anything: Python drops things in the middle of other calls.
        """
        self._left.append(end)
        with suppress(RuntimeError):  # no thread can start any more: the next statement ends it
            start_new_thread(self.end_left, ())

    def end_left(self) -> None:
        """End queries of SUBSCRIBE that the program has dropped without closing them."""
        with self._ending:
            while self._left:
                self._left.pop()()

    def look(self) -> Catalogue:
        """Return the catalogue as it is now."""
        numbers = list(self._flows)  # before the request: another thread may add one meanwhile
        running = self._cluster.flows()
        for number in numbers:
            if number not in running:
                self._flows.pop(number, None)
        for number in running:
            if number not in self._flows:
                try:
                    self._flows[number] = self._cluster.flow(number)
                except TimelyError as error:
                    if not error.ends_dataflow:  # it has ended meanwhile
                        raise
        return _catalogue_of(dict(self._flows))

    def flow(self, entry: CatalogueEntry) -> Flow:
        """Return the dataflow of an entry; of one that a statement of the same script has made, or made
        again, by its name. Raises SqlError, without a place, if another client has dropped it meanwhile.
        """
        flow = self._flows.get(entry.flow)
        if flow is None and entry.kind != "export":
            flow = next(iter(self.with_name(entry.name)), None)
        if flow is None:
            raise SqlError(f"{entry.title} has been dropped meanwhile")
        return flow

    def have_replaced(self, entries: Iterable[CatalogueEntry]) -> bool:
        """Look, and return True if another dataflow has the place of one of these entries, with its columns.
        Raises SqlError, without a place, if it has other columns.
        """
        self.look()
        replaced = False
        for entry in entries:
            if entry.kind == "export" or entry.flow < 0 or entry.flow in self._flows:
                continue
            columns = self.flow(entry).exported[entry.name]
            if columns is None or declared_schema(columns) != entry.schema:
                how = "replaced" if entry.kind == "view" else "altered"
                raise SqlError(f"{entry.title} has been {how} meanwhile, and has other columns")
            replaced = True
        return replaced

    def forget(self, flow: Flow) -> None:
        """Forget a dataflow that this client has uninstalled, and all that read it."""
        self._flows.pop(flow.index, None)
        for each in list(self._flows.values()):
            if any(owner == flow.index for owner, _ in each.reads):
                self.forget(each)

    def over(self, flow: Flow) -> set[int]:
        """Return the numbers of a dataflow and of all that read it, directly or not."""
        numbers = {flow.index}
        for number, each in sorted(self._flows.items()):  # readers have higher numbers
            if any(owner in numbers for owner, _ in each.reads):
                numbers.add(number)
        return numbers

    def add(self, flow: Flow) -> None:
        """Remember a dataflow that this client has installed."""
        self._flows[flow.index] = flow

    @property
    def tables(self) -> list[Flow]:
        """The dataflows of tables, which have epochs together."""
        return [flow for _, flow in sorted(self._flows.items()) if _kind_of(flow) == "table"]

    def with_name(self, name: str) -> list[Flow]:
        """Return the tables and views of a name: more than one only while another client makes one, too."""
        return [
            flow
            for _, flow in sorted(self._flows.items())
            if _kind_of(flow) and flow.name.lower() == name.lower()
        ]


def _kind_of(flow: Flow) -> EntryKind | None:
    """Return what a dataflow is, if statements of SQL have made it."""
    match = _NOTE.match(flow.note)
    if match is None or flow.exported.get(flow.name) is None:
        return None
    return "table" if match.group(1) == "table" else "view"


def _short(name: str) -> str:
    """Return the last part of a name: `mentions` of "my_queries:mentions"."""
    return re.split("[:.]", name)[-1]


def _catalogue_of(flows: Mapping[int, Flow]) -> Catalogue:
    keys: dict[tuple[int, str], str] = {}
    for number, flow in sorted(flows.items()):
        for name in flow.exported:
            own = _kind_of(flow) is not None and name == flow.name
            keys[number, name] = name.lower() if own else f"{_short(flow.name)}.{name}".lower()
    catalogue = Catalogue()
    for number, flow in sorted(flows.items()):
        reads = frozenset(keys[each] for each in flow.reads if each in keys)
        kind = _kind_of(flow)
        if kind is None:
            if not flow.name.startswith(ANSWER_NAME):
                catalogue.others.append(Others(f"dataflow {number} ({flow.name})", reads))
        for name, columns in flow.exported.items():
            key = keys[number, name]
            if columns is None or key in catalogue.entries:  # of two with one name the first has it
                continue
            own = kind is not None and name == flow.name
            catalogue.entries[key] = CatalogueEntry(
                key,
                name,
                kind if own and kind is not None else "export",
                declared_schema(columns),
                number,
                _short(flow.name),
                tuple(flow.input(name).form.keys) if own and name in flow.inputs else (),
                flow.note if own else "",
                reads if own else frozenset(),
            )
    return catalogue
