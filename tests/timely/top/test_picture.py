"""Figures as a terminal shows them: in order, no more lines than fit, names as they are."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from timely.client.reports.figures import DataflowFigures, Figures, StageFigures, WorkerFigures
from timely.top.picture import ORDERS, picture, short, size


def stage(number: int, name: str, **figures: float) -> StageFigures:
    kept = {"busy": 0.0, "skew": 1.0, "rows": 0.0, "waiting": 0, "kept_rows": 0, "kept_bytes": 0} | figures
    return StageFigures(0, number, name, f"/home/ada/shop.py:{number}", "", **kept)  # type: ignore[arg-type]


def shown(stages: list[StageFigures], behind: float = 0.0) -> Figures:
    flow = DataflowFigures(0, "shop", 7, 5, 2, behind, 12.0, 0.5, 2048)
    return Figures(1.0, [WorkerFigures(0, 77, 0.25, 3 << 20, 4.0)], [flow], stages)


def text_of(
    figures: Figures, order: str = "busy", height: int = 40, width: int = 120, age: float = 0.0
) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(picture(figures, order, height, age))
    return out.getvalue()


def test_stages_come_in_the_order_that_is_asked_for() -> None:
    stages = [
        stage(1, "one", busy=0.1, rows=5.0, waiting=0, kept_bytes=9, skew=1.2),
        stage(2, "two", busy=0.9, rows=1.0, waiting=3, kept_bytes=1, skew=1.1),
        stage(3, "three", busy=0.5, rows=9.0, waiting=8, kept_bytes=5, skew=1.9),
    ]
    first = {}
    for order in ORDERS:
        text = text_of(shown(stages), order)
        first[order] = min(("one", "two", "three"), key=lambda name: text.index(f" {name} "))
    assert first == {"busy": "two", "rows": "three", "waiting": "three", "kept": "one", "skew": "three"}


def test_no_more_stages_than_fit_and_it_says_how_many_are_left_out() -> None:
    text = text_of(shown([stage(number, f"stage {number}") for number in range(50)]), height=20)
    assert len(text.splitlines()) <= 20 and "41 more stages" in text


def test_an_input_that_is_ahead_of_another_one_is_told() -> None:
    figures = shown([])
    for ahead, epoch in ((1, " 7 "), (60, " 7 +60 ")):
        apart = replace(figures, dataflows=[replace(figures.dataflows[0], ahead_epochs=ahead)])
        assert epoch in text_of(apart) and "+1" not in text_of(apart)


def test_names_are_text_and_no_markup() -> None:
    text = text_of(shown([stage(1, "top_k(3, by=[col.n.desc()])"), stage(2, "[bold red]x[/]")]))
    assert "by=[col.n.desc()]" in text and "[bold red]x[/]" in text


def test_a_narrow_terminal_keeps_the_numbers() -> None:
    text = text_of(shown([stage(1, "a name that is far too long for this", rows=123456.0)]), width=60)
    assert "123k" in text and "too long" not in text and max(map(len, text.splitlines())) <= 60


def test_an_old_answer_is_said_to_be_old() -> None:
    assert "have not answered for 7 s" in text_of(shown([]), age=7.0)
    assert "have not answered" not in text_of(shown([]), age=1.0)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.5, "0.5"), (999.4, "999"), (999.6, "1k"), (12345, "12.3k"), (5e6, "5M"), (2e12, "2,000G")],
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, ""), (7, "7 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (300 << 10, "300 KiB"), (5 << 40, "5120 GiB")],
)
def test_sizes_are_short(number: float, text: str) -> None:
    assert size(number) == text
