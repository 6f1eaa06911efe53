"""What must be true of one dataflow, given what its clients were told?

    acknowledged   a call has returned: its rows are there, once, all of them, in an epoch that it could know
    in doubt       a call has not returned, and nobody repeats it: its rows are there like that, or none is
    shown          what was read of an epoch is what anybody reads of it later
    undisturbed    every output is at every epoch what the same calls bring about where nothing fails

The output `same x` tells which rows have come in by an input x of a collection. The values of an input of
values do not tell which calls have come in: of the calls in doubt the judge chooses some that explain
them.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

import timely
from timely.client.session import FlowInput

from .kinds import Kind, Row

__all__ = ["Call", "History", "Shown", "WrongAnswer", "key_of"]

Changes = dict[int, Counter[Row]]
"""What changes at each epoch; epochs without changes are left out."""


class WrongAnswer(AssertionError):
    """Something was read, or is missing, that a durable cluster must not show, or lose."""


def key_of(value: object) -> object:
    """Return a value that can be a key: lists and dicts as text."""
    value = tuple(value) if isinstance(value, list) else value
    return value if value is None or isinstance(value, int | float | str) else repr(value)


@dataclass(eq=False)
class Call:
    """One call that changes an input: it inserts, removes, sets or deletes, or it is a batch."""

    input: str
    how: str
    """"rows" or "records": rows with their multiplicities. "upsert", "delete": of values."""
    rows: list[tuple[Row, int]]
    first: int
    """The first epoch in which it may be."""
    last: int | None = None
    """The last epoch in which it may be; None: any, or it is not known yet whether the call counts."""
    is_apart: bool = False
    """True if its input has epochs of its own: its client does not know the last epoch."""
    is_there: bool = False
    """True once the call was acknowledged."""
    epochs: list[int] = field(default_factory=list)
    """The epoch of each row, if the call has said so itself."""
    is_over: bool = False
    """True if nobody repeats the call any more."""

    def acknowledge(self, last: int) -> None:
        """Note that the call has returned, and is in no epoch after `last`."""
        self.is_there = True
        self.last = None if self.is_apart else last

    @property
    def tags(self) -> set[object]:
        """What tells its rows from those of others."""
        return {row[-1] for row, _ in self.rows}

    def at(self, epoch: int) -> Changes:
        """Return its changes if it is in `epoch`."""
        changes: Changes = defaultdict(Counter)
        for number, (row, diff) in enumerate(self.rows):
            changes[self.epochs[number] if self.epochs else epoch][tuple(map(key_of, row))] += diff
        return changes


@dataclass
class Shown:
    """What was read of one output."""

    changes: Changes = field(default_factory=dict)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """The stretches of epochs that were read, [first, the one behind the last]."""

    def note(self, start: int, stop: int, changes: Changes, who: str) -> None:
        """Note what was read of the epochs from `start` to before `stop`."""
        outside = [epoch for epoch in changes if not start <= epoch < stop]
        if outside:
            raise WrongAnswer(f"{who}: epochs {outside} in an answer for [{start}, {stop})")
        for since, until in self.epochs:
            first, end = max(since, start), min(until, stop)
            before = {epoch: rows for epoch, rows in self.changes.items() if first <= epoch < end}
            now = {epoch: rows for epoch, rows in changes.items() if first <= epoch < end}
            if before != now:
                raise WrongAnswer(
                    f"{who}: [{first}, {end}) was shown as {_cut(before)}, and now as {_cut(now)}"
                )
        if stop > start:
            self.epochs.append((start, stop))
            self.changes.update(changes)


class History:
    """The requests to one dataflow, and what it has shown."""

    def __init__(self, kind: Kind, owner: History | None = None) -> None:
        self.kind = kind
        self.owner = owner
        self.calls: list[Call] = []
        self.shown: dict[str, Shown] = defaultdict(Shown)
        self.sealed = -1
        """Epochs up to this one are sealed for certain."""
        self.closed: list[str] = []

    def begin(
        self, input: str, how: str, rows: list[tuple[Row, int]], first: int, epochs: Sequence[int] = ()
    ) -> Call:
        """Note that a call begins."""
        call = Call(input, how, rows, first, epochs=list(epochs), is_apart=self.kind.seals_apart)
        self.calls.append(call)
        return call

    def note(self, output: str, start: int, stop: int, rows: object, who: str = "a client") -> None:
        """Note what was read of an output: a table of changes, or records with their epochs."""
        name = f"{who}, {self.kind.name}, output {output!r}"
        self.shown[output].note(start, stop, changes_of(rows), name)

    def check(self, stop: int, as_of: int = 0) -> int:
        """Hold everything that was shown of the epochs before `stop` against the law. The outputs were read
        from epoch `as_of` on. Return how many epochs that were.
        """
        placed = self._placed(stop)
        expected = undisturbed(self, placed, stop)
        for output, shown in self.shown.items():
            have = _accumulated(shown.changes, as_of, stop, self._is_records(output))
            want = _accumulated(expected[output], as_of, stop, self._is_records(output))
            if have != want:
                epoch = next(e for e in sorted({*have, *want}) if have.get(e) != want.get(e))
                raise WrongAnswer(
                    f"{self.kind.name}, output {output!r}, epoch {epoch}: {_cut(have.get(epoch))}, "
                    f"and undisturbed {_cut(want.get(epoch))}"
                )
        return stop

    def versions(self, stop: int) -> dict[int, list[int]]:
        """Return the new versions of the dataflow by the epoch in which each has taken the place of another,
        as its output has told.
        """
        found: dict[int, list[int]] = {}
        last = 0
        for epoch, rows in sorted(self.shown["version"].changes.items()) if self.kind.has_versions else ():
            (now,) = [int(str(row[0])) for row, n in rows.items() if n > 0]
            if epoch < stop and now != last:
                found[epoch] = [*range(last + 1, now + 1)]
                last = now
        return found

    def _is_records(self, output: str) -> bool:
        return any(rows.takes == "records" for rows in self.kind.inputs.values())

    def _placed(self, stop: int) -> list[tuple[Call, int]]:
        """Return the calls that count and the epoch of each, in their order."""
        placed: dict[int, int] = {}
        for name, rows in self.kind.inputs.items():
            calls = [call for call in self.calls if call.input == name]
            if rows.takes == "values":
                placed.update(self._place_values(name, calls, stop))
            else:
                placed.update(self._place_rows(name, calls, stop))
        for call in self.calls:
            if call.input not in self.kind.inputs and call.is_there:
                placed[id(call)] = call.first
        return [(call, placed[id(call)]) for call in self.calls if id(call) in placed]

    def _place_rows(self, name: str, calls: Sequence[Call], stop: int) -> dict[int, int]:
        """Find each call in what the output says that has come in."""
        output = f"same {name}"
        left = {epoch: Counter(rows) for epoch, rows in self.shown[output].changes.items() if epoch < stop}
        placed: dict[int, int] = {}
        by_tag: dict[object, list[Call]] = defaultdict(list)
        for call in calls:
            for tag in call.tags:
                by_tag[tag].append(call)
        # Calls whose epoch is certain come first: what is left is of the others.
        for call in sorted(
            calls, key=lambda one: not (one.is_there and (one.first == one.last or one.epochs))
        ):
            last = stop - 1 if call.last is None else min(call.last, stop - 1)
            fits = [e for e in range(call.first, last + 1) if _holds(left, call.at(e))]
            if not fits and call.rows[0][1] > 0:
                # A seal that did not wait for the disk was lost: what removes rows is in the same epoch.
                fits = [
                    e for e in range(call.first, last + 1) if _holds(left, _left_by(calls, call.at(e), e))
                ]
            if call.epochs:
                fits = [0] if _holds(left, call.at(0)) else []
            if (
                not fits
                and call.is_there
                and (not call.epochs or max(call.epochs) < stop)
                and call.first < stop
            ):
                raise WrongAnswer(
                    f"{self.kind.name}, input {name!r}: {call.how} {call.rows} was acknowledged for epochs "
                    f"{call.epochs or (call.first, call.last)} and is not there, or not whole; there are "
                    f"{_cut({e: c for e, c in left.items() if any(row[-1] in call.tags for row in c)})}"
                )
            if fits:
                placed[id(call)] = fits[0]
                for epoch, changes in call.at(fits[0]).items():
                    left.setdefault(epoch, Counter()).subtract(changes)
        rest = {epoch: {row: n for row, n in rows.items() if n} for epoch, rows in left.items()}
        if any(rest.values()):
            raise WrongAnswer(
                f"{self.kind.name}, input {name!r}: nobody has said, or only a part, or twice: "
                f"{_cut({epoch: rows for epoch, rows in rest.items() if rows})}"
            )
        return placed

    def _place_values(self, name: str, calls: Sequence[Call], stop: int) -> dict[int, int]:
        """Find a choice of the calls in doubt that explains the values."""
        shown = {e: rows for e, rows in self.shown[f"same {name}"].changes.items() if e < stop}
        choices: list[list[int | None]] = []
        for call in calls:
            last = min(stop - 1, call.first + 1 if call.last is None else call.last)
            epochs: list[int | None] = list(range(call.first, last + 1))
            if call.is_there and call.first < stop:
                choices.append(epochs)
            else:
                choices.append([*epochs, None])
        for chosen in itertools.islice(itertools.product(*choices), 4_096):
            placed = [(call, at) for call, at in zip(calls, chosen, strict=True) if at is not None]
            if _values(placed) == shown:
                return {id(call): at for call, at in placed}
        raise WrongAnswer(
            f"{self.kind.name}, input {name!r}: no choice of the calls in doubt explains {_cut(shown)}; "
            "calls: " + "; ".join(f"{c.how} {c.rows} {c.first}-{c.last} {c.is_there}" for c in calls)
        )


def _values(placed: Iterable[tuple[Call, int]]) -> Changes:
    """Return the changes of an input that keeps the last value by key, by calls in their order."""
    by_epoch: dict[int, list[Call]] = defaultdict(list)
    for call, epoch in placed:
        by_epoch[epoch].append(call)
    values: dict[object, Row] = {}
    changes: Changes = {}
    for epoch in sorted(by_epoch):
        before = dict(values)
        for call in by_epoch[epoch]:
            for row, diff in call.rows:
                if diff > 0:
                    values[row[0]] = row
                else:
                    values.pop(row[0], None)
        changed = Counter(values.values())
        changed.subtract(before.values())
        if found := Counter({row: n for row, n in changed.items() if n}):
            changes[epoch] = found
    return changes


def _left_by(calls: Sequence[Call], changes: Changes, epoch: int) -> Changes:
    """Return changes without the rows that some call may have removed in the same epoch. Where that call is
    found elsewhere, the judge finds that these rows are missing.
    """
    removed = {
        row
        for call in calls
        if call.rows[0][1] < 0 and call.first <= epoch and (call.last is None or epoch <= call.last)
        for row in call.at(epoch).get(epoch, ())
    }
    return {
        at: Counter({row: n for row, n in rows.items() if at != epoch or row not in removed})
        for at, rows in changes.items()
    }


def _holds(left: Mapping[int, Counter[Row]], changes: Changes) -> bool:
    """Return True if all these changes are in `left`."""
    for epoch, rows in changes.items():
        there = left.get(epoch, Counter())
        if any(n and not (0 < n <= there[row] or there[row] <= n < 0) for row, n in rows.items()):
            return False
    return True


def changes_of(rows: object) -> Changes:
    """Return the changes by epoch of a table, or of records with their epochs."""
    changes: dict[int, Counter[Row]] = defaultdict(Counter)
    if isinstance(rows, pa.Table):
        for row in rows.to_pylist():
            epoch, diff = row.pop("epoch"), row.pop("diff")
            changes[epoch][tuple(map(key_of, row.values()))] += diff
    else:
        assert isinstance(rows, list)
        for epoch, record in rows:
            changes[epoch][tuple(record)] += 1
    counted = (
        (epoch, Counter({row: n for row, n in found.items() if n})) for epoch, found in changes.items()
    )
    return {epoch: found for epoch, found in counted if found}


def _accumulated(changes: Changes, as_of: int, stop: int, is_records: bool) -> Changes:
    """Return the changes of each epoch, those up to `as_of` summed up."""
    found: dict[int, Counter[Row]] = defaultdict(Counter)
    for epoch, rows in changes.items():
        if epoch < stop:
            for row, n in rows.items():
                found[epoch if is_records else max(epoch, as_of)][row] += n
    counted = ((epoch, Counter({row: n for row, n in rows.items() if n})) for epoch, rows in found.items())
    return {epoch: rows for epoch, rows in counted if rows}


def undisturbed(history: History, placed: Sequence[tuple[Call, int]], stop: int) -> dict[str, Changes]:
    """Return what each output of the dataflow is among workers that do not fail."""
    with timely.connect(workers=1, embedded=True) as cluster:
        flows: list[tuple[timely.Flow, History, Sequence[tuple[Call, int]]]] = []
        if history.owner is not None:
            owner = cluster.install(history.owner.kind.spec)
            flows.append((owner, history.owner, history.owner._placed(stop)))
        flow = history.kind.install(cluster)
        flows.append((flow, history, placed))
        for each, of, calls in flows:
            flow = _feed(cluster, each, of, calls, stop)
        return {name: changes_of(flow.output(name).changes(0, stop)) for name in flow.outputs}


def _feed(
    cluster: timely.Cluster,
    flow: timely.Flow,
    history: History,
    placed: Sequence[tuple[Call, int]],
    stop: int,
) -> timely.Flow:
    """Bring about the same again; return the dataflow, perhaps of a new version."""
    versions = history.versions(stop)
    by_epoch: dict[int, list[Call]] = defaultdict(list)
    for call, epoch in placed:
        for at in {epoch, *call.epochs} if not call.epochs else set(call.epochs):
            by_epoch[at].append(call)
    for epoch in sorted({*by_epoch, *versions}):
        if epoch >= stop:
            continue
        if epoch > flow.epoch:
            flow.seal(through=epoch - 1)
        for version in versions.get(epoch, ()):
            flow = cluster.replace(flow, history.kind.spec, version=version)
        for call in by_epoch[epoch]:
            rows = [
                (row, diff)
                for number, (row, diff) in enumerate(call.rows)
                if not call.epochs or call.epochs[number] == epoch
            ]
            _add(flow.input(call.input), call.how, rows)
        flow.seal()
    if stop > flow.epoch:
        flow.seal(through=stop - 1)
    return flow


def _add(into: FlowInput, how: str, rows: Sequence[tuple[Row, int]]) -> None:
    if how == "upsert":
        into.upsert([row for row, _ in rows])
    elif how == "delete":
        into.delete([row[0] for row, _ in rows])
    elif how == "records":
        into.insert([row for row, _ in rows])
    else:
        for diff, act in ((1, into.insert), (-1, into.remove)):
            if some := [row for row, n in rows if n == diff]:
                act(some)


def _cut(changes: object) -> str:
    text = str(changes)
    return text if len(text) < 1_500 else f"{text[:1_500]}…"
