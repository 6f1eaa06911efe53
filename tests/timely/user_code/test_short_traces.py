"""short_traces.py: errors of queries come with the user's lines, bugs of ours with all.

The programs are run as files of a user: the tests themselves stand for him, too.
"""

from __future__ import annotations

import inspect
import linecache
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential import algorithms, col
from timely.errors import InternalError, MisuseError, VertexError
from timely.own_files import OWN_FOLDERS
from timely.user_code.short_traces import (
    answers_misfits,
    in_short,
    short_lookup,
    shortened_traces,
    users_frames,
)


def unknown_column(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int, s: string")
    rows.select("k", x=col.kk + 1).output("o")


def other_type(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int, s: string")
    rows.group_by("k").agg(n=dd.count()).filter(col.n > "3").output("o")


def fails(flow: timely.Dataflow) -> None:
    del flow
    raise KeyError("mine")


def _frames(error: BaseException) -> tuple[list[str], list[str]]:
    """Functions on the way of an error: the user's, and ours."""
    steps = traceback.extract_tb(error.__traceback__)
    ours = [step.name for step in steps if step.filename.startswith(OWN_FOLDERS)]
    return [step.name for step in steps if step.name not in ours], ours


@pytest.mark.parametrize("query", [unknown_column, other_type])
@pytest.mark.parametrize("embedded", [True, False])
def test_a_query_that_is_refused_shows_the_users_lines_alone(query: object, embedded: bool) -> None:
    with (
        timely.connect(workers=1, embedded=embedded) as cluster,
        pytest.raises(timely.TimelyError, match=r"test_short_traces\.py:\d+") as caught,
    ):
        cluster.install(query)  # type: ignore[arg-type]  # one of the above
    users, ours = _frames(caught.value)
    assert ours == []
    assert users[0].startswith("test_") and users[1:] == ([] if embedded else [query.__name__])  # type: ignore[attr-defined]


def test_a_new_version_that_is_refused_alike() -> None:
    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int")
        rows.export("rows")
        rows.output("o")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        with pytest.raises(timely.TimelyError, match="goes on as it was") as caught:
            cluster.replace(flow, unknown_column)
    assert _frames(caught.value)[1] == []


def test_a_builder_that_fails_is_shown_with_its_line_and_none_of_ours() -> None:
    with timely.connect(workers=1) as cluster, pytest.raises(VertexError, match="in fails") as caught:
        cluster.install(fails)
    assert _frames(caught.value)[1] == [] and isinstance(caught.value.__context__, KeyError)


def test_what_is_no_error_of_ours_keeps_its_way() -> None:
    rows = dd.input(timely.Dataflow("rows"), "rows", "k: int")

    def broken(_: dd.Collection) -> dd.Collection:
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught, shortened_traces():
        rows.iterate(broken)
    assert len(_frames(caught.value)[1]) > 1


def _deep(error: Exception, depth: int = 3) -> None:
    if depth:
        _deep(error, depth - 1)
    raise error


@pytest.mark.parametrize(("error", "frames"), [(InternalError("a bug"), 5), (MisuseError("wrong"), 5)])
def test_bugs_keep_all_frames_and_frames_of_users_stay(error: Exception, frames: int) -> None:
    with pytest.raises(type(error)) as caught, shortened_traces():
        _deep(error)
    assert len(traceback.extract_tb(caught.value.__traceback__)) == frames


def test_bugs_keep_frames_of_ours() -> None:
    flow = timely.Dataflow("bug")
    found = []
    for raised in (MisuseError, InternalError):

        def bug(_: dd.Collection, raised: type[Exception] = raised) -> dd.Collection:
            raise raised("found")

        rows = dd.input(flow, raised.__name__, "k: int")
        with pytest.raises(raised) as caught, shortened_traces():
            rows.iterate(bug)
        found.append(len(_frames(caught.value)[1]))
    assert found[0] == 0 < found[1]


def test_no_frames_of_users_are_none() -> None:
    assert users_frames(None) is None


def test_rows_that_are_refused_show_the_call_and_not_how_they_were_looked_at() -> None:
    def numbers(flow: timely.Dataflow) -> None:
        dd.input(flow, "numbers", "n: int").output("all")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(numbers)
        with pytest.raises(timely.TimelyError, match="row 0: 7 is neither a tuple nor a dict") as caught:
            flow.input("numbers").insert([7])
    assert _frames(caught.value)[1] == []


CELLS = {"ipykernel": "/tmp/ipykernel_4711/{}.py", "ipython": "<ipython-input-{}-ab>", "typed": "<stdin>"}


class Notebook:
    """Cells that share their names, and are no files."""

    def __init__(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file = CELLS[kind]
        self._monkeypatch = monkeypatch
        self._count = 0
        self.names: dict[str, object] = {"__name__": "__main__", "dd": dd, "col": col, "timely": timely}
        self.names["components"] = algorithms.connected_components

    def run(self, cell: str) -> str:
        """What its file is called."""
        self._count += 1
        name = self._file.format(self._count)
        known = (len(cell), None, cell.splitlines(keepends=True), name)
        self._monkeypatch.setitem(linecache.cache, name, known)
        exec(compile(cell, name, "exec"), self.names)
        return name

    def refused(self, cell: str) -> tuple[str, list[str], list[str]]:
        """All that is shown of a cell that is refused; the user's functions on the way, and ours."""
        with pytest.raises((timely.TimelyError, AttributeError)) as caught:
            self.run(cell)
        users, ours = _frames(caught.value)
        return "".join(traceback.format_exception(caught.value)), users[2:], ours


REFUSED = {
    "select": "rows.select(\n    'k',\n    x=col.kk)",
    "filter": "rows.filter(col.k == 'a')",
    "group_by": "rows.group_by('kk')",
    "agg": "rows.group_by('k').agg(n=dd.sum('kk'))",
    "order": "rows.order_by('kk').limit(3)",
    "join": "rows.join(rows, on='kk')",
    "iterate": "rows.iterate(lambda inner: inner.select('kk'))",
    "window": "rows.window('k', '5 minutes')",
    "input": "dd.input(flow, 'others', 'k: itn')",
    "algorithm": "components(rows)",
    "unknown": "rows.sample('k')",
}


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("call", REFUSED)
def test_a_call_in_a_cell_that_is_refused_shows_its_line_and_none_of_ours(
    kind: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(kind, monkeypatch)
    notebook.run("flow = timely.Dataflow('cells')\nrows = dd.input(flow, 'rows', 'k: int, s: string')")
    shown, users, ours = notebook.refused(REFUSED[call])
    assert users == ["<module>"] + ["<lambda>"] * (call == "iterate")
    assert ours == []
    assert f'File "{CELLS[kind].format(2)}", line 1, in <module>' in shown
    assert shown.count("Traceback") == 1


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("embedded", [True, False])
def test_a_query_of_cells_that_is_refused_or_fails_shows_its_lines_and_says_it_once(
    kind: str, embedded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(kind, monkeypatch)
    with timely.connect(workers=1, embedded=embedded) as notebook.names["cluster"]:
        query = notebook.run(
            "def query(flow):\n    rows = dd.input(flow, 'rows', 'k: int')\n"
            "    rows.select(x=1 // col.k).output('o')\n\n"
            "def misspelt(flow):\n    dd.input(flow, 'rows', 'k: int').sample('k')"
        )
        shown, users, ours = notebook.refused("cluster.install(misspelt)")
        assert users == ["<module>"] and ours == []
        assert f'File "{query}", line 6, in misspelt' in shown and "Write instead: filter" in shown
        assert "builders.py" not in shown and "handle.py" not in shown
        notebook.run("flow = cluster.install(query)\nflow.input('rows').insert([(0,)])")
        notebook.run("flow.wait(flow.seal())")
        shown, users, ours = notebook.refused("flow.output('o').snapshot()")
        assert users == ["<module>"] and ours == [] and shown.count("divides by zero") == 1
        assert f"1 // col.k ({query}:3)" in shown and shown.count("Traceback") == 1


def test_calls_keep_their_names_and_what_they_say() -> None:
    assert dd.Collection.select.__name__ == "select"
    assert str(dd.Collection.top_k.__doc__)
    assert "window_start" in str(inspect.signature(dd.Collection.window))


def test_all_algorithms_are_calls_of_users() -> None:
    for name in algorithms.__all__:
        assert getattr(algorithms, name).__wrapped__.__name__ == name


def test_methods_that_are_not_calls_of_users_are_as_they_were() -> None:
    def shown() -> None: ...

    def _hidden() -> None: ...

    kind = in_short(type("Kind", (), {"shown": shown, "_hidden": _hidden, "number": 3}))
    assert vars(kind)["_hidden"] is _hidden and vars(kind)["number"] == 3
    assert vars(kind)["shown"].__wrapped__ is shown


def _interrupted(call: Callable[[], object]) -> KeyboardInterrupt:
    """By Ctrl-C, while it waits."""
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)  # which could seal
    thread.start()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark, once used, has one of its own
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
            call()
    finally:
        signal.signal(signal.SIGINT, handler)
        ended.set()
        thread.join()
    return caught.value


@pytest.mark.parametrize("kind", [{"embedded": True}, {}], ids=["embedded", "processes"])
def test_an_interrupt_of_who_waits_shows_the_call_and_not_by_what_means_it_waited(
    kind: dict[str, bool],
) -> None:
    def numbers(flow: timely.Dataflow) -> None:
        dd.input(flow, "numbers", "n: int").output("all")

    with timely.connect(workers=1, **kind) as cluster:  # type: ignore[arg-type]
        flow = cluster.install(numbers)
        output = flow.output("all")
        calls: dict[str, Callable[[], object]] = {
            "wait": lambda: flow.wait(3),
            "changes": lambda: output.changes(0, 4),
            "follow": lambda: next(output.follow()),
        }
        for name, call in calls.items():
            users, ours = _frames(_interrupted(call))
            assert ours == [] and users[-1] == "<lambda>", name
            assert "poll" not in users
        flow.wait(flow.seal())


def test_an_interrupt_of_a_function_shows_where_it_was() -> None:
    def numbers(flow: timely.Dataflow) -> None:
        dd.input(flow, "numbers", "n: int").map(sleepy).output("all")

    def sleepy(row: tuple[int]) -> tuple[int]:
        time.sleep(30)
        return row

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(numbers)
        flow.input("numbers").insert([(1,)])
        flow.seal()
        error = _interrupted(flow.wait)
        users, ours = _frames(error)
        assert ours == [] and users[-1] == "sleepy"
        with pytest.raises(timely.MisuseError, match="interrupted by KeyboardInterrupt"):
            flow.seal()


@pytest.mark.parametrize("embedded", [True, False])
def test_what_is_asked_of_a_cluster_and_is_refused_shows_the_users_lines_alone(
    embedded: bool,
) -> None:
    def numbers(flow: timely.Dataflow) -> None:
        dd.input(flow, "numbers", "n: int").output("all")

    with timely.connect(workers=1, embedded=embedded) as cluster:
        flow = cluster.install(numbers)
        calls: dict[str, tuple[str, Callable[[], object]]] = {
            "a number": ("flow", lambda: cluster.flow(77)),
            "a name": ("flow", lambda: cluster.flow("nobody")),
            "no builder": ("install", lambda: cluster.install(7)),  # type: ignore[arg-type]
            "no new version": ("replace", lambda: cluster.replace(flow, None)),  # type: ignore[arg-type]
        }
        for what, (name, call) in calls.items():
            with pytest.raises(timely.MisuseError) as caught:
                call()
            assert _frames(caught.value)[1] == [], what
            if what.startswith("no "):
                assert f"{name} takes a function of a dataflow" in str(caught.value)
    with pytest.raises(timely.MisuseError, match="this cluster is closed") as caught:
        cluster.stats()
    assert _frames(caught.value)[1] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((("localhost",), {}), "'localhost' is no address of a worker: write host:port"),
        (((2,), {}), r"write connect\(workers=2\)"),
        (((), {"workers": 0}), "1 to 1024 workers, not 0"),
        (((), {"workers": "two"}), "1 to 1024 workers, not 'two'"),
    ],
)
def test_a_connection_that_is_refused_shows_the_users_lines_and_none_of_ours(
    given: tuple[tuple[str, ...], dict[str, int]], said: str
) -> None:
    with pytest.raises(timely.MisuseError, match=said) as caught:
        timely.connect(*given[0], **given[1])  # type: ignore[arg-type]
    assert _frames(caught.value)[1] == []
    assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1


def _refusing(flow: timely.Flow, cluster: timely.Cluster) -> dict[str, Callable[[], object]]:
    """Calls that are refused: here, on a worker, and of a dataflow that has ended."""
    numbers = flow.input("numbers")
    table = pa.table({"n": [1], "diff": [1]})
    return {
        "no name": lambda: numbers.insert([(1,)], sequence=3),
        "another kind": lambda: numbers.upsert([(1,)]),
        "too large": lambda: numbers.insert([(2**63,)]),
        "no such epoch": lambda: numbers.append(table, epoch=-1, writer="w", sequence=0),
        "appends": lambda: flow.seal([("numbers", "w", 9)]),
        "no such input": lambda: flow.input("others"),
        "no such loop": lambda: flow.iterations("round"),
        "no such module": lambda: cluster.install("no_such_module_of_mine:query"),
        "no such argument": lambda: flow.seal(up_to=3),  # type: ignore[call-arg]
    }


@pytest.mark.parametrize("embedded", [True, False])
def test_whatever_a_flow_refuses_ends_at_the_users_line_and_is_said_once(embedded: bool) -> None:
    def build(flow: timely.Dataflow) -> None:
        dd.input(flow, "numbers", "n: int").select(x=1 // col.n).output("all", strict=True)

    with timely.connect(workers=1, embedded=embedded) as cluster:
        flow = cluster.install(build)
        calls = _refusing(flow, cluster)

        def shown(call: Callable[[], object]) -> tuple[list[str], int]:
            with pytest.raises((timely.TimelyError, TypeError)) as caught:
                call()
            told = "".join(traceback.format_exception(caught.value))
            return _frames(caught.value)[1], told.count("Traceback")

        for what, call in calls.items():
            assert shown(call) == ([], 1), what
        flow.input("numbers").insert([(0,)])
        flow.seal()
        calls = {"wait": flow.wait, "insert": lambda: flow.input("numbers").insert([(1,)]), "seal": flow.seal}
        for what, call in calls.items():
            assert shown(call) == ([], 1), what
        other = cluster.install(build)
        other.input("numbers").close()
        for kind in ({}, {"writer": "w", "sequence": 7}):
            assert shown(lambda kind=kind: other.input("numbers").insert([(1,)], **kind)) == ([], 1)  # type: ignore[misc]
    for call in (other.seal, other.refresh, other.output("all").snapshot, other.output("all").forget):
        assert shown(call) == ([], 1)


def _led_to(error: BaseException, cause: BaseException | None) -> BaseException:
    with pytest.raises(type(error)) as caught, shortened_traces():
        raise error from cause
    return caught.value


def test_what_has_led_to_an_error_stays_where_it_says_more() -> None:
    assert _led_to(MisuseError("cannot: no room"), OSError("no room")).__cause__ is None
    assert isinstance(_led_to(MisuseError("cannot"), OSError("no room")).__cause__, OSError)
    assert isinstance(_led_to(MisuseError("cannot"), OSError()).__cause__, OSError)
    first = OSError("disk")
    second = MisuseError("no room")
    second.__cause__ = first
    assert _led_to(MisuseError("cannot: no room"), second).__cause__ is first
    circle = MisuseError("round")
    assert _led_to(circle, circle) is circle


def test_a_bug_that_has_led_to_an_error_keeps_frames_of_ours() -> None:
    rows = dd.input(timely.Dataflow("bug"), "rows", "k: int")

    def bug(_: dd.Collection) -> dd.Collection:
        raise InternalError("a bug")

    with pytest.raises(InternalError) as inner:
        rows.iterate(bug)
    kept = _led_to(MisuseError("it failed: a bug"), inner.value).__cause__
    assert isinstance(kept, InternalError) and _frames(kept)[1]


def test_classes_of_users_are_made_as_they_are_written() -> None:
    made: list[tuple[type, str]] = []

    class Noted:
        def __init_subclass__(cls, note: str = "", **named: object) -> None:
            super().__init_subclass__(**named)
            made.append((cls, note))

    def mine(self: object) -> None: ...

    kind = types.new_class(
        "Mine", (dd.Collection, Noted), {"note": "x"}, lambda names: names.update(mine=mine)
    )
    assert made == [(kind, "x")] and vars(kind)["mine"] is mine


def test_arguments_that_do_not_fit_are_answered_as_a_method_says_and_others_are_not() -> None:
    def answer(kind: object, name: str, named: Mapping[str, object], error: TypeError) -> MisuseError:
        return MisuseError(f"{type(kind).__name__}.{name} {sorted(named)}: {error}")

    @in_short
    class Kind:
        @answers_misfits(answer)
        def answered(self, given: int) -> int:
            return given + 1

        def plain(self) -> None: ...

    assert Kind().answered(1) == 2 and Kind.answered.__name__ == "answered"
    with pytest.raises(MisuseError, match=r"Kind.answered \['far'\]: .*argument 'far'") as caught:
        Kind().answered(far=3)  # type: ignore[call-arg]
    assert _frames(caught.value)[1] == [] and caught.value.__suppress_context__
    with pytest.raises(TypeError, match="can only concatenate"):
        Kind().answered("a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="argument 'far'"):
        Kind().plain(far=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'self'"):
        Kind.answered(given=3)  # type: ignore[call-arg]  # there is no object to ask


NAMES = {
    "flow": "flow.foo",
    "flow's input": "flow.rows",
    "input": "flow.input('rows').send",
    "output": "flow.output('o').foreach",
    "module": "dd.medians",
    "expression": "col.k.foo",
    "text": "col.k.str.foo",
    "aggregate": "dd.sum('k').foo",
    "collection": "rows.sample",
    "groups": "rows.group_by('k').foo",
    "order": "rows.order_by('k').foo",
}


@pytest.mark.parametrize("kind", CELLS)
def test_a_name_that_is_not_there_shows_the_users_line_and_none_of_ours(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(kind, monkeypatch)
    with timely.connect(embedded=True) as notebook.names["cluster"]:
        notebook.run("def query(flow):\n    dd.input(flow, 'rows', 'k: int').output('o')")
        notebook.run("flow = cluster.install(query)\nrows = dd.input(timely.Dataflow('r'), 'rows', 'k: int')")
        for what, cell in NAMES.items():
            shown, users, ours = notebook.refused(cell)
            assert users == ["<module>"] and ours == [], what
            assert shown.count("Traceback") == 1 and "raise AttributeError" not in shown, what


def test_an_error_that_arose_deeper_than_where_a_name_was_looked_up_keeps_its_way() -> None:
    def deeper(name: str) -> None:
        raise AttributeError(name, name=name)

    class Kind:
        @short_lookup
        def __getattr__(self, name: str) -> None:
            if name == "deep":
                deeper(name)
            raise AttributeError(name)

    for name, count in (("deep", 4), ("flat", 1)):
        with pytest.raises(AttributeError, match=name) as caught:
            getattr(Kind(), name)
        assert len(traceback.extract_tb(caught.value.__traceback__)) == count
    assert not hasattr(Kind(), "flat") and getattr(Kind(), "flat", 7) == 7


FAILING = """
def deeper():
    raise KeyError("mine")

def fails(flow):
    dd.input(flow, "rows", "k: int").output("o")
    deeper()

def fails_in_a_loop(flow):
    dd.input(flow, "rows", "k: int").iterate(lambda _: deeper())
"""
FAILING_OTHERS = """
import differential as dd
import timely

@timely.builder
def fails(flow):
    raise KeyError("mine")  # in deeper
"""


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("embedded", [True, False])
def test_a_builder_that_fails_tells_its_way_once(
    kind: str, embedded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(kind, monkeypatch)
    notebook.run(FAILING)
    workers = {"embedded": True} if embedded else {"workers": 2}
    with timely.connect(**workers) as notebook.names["cluster"]:  # type: ignore[arg-type]
        notebook.names["old"] = notebook.names["cluster"].install(exported)  # type: ignore[attr-defined]
        for call, line in (
            ("install(fails)", "line 7, in fails\n"),
            ("install(fails_in_a_loop)", "line 10, in fails_in_a_loop\n"),
            ("replace(old, fails)", "line 7, in fails\n"),
        ):
            shown, users, ours = notebook.refused(f"cluster.{call}")
            assert users == ["<module>"] and ours == [], call
            assert shown.count("KeyError: 'mine'") == 1, shown
            assert shown.count("line 3, in deeper\n") == shown.count(line) == 1, shown
            assert shown.count("Traceback") == 2, "that of the call, and in what it says that of the builder"


def exported(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int")
    rows.export("rows")
    rows.output("o")


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("at_import", [True, False])
def test_a_builder_of_a_module_that_fails_alike(
    at_import: bool, embedded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"failing_{'module' if at_import else 'builder'}_{'here' if embedded else 'there'}"
    end = '\nraise KeyError("mine")  # in deeper\n' if at_import else ""
    (tmp_path / f"{name}.py").write_text(FAILING_OTHERS + end)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with timely.connect(workers=1, embedded=embedded) as cluster:
        with pytest.raises(VertexError) as caught:
            cluster.install(f"{name}:fails")
        shown = "".join(traceback.format_exception(caught.value))
        assert shown.count("KeyError: 'mine'") == shown.count("# in deeper") == 1
        assert f"{name}.py" in shown and shown.count("Traceback") == 2
