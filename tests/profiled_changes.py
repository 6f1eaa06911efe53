"""Which functions does one changed row pass?

`journeys` makes changes of one row and profiles each: one row in, one row out, and a seal that waits. It does
so for a lone embedded worker, and for a client and two worker processes. `page` makes `docs/journey.md` of
the result: the functions of ours that most changes pass. `./scripts/journey` writes it.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from journey_flows import Passed, listen_rarely

import timely

__all__ = ["EMBEDDED", "PAGE", "ROOT", "TITLES", "Function", "Journey", "journeys", "page"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "journey.md"
CHANGES_BEFORE = 40
"""Changes before the first one that is profiled: memory is reserved and kernels are loaded by then."""
CHANGES = 25
LEAST = 0.5
LEAST_IN_PROCESSES = 0.1
"""The share of changes that passes a listed function. In processes it depends on which of them is sooner."""
PACKAGES = ("progress", "timely", "differential")
Row = tuple[int, int]
Function = tuple[str, str]
"""File and qualified name."""
EMBEDDED = ("counts", "components")
TITLES = {
    "counts": "A count by key, embedded",
    "components": "Connected components, embedded",
    "client": "A count by key on two worker processes: the client",
    "worker 0": "A count by key on two worker processes: worker 0",
    "worker 1": "A count by key on two worker processes: worker 1",
}
HEAD = """# The functions that one changed row passes

`./scripts/journey` makes this page. It profiles changes of one row and lists the functions of ours that most
changes pass. A change inserts one row, removes one, and seals with
`wait=True`.
`tests/test_journey.py` fails if the page is stale, so a function that joins the path of a row shows up in the
diff of this page.

Functions that only a few changes pass, such as those that merge runs, are not listed; nor are comprehensions
and lambdas. Embedded, the functions stand in the order of their first calls; of processes, by file and name.
[journey_of_a_record.md](journey_of_a_record.md) describes the same path in words.
"""


@dataclass(frozen=True)
class Journey:
    """The way of one changed row, of which several were profiled.

    functions   the functions of ours that so many changes passed as `least` says, in the order of their first
                calls, without comprehensions and lambdas
    always      the same of those that every change passed
    sometimes   the same of those that some change passed
    count       how many functions of ours the median change passes, with comprehensions and lambdas
    files       in how many files these are
    calls       how many calls of functions of Python the median change takes, whoever wrote them
    calls_of_c  how many calls of functions of C
    """

    functions: tuple[Function, ...]
    always: frozenset[Function]
    sometimes: frozenset[Function]
    count: int
    files: int
    calls: int
    calls_of_c: int


class _Changes:
    """Rows to begin with, and changes of one row each."""

    def __init__(self) -> None:
        chance = random.Random(1)
        count = 1_000
        self._rows = [(chance.randrange(count), chance.randrange(count)) for _ in range(2 * count)]
        self._next = [(chance.randrange(count), chance.randrange(count)) for _ in range(count)]

    def begin(self, flow: timely.Flow) -> None:
        """Load the rows, and make some changes."""
        flow.input("rows").insert(self._rows)
        flow.seal(wait=True)
        for _ in range(CHANGES_BEFORE):
            self.make(flow)

    def make(self, flow: timely.Flow) -> None:
        """One row in, one out, and a seal that waits."""
        new, old = [self._next.pop()], [self._rows.pop()]
        flow.input("rows").insert(new)
        flow.input("rows").remove(old)
        flow.seal(wait=True)


def journeys() -> dict[str, Journey]:
    """The journeys by the names of `TITLES`."""
    return {name: _embedded(name) for name in EMBEDDED} | _by_processes("counts")


def _embedded(builder: str) -> Journey:
    changes = _Changes()
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(f"journey_flows:{builder}")
        changes.begin(flow)
        return _journey([_profiled(changes, flow) for _ in range(CHANGES)], LEAST)


def _by_processes(builder: str) -> dict[str, Journey]:
    changes = _Changes()
    found: dict[str, list[Passed]] = {name: [] for name in ("client", "worker 0", "worker 1")}
    with TemporaryDirectory() as name, listen_rarely(), timely.connect(workers=2) as cluster:
        flow = cluster.install(f"journey_flows:{builder}")
        changes.begin(flow)
        cluster.install("journey_flows:profiles_itself", folder=name)
        workers = [Path(name, str(worker["process"])) for worker in cluster.stats()]
        for _ in range(CHANGES):
            for folder in workers:
                _signal(folder, "began")
            found["client"].append(_profiled(changes, flow))
            for index, folder in enumerate(workers):
                _signal(folder, "passed.json")
                found[f"worker {index}"].append(Passed.from_json((folder / "passed.json").read_text()))
                for file in ("began", "passed.json"):
                    (folder / file).unlink()
    return {name: _journey(passed, LEAST_IN_PROCESSES) for name, passed in found.items()}


def _signal(folder: Path, answer: str) -> None:
    """Send the worker that writes into `folder` a signal, and wait until the file `answer` is there."""
    os.kill(int(folder.name), signal.SIGUSR1)
    deadline = time.monotonic() + 60.0
    while not (folder / answer).exists():
        assert time.monotonic() < deadline, f"no {answer} in {folder}"
        time.sleep(0.001)


def _profiled(changes: _Changes, flow: timely.Flow) -> Passed:
    passed = Passed()
    gc.disable()  # what is called when memory is collected depends on everything before
    try:
        passed.start()
        changes.make(flow)
    finally:
        passed.stop()
        gc.enable()
    return passed


def _journey(changes: Sequence[Passed], least: float) -> Journey:
    """What these changes passed; `least`: the share of them that passes a function for it to be listed."""
    passing = Counter(one for change in changes for one in change.functions)
    # `_Changes.make` and the call that ends the profile are no part of the change.
    passed = [_of_packages(change.functions) for change in changes]
    return Journey(
        tuple(_ours(one for one in _in_order(changes) if passing[one] > least * len(changes))),
        frozenset(_ours(one for one, count in passing.items() if count == len(changes))),
        frozenset(_ours(passing)),
        round(statistics.median(len(one) for one in passed)),
        round(statistics.median(len({file for file, _ in one}) for one in passed)),
        round(statistics.median(sum(change.functions.values()) - 1 for change in changes)),
        round(statistics.median(change.calls_of_c - 1 for change in changes)),
    )


def _in_order(changes: Sequence[Passed]) -> list[Function]:
    """All functions, as far as possible in the order of the change with the fewest calls."""
    first, *others = sorted(changes, key=lambda change: sum(change.functions.values()))
    return list(dict.fromkeys(one for change in (first, *others) for one in change.functions))


def _ours(functions: Iterable[Function]) -> list[Function]:
    return [(file, name) for file, name in _of_packages(functions) if not name.endswith(">")]


def _of_packages(functions: Iterable[Function]) -> list[Function]:
    paths = [(Path(file), name) for file, name in functions]
    inside = [(path.relative_to(ROOT), name) for path, name in paths if path.is_relative_to(ROOT)]
    return [(path.as_posix(), name) for path, name in inside if path.parts[0] in PACKAGES]


def page(found: Mapping[str, Journey]) -> str:
    """`docs/journey.md`."""
    lines = [HEAD]
    for name, title in TITLES.items():
        # The order of processes that wait for one another is another each time, and would hide what is new.
        functions = found[name].functions if name in EMBEDDED else sorted(found[name].functions)
        files = {file for file, _ in functions}
        lines += [f"## {title}", "", f"{len(functions)} functions in {len(files)} files.", ""]
        lines += ["| file | functions |", "|---|---|"]
        lines += [f"| `{file}` | {', '.join(names)} |" for file, names in _steps(functions)]
        lines.append("")
    return "\n".join(lines)


def _steps(functions: Sequence[Function]) -> list[tuple[str, list[str]]]:
    """Functions that follow one another in one file, as one line; each name is quoted."""
    steps: list[tuple[str, list[str]]] = []
    for file, name in functions:
        if not steps or steps[-1][0] != file:
            steps.append((file, []))
        steps[-1][1].append(f"`{name}`")
    return steps
