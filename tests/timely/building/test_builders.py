"""From "module:function" to a dataflow, and what is said when there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import dataflows
import pytest

from timely import Dataflow, GraphError, MisuseError, VertexError
from timely.building.builders import build_dataflow, check_not_importing, load_builder, spec_of


def test_a_builder_is_found_by_its_name_and_back() -> None:
    assert load_builder("dataflows:word_count") is dataflows.word_count
    assert spec_of(dataflows.word_count) == "dataflows:word_count"


def test_a_builder_written_after_the_start_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MisuseError, match="there is no module 'written_late'"):
        load_builder("written_late:build")
    (tmp_path / "written_late.py").write_text(
        "import timely\n@timely.builder\ndef build(flow):\n    flow.input('x')\n"
    )
    assert callable(load_builder("written_late:build"))
    sys.modules.pop("written_late")


def test_a_module_that_fails_shows_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "breaks_at_import.py").write_text("numbers = [1, 2]\nnumbers[7]\n")
    with pytest.raises(VertexError, match=r"breaks_at_import.py\", line 2"):
        load_builder("breaks_at_import:build")


@pytest.mark.parametrize(
    "spec", ["", "word_count", "a.b.c", "module:", ":f", "module:f.g", "a b:c", "module:f()"]
)
def test_a_spec_that_is_none_shows_an_example(spec: str) -> None:
    with pytest.raises(MisuseError, match="for example 'my_queries:mentions'"):
        load_builder(spec)


def test_a_missing_function_is_told_with_those_that_are_there() -> None:
    with pytest.raises(MisuseError, match="has no function 'wordcount'; it has .*word_count"):
        load_builder("dataflows:wordcount")


def test_functions_that_workers_cannot_import_are_refused() -> None:
    def inside(dataflow: Dataflow) -> None: ...

    for function in (inside, lambda flow: None):
        with pytest.raises(MisuseError, match="put it at the top of a module.*leave @timely.builder off"):
            spec_of(function)


def test_an_error_in_code_without_a_module_is_told_as_any_other() -> None:
    nameless: dict[str, Callable[[], None]] = {}
    exec("def fail(): raise KeyError('x')", nameless)

    with pytest.raises(VertexError, match="KeyError: 'x'$"):
        build_dataflow(lambda dataflow: nameless["fail"](), "written", {})


def test_an_error_of_another_library_says_that_queries_are_not_written_with_it() -> None:
    theirs: dict[str, Callable[[str], None]] = {"__name__": "pyspark.sql.functions.builtin"}  # type: ignore[dict-item]
    exec("def total(name):\n    assert name is None", theirs)  # as without a session: nothing is said

    def written(dataflow: Dataflow) -> None:
        theirs["total"]("cents")

    with pytest.raises(VertexError, match="AssertionError\nA query is not written with PySpark: col.x is"):
        build_dataflow(written, "written", {})


def test_errors_of_a_builder_come_with_its_traceback_and_our_own_as_they_are() -> None:
    with pytest.raises(VertexError, match=r"'broken' failed\.\n") as caught:
        build_dataflow(dataflows.broken_builder, "broken", {})
    assert "KeyError: 'no such query'" in str(caught.value) and "dataflows.py" in str(caught.value)
    with pytest.raises(VertexError, match="with arguments {'depth': 3}.*\n.*argument 'depth'") as caught:
        build_dataflow(dataflows.word_count, "words", {"depth": 3})
    assert "PySpark" not in str(caught.value)

    def twice(dataflow: Dataflow) -> None:
        dataflow.input("x")
        dataflow.input("x")

    with pytest.raises(GraphError, match="already has an input 'x'"):
        build_dataflow(twice, "twice", {})


@pytest.mark.parametrize("which", [1, 2])
def test_whoever_is_interrupted_around_an_import_may_connect_afterwards(which: int) -> None:
    """Ctrl-C as it is noted, or noted no more, that a module is being imported."""
    seen = 0

    def interrupted(frame: FrameType, event: str, arg: object) -> None:
        nonlocal seen
        if event == "c_return" and getattr(arg, "__qualname__", "") in ("ContextVar.set", "ContextVar.reset"):
            seen += 1
            if seen == which:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            load_builder("dataflows:word_count")
    finally:
        sys.setprofile(None)
    check_not_importing()
