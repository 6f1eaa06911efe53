"""The command line, with workers in this process."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from timely.sql.command import run_command

VIEWS = "create table t (a int); create view v as select sum(a) as s from t;\ninsert into t values (1), (2);"


def run(*arguments: str, source: str = "") -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    status = run_command(["--embedded", *arguments], io.StringIO(source), out, errors)
    return status, out.getvalue(), errors.getvalue()


def test_a_text_files_and_a_pipe_are_scripts(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(VIEWS)
    shown = "CREATE TABLE t\nCREATE VIEW v\nINSERT 2\n"
    assert run("-c", VIEWS + "select * from v") == (0, shown + "s\n-\n3\n(1 row)\n", "")
    assert run(source=VIEWS) == (0, shown, "")


def test_an_error_is_one_line_with_its_place_and_ends_with_status_1() -> None:
    status, out, errors = run(source=VIEWS + "\nselect nope from v")
    assert (status, out) == (
        1,
        "",
    ) and errors == "SqlError: <stdin>:3:8: there is no column nope; there are: s\n"


def test_a_worker_is_named_or_the_workers_are_embedded(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--embedded", "localhost:1"]):
        with pytest.raises(SystemExit):
            run_command(arguments, io.StringIO(), io.StringIO(), io.StringIO())
    assert "name a worker, HOST:PORT, or write --embedded" in capsys.readouterr().err
