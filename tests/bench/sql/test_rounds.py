"""What is kept of rounds, what is shown of them, and what the command says of what is not there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers.flink import java
from bench.sql import __main__ as command
from bench.sql import nexmark, nexmark_queries
from bench.sql.rounds import Figures, Round, document, keep, kept


def made_up() -> Round:
    figures = {
        "ours": Figures(2.0, 4.0, 9.0),
        "Flink": Figures(8.0, 2.0, 18.0),
        "DuckDB": Figures(anew_ms=40.0),
        "Spark": Figures(anew_ms=400.0),
    }
    return Round("nexmark", "q3", "persons", 1, 1_000, "50 events", "2024-01-01", "a machine", figures)


def test_kept_rounds_come_back(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    refused = replace(made_up(), query="q6", refused={"Flink": "no time"}, wrong={"Spark": "no rows"})
    for one in (made_up(), refused):
        keep(one, path)
    assert kept([path]) == [made_up(), refused]


def test_tables_have_ratios_and_name_each_case_in_which_we_lose() -> None:
    slower = made_up()
    slower.figures = {**slower.figures, "ours": Figures(2.0, 8.0, 9.0), "Spark": Figures(anew_ms=6.0)}
    text = document([made_up(), slower, made_up()], "a command")
    assert (
        "| q3 persons | 500, 125 | 0.250 | 4.00, 2.00 | 2.00 | 9.00, 18.0 | 40.0, 400 | 0.100, 0.010 |"
        in text
    )
    assert text.count("We lose") == 1
    assert "- We lose: q3, change, 2.00 times as long as in Flink." in text


def test_tables_say_what_is_refused_and_what_is_wrong() -> None:
    one = replace(made_up(), refused={"Flink": "no time"}, wrong={"Spark": "no rows"})
    text = document([one], "a command")
    assert "- q3 is not taken by Flink: no time." in text
    assert text.endswith("## Wrong answers\n\n- q3, Spark: no rows\n")


def test_a_wrong_answer_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    (query,) = (query for query in nexmark_queries.QUERIES if query.name == "q3")
    stream, notes = nexmark.generated(3_000, 1, 500), list[str]()
    wrong = replace(query, text=query.text.replace("= 10", "= 11"))
    wanted = command.by_duckdb(query, stream, 1)
    monkeypatch.setattr(command, "by_duckdb", lambda *_: wanted)
    one = replace(made_up(), figures={})
    command.run_round(one, wrong, stream, stream, [], notes.append)
    assert set(one.figures) == {"DuckDB"} and "should not be there" in one.wrong["ours"]
    assert any("ours is wrong" in note for note in notes)


def test_an_engine_that_is_not_built_is_left_out_with_a_line_that_says_how(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(java, "FOLDER", tmp_path)
    small = ["nexmark", "q3", "--workers", "1", "--events", "2000", "--changes", "2", "--each", "50"]
    path = tmp_path / "nexmark.md"
    with pytest.raises(SystemExit) as ended:
        command.main([*small, "--without", "Spark", "--write", str(path)])
    assert ended.value.code == 0
    assert f"without Flink, which is not built: {java.BUILD}" in capsys.readouterr().err
    assert "## nexmark, one worker" in path.read_text()


def test_what_flink_has_refused_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tried: list[int] = []

    def refuses(*given: object) -> None:
        tried.append(len(given))
        raise java.FlinkError("it has not ended within 300 s")

    monkeypatch.setattr(command, "by_flink", refuses)
    monkeypatch.setattr(java, "is_built", lambda: True)
    small = ["nexmark", "q3", "--workers", "1", "--events", "2000", "--changes", "2", "--each", "50"]
    path = tmp_path / "nexmark.md"
    with pytest.raises(SystemExit):
        command.main([*small, "--runs", "2", "--without", "Spark", "--write", str(path)])
    assert len(tried) == 1
    assert "- q3 is not taken by Flink: it has not ended within 300 s." in path.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nexmark", "q99"], "there is no query q99; there are q3, q4"),
        (["tpch"], "tpch needs --folder"),
    ],
)
def test_what_is_asked_wrongly_is_one_error(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2 and said in capsys.readouterr().err
