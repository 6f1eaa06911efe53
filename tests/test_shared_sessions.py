"""Which tests are run by one process: those with the session of Spark, those of a file, some documents."""

from __future__ import annotations

import re

from house import ROOT
from shared_sessions import (
    _LONG_DOCUMENTS,
    _LONGEST_FIRST,
    _OF_THE_SOURCE,
    DOCUMENTS_WITH_SPARK,
    in_order,
    process_count,
    scope_of,
)

_ASKS = re.compile(r"\b(spark|session): SparkSession\b")


def _scope(file: str) -> str:
    return scope_of(f"{file}::test_one[a::b]")


def test_all_files_that_ask_for_the_session_are_together() -> None:
    """One that is not would start a second Spark, in whichever process it comes to."""
    files = (ROOT / "tests").rglob("test_*.py")
    asking = [str(file.relative_to(ROOT)) for file in files if _ASKS.search(file.read_text())]
    assert len(asking) > 20
    assert {_scope(file) for file in asking} == {"with the session of Spark"}


def test_others_are_by_file_and_long_ones_that_start_their_own_spark_are_among_them() -> None:
    for file in (
        "tests/spark/faults/test_faults.py",
        "tests/spark/scheduled/test_masters.py",
        "tests/examples/test_mention_components.py",
        "tests/processes/test_cluster.py",
    ):
        assert (ROOT / file).is_file() and _scope(file) == file


def test_documents_are_shared_out_and_those_that_start_spark_are_together() -> None:
    def scope(document: str) -> str:
        return scope_of(f"tests/test_docs_run.py::test_run_it[{document}]")

    assert all((ROOT / document).is_file() for document in (*_LONG_DOCUMENTS, *DOCUMENTS_WITH_SPARK))
    scopes = {scope(document) for document in _LONG_DOCUMENTS}
    assert len(scopes) == len(_LONG_DOCUMENTS)
    assert {scope(f"docs/{number}.md") for number in range(40)} == scopes
    (with_spark,) = {scope(document) for document in DOCUMENTS_WITH_SPARK}
    assert with_spark not in scopes


def test_rules_of_the_house_are_together() -> None:
    assert all((ROOT / file).is_file() for file in _OF_THE_SOURCE)
    assert {_scope(file) for file in _OF_THE_SOURCE} == {"of the source"}
    assert _scope("tests/test_errors_page.py") == "tests/test_errors_page.py"


def test_long_files_come_first_and_folders_are_mixed_behind_them() -> None:
    files = ["bench/a.py", "bench/b.py", *(f"timely/{number}.py" for number in range(4)), "spark/a.py"]
    order = in_order(files)
    assert sorted(files, key=order.__getitem__) == [
        *("spark/a.py", "bench/a.py", "timely/0.py", "timely/1.py"),
        *("bench/b.py", "timely/2.py", "timely/3.py"),
    ]


def test_long_files_that_have_a_place_are_there() -> None:
    files = {str(path.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("test_*.py")}
    for begins in _LONGEST_FIRST:
        assert any(file.startswith(begins) for file in files), f"no file is called {begins}…"


def test_processes_are_as_many_as_cores_and_memory_have_room_for() -> None:
    gigabyte = 1 << 30
    assert [process_count(cores, 64 * gigabyte) for cores in (1, 2, 3, 8)] == [3, 5, 7, 8]
    assert [process_count(2, memory * gigabyte) for memory in (0, 3, 5, 8, 64)] == [1, 1, 2, 4, 5]
